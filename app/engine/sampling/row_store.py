"""Reused memory for rows of a vocabulary: allocating fresh memory costs more than writing into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class RowStore:
    """Rows of `size` numbers, as many as asked for. Two sets alternate, because rows are still read while the
    next ones are written."""

    def __init__(self, size: int) -> None:
        self._rows: Floats = np.empty((0, size), np.float32)
        self._before = self._rows

    def turn(self) -> None:
        """Switch to the other set."""
        self._rows, self._before = self._before, self._rows

    def rows(self, n: int) -> Floats:
        """The first `n` rows of the current set, shape [n, size], with their old contents. If the set must
        grow, rows returned earlier stay valid."""
        if n > len(self._rows):
            grown = np.empty((2 * n + 2, self._rows.shape[1]), np.float32)
            grown[: len(self._rows)] = self._rows
            self._rows = grown
        return self._rows[:n]
