"""Memory for rows of a vocabulary that is used again: fresh memory costs more than writing into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class RowStore:
    """Rows of `size` numbers, as many as are asked for. Two sets take turns, for a user whose rows are still
    read when the next ones are written."""

    def __init__(self, size: int) -> None:
        self._rows: Floats = np.empty((0, size), np.float32)
        self._before = self._rows

    def turn(self) -> None:
        """Go on with the set that was used before this one."""
        self._rows, self._before = self._before, self._rows

    def rows(self, n: int) -> Floats:
        """The first `n` rows of this set, shape [n, size], with what was written into them. Rows that were
        handed out before stay as they are when there are not enough."""
        if n > len(self._rows):
            grown = np.empty((2 * n + 2, self._rows.shape[1]), np.float32)
            grown[: len(self._rows)] = self._rows
            self._rows = grown
        return self._rows[:n]
