"""v(k): what a target pass over k drafted tokens and the one before them takes, learned from rounds."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

_GUESS = 0.2  # a drafted token's share of a single-token pass, where nothing at all was measured
_DOUBT = 2.0  # how much steeper than guessed passes over drafts may turn out, before one was measured
_KEPT = 9  # newest times that count: the usual one follows a machine that becomes busy


class UsualTime:
    """The lower third of the newest times: what disturbs a pass only makes it longer."""

    __slots__ = ("_newest", "_sorted", "value")

    def __init__(self) -> None:
        self._newest: deque[float] = deque()
        self._sorted: list[float] = []
        self.value = 0.0

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, value: float) -> None:
        if len(self._newest) == _KEPT:
            del self._sorted[bisect_left(self._sorted, self._newest.popleft())]
        self._newest.append(value)
        insort(self._sorted, value)
        self.value = self._sorted[(len(self._sorted) - 1) // 3]


class TargetCost:
    """Seconds of a target pass by the number of drafted tokens in it.

    What was not measured lies on straight lines through what was. The pass that read the prompt counts as a
    point far out: without it nothing would be known at first but k = 0.
    """

    def __init__(self) -> None:
        self._times: dict[int, UsualTime] = {}
        self._points: list[int] = []  # sorted keys of `_times`
        self._far: tuple[int, float] | None = None

    def __len__(self) -> int:
        """How often k = 0 was measured, at most `_KEPT`."""
        return len(self._times.get(0, ()))

    def add(self, k: int, seconds: float) -> None:
        if k not in self._times:
            self._times[k] = UsualTime()
            insort(self._points, k)
        self._times[k].add(seconds)

    def add_prompt(self, tokens: int, seconds: float) -> None:
        self._far = tokens - 1, seconds

    def seconds(self, k: int) -> float:
        """Of a pass over k drafted tokens; k = 0 must have been measured."""
        known = self._times.get(k)
        if known is not None:
            return known.value
        points = self._points
        at = bisect_left(points, k)
        low = points[at - 1]
        first = self._times[low].value
        if at < len(points):
            high, last = points[at], self._times[points[at]].value
        elif self._far is not None and self._far[0] > low:
            high, last = self._far
        elif at > 1:  # on the line from k = 0 through the largest pass
            high, last, low, first = low, first, 0, self._times[0].value
        else:
            high, last = 1, first * (1 + _GUESS)
        return first + max(0.0, last - first) * (k - low) / (high - low)

    def feared(self, k: int) -> float:
        """As `seconds`, but for drafts longer than any measured the worst that is likely: that every further
        token costs what those so far did."""
        guess, largest = self.seconds(k), self._points[-1]
        if k <= largest:
            return guess
        single = self._times[0].value
        if largest == 0:
            return single + _DOUBT * (guess - single)
        return max(guess, single + (self._times[largest].value - single) * k / largest)
