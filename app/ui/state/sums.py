"""Statistics over several answers: those of a chat, and all since they were last reset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal, Slot

from app.engine.record.llama_cpp_lines import llama_cpp_lines
from app.engine.record.stats import Statistics, strategy_names
from app.engine.strategy import longest_draft
from app.engine.types import TraceHeader
from app.ui.state.answer import AnswerModel, reconnect


@dataclass(slots=True)
class Sums:
    """Answers, pooled: counts and times are sums, ratios are those of the sums."""

    statistics: Statistics = field(default_factory=Statistics)
    headers: tuple[TraceHeader, ...] = ()  # of the answers

    @classmethod
    def over(cls, answers: Iterable[AnswerModel]) -> Sums:
        """All rounds of these answers up to their cursors, whatever was reset."""
        known = [(answer, answer.header) for answer in answers if answer.cursor and answer.header is not None]
        return cls(
            Statistics.pooled(_whole(answer) for answer, _ in known), tuple(header for _, header in known)
        )

    @property
    def warm(self) -> int:
        """How many answers began with a filled cache."""
        return sum(header.warm for header in self.headers)

    def lines(self) -> Iterator[str]:
        """llama.cpp's lines on the drafts."""
        names = dict.fromkeys(name for header in self.headers for name in strategy_names(header.strategy))
        limits = [longest_draft(header.strategy) for header in self.headers]
        known = None if None in limits else max((limit for limit in limits if limit), default=None)
        yield from llama_cpp_lines(self.statistics, list(names), known, len(self.headers))


def _whole(answer: AnswerModel) -> Statistics:
    if answer.start == 0:
        return answer.statistics  # folded once, and kept up to date
    if answer.trace is not None and answer.whole:
        return Statistics.of_answer(answer.trace)
    return Statistics.of(answer.rounds[: answer.cursor])


class SinceReset(QObject):
    """Sums over the answers that were made since the last reset, in any chat."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._ended = Sums()  # of answers before the last
        self._answer: AnswerModel | None = None  # the last one
        self._last = Statistics()
        self._folded = 0  # its rounds that are in `_last`, or came before the reset
        self._since = 0  # the first of them that counts

    def follow(self, answer: AnswerModel) -> None:
        """Count an answer that is about to be made. Rounds that it has when it begins are not new."""
        self._ended = self.sums  # the answer before has ended
        self._last, self._folded, self._since = Statistics(), 0, 0
        before, self._answer = self._answer, answer
        reconnect(
            lambda last: ((last.began, self._begin), (last.grew, self._grow), (last.ended, self._end)),
            before,
            answer,
        )

    def reset(self) -> None:
        """Begin again with the next round."""
        self._ended, self._last = Sums(), Statistics()
        self._folded = self._since = len(self._answer.rounds) if self._answer is not None else 0
        self.changed.emit()

    @property
    def sums(self) -> Sums:
        """The sums so far."""
        answer = self._answer
        if answer is None or answer.header is None or not self._last.rounds:
            return self._ended
        return Sums(
            Statistics.pooled([self._ended.statistics, self._last]), (*self._ended.headers, answer.header)
        )

    @Slot()
    def _begin(self) -> None:
        assert self._answer is not None
        self._folded = self._since = len(self._answer.rounds)

    @Slot()
    def _end(self) -> None:
        assert self._answer is not None
        if self._answer.totals is not None and self._last.rounds and not self._since:
            self._last.end_whole(self._answer.totals)
            self.changed.emit()

    @Slot(int, int)
    def _grow(self, _first: int, last: int) -> None:
        assert self._answer is not None
        for round in self._answer.rounds[self._folded : last + 1]:
            self._last.add(round)
        self._folded = last + 1
        self.changed.emit()
