"""The time of drafting and verifying k tokens, learned from rounds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Mapping, Sequence

_GUESS = 0.2  # a drafted token's share of a single-token pass, before anything was measured
_DOUBT = 2.0  # how much steeper than guessed the curve may be, before a pass over a draft was measured
_DEAREST = 0.5  # passes, at most, for a drafted token, as guessed from a prompt that a busy machine read
_SURE = 3  # from so many times on a line through the neighbours no longer lowers them
_FAR_ABOVE = 2.5  # a time so many times the predicted one is more than a step in the curve explains
_KEPT = 9  # newest times that count: the usual time follows a machine that becomes busy
_TREND = 8  # weight, in times, of the trend over all lengths against the times of one length


class UsualTime:
    """The median of the newest times; of two, the smaller, because disturbances only make a pass longer."""

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
        self.value = self._sorted[(len(self._sorted) - 1) // 2]


class CostCurve:
    """Seconds by number of drafted tokens, interpolated linearly between measured numbers."""

    def __init__(self) -> None:
        self._times: dict[int, UsualTime] = {}
        self._points: list[int] = []  # sorted keys of `_times`
        self._believed: dict[int, float] | None = {}  # see `_usual`; None: to be computed anew
        self._seconds: dict[int, float] = {}  # computed before, since the last measurement
        # What `_trend` follows: a mean k, its time, and a slope.
        self._line_through: tuple[float, float, float] | None = None

    def add(self, k: int, seconds: float) -> None:
        self._line_through = None
        if k not in self._times:
            self._times[k] = UsualTime()
            insort(self._points, k)
        self._times[k].add(seconds)
        self._seconds = {}
        self._believed = None

    @property
    def _usual(self) -> dict[int, float]:
        """The usual time of every measured length."""
        if self._believed is None:
            self._believed = {k: times.value for k, times in self._times.items()}
            self._believe(self._believed)
        return self._believed

    def _believe(self, usual: dict[int, float]) -> None:
        """Correct the usual times. A length measured once or twice counts as no slower than its neighbours
        predict. Otherwise one disturbed time would keep it, and by the trend all longer ones, from being
        measured again."""
        for at, k in enumerate(self._points[2:], 2):
            if len(self._times[k]) < _SURE:
                low, above = self._points[at - 1], self._points[at + 1 :]
                usual[k] = min(usual[k], self._line(low, above, k))

    @property
    def knows_drafts(self) -> bool:
        """Whether a draft was measured."""
        return len(self._points) > 1

    def seconds(self, k: int) -> float:
        """The time for k tokens; k = 0 must have been measured.

        Every length is shrunk towards the trend over all. Otherwise a time that is short by luck would be
        chosen.
        """
        if k == 0:
            return self._times[0].value
        if k not in self._seconds:
            self._seconds[k] = self._computed(k)
        return self._seconds[k]

    def _computed(self, k: int) -> float:
        known = self._times.get(k)
        if known is None:
            at = bisect_left(self._points, k)
            return self._line(self._points[at - 1], self._points[at:], k)
        own = self._usual[k]
        return (len(known) * own + _TREND * self._trend(k, own)) / (len(known) + _TREND)

    def _trend(self, k: int, own: float) -> float:
        """The prediction of a straight line through all drafts, at least the time for k = 0; `own` if only
        one length was measured."""
        if self._line_through is None:
            self._line_through = self._fit()
        mean_k, mean, slope = self._line_through
        return max(self._usual[0], mean + slope * (k - mean_k)) if mean_k else own

    def _fit(self) -> tuple[float, float, float]:
        """The least-squares line over the drafts; zeros if all have one length."""
        drafts = [(k, len(times), self._usual[k]) for k, times in self._times.items() if k]
        if len(drafts) < 2:
            return 0.0, 0.0, 0.0
        count = sum(times for _, times, _ in drafts)
        mean_k = sum(times * k for k, times, _ in drafts) / count
        mean = sum(times * value for _, times, value in drafts) / count
        rise = sum(times * (k - mean_k) * (value - mean) for k, times, value in drafts)
        run = sum(times * (k - mean_k) ** 2 for k, times, _ in drafts)
        return mean_k, mean, max(0.0, rise / run)

    def _line(self, low: int, above: list[int], k: int) -> float:
        first = self._usual[low]
        if above:
            high = above[0]
            last = self._usual[high]
        else:
            high, last = self._beyond(low)
            if high == low:  # on the line from k = 0 through the largest
                low, first = 0, self._usual[0]
        return first + max(0.0, last - first) * (k - low) / (high - low)

    def _beyond(self, largest: int) -> tuple[int, float]:
        """A point for extrapolating the curve beyond the largest measured length."""
        return largest, self._usual[largest]


class DraftCost(CostCurve):
    """Seconds of a draft by its length. The first token costs most, because the accepted tokens are read with
    it."""

    def __init__(self) -> None:
        super().__init__()
        self.add(0, 0.0)


def around(sizes: Sequence[int], tokens: int) -> tuple[int, int]:
    """The two of these sizes (in order, at least two) whose line gives the time of a pass over this many
    tokens: its neighbours. Beyond the largest size: that one, and the largest that is at most half of it.
    Kernels compute in tiles, so two close sizes may differ by a whole tile, or by none."""
    at = min(max(bisect_left(sizes, tokens), 1), len(sizes) - 1)
    if tokens <= sizes[at]:
        return sizes[at - 1], sizes[at]
    return sizes[max(0, bisect_right(sizes, sizes[-1] // 2) - 1)], sizes[-1]


class TargetCost(CostCurve):
    """v(k): seconds of a target pass over k drafted tokens and the one before them.

    The pass that read the prompt counts as a far point: without it only k = 0 would be known at first. With a
    calibration the curve is known from the start, and measurements correct its level.
    """

    def __init__(self) -> None:
        super().__init__()
        self._far = 0, 0.0
        self._known: dict[int, float] = {}  # v by the tokens of a pass, of a calibration
        self._shares: dict[int, float] = {}  # v by drafted tokens, of the calibration and interpolated
        self._level = 1.0  # measured times / those of the calibration

    def __len__(self) -> int:
        """The number of measurements of k = 0, at most `_KEPT`."""
        return len(self._times.get(0, ()))

    def add_prompt(self, tokens: int, seconds: float) -> None:
        self._far = tokens - 1, seconds
        self._seconds = {}

    def know(self, seconds: Mapping[int, float]) -> None:
        """Take a calibration: seconds of passes by their tokens, including one token."""
        if len(seconds) < 2:
            return
        self._known = {tokens: taken / seconds[1] for tokens, taken in sorted(seconds.items())}
        self._shares = {tokens - 1: share for tokens, share in self._known.items()}
        self._seconds = {}

    @property
    def known(self) -> bool:
        """Whether a calibration gave the curve."""
        return bool(self._known)

    def is_timed(self, k: int) -> bool:
        """Whether the calibration has k; beyond its longest, every eighth counts."""
        return k + 1 in self._known or (k % 8 == 0 and k >= max(self._known))

    def is_sure(self, k: int) -> bool:
        """Whether the time of k is reliable: a calibration gave the curve, or it was measured often."""
        return self.known or (k in self._times and len(self._times[k]) >= _SURE)

    @property
    def knows_drafts(self) -> bool:
        return self.known or super().knows_drafts

    def _believe(self, usual: dict[int, float]) -> None:
        super()._believe(usual)
        if not self._known:
            return
        weight, total = _SURE, float(_SURE)
        for k, times in self._times.items():
            if k:
                expected = self._predicted(k)
                if len(times) < _SURE:
                    usual[k] = min(usual[k], expected)
                weight += len(times)
                total += len(times) * usual[k] / expected * self._level
        self._level = total / weight

    def _predicted(self, k: int) -> float:
        """The calibration's time for k tokens, at the speed of this answer."""
        known, tokens = self._known, k + 1
        if k not in self._shares:
            low, high = around([*known], tokens)
            slope = (known[high] - known[low]) / (high - low)
            self._shares[k] = known[low] + (max(0.0, slope) if tokens > high else slope) * (tokens - low)
        single = self._usual[0]  # corrects the level too
        return single * max(1.0, self._level * self._shares[k])

    def _trend(self, k: int, own: float) -> float:
        return self._predicted(k) if self._known else super()._trend(k, own)

    def _line(self, low: int, above: list[int], k: int) -> float:
        return self._predicted(k) if self._known else super()._line(low, above, k)

    def _beyond(self, largest: int) -> tuple[int, float]:
        tokens, seconds = self._far
        if tokens > largest:
            return tokens, seconds if largest else min(seconds, self._usual[0] * (1 + _DEAREST * tokens))
        if largest:
            return super()._beyond(largest)
        return 1, self._usual[0] * (1 + _GUESS)

    def undisturbed(self, k: int) -> float:
        """Like `seconds`, but a time far above the others' prediction counts as a disturbance until it was
        measured often. It decides whether a trial may pay: otherwise, one disturbed first draft would be the
        last."""
        sure = [at for at in self._points if not at or len(self._times[at]) >= _SURE]
        at = bisect_right(sure, k)
        predicted, seconds = self._line(sure[at - 1], sure[at:], k), self.seconds(k)
        return predicted if seconds > _FAR_ABOVE * predicted else seconds

    def feared(self, k: int) -> float:
        """Like `seconds`, but pessimistic for drafts longer than any measured: every further token costs as
        much as those so far."""
        guess, largest = self.seconds(k), self._points[-1]
        if k <= largest or self._known:
            return guess
        single = self._times[0].value
        if largest == 0:
            return single + _DOUBT * (guess - single)
        return max(guess, single + (self._times[largest].value - single) * k / largest)
