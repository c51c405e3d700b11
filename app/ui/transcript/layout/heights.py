"""Heights of rows below one another, and their offsets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


class Heights:
    """The heights. Appending or changing a row near the end is cheap, and so is asking for rows before it."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._offsets = [0]  # valid up to its length

    def copied(self) -> Heights:
        """Heights that change by themselves."""
        made = Heights(self._heights)
        made._offsets = list(self._offsets)
        return made

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, row: int) -> int:
        return self._heights[row]

    @property
    def total(self) -> int:
        return self.offset(len(self._heights))

    def offset(self, row: int) -> int:
        """Where a row begins; the row after the last begins at the total height."""
        offsets, heights = self._offsets, self._heights
        while len(offsets) <= row:
            offsets.append(offsets[-1] + heights[len(offsets) - 1])
        return offsets[row]

    def set(self, row: int, height: int) -> None:
        if self._heights[row] != height:
            self._heights[row] = height
            del self._offsets[row + 1 :]

    def append(self, height: int) -> None:
        self._heights.append(height)

    def truncate(self, rows: int) -> None:
        """Drop all rows from `rows` on."""
        del self._heights[rows:]
        del self._offsets[rows + 1 :]

    def row_at(self, y: float) -> int:
        """The row at y, beyond the edges the first or the last one; -1 where there are no rows."""
        if not self._heights:
            return -1
        total = self.total  # makes all offsets valid
        if y >= total:
            return len(self._heights) - 1
        return max(bisect_right(self._offsets, y) - 1, 0)
