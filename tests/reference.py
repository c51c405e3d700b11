"""Sampling written down as plainly as can be, in double precision: what the engine's is held against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.engine.types import Sampling


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()


def probabilities(
    logits: np.ndarray, sampling: Sampling, context: Sequence[int] = (), banned: Sequence[int] = ()
) -> np.ndarray:
    """The distribution that the settings ask for behind `context`, shape [vocabulary]."""
    values = logits.astype(np.float64)
    last_n = sampling.repeat_last_n
    recent = list(context) if last_n < 0 else list(context)[max(0, len(context) - last_n) :]
    for token in set(recent):
        if values[token] > 0:
            values[token] /= sampling.repeat_penalty
        else:
            values[token] *= sampling.repeat_penalty
    values[list(banned)] = -np.inf

    if sampling.temperature == 0:
        alone = np.zeros(len(values))
        alone[values.argmax()] = 1
        return alone
    kept = sorted(range(len(values)), key=lambda token: (-values[token], token))
    if sampling.top_k > 0:
        kept = kept[: sampling.top_k]
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
    return result
