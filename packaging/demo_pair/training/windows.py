"""Training windows cut from the corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from training import tokenizer as bpe

RUN, BETWEEN = (4, 60), (0, 30)
"""Lengths of a run of random tokens and of what stands before it is said again, the upper ones excluded."""
SHARES = {"scenes": 0.36, "open": 0.16, "passages": 0.12, "code": 0.18, "prose": 0.18}
"""Of the rows of a batch (README.md says why). Of dialogues only the answers are learnt."""
LAST_SHARES = {"scenes": 0.66, "open": 0.14, "passages": 0.08, "code": 0.06, "prose": 0.06}
"""While the learning rates fall."""


@dataclass(frozen=True, slots=True)
class Twice:
    """Rows of a batch that are random tokens said twice."""

    rows: int
    variety: tuple[int, int] | None
    """Bounds of how many different tokens one of them has; of all tokens where it is None."""


@dataclass(frozen=True, slots=True)
class Batch:
    """`inputs`, `labels` and `learnt` are (rows, length); only labels where `learnt` holds count."""

    inputs: Tensor
    labels: Tensor
    learnt: Tensor

    def to(self, device: str) -> Batch:
        return Batch(self.inputs.to(device), self.labels.to(device), self.learnt.to(device))


def said_twice(
    rng: np.random.Generator, length: int, variety: tuple[int, int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Ids of random runs, each said twice; learnt where the second one follows from the first.

    The less variety, the more tokens before it are needed to tell what follows a token.
    """
    words = np.arange(len(bpe.CONTROL), bpe.VOCAB_SIZE)
    if variety:
        words = rng.choice(words, int(np.exp(rng.uniform(*np.log(variety)))), replace=False)

    def some(low: int, high: int) -> np.ndarray:
        return words[rng.integers(0, len(words), int(rng.integers(low, high)))]

    ids: list[np.ndarray] = []
    learnt: list[np.ndarray] = []
    missing = length
    while missing > 0:
        run, between = some(*RUN), some(*BETWEEN)
        ids.append(np.concatenate([run, between, run]))
        learnt.append(np.arange(len(ids[-1])) > len(run) + len(between))
        missing -= len(ids[-1])
    return np.concatenate(ids)[:length], np.concatenate(learnt)[:length]


class Corpus:
    """What `corpus.py` wrote: of each part (`train`, `held_out`) and kind the texts laid end to end."""

    def __init__(self, path: Path) -> None:
        self.arrays = dict(np.load(path))

    def window(self, part: str, rng: np.random.Generator, length: int) -> tuple[np.ndarray, np.ndarray]:
        """`length` ids and which are learnt: whole dialogues, the last one cut, or a piece of the texts."""
        ids = self.arrays[f"{part}_ids"]
        if f"{part}_ends" not in self.arrays:
            start = int(rng.integers(len(ids) - length))
            return ids[start : start + length], np.ones(length, np.bool_)
        learnt, ends = (self.arrays[f"{part}_{name}"] for name in ("learnt", "ends"))
        places: list[np.ndarray] = []
        missing = length
        while missing:
            number = int(rng.integers(len(ends)))
            start = int(ends[number - 1]) if number else 0
            places.append(np.arange(start, min(int(ends[number]), start + missing)))
            missing -= len(places[-1])
        taken = np.concatenate(places)
        return ids[taken], learnt[taken]

    def batch(
        self,
        part: str,
        seed: tuple[int, ...],
        rows: int,
        length: int,
        twice: Twice | None = None,
        shares: Mapping[str, float] = SHARES,
    ) -> Batch:
        """The same seed gives the same batch. Kinds come as often as `shares` says, as far as rows allow."""
        rng = np.random.default_rng(seed)
        repeated = twice.rows if twice else 0
        own = rows - repeated
        places = np.cumsum(list(shares.values())).searchsorted((np.arange(own) + rng.random()) / own)
        kinds = [list(shares)[min(place, len(shares) - 1)] for place in places]
        windows = [self.window(f"{part}_{kind}", rng, length + 1) for kind in kinds]
        windows += [said_twice(rng, length + 1, twice.variety) for _ in range(repeated)]
        ids = torch.from_numpy(np.stack([ids for ids, _ in windows]).astype(np.int64))
        learnt = torch.from_numpy(np.stack([learnt for _, learnt in windows]))
        return Batch(ids[:, :-1], ids[:, 1:], learnt[:, 1:])
