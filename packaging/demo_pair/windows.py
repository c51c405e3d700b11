"""Training windows cut from the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """`inputs`, `labels` and `learnt` are (rows, length); only labels where `learnt` holds count."""

    inputs: Tensor
    labels: Tensor
    learnt: Tensor


class Corpus:
    """What `corpus.py` wrote: the dialogues of each part laid end to end."""

    def __init__(self, path: Path) -> None:
        self.arrays = dict(np.load(path))

    def window(self, part: str, rng: np.random.Generator, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids of whole dialogues, the last one cut, `length` tokens together; and which are learnt."""
        ids, learnt, ends = (self.arrays[f"{part}_{name}"] for name in ("ids", "learnt", "ends"))
        places: list[np.ndarray] = []
        missing = length
        while missing:
            number = int(rng.integers(len(ends)))
            start = int(ends[number - 1]) if number else 0
            places.append(np.arange(start, min(int(ends[number]), start + missing)))
            missing -= len(places[-1])
        taken = np.concatenate(places)
        return ids[taken], learnt[taken]

    def batch(self, part: str, seed: tuple[int, ...], rows: int, length: int) -> Batch:
        """The same seed gives the same batch."""
        rng = np.random.default_rng(seed)
        windows = [self.window(part, rng, length + 1) for _ in range(rows)]
        ids = torch.from_numpy(np.stack([ids for ids, _ in windows]).astype(np.int64))
        learnt = torch.from_numpy(np.stack([learnt for _, learnt in windows]))
        return Batch(ids[:, :-1], ids[:, 1:], learnt[:, 1:])
