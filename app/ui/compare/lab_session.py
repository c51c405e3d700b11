"""The runs of an experiment in the window, as they arrive; and the words of all kinds of work in Compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from PySide6.QtCore import Signal

from app.base import numbers
from app.engine.errors import UserError
from app.engine.record.trace import Trace
from app.engine.types import PairInfo, Round
from app.lab.depths import depth_curves
from app.lab.experiment import Experiment, Job
from app.lab.facts import Digest
from app.lab.files import AnyReport
from app.lab.lanes import lane_names
from app.lab.load.report import BurstDone
from app.lab.report.plots import Curves, Heat, heat_map
from app.lab.report.report import Report, SweepFacts, make_report
from app.lab.report.verdict import server_limits, verdict
from app.lab.runs.compare import TraceStore, compared_runs
from app.lab.runs.disturbance import disturbances
from app.lab.runs.events import (
    Begun,
    Control,
    Ended,
    LabEvent,
    PairLoaded,
    RunDone,
    RunDropped,
    RunRound,
    RunStarted,
)
from app.lab.runs.journal import Journal
from app.lab.runs.record import RunRecord
from app.lab.runs.runner import MakeHome, Runner
from app.servers.address import find_key
from app.ui.compare.words import left_words
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import EngineSession
from app.ui.state.lab_work import LabThread, LabWork, Stage

ReportT = TypeVar("ReportT", bound=AnyReport)
_STAGES = {
    Stage.LOADING: "loading {}",
    Stage.WARMING: "warming up (not measured)",
    Stage.PAUSED: "paused; the current run will restart",
    Stage.ENDING: "ending",
}


class CompareWork(LabWork, Generic[ReportT]):
    """One kind of work: its report so far, and what the strip above its page says of it."""

    reports: type[AnyReport]
    noun = "run"  # what is counted
    reported = Signal()  # the report changed

    def __init__(self, engine: EngineSession) -> None:
        super().__init__(engine)
        self._forget(None)

    def _forget(self, experiment: Experiment | None) -> None:
        """Begin without results."""
        self.experiment = experiment
        self.report: ReportT | None = None  # of a moment ago; None if nothing was measured
        self.curves: Curves | None = None  # over depths or loads, if there are any
        self.doubts: tuple[str, ...] = ()  # what disturbed the measurement
        self.done = self.total = 0

    @property
    def share(self) -> float:
        """The share of the work that is done, in [0, 1]."""
        return self.done / max(self.total, 1)

    def now(self) -> tuple[str, str, Sequence[str]]:
        """The running work's activity, remaining time and disturbances."""
        done = self.done_words()
        left = self.left_words() if self.stage is Stage.RUNNING else ""
        return self._stage_words(done) or self.doing(done), left, self.doubts

    def done_words(self) -> str:
        """How much is done."""
        return f"{self.done:,} of {numbers.count(self.total, self.noun)}"

    def doing(self, done: str) -> str:
        """What is measured, after the `done` part."""
        raise NotImplementedError

    def left_words(self) -> str:
        """The time that is left; "" if it is not known."""
        return ""

    def outcome(self) -> str:
        """Its result; "" if nothing was measured."""
        raise NotImplementedError

    def report_made(self) -> Callable[[Digest], ReportT] | None:
        """The function that makes the present report; None without one."""
        report = self.report
        return None if report is None else lambda _digest: report

    def _stage_words(self, done: str) -> str:
        """The stage where it is not measuring, after the `done` part; "" while it measures."""
        if self.stage is Stage.FREEING:
            return "Unloading the chat's models…"
        words = _STAGES.get(self.stage)
        return f"{done} · {words.format(self.words)}" if words else ""

    def _folded(self, events: list[LabEvent]) -> None:
        super()._folded(events)
        if any(isinstance(event, Reported) for event in events):
            self.reported.emit()

    def _fold(self, event: LabEvent) -> None:
        if isinstance(event, Reported):
            self.report = event.report if self.done else None
            self.curves, self.doubts = event.curves, event.doubts
        else:
            super()._fold(event)


_PAUSE = 0.5  # seconds between two reports
_SHARE = 10  # the pause is at least this many times the time that making a report takes


class Reported(LabEvent, frozen=True):
    """The report so far, its curves over depths or loads, what disturbed the measurement and what servers did
    not report."""

    report: Any
    curves: Curves | None
    doubts: tuple[str, ...] = ()


def reported(events: Iterator[LabEvent], fold: Callable[[], Reported]) -> Iterator[LabEvent]:
    """The events of a measurement with reports in between; the last report comes before the end."""
    due, begun = 0.0, False
    try:
        for event in events:
            begun = begun or isinstance(event, Begun)
            if begun and isinstance(event, Ended):
                yield fold()
            yield event
            if isinstance(event, Begun | RunDone | BurstDone) and (before := time.monotonic()) >= due:
                report = fold()
                now = time.monotonic()
                due = now + max(_PAUSE, _SHARE * (now - before))
                yield report
    except UserError:
        if begun:
            yield fold()
        raise


def _report(
    experiment: Experiment,
    records: Mapping[Job, RunRecord],
    pairs: Mapping[int, PairInfo],
    sweep: SweepFacts | None,
) -> Reported:
    report = make_report(experiment, records, pairs, sweep=sweep)
    return Reported(report, depth_curves(report), (*disturbances(report), *server_limits(report)))


class LabSession(CompareWork[Report]):
    """The runs of an experiment, as they arrive."""

    reports = Report
    run_over = Signal()  # a run ended, or the pair is loaded
    _runner: Runner | None = None  # keeps traces without a journal until it is closed

    def __init__(
        self,
        engine: EngineSession,
        make_home: MakeHome,
        new_journal: Callable[[SweepFacts | None], Path],
        key_of: Callable[[str], str] = find_key,
    ) -> None:
        """`new_journal` gives the path of a journal that begins, and may raise UserError; `key_of` the key of
        a server."""
        super().__init__(engine)
        self._make_home = make_home
        self._new_journal = new_journal
        self._key_of = key_of

    def _forget(self, experiment: Experiment | None, sweep: SweepFacts | None = None) -> None:
        if self._runner is not None:
            self._runner.close()
        super()._forget(experiment)
        self._runner = None
        self._traces: TraceStore | None = None
        self.total = len(experiment.jobs()) if experiment is not None else 0
        self.sweep = sweep  # the grid, where the lanes are its cells
        self.records: dict[Job, RunRecord] = {}
        self.pairs: dict[int, PairInfo] = {}
        self.cells: tuple[Heat, ...] = ()  # of the grid, if there is one
        self.live: dict[int, AnswerModel] = {}  # by lane: the current run, or the last one
        self.jobs: dict[int, Job] = {}  # by lane: the run that `live` is of
        self.job: Job | None = None  # the current run
        self._rounds: dict[int, list[Round]] = {}  # rounds of this batch, by lane
        self.seconds_left: float | None = None

    def start(
        self, experiment: Experiment, sweep: SweepFacts | None = None, journal: Path | None = None
    ) -> None:
        """Measure, or continue from a journal. Raises UserError if a new one cannot be made."""
        path = journal or self._new_journal(sweep)
        self._forget(experiment, sweep)

        def make(control: Control) -> Iterator[LabEvent]:
            runner = self._runner = Runner(
                experiment, self._make_home, journal=path, control=control, key_of=self._key_of
            )
            self._traces = runner.traces
            return reported(runner.run(), lambda: _report(experiment, runner.records, runner.pairs, sweep))

        self._begin(make)

    def show(self, journal: Journal, sweep: SweepFacts | None = None) -> None:
        """Show what a complete journal contains; no engine is needed for that."""
        experiment, pairs = journal.experiment, journal.pairs
        self._forget(experiment, sweep)

        def make(_control: Control) -> Iterator[LabEvent]:
            traces = self._traces = TraceStore(journal.trace_folder)
            records = compared_runs(experiment, journal.records, traces)
            done, total = len(records), len(experiment.jobs())
            events = Begun(experiment, done, total, records, pairs), Ended(done == total)
            return reported(iter(events), lambda: _report(experiment, records, pairs, sweep))

        self._begin(make, needs_engine=False)

    def close(self) -> None:
        super().close()
        if self._runner is not None:
            self._runner.close()

    def trace(self, job: Job) -> Trace | None:
        """The trace of a finished run. Raises TraceError if its file is damaged."""
        return self._traces.get(job) if self._traces is not None else None

    @property
    def traces(self) -> TraceStore | None:
        """The traces of all runs; None before the first."""
        return self._traces if self.records else None

    def doing(self, done: str) -> str:
        job, experiment = self.job, self.experiment
        if job is None or experiment is None:
            return done
        depth = experiment.prompts[job.prompt].depth
        behind = "" if depth is None else f" · depth {depth:,}"
        return (
            f"{done} · repeat {job.repeat + 1} of {experiment.repeats} · prompt {job.prompt + 1} of "
            f"{len(experiment.prompts)}{behind} · {lane_names(experiment)[job.lane]}"
        )

    def left_words(self) -> str:
        return left_words(self.seconds_left)

    def outcome(self) -> str:
        if self.report is None:
            return ""
        came = "All runs" if self.report.complete else f"{self.done:,} of {self.total:,} runs"
        return f"{came}: {verdict(self.report)}"

    def report_made(self) -> Callable[[Digest], Report] | None:
        if self.experiment is None or not self.records:
            return None
        experiment, records, pairs, sweep = self.experiment, dict(self.records), dict(self.pairs), self.sweep
        return lambda digest: make_report(experiment, records, pairs, digest, sweep)

    # ------------------------------------------------------------------ inside

    def _add_rounds(self) -> None:
        """Add the rounds of a batch to their answers, lane by lane."""
        for lane, rounds in self._rounds.items():
            self.live[lane].add(rounds)
        self._rounds.clear()

    def _folded(self, events: list[LabEvent]) -> None:
        self._add_rounds()
        super()._folded(events)
        if any(isinstance(event, RunDone | Begun | Ended | PairLoaded) for event in events):
            self.run_over.emit()

    def _over(self, thread: LabThread) -> None:
        self.job = None

    def _fold(self, event: LabEvent) -> None:
        if not isinstance(event, RunRound):
            self._add_rounds()
        if isinstance(event, RunRound):
            self._rounds.setdefault(event.job.lane, []).append(event.round)
        elif isinstance(event, RunStarted):
            self.job, self.jobs[event.job.lane] = event.job, event.job
            answer = self.live[event.job.lane] = AnswerModel(live=True)
            answer.begin(event.header)
            self._run()
        elif isinstance(event, RunDone):
            self._keep(event)
        elif isinstance(event, RunDropped):
            self.live.pop(event.job.lane, None)
            self.jobs.pop(event.job.lane, None)
            self.job = None
        elif isinstance(event, Begun):
            self.experiment, self.done, self.total = event.experiment, event.done, event.total
            self.records, self.pairs = dict(event.records), dict(event.pairs)
        elif isinstance(event, PairLoaded):
            self.pairs |= dict.fromkeys(event.lanes, event.pair)
        else:
            super()._fold(event)
            if isinstance(event, Reported):
                self.cells = heat_map(event.report)

    def _keep(self, event: RunDone) -> None:
        job = event.job
        self.records |= event.records
        self.done, self.total, self.seconds_left = event.done, event.total, event.seconds_left
        if event.trace is None:
            self.live.pop(job.lane, None)
        elif job.lane in self.live:
            self.live[job.lane].end(event.trace.totals)
        self.jobs[job.lane] = job
