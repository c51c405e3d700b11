"""Values that are accumulated over the rounds of an answer: statistics, costs, numbers for plots. No Qt here,
so any thread may compute them.

Running sums instead of values: a mean over any range of rounds takes two look-ups. So a plot's cost depends
on its pixels, not on its number of rounds."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from app.engine.explain.cost import CostModel
from app.engine.fates import Origin
from app.engine.record.stats import Fold, Statistics
from app.engine.types import Round

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RATE_WINDOW = 8
"""Tokens/s is drawn over this many rounds: few enough to follow a change, enough to be calm."""

_DRAFTED, _EMITTED, _DRAFTING, _VERIFYING, _SAMPLING = range(5)
_BY_ORIGIN = {origin: column for column, origin in enumerate(Origin, 5)}
_ACCEPTED = _BY_ORIGIN[Origin.ACCEPTED]
_SUMS = 5 + len(Origin)


@dataclass(frozen=True, slots=True)
class Bins:
    """Rounds in groups of `step`, one array entry per group. Means are per round of the group."""

    step: int
    left: Floats  # first round of the group
    right: Floats  # the round after its last
    drafted: Floats  # means
    origins: dict[Origin, Floats]  # mean tokens emitted, by origin
    times: tuple[Floats, Floats, Floats]  # mean seconds of drafting, of verifying, of sampling
    acceptance: Floats  # accepted / drafted of the group; nan if nothing was drafted
    pooled: Floats  # accepted / drafted from the start of the statistics to the group's end
    rate: Floats  # tokens/s over the group, or over RATE_WINDOW rounds where that is more
    before: Floats  # tokens that the answer had before the rounds of `rate`
    behind: Floats  # and after them

    @property
    def centre(self) -> Floats:
        """The places at which groups are drawn: round i covers i - 0.5 to i + 0.5."""
        return (self.left + self.right - 1) / 2


class RunClock:
    """The tokens of a run over time: gives its speed over the same tokens as the rounds of a second run."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        first = rounds[0].offset if rounds else 0.0
        self._seconds = np.array([first, *(round.offset + round.seconds for round in rounds)])
        self._tokens = np.cumsum([0, *(len(round.emitted) for round in rounds)])

    def rate(self, before: Floats, behind: Floats) -> Floats:
        """Tokens/s between two numbers of tokens; nan after the run's end."""
        start, end = (
            np.interp(tokens, self._tokens, self._seconds, right=np.nan) for tokens in (before, behind)
        )
        return _divide(behind - before, end - start)


class RoundSeries:
    """The rounds of a growing answer as numbers. Statistics and plots cover the rounds from `start` up to,
    not including, `end`."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self._count = 0
        # Column i holds the sums over the rounds before i.
        self._sums = np.zeros((_SUMS, 1024))
        self._begin = np.zeros(1024)
        self._end = np.zeros(1024)

    def __len__(self) -> int:
        return self._count

    def add(self, rounds: Sequence[Round]) -> None:
        if not rounds:
            return
        first, behind = self._count, self._count + len(rounds)
        while behind >= len(self._begin):
            self._grow()
        values = np.array([_values(round) for round in rounds], dtype=float).T
        self._sums[:, first + 1 : behind + 1] = values[:_SUMS].cumsum(axis=1)
        self._sums[:, first + 1 : behind + 1] += self._sums[:, first, None]
        self._begin[first:behind] = values[_SUMS]
        self._end[first:behind] = values[_SUMS] + values[_SUMS + 1]
        self._count = self.end = behind

    def rate_at(self, index: int) -> float | None:
        """Tokens/s over the RATE_WINDOW rounds that end with this one."""
        seconds = self._end[index] - self._begin[self._window(index)]
        before, behind = self.tokens_at(index)
        return float((behind - before) / seconds) if seconds > 0 else None

    def tokens_at(self, index: int) -> tuple[float, float]:
        """Tokens of the answer before the rounds of `rate_at`, and after them."""
        emitted = self._sums[_EMITTED]
        return float(emitted[self._window(index)]), float(emitted[index + 1])

    def tokens_before(self, index: int) -> int:
        """Tokens that the answer had before this round."""
        return int(self._sums[_EMITTED, index])

    def _window(self, index: int) -> int:
        return max(index + 1 - RATE_WINDOW, min(self.start, index))

    def pooled_at(self, index: int) -> float | None:
        """accepted / drafted from `start` to this round."""
        since = self._sums[:, index + 1] - self._sums[:, min(self.start, index)]
        return float(since[_ACCEPTED] / since[_DRAFTED]) if since[_DRAFTED] else None

    def _grow(self) -> None:
        size = len(self._begin)
        self._sums = np.pad(self._sums, ((0, 0), (0, size)))
        self._begin = np.pad(self._begin, (0, size))
        self._end = np.pad(self._end, (0, size))

    def bins(self, first: int, last: int, most: int, start: int | None = None) -> Bins:
        """Rounds `first` to `last` (inclusive) in at most about `most` groups. None comes from before
        `start`, which is by default that of the statistics.

        Groups are powers of two long and begin at multiples of their length, so that a complete group never
        changes while an answer grows.
        """
        start = self.start if start is None else start
        first, last = max(first, start), min(last, self.end - 1)
        step = 1
        while (last - first + 1) / step > max(most, 1):
            step *= 2
        left = np.arange(first - first % step, last + 1, step)
        right = np.minimum(left + step, self.end)
        left = np.maximum(left, start)
        size = right - left
        sums = self._sums[:, right] - self._sums[:, left]
        means = sums / np.maximum(size, 1)
        since = self._sums[:, right] - self._sums[:, start, None]
        behind = np.maximum(np.minimum(left, right - RATE_WINDOW), start)
        tokens = self._sums[_EMITTED]
        seconds = self._end[right - 1] - self._begin[behind]
        return Bins(
            step=step,
            left=left.astype(float),
            right=right.astype(float),
            drafted=means[_DRAFTED],
            origins={origin: means[column] for origin, column in _BY_ORIGIN.items()},
            times=(means[_DRAFTING], means[_VERIFYING], means[_SAMPLING]),
            acceptance=_divide(sums[_ACCEPTED], sums[_DRAFTED]),
            pooled=_divide(since[_ACCEPTED], since[_DRAFTED]),
            rate=_divide(tokens[right] - tokens[behind], seconds),
            before=tokens[behind],
            behind=tokens[right],
        )


def _values(round: Round) -> tuple[float, ...]:
    """The values of a round that are summed, then its offset and its seconds."""
    origins = [token.origin for token in round.emitted]
    counts = [origins.count(origin) for origin in _BY_ORIGIN]
    times = round.draft_seconds, round.verify_seconds, round.sample_seconds
    return (len(round.drafted), len(round.emitted), *times, *counts, round.offset, round.seconds)


def _divide(part: Floats, whole: Floats) -> Floats:
    """part / whole, nan where that is not defined."""
    result = np.full(len(part), np.nan)
    np.divide(part, whole, out=result, where=whole > 0)
    return result


_MARKED = 512  # rounds between two marks
_NEAR = 32  # rounds between two marks where the cursor went back: it may do so again
_rounds_before = itemgetter(0)  # of a mark


Folded = TypeVar("Folded", bound=Fold)


class MarkedFold(Generic[Folded]):
    """An accumulated value over the rounds of an answer up to a cursor, which moves back and forth."""

    def __init__(self, make: Callable[[], Folded]) -> None:
        self._make = make
        self.begin(0)

    def begin(self, start: int) -> None:
        """Fold again, from round `start` on."""
        self.value = self._make()
        self.start = self.end = start  # the first round in it, and the one after the last
        self._apart = _MARKED
        self._marks: list[tuple[int, Folded]] = []
        """Marks: the value after some of the rounds, in order. After a jump, only the rounds since the
        nearest mark are added again."""

    def is_near(self, cursor: int) -> bool:
        """Whether going to a cursor is cheap: it is ahead, or shortly after a mark."""
        known = self._mark_at(cursor)
        return cursor >= self.end or (known >= 0 and cursor - self._marks[known][0] < _NEAR)

    def go_to(self, rounds: Sequence[Round], cursor: int, until: float = inf) -> Folded:
        """Add rounds up to a cursor, or until the performance counter reaches `until`."""
        known, back = self._mark_at(cursor), cursor < self.end
        if back or (known >= 0 and self._marks[known][0] > self.end):
            self.end, value = self._marks[known] if known >= 0 else (self.start, self._make())
            self.value = copy_of(value)
            self._apart = _NEAR if back else _MARKED
            # Of the marks after the cursor those of every answer stay: it may go there again.
            self._marks[known + 1 :] = [mark for mark in self._marks[known + 1 :] if mark[0] % _MARKED == 0]
        while self.end < cursor and (until == inf or time.perf_counter() < until):
            self.value.add(rounds[self.end])
            self.end += 1
            if self.end % self._apart == 0:
                at = self._mark_at(self.end)
                if at < 0 or self._marks[at][0] != self.end:
                    self._marks.insert(at + 1, (self.end, copy_of(self.value)))
        if self.end == cursor:
            self._apart = _MARKED
        return self.value

    def _mark_at(self, cursor: int) -> int:
        """The last mark up to a cursor; -1 if there is none."""
        return bisect_right(self._marks, cursor, key=_rounds_before) - 1


def copy_of(value: Any) -> Any:
    """A number, or an independent copy of a list, a dictionary or a fold."""
    if isinstance(value, list | deque | Counter):
        return value.copy()
    if isinstance(value, dict):
        return {key: copy_of(part) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(*(copy_of(getattr(value, field.name)) for field in fields(value)))
    return value


class RoundFolds:
    """The folds of an answer; statistics and costs are those up to a cursor."""

    def __init__(self) -> None:
        self.series = RoundSeries()
        self.statistics, self.cost = MarkedFold(Statistics), MarkedFold(CostModel)

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> RoundFolds:
        """The folds of a whole answer."""
        folds = cls()
        for fold in (folds.statistics, folds.cost):
            fold.go_to(rounds, len(rounds))
        folds.series.add(rounds)
        return folds

    def begin(self, start: int) -> None:
        """Fold again, from round `start` on; the series stay."""
        self.statistics.begin(start)
        self.cost.begin(start)
