"""What drafting and verifying k tokens takes, learned from rounds."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

_GUESS = 0.2  # a drafted token's share of a single-token pass, where nothing at all was measured
_DOUBT = 2.0  # how much steeper than guessed passes over drafts may turn out, before one was measured
_SURE = 3  # times from which on they are believed whatever those of other lengths are
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


class CostCurve:
    """Seconds by number of drafted tokens; what was not measured lies on straight lines through what was."""

    def __init__(self) -> None:
        self._times: dict[int, UsualTime] = {}
        self._points: list[int] = []  # sorted keys of `_times`

    def add(self, k: int, seconds: float) -> None:
        if k not in self._times:
            self._times[k] = UsualTime()
            insort(self._points, k)
        self._times[k].add(seconds)

    def seconds(self, k: int) -> float:
        """For k tokens; k = 0 must be known.

        A length that was measured once or twice is taken to be no dearer than the others let expect: else one
        disturbed time would keep it from ever being measured again.
        """
        known = self._times.get(k)
        at = bisect_left(self._points, k)
        low = self._points[at - 1]
        if known is not None and (len(known) >= _SURE or low <= 0 or k == 0):
            return known.value
        line = self._line(low, self._points[at + (known is not None) :], k)
        return min(known.value, line) if known is not None else line

    def _line(self, low: int, above: list[int], k: int) -> float:
        first = self._times[low].value
        if above:
            high = above[0]
            last = self._times[high].value
        else:
            high, last = self._beyond(low)
            if high == low:  # on the line from k = 0 through the largest
                low, first = 0, self._times[0].value
        return first + max(0.0, last - first) * (k - low) / (high - low)

    def _beyond(self, largest: int) -> tuple[int, float]:
        """A point that says how the curve goes on behind the largest one measured."""
        return largest, self._times[largest].value


class DraftCost(CostCurve):
    """Seconds of a draft by its tokens. The first is dearer than the others: what was accepted is read."""

    def __init__(self) -> None:
        super().__init__()
        self.add(0, 0.0)

    @property
    def known(self) -> bool:
        return len(self._points) > 1


class TargetCost(CostCurve):
    """v(k): seconds of a target pass over k drafted tokens and the one before them.

    The pass that read the prompt counts as a point far out: without it nothing would be known at first but
    k = 0.
    """

    def __init__(self) -> None:
        super().__init__()
        self._far = 0, 0.0

    def __len__(self) -> int:
        """How often k = 0 was measured, at most `_KEPT`."""
        return len(self._times.get(0, ()))

    def add_prompt(self, tokens: int, seconds: float) -> None:
        self._far = tokens - 1, seconds

    def _beyond(self, largest: int) -> tuple[int, float]:
        if self._far[0] > largest:
            return self._far
        if largest:
            return super()._beyond(largest)
        return 1, self._times[0].value * (1 + _GUESS)

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
