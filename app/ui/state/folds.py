"""What is folded from the rounds of an answer: statistics, costs, series. No Qt here, so that any thread may
fold a long answer."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from app.engine.explain.cost import CostModel
from app.engine.record.stats import Statistics
from app.engine.types import Round
from app.ui.state.series import RoundSeries

_MARKED = 512  # rounds between two marks
_NEAR = 32  # rounds between two marks where the cursor went back: it may do so again


class RoundFolds:
    """The folds of an answer; statistics and costs are those up to a cursor."""

    def __init__(self) -> None:
        self.series = RoundSeries()
        self.statistics, self.cost = Statistics(), CostModel()
        self._start = 0  # the first round in both
        self._folded = 0  # index after the last
        self._marks: list[tuple[int, Statistics, CostModel]] = []
        """Both as they were after some of the rounds, in order: a jump folds few rounds again."""

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> RoundFolds:
        """The folds of a whole answer."""
        folds = cls()
        folds.go_to(rounds, len(rounds))
        folds.series.add(rounds)
        return folds

    def begin(self, start: int) -> None:
        """Fold anew, from round `start` on; the series stay."""
        self._start = start
        self._forget()

    def go_to(self, rounds: Sequence[Round], cursor: int) -> None:
        """Fold statistics and costs up to a cursor."""
        step = _NEAR if self._folded > cursor else _MARKED
        at = bisect_right(self._marks, cursor, key=_rounds_before) - 1
        if self._folded > cursor or (at >= 0 and self._marks[at][0] > self._folded):
            self._go_on_from(at)
        while self._folded < cursor:
            end = min(cursor, (self._folded // step + 1) * step)
            for round in rounds[self._folded : end]:
                self.statistics.add(round)
                self.cost.add(round)
            self._folded = end
            known = bisect_left(self._marks, end, key=_rounds_before)
            if end % step == 0 and (known == len(self._marks) or self._marks[known][0] != end):
                self._marks.insert(known, (end, self.statistics.copied(), self.cost.copied()))

    def _go_on_from(self, at: int) -> None:
        """Go on from a mark, the last one before the cursor; from the first counted round where that is -1.
        Of the marks behind the cursor only those of every answer stay: it may go there again."""
        marks = self._marks[: at + 1] + [mark for mark in self._marks[at + 1 :] if mark[0] % _MARKED == 0]
        self._forget()
        self._marks = marks
        if at >= 0:
            self._folded, statistics, cost = marks[at]
            self.statistics, self.cost = statistics.copied(), cost.copied()

    def _forget(self) -> None:
        self._marks = []
        self.statistics, self.cost = Statistics(), CostModel()
        self._folded = self._start


def _rounds_before(mark: tuple[int, Statistics, CostModel]) -> int:
    return mark[0]
