"""The observable model of an answer: its rounds, how many of them are shown, the round pointed at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Signal, SignalInstance

from app.engine.errors import SettingError
from app.engine.explain.advice import Advice, next_advice
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import AdviceFacts, DraftFile, Factor, Tried
from app.engine.explain.predict import predicted
from app.engine.lengths.base import LengthAt, LengthFold
from app.engine.process.messages import PassSeconds
from app.engine.record.stats import Statistics, strategy_names
from app.engine.record.trace import Trace
from app.engine.strategy import is_by_clock, length_fold
from app.engine.types import ModelOptions, Round, Totals, TraceHeader
from app.saved.measured import FASTER, SLOWER, Measurement
from app.ui.state.folds import RoundFolds, RoundSeries, RunClock


@dataclass(frozen=True, slots=True)
class Note:
    """A message below an answer, with at most one action."""

    message: str
    hint: str = ""
    action: str = ""  # the button's words, such as "Continue"


@dataclass(frozen=True, slots=True)
class AdviceQuestion:
    """What advice on an answer is based on. It never changes, so any thread may compute the advice (up to a
    second)."""

    trace: Trace = field(compare=False)
    rounds: int
    measurement: Measurement | None
    calibration: PassSeconds | None
    tried: tuple[tuple[str, Tried], ...]
    target: ModelOptions | None
    draft: ModelOptions | None
    drafts: tuple[DraftFile, ...] | None

    def answer(self) -> Advice | None:
        """The advice; None if the answer's strategy is no longer known. If a baseline was measured, only that
        measurement counts: the answer itself ran at a different speed."""
        measured = self.measurement
        runs = measured.runs if measured is not None else ()
        try:
            facts = AdviceFacts.of(
                runs[1::2] or [self.trace],
                runs[::2],
                measured.range if measured is not None else None,
                dict(self.tried),
                self.calibration,
            )
        except SettingError:  # its drafter was removed, or the trace came from elsewhere
            return None
        return next_advice(replace(facts, target=self.target, draft=self.draft, drafts=self.drafts))


class AnswerModel(QObject):
    """An answer, from its request on. Views draw its trace up to the cursor.

    The rounds exist once, in `trace`. Series, statistics and cost are computed from them on first use,
    updated with every round, and shared by all views.
    """

    began = Signal()  # the header is known
    grew = Signal(int, int)  # these rounds arrived: the first and the last index
    ended = Signal()  # no more rounds will arrive
    moved = Signal()  # the cursor or the first counted round changed
    told = Signal()  # the progress or the note changed
    measured = Signal()  # the measured baseline was set or removed
    pointed = Signal()  # the round pointed at changed
    pinned = Signal()  # the pinned round changed

    def __init__(
        self,
        trace: Trace | None = None,
        note: Note | None = None,
        *,
        live: bool = False,
        folds: RoundFolds | None = None,
    ) -> None:
        """`live`: more rounds will arrive; otherwise the answer is finished. Without a trace its rounds are
        unknown. `folds` are those of its rounds, if they were made already."""
        super().__init__()
        self.trace = trace
        self.note = note
        self.progress = ""  # progress before the first round, such as "Reading the prompt"
        self.live = live
        self.following = True  # the cursor follows the latest round,
        self.paced = False  # unless a player shows new rounds in its own time
        self.cursor = len(self.rounds)  # rounds shown
        self.start = 0  # the first round that counts
        self.measurement: Measurement | None = None  # of the same request, with drafts and without
        self.clocks: tuple[RunClock, RunClock] | None = None  # of its runs: with drafts, without
        self.pointed_at: int | None = None  # index of a round
        self.pinned_at: int | None = None
        self.pinned_place: int | None = None  # of a token of that round: in the draft, else behind it
        self._folds = folds if folds is not None else RoundFolds()
        self.calibration: PassSeconds | None = None  # of its pair, on this machine
        self.tried: dict[str, Tried] = {}  # other strategies that were measured on its prompt
        self._length_fold: LengthFold | None = None
        self._lengths: list[LengthAt] | None = None  # of all known rounds, from the first question on

    # ------------------------------------------------------------------ what is known

    @property
    def header(self) -> TraceHeader | None:
        return self.trace.header if self.trace is not None else None

    @property
    def rounds(self) -> Sequence[Round]:
        """All known rounds, also those after the cursor."""
        return self.trace.rounds if self.trace is not None else ()

    @property
    def totals(self) -> Totals | None:
        return self.trace.totals if self.trace is not None else None

    @property
    def whole(self) -> bool:
        """Whether the answer is finished and shown whole."""
        return not self.live and self.cursor == len(self.rounds)

    @property
    def last(self) -> int:
        """The latest round that is shown; -1 before the first."""
        return self.cursor - 1

    @property
    def inspected(self) -> int | None:
        """The round shown in detail: the pinned one, else the latest that is shown; None before the first."""
        return self.pinned_at if self.pinned_at is not None else self.last if self.cursor else None

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
        """Prompt tokens per second, cached tokens not counted; None if it is unknown."""
        if self.header is None or self.totals is None:
            return None
        read, seconds = self.header.prompt_tokens - 1 - self.header.cached_tokens, self.totals.prompt_seconds
        return read / seconds if read > 0 and seconds > 0 else None

    # ------------------------------------------------------------------ folded from the rounds

    @property
    def series(self) -> RoundSeries:
        """The numbers of all rounds. Plots draw those from `start` to the cursor."""
        series = self._folds.series
        series.add(self.rounds[len(series) :])
        series.start, series.end = self.start, self.cursor
        return series

    @property
    def statistics(self) -> Statistics:
        """The statistics of the rounds from `start` up to the cursor; of a whole answer with its whole wall
        time, as measurements have it."""
        statistics = self._folds.statistics.go_to(self.rounds, self.cursor)
        if self.whole and not self.start and self.totals is not None:
            statistics.end_whole(self.totals)
        return statistics

    @property
    def lengths(self) -> Sequence[LengthAt]:
        """The values that the draft length rule used in every known round; empty without such a rule."""
        if self.trace is None:
            return ()
        if self._lengths is None:
            self._lengths, self._length_fold = [], length_fold(self.trace.header.strategy)
        if self._length_fold is not None:
            self._lengths += map(self._length_fold.add, self.rounds[len(self._lengths) :])
        return self._lengths

    @property
    def cost(self) -> CostModel:
        """The cost of passes and drafts: from the measurement if there is one, else from this answer
        alone."""
        if self.measurement is not None:
            return self.measurement.cost
        return self._folds.cost.go_to(self.rounds, self.cursor)

    @property
    def priced(self) -> CostModel:
        """The cost, completed by this machine's calibration for passes that were not measured."""
        known = self.calibration
        return self.cost.calibrated(known) if known is not None else self.cost

    @property
    def predicted(self) -> Factor | None:
        """The predicted factor of the rounds so far, drafted or not; None if too little is known, or if it
        was measured."""
        if self.measurement is not None or self.trace is None:
            return None
        by_clock = is_by_clock(self.trace.header.strategy)
        return predicted(self.statistics, self.priced, by_clock=by_clock)

    @property
    def speed_up(self) -> float | None:
        """The measured factor; None if no baseline was measured, or if its pairs show no difference."""
        measurement = self.measurement
        return measurement.factor if measurement and measurement.verdict in (FASTER, SLOWER) else None

    def question(
        self,
        target: ModelOptions | None = None,
        draft: ModelOptions | None = None,
        drafts: Sequence[DraftFile] | None = None,
    ) -> AdviceQuestion | None:
        """The question for advice on a whole answer; None on any other. `target` and `draft` are the pair's
        load options, for advice that changes them. `drafts` are the library's files that suit the target."""
        if self.trace is None or not self.whole or self.start:
            return None
        tried = tuple(self.tried.items())
        known = self.trace, len(self.rounds), self.measurement, self.calibration, tried
        return AdviceQuestion(*known, target, draft, tuple(drafts) if drafts is not None else None)

    # ------------------------------------------------------------------ what becomes of it

    def tell(self, progress: str) -> None:
        """Set the progress that is shown before the first round."""
        self.progress = progress
        self.told.emit()

    def begin(self, header: TraceHeader, rounds: Sequence[Round] = ()) -> None:
        """Begin the answer: the engine accepted the request. `rounds` are the existing ones of a continued
        answer."""
        self.trace = Trace(header, list(rounds))
        self._lengths = None
        self.cursor = len(rounds)
        self.began.emit()

    def add(self, rounds: Sequence[Round]) -> None:
        """Add rounds, in order. Only after `begin`."""
        assert self.trace is not None
        if rounds:
            first = len(self.trace.rounds)
            self.trace.rounds.extend(rounds)
            self.progress = ""
            if self.following and not self.paced:
                self.cursor = len(self.trace.rounds)
            self.grew.emit(first, len(self.trace.rounds) - 1)

    def end(self, totals: Totals | None, note: Note | None = None) -> None:
        """End the answer. `totals` is None if it broke off; the rounds so far stay."""
        if self.trace is not None:
            self.trace.totals = totals
        self.live, self.progress, self.note = False, "", note
        self.ended.emit()

    def measure(self, measurement: Measurement | None) -> None:
        """Set the measured baseline of this answer; None removes it."""
        self.measurement = measurement
        self.clocks = None
        if measurement is not None:
            self.clocks = RunClock(measurement.strategy.rounds), RunClock(measurement.baseline.rounds)
        self.measured.emit()

    # ------------------------------------------------------------------ what people do with it

    def move(self, cursor: int) -> None:
        """Show the first `cursor` rounds. At the last one the cursor follows new rounds again."""
        cursor = min(max(cursor, 0), len(self.rounds))
        self.following = cursor == len(self.rounds)
        if cursor != self.cursor:
            self.cursor = cursor
            if self.pinned_at is not None and self.pinned_at >= cursor:
                self.pin(None)  # that round is no longer shown
            self.moved.emit()

    def step(self, by: int) -> None:
        """Inspect the round `by` rounds later. After the last one shown, the cursor moves to the next."""
        index = max((self.inspected if self.inspected is not None else -1) + by, 0)
        if index >= self.cursor:
            self.pin(None)
            self.move(index + 1)
        else:
            self.pin(index)

    def count_from(self, start: int) -> None:
        """Count the numbers from round `start` on."""
        self.start = start
        self._folds.begin(start)
        self.moved.emit()

    def point(self, index: int | None) -> None:
        """Point at a round, for instance the one of the token under the mouse; None points at none."""
        index = index if index is not None and 0 <= index < self.cursor else None
        if index != self.pointed_at:
            self.pointed_at = index
            self.pointed.emit()

    def pin(self, index: int | None, place: int | None = None) -> None:
        """Pin a round, so that it stays shown, and one of its tokens; None unpins it."""
        index = index if index is not None and 0 <= index < self.cursor else None
        if (index, place) != (self.pinned_at, self.pinned_place):
            self.pinned_at, self.pinned_place = index, place
            self.pinned.emit()


T = TypeVar("T")


def reconnect(
    slots: Callable[[T], Iterable[tuple[SignalInstance, Any]]], before: T | None, after: T | None
) -> None:
    """Let a view observe a different answer. `slots` returns pairs of an answer's signal and the view's
    slot."""
    for signal, slot in slots(before) if before is not None else ():
        signal.disconnect(slot)
    for signal, slot in slots(after) if after is not None else ():
        signal.connect(slot)
