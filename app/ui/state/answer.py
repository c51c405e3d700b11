"""The one observable answer: what is known of it, how much of it is shown, what is pointed at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.engine.errors import SettingError
from app.engine.explain.advice import Advice, advise
from app.engine.explain.cost import CostModel
from app.engine.record.stats import Statistics, strategy_names
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import Round, Totals, TraceHeader
from app.saved.chats.measurement import Measurement
from app.ui.state.series import RoundSeries, RunClock


@dataclass(frozen=True, slots=True)
class Note:
    """Something to tell the reader where it happened, with at most one thing to do about it."""

    message: str
    hint: str = ""
    action: str = ""  # the button's words, such as "Continue"


class AnswerModel(QObject):
    """An answer from the moment it is asked for. Views draw its trace up to the cursor.

    The rounds exist once, in `trace`; series, statistics and cost are folded from them when somebody first
    asks, and then go on with every round, for all views alike.
    """

    began = Signal()  # the header is known
    grew = Signal(int, int)  # rounds from the first up to and including the last came
    ended = Signal()  # no more rounds come
    moved = Signal()  # the cursor or the first counted round is another one
    told = Signal()  # the progress or the note is another one
    measured = Signal()  # the measured baseline came or went
    pointed = Signal()  # another round is pointed at, or none
    pinned = Signal()  # another round is held on show, or none

    def __init__(self, trace: Trace | None = None, note: Note | None = None, *, live: bool = False) -> None:
        """`live`: rounds will come. Otherwise the answer is as it stays; without a trace nothing is known of
        its rounds."""
        super().__init__()
        self.trace = trace
        self.note = note
        self.progress = ""  # what goes on before the first round, such as "Reading the prompt"
        self.live = live
        self.following = True  # the cursor stays behind the latest round
        self.cursor = len(self.rounds)  # rounds shown
        self.start = 0  # the first round that counts
        self.measurement: Measurement | None = None  # of the answer's request, again and without drafts
        self.clocks: tuple[RunClock, RunClock] | None = None  # of its runs: with the strategy, without
        self.pointed_at: int | None = None  # a round
        self.pinned_at: int | None = None
        self._series = RoundSeries()
        self._statistics, self._cost = Statistics(), CostModel()
        self._folded = 0  # the round behind the last one that these hold

    # ------------------------------------------------------------------ what is known

    @property
    def header(self) -> TraceHeader | None:
        return self.trace.header if self.trace is not None else None

    @property
    def rounds(self) -> Sequence[Round]:
        """All that are known, also those behind the cursor."""
        return self.trace.rounds if self.trace is not None else ()

    @property
    def totals(self) -> Totals | None:
        return self.trace.totals if self.trace is not None else None

    @property
    def whole(self) -> bool:
        """All of it is shown, and no more comes."""
        return not self.live and self.cursor == len(self.rounds)

    @property
    def last(self) -> int:
        """The latest round that is shown; -1 before the first."""
        return self.cursor - 1

    @property
    def drafts(self) -> bool:
        """Whether there is a strategy that drafts."""
        return self.header is None or bool(strategy_names(self.header.strategy))

    @property
    def context_used(self) -> int:
        """Tokens of the context up to the cursor, the prompt included."""
        if self.header is None:
            return 0
        last = self.rounds[self.last] if self.cursor else None
        return self.header.prompt_tokens + (last.position + len(last.emitted) if last is not None else 0)

    @property
    def prompt_speed(self) -> float | None:
        """Prompt tokens a second, of those that had to be read."""
        if self.header is None or self.totals is None:
            return None
        read, seconds = self.header.prompt_tokens - 1 - self.header.cached_tokens, self.totals.prompt_seconds
        return read / seconds if read > 0 and seconds > 0 else None

    # ------------------------------------------------------------------ folded from the rounds

    @property
    def series(self) -> RoundSeries:
        """All rounds as numbers; what is drawn of them begins at `start` and ends at the cursor."""
        self._series.add(self.rounds[len(self._series) :])
        self._series.start, self._series.end = self.start, self.cursor
        return self._series

    @property
    def statistics(self) -> Statistics:
        """Of the rounds from `start` up to the cursor."""
        self._fold()
        return self._statistics

    @property
    def cost(self) -> CostModel:
        """What passes and drafts take: as measured with the baseline, else as far as this answer tells."""
        if self.measurement is not None:
            return self.measurement.cost
        self._fold()
        return self._cost

    @property
    def speed_up(self) -> float | None:
        """The measured factor; None where no baseline was measured."""
        return self.measurement.factor if self.measurement is not None else None

    def advice(self) -> Advice | None:
        """What the numbers mean, where a strategy drafts; None too where it is known no more. Where a
        baseline was measured, the numbers are all of that measurement: the answer came at another speed."""
        if self.header is None:
            return None
        try:
            spec = StrategySpec.parse(self.header.strategy)
        except SettingError:  # of a drafter that was taken away since, or of somebody else's
            return None
        statistics = self.measurement.statistics if self.measurement is not None else self.statistics
        return advise(spec, statistics, self.cost, self.speed_up)

    def _fold(self) -> None:
        if self._folded > self.cursor:
            self._forget_folds()
        for round in self.rounds[self._folded : self.cursor]:
            self._statistics.add(round)
            self._cost.add(round)
        self._folded = max(self._folded, self.cursor)

    def _forget_folds(self) -> None:
        self._statistics, self._cost = Statistics(), CostModel()
        self._folded = self.start

    # ------------------------------------------------------------------ what becomes of it

    def tell(self, progress: str) -> None:
        """Say what goes on before the first round comes."""
        self.progress = progress
        self.told.emit()

    def begin(self, header: TraceHeader, rounds: Sequence[Round] = ()) -> None:
        """The engine has understood the request. `rounds` are there already, of an answer that goes on."""
        self.trace = Trace(header, list(rounds))
        self.cursor = len(rounds)
        self.began.emit()

    def add(self, rounds: Sequence[Round]) -> None:
        """More rounds, in order. Only behind `begin`."""
        assert self.trace is not None
        if rounds:
            first = len(self.trace.rounds)
            self.trace.rounds.extend(rounds)
            self.progress = ""
            if self.following:
                self.cursor = len(self.trace.rounds)
            self.grew.emit(first, len(self.trace.rounds) - 1)

    def end(self, totals: Totals | None, note: Note | None = None) -> None:
        """No more rounds come; None where it broke off, and what came stays."""
        if self.trace is not None:
            self.trace.totals = totals
        self.live, self.progress, self.note = False, "", note
        self.ended.emit()

    def measure(self, measurement: Measurement | None) -> None:
        """Take the measured baseline of this answer, or None where there is none."""
        self.measurement = measurement
        self.clocks = None
        if measurement is not None:
            self.clocks = RunClock(measurement.strategy.rounds), RunClock(measurement.baseline.rounds)
        self.measured.emit()

    # ------------------------------------------------------------------ what people do with it

    def move(self, cursor: int) -> None:
        """Show the first `cursor` rounds; all of them, and the answer follows its latest round again."""
        cursor = min(max(cursor, 0), len(self.rounds))
        self.following = cursor == len(self.rounds)
        if cursor != self.cursor:
            self.cursor = cursor
            self.moved.emit()

    def count_from(self, start: int) -> None:
        """Let the numbers begin with round `start`."""
        self.start = start
        self._forget_folds()
        self.moved.emit()

    def point(self, index: int | None) -> None:
        """Point at a round, such as the one of the token under the mouse; None: no longer."""
        index = index if index is not None and 0 <= index < self.cursor else None
        if index != self.pointed_at:
            self.pointed_at = index
            self.pointed.emit()

    def pin(self, index: int | None) -> None:
        """Hold a round on show; None: no longer."""
        index = index if index is not None and 0 <= index < self.cursor else None
        if index != self.pinned_at:
            self.pinned_at = index
            self.pinned.emit()
