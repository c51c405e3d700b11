"""A reference sampler in plain code and double precision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.engine.types import Sampling


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()


def dry_penalties(
    sampling: Sampling, context: Sequence[int], breakers: Sequence[Sequence[int]] = ()
) -> dict[int, float]:
    """DRY's penalty after `context`, by token; `breakers` are token sequences that end a repetition."""
    last_n = sampling.dry_penalty_last_n
    recent = list(context) if last_n < 0 else list(context)[max(0, len(context) - last_n) :]
    longest = len(recent)
    for start in reversed(range(len(recent))):
        sizes = [
            len(breaker) for breaker in breakers if recent[start : start + len(breaker)] == list(breaker)
        ]
        if sizes:
            longest = len(recent) - start - max(sizes)
            break
    taken: dict[int, float] = {}
    for place in range(1, len(recent)):
        length = 0
        while length < min(place, longest) and recent[place - 1 - length] == recent[-1 - length]:
            length += 1
        token = recent[place]
        if length >= sampling.dry_allowed_length and [token] not in map(list, breakers):
            penalty = sampling.dry_multiplier * sampling.dry_base ** (length - sampling.dry_allowed_length)
            taken[token] = max(penalty, taken.get(token, 0.0))
    return taken


def probabilities(
    logits: np.ndarray,
    sampling: Sampling,
    context: Sequence[int] = (),
    banned: Sequence[int] = (),
    breakers: Sequence[Sequence[int]] = (),
) -> np.ndarray:
    """The distribution after `context` with these settings, shape [vocabulary]."""
    values = logits.astype(np.float64)
    last_n = sampling.repeat_last_n
    recent = list(context) if last_n < 0 else list(context)[max(0, len(context) - last_n) :]
    for token in set(recent):
        if values[token] > 0:
            values[token] /= sampling.repeat_penalty
        else:
            values[token] *= sampling.repeat_penalty
        values[token] -= recent.count(token) * sampling.frequency_penalty + sampling.presence_penalty
    for token, penalty in dry_penalties(sampling, context, breakers).items():
        values[token] -= penalty
    values[list(banned)] = -np.inf

    if sampling.temperature == 0:
        alone = np.zeros(len(values))
        alone[values.argmax()] = 1
        return alone
    kept = sorted(range(len(values)), key=lambda token: (-values[token], token))
    if sampling.top_n_sigma > 0:
        finite = values[values > -np.inf]
        least = finite.max() - sampling.top_n_sigma * finite.std()
        kept = [token for token in kept if values[token] >= least]
    if sampling.top_k > 0:
        kept = kept[: sampling.top_k]
    p = softmax(values[kept])
    if sampling.typical_p < 1:
        surprise = -np.log(p)
        order = np.argsort(np.abs(surprise - (p * surprise).sum()), kind="stable").tolist()
        total, n = 0.0, 0
        while n < len(order) and total <= sampling.typical_p:
            total += p[order[n]]
            n += 1
        kept = [kept[place] for place in sorted(order[:n])]
        p = softmax(values[kept])
    if sampling.top_p < 1:
        total, n = 0.0, 0
        while n < len(kept) and (n == 0 or total < sampling.top_p):
            total += p[n]
            n += 1
        kept, p = kept[:n], p[:n]
    if sampling.min_p > 0:
        kept = [token for token, share in zip(kept, p, strict=True) if share >= sampling.min_p * p[0]]
    result = np.zeros(len(values))
    result[kept] = softmax(values[kept] / sampling.temperature)
    if sampling.xtc_probability == 0 or sampling.xtc_threshold > 0.5:
        return result
    above = np.count_nonzero(softmax(values[kept]) >= sampling.xtc_threshold)
    dropped = np.zeros(len(values))
    rest = kept[max(0, int(above) - 1) :]
    dropped[rest] = softmax(values[rest] / sampling.temperature)
    return (1 - sampling.xtc_probability) * result + sampling.xtc_probability * dropped
