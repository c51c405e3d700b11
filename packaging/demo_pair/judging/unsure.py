"""How unsure the target is where people are, and what that does to a draft: measured on held-out prompts.

The prompts are those of `prompts.jsonl`, which corpus.py writes: a third dialogues, a third prose, a third
code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from app.engine import Engine, GenerationRequest, Message, Sampling

from base import library
from judging.answering import Answer, Rows, answered, loaded

MOST_TOKENS = 128
SURE = 0.99
DRAFTED = "draft-simple:n_max=4"
SAMPLED = f"{DRAFTED}:sample=1"
TEXTS = 40
"""Held-out texts of each kind that a loss is taken of."""
TEXT_TOKENS = 768
SEEDS = 3
RESAMPLES = 2000
Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Prompt:
    kind: str
    request: GenerationRequest

    def asked(self, strategy: str, temperature: float, seed: int = 0) -> GenerationRequest:
        return replace(
            self.request, strategy=strategy, sampling=Sampling(temperature=temperature, seed=seed), cold=True
        )


def load(work: Path) -> list[Prompt]:
    found = []
    for line in (work / "prompts.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        messages = tuple(Message(role, content) for role, content in entry.get("messages", ()))
        request = GenerationRequest(prompt=entry.get("text"), messages=messages, max_tokens=MOST_TOKENS)
        found.append(Prompt(entry["kind"], request))
    return found


@dataclass(frozen=True, slots=True)
class Doubt:
    """Rows that a text was drawn from: their best probability and their entropy in nats, each (n,)."""

    best: np.ndarray
    entropy: np.ndarray

    @property
    def told(self) -> str:
        return f"{np.mean(self.best > SURE):.0%}, {self.entropy.mean():.2f} nats"


def doubt(rows: Rows, prompt: Sequence[int], answer: Sequence[int]) -> Doubt:
    """The target's rows at temperature 1 while it wrote `answer`."""
    logs = rows.log_probabilities([*prompt, *answer])[len(prompt) - 1 : -1]
    return Doubt(np.exp(logs.max(-1)), -(np.exp(logs) * logs).sum(-1))


def joined(doubts: Sequence[Doubt]) -> Doubt:
    return Doubt(
        np.concatenate([doubt.best for doubt in doubts]), np.concatenate([doubt.entropy for doubt in doubts])
    )


def doubts(engine: Engine, rows: Rows, prompts: Sequence[Prompt]) -> list[Row]:
    """Row of the table: how sure the target is at temperature 1, over all and by kind."""
    found: dict[str, list[Doubt]] = {}
    for prompt in prompts:
        request = prompt.asked("none", 1.0)
        written = answered(engine, request).tokens
        if written:
            found.setdefault(prompt.kind, []).append(doubt(rows, engine.prompt_ids(request), written))
    every = joined([doubt for own in found.values() for doubt in own])
    kinds = "; ".join(f"{kind} {joined(own).told}" for kind, own in found.items())
    return [
        (
            "rows whose best token has p > 0.99, temperature 1 (30 to 65 %)",
            f"{np.mean(every.best > SURE):.0%}",
        ),
        (
            "mean entropy of the target's rows (at least 0.7 nats)",
            f"{every.entropy.mean():.2f} nats: {kinds}",
        ),
    ]


def losses(rows: Rows, work: Path) -> list[Row]:
    """Rows of the table: nats a token on held-out files, each read from its beginning."""
    table = []
    documents = [document for document in library.load(work) if document.held_out]
    for kind in ("prose", "code"):
        texts = [
            document.text for document in documents if document.kind == kind and len(document.text) > 1500
        ]
        chosen = texts[:: max(1, len(texts) // TEXTS)][:TEXTS]
        found = []
        for text in chosen:
            ids = rows.tokens(text)[:TEXT_TOKENS]
            logs = rows.log_probabilities(ids)
            found.append(-logs[np.arange(len(ids) - 1), ids[1:]])
        every = np.concatenate(found)
        length = sum(len(text.encode()) for text in chosen) / sum(len(rows.tokens(text)) for text in chosen)
        told = f"{every.mean():.2f} nats ({len(every):,} tokens of {length:.2f} bytes)"
        table.append((f"loss on held-out library {kind} (at most 2.2 nats a token)", told))
    return table


def rates(answers: Sequence[Answer]) -> float:
    rounds = [round for answer in answers for round in answer.rounds]
    return sum(round.accepted for round in rounds) / max(1, sum(len(round.drafted) for round in rounds))


def acceptance(engine: Engine, prompts: Sequence[Prompt]) -> list[Row]:
    """Rows of the table: the share of drafted tokens that is accepted, over all and by kind."""
    table = []
    for label, strategy, temperature in (
        (f"acceptance of `{DRAFTED}`, greedy (0.6 to 0.85)", DRAFTED, 0.0),
        (f"acceptance of `{SAMPLED}`, temperature 1 (0.45 to 0.75)", SAMPLED, 1.0),
    ):
        found: dict[str, list[Answer]] = {}
        for prompt in prompts:
            found.setdefault(prompt.kind, []).append(answered(engine, prompt.asked(strategy, temperature)))
        every = [answer for own in found.values() for answer in own]
        kinds = ", ".join(f"{kind} {rates(own):.2f}" for kind, own in found.items())
        table.append((label, f"{rates(every):.2f}: {kinds}"))
    return table


def interval(gains: np.ndarray) -> tuple[float, float]:
    """95 % of what the mean of `gains` (n,) could have been, by drawing them anew."""
    rng = np.random.default_rng(1)
    means = gains[rng.integers(0, len(gains), (RESAMPLES, len(gains)))].mean(-1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def block(engine: Engine, prompts: Sequence[Prompt]) -> list[Row]:
    """Row of the table: accepted tokens a round of block verification less those of speculative."""
    gains = []
    for prompt in prompts:
        means = []
        for rule in ("block", "speculative"):
            strategy = f"{SAMPLED}:verify={rule}"
            answers = [answered(engine, prompt.asked(strategy, 1.0, seed)) for seed in range(SEEDS)]
            rounds = [round for answer in answers for round in answer.rounds if round.drafted]
            means.append(sum(round.accepted for round in rounds) / max(1, len(rounds)))
        gains.append(means[0] - means[1])
    low, high = interval(np.array(gains))
    drawn = f"{len(prompts)} prompts, {SEEDS} seeds"
    told = f"{np.mean(gains):+.3f} (95 % interval {low:+.3f} to {high:+.3f}, {drawn})"
    return [("accepted a round, `verify=block` less `verify=speculative` (interval above 0)", told)]


def measured(pair: Path, work: Path) -> list[Row]:
    """The whole part of the table."""
    prompts = load(work)
    rows = Rows(pair)
    with loaded(pair, "draft.gguf") as engine:
        return [
            *doubts(engine, rows, prompts),
            *losses(rows, work),
            *acceptance(engine, prompts),
            *block(engine, prompts),
        ]
