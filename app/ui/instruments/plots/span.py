"""Which rounds the plots show. No Qt here."""

from __future__ import annotations

_LEAST = 32  # rounds, so that the first few do not fill the width
_CLOSEST = 8


class RoundRange:
    """The range of rounds shown: all of them, until the user zooms in, and again after a reset.

    While an answer grows, the range grows in steps of a third or a half: the curves run into free room
    instead of shrinking with every round.
    """

    def __init__(self) -> None:
        self._zoomed: tuple[float, float] | None = None
        self._all = (-0.5, _LEAST - 0.5)

    def fit(self, start: int, last: int, *, live: bool) -> tuple[float, float]:
        """The x range to show: round i covers i - 0.5 to i + 0.5."""
        rounds = max(last - start + 1, 0)
        width = _room(rounds) if live else max(rounds, _LEAST)
        self._all = (start - 0.5, start + width - 0.5)
        if self._zoomed is not None:
            self._zoomed = self._inside(*self._zoomed)
        return self._zoomed or self._all

    def show_all(self) -> None:
        self._zoomed = None

    def zoom(self, factor: float, at: float) -> None:
        """Show `factor` times as many rounds; the one at `at` stays where it is."""
        first, last = self._zoomed or self._all
        width = max((last - first) * factor, _CLOSEST)
        if width >= self._all[1] - self._all[0]:
            self._zoomed = None
            return
        share = (at - first) / (last - first)
        self._zoomed = self._inside(at - share * width, at + (1 - share) * width)

    def pan(self, by: float) -> None:
        """Move what is shown by so many rounds."""
        if self._zoomed is not None:
            self._zoomed = self._inside(self._zoomed[0] + by, self._zoomed[1] + by)

    def _inside(self, first: float, last: float) -> tuple[float, float]:
        low, high = self._all
        width = min(last - first, high - low)
        first = min(max(first, low), high - width)
        return first, first + width


def _room(rounds: int) -> int:
    """The next of 32, 48, 64, 96, 128, 192, …"""
    room = _LEAST
    while room < rounds:
        room = room * 3 // 2 if room & (room - 1) == 0 else room * 4 // 3
    return room
