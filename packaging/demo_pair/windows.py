"""Training windows cut from the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Part:
    """Documents of one kind, laid end to end."""

    ids: np.ndarray
    weights: np.ndarray
    ends: np.ndarray

    def window(self, rng: np.random.Generator, length: int, *, inside: bool) -> tuple[slice, ...]:
        """Slices of whole documents, the last one cut, that hold `length` tokens together.

        With `inside`, the first slice may begin anywhere, as a file of code is longer than a
        window; a dialogue always begins at its beginning, as a chat does.
        """
        slices: list[slice] = []
        missing = length
        while missing:
            number = int(rng.integers(len(self.ends)))
            start = int(self.ends[number - 1]) if number else 0
            end = int(self.ends[number])
            if inside and not slices:
                start = int(rng.integers(start, max(start + 1, end - length)))
            taken = slice(start, min(end, start + missing))
            slices.append(taken)
            missing -= taken.stop - taken.start
        return tuple(slices)


@dataclass(frozen=True, slots=True)
class Batch:
    """`inputs`, `labels` and `weights` are (rows, length); a weight of 0 is not learnt."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor


class Corpus:
    """What `corpus.py` wrote."""

    def __init__(self, path: Path) -> None:
        arrays = np.load(path)
        self.parts = {
            name: Part(arrays[f"{name}_ids"], arrays[f"{name}_weights"], arrays[f"{name}_ends"])
            for name in ("source", "source_test", "talk", "talk_test")
        }

    def batch(self, seed: tuple[int, ...], kinds: list[str], length: int) -> Batch:
        """One row per entry of `kinds`; the same seed gives the same batch."""
        rng = np.random.default_rng(seed)
        rows, weights = [], []
        for kind in kinds:
            part = self.parts[kind]
            slices = part.window(rng, length + 1, inside=kind.startswith("source"))
            rows.append(np.concatenate([part.ids[s] for s in slices]))
            weights.append(np.concatenate([part.weights[s] for s in slices]))
        ids = torch.from_numpy(np.stack(rows).astype(np.int64))
        weight = torch.from_numpy(np.stack(weights).astype(np.float32) / 255)
        return Batch(ids[:, :-1], ids[:, 1:], weight[:, 1:])
