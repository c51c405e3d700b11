"""A greedy draft in one compiled call: passes, each after the best token of the last one."""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING, Any

from app.engine.native.library import address_of
from app.engine.sampling.kernel import Batch, Kernel, Steps
from app.engine.sampling.logits import TOP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Best = tuple[list[int], list[float]]  # places and values of a row's largest logits, largest first

MOST = 16
"""The most passes of one call."""


class BestPasses:
    """Passes over tokens that lie in a context's own arrays.

    Between two of them no Python runs: a pass over a large vocabulary drives Python's code out of the
    processor's caches, after which it takes several times as long as in a loop.
    """

    def __init__(self, compiled: Kernel, handle: Any, batch: Batch) -> None:
        """`batch` begins at the context's first place, and its flags where those of a pass end; what it
        refers to is kept alive elsewhere."""
        self._run = compiled.draft_best
        self._places, self._values = (ctypes.c_ssize_t * (MOST * TOP))(), (ctypes.c_float * (MOST * TOP))()
        self._ends: NDArray[np.int32] | None = None
        self._steps = Steps(
            address_of("llama_decode"),
            address_of("llama_get_logits"),
            handle,
            batch,
            TOP,
            ctypes.addressof(self._places),
            ctypes.addressof(self._values),
        )
        self._address = ctypes.addressof(self._steps)

    def run(
        self, at: int, n: int, size: int, count: int, p_min: float, ends: NDArray[np.int32]
    ) -> tuple[int, float]:
        """Decode the `n` tokens from place `at` on, then the best token among the first `size` after them,
        and so on, until there are `count` rows (at most `MOST`), or one ends the draft: by a NaN, by a best
        token below `p_min`, or by one of `ends`. Returns what llama_decode does, and the seconds in
        llama.cpp."""
        steps = self._steps
        if ends is not self._ends:
            self._ends = ends  # kept alive
            steps.ends, steps.n_ends = ends.ctypes.data, len(ends)
        started = time.perf_counter()
        status = self._run(self._address, at, n, size, count, p_min)
        return status, time.perf_counter() - started - steps.seconds

    @property
    def passes(self) -> int:
        """The number of passes of the last run that llama.cpp completed."""
        completed: int = self._steps.rows + self._steps.broken
        return completed

    def best(self, size: int) -> list[Best]:
        """The largest of each row's first `size` logits in the last run; a row with a NaN has none."""
        k = min(TOP, size)
        rows: list[Best] = [
            (self._places[row : row + k], self._values[row : row + k])
            for row in range(0, self._steps.rows * k, k)
        ]
        if self._steps.broken:
            rows.append(([], []))
        return rows
