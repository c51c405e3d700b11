"""The runs of an experiment in the window, as they arrive; and what all kinds of work in Compare say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

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
from app.lab.report.plots import Curves, Heat, heats
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


class CompareWork(LabWork):
    """One kind of work, with what the strip above its page says of it."""

    reports: type[AnyReport] = Report
    reported = Signal()  # the report changed

    def __init__(self, engine: EngineSession) -> None:
        super().__init__(engine)
        self.experiment: Experiment | None = None

    @property
    def share(self) -> float:
        """The share of the work that is done, in [0, 1]."""
        raise NotImplementedError

    def now(self) -> tuple[str, str, Sequence[str]]:
        """What the work does, the time that is left, and what disturbs it, while it is at work."""
        raise NotImplementedError

    def outcome(self) -> str:
        """What came out of it; "" if nothing was measured."""
        raise NotImplementedError

    def report_made(self) -> Callable[[Digest], AnyReport] | None:
        """What makes the report as it is now; None without one."""
        raise NotImplementedError

    def _stage_words(self, done: str) -> str:
        """The stage where it is not measuring, after the `done` part; "" while it measures."""
        match self.stage:
            case Stage.FREEING:
                return "Unloading the chat's models…"
            case Stage.LOADING:
                return f"{done} · loading {self.words}"
            case Stage.WARMING:
                return f"{done} · warming up; that is not measured"
            case Stage.PAUSED:
                return f"{done} · paused; the current run will restart"
            case Stage.ENDING:
                return f"{done} · ending"
        return ""


_PAUSE = 0.5  # seconds between two reports
_SHARE = 10  # the pause is at least this many times the time that making a report takes


class Reported(LabEvent, frozen=True):
    """The report so far, what disturbed the measurement, and what servers did not report."""

    report: Report
    doubts: tuple[str, ...]
    curves: Curves | None  # of a depth measurement


def reported(
    events: Iterator[LabEvent], experiment: Experiment, sweep: SweepFacts | None
) -> Iterator[LabEvent]:
    """The events of runs with reports in between; the last report comes before the end."""
    due, records, pairs = 0.0, dict[Job, RunRecord](), dict[int, PairInfo]()

    def fold() -> Reported:
        nonlocal due
        began = time.monotonic()
        report = make_report(experiment, records, pairs, sweep=sweep)
        doubts = (*disturbances(report), *server_limits(report))
        now = time.monotonic()
        due = now + max(_PAUSE, _SHARE * (now - began))
        return Reported(report, doubts, depth_curves(report))

    try:
        for event in events:
            if isinstance(event, Begun):
                records, pairs = dict(event.records), dict(event.pairs)
            elif isinstance(event, PairLoaded):
                pairs |= dict.fromkeys(event.lanes, event.pair)
            elif isinstance(event, RunDone):
                records |= event.records
            elif isinstance(event, Ended):
                yield fold()
            yield event
            if isinstance(event, Begun | RunDone) and time.monotonic() >= due:
                yield fold()
    except UserError:
        yield fold()
        raise


def kept_runs(journal: Journal, traces: TraceStore) -> Iterator[LabEvent]:
    """The events of a measurement that is complete: its runs, compared with their baselines."""
    records = compared_runs(journal.experiment, journal.records, traces)
    total = len(journal.experiment.jobs())
    yield Begun(journal.experiment, len(records), total, records, journal.pairs)
    yield Ended(len(records) == total)


class LabSession(CompareWork):
    """The runs of an experiment, as they arrive."""

    run_over = Signal()  # a run ended, or the pair is loaded

    def __init__(
        self, engine: EngineSession, make_home: MakeHome, key_of: Callable[[str], str] = find_key
    ) -> None:
        """`key_of` gives the key of a server."""
        super().__init__(engine)
        self._make_home = make_home
        self._key_of = key_of
        self._runner: Runner | None = None  # keeps traces without a journal until it is closed
        self._forget(None, None)

    def _forget(self, experiment: Experiment | None, sweep: SweepFacts | None) -> None:
        """Begin without a run."""
        if self._runner is not None:
            self._runner.close()
        self._runner, self.experiment = None, experiment
        self._traces: TraceStore | None = None
        self.sweep = sweep  # the grid, where the lanes are its cells
        self.records: dict[Job, RunRecord] = {}
        self.pairs: dict[int, PairInfo] = {}
        self.report: Report | None = None  # of a moment ago; None without a run
        self.cells: tuple[Heat, ...] = ()  # of the grid, if there is one
        self.curves: Curves | None = None  # over the depths, if there are any
        self.doubts: tuple[str, ...] = ()  # what disturbed the measurement
        self.live: dict[int, AnswerModel] = {}  # by lane: the current run, or the last one
        self.jobs: dict[int, Job] = {}  # by lane: the run that `live` is of
        self.job: Job | None = None  # the current run
        self._rounds: dict[int, list[Round]] = {}  # rounds of this batch, by lane
        self.done, self.total = 0, len(experiment.jobs()) if experiment is not None else 0
        self.seconds_left: float | None = None

    def start(self, experiment: Experiment, journal: Path, sweep: SweepFacts | None = None) -> None:
        """Measure, or continue from the journal."""
        self._forget(experiment, sweep)

        def make(control: Control) -> Iterator[LabEvent]:
            runner = self._runner = Runner(
                experiment, self._make_home, journal=journal, control=control, key_of=self._key_of
            )
            self._traces = runner.traces
            return reported(runner.run(), experiment, sweep)

        self._begin(make, needs_engine=True)

    def show(self, journal: Journal, sweep: SweepFacts | None = None) -> None:
        """Show what a complete journal contains; no engine is needed for that."""
        self._forget(journal.experiment, sweep)

        def make(_control: Control) -> Iterator[LabEvent]:
            self._traces = TraceStore(journal.trace_folder)
            return reported(kept_runs(journal, self._traces), journal.experiment, sweep)

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

    @property
    def share(self) -> float:
        return self.done / max(self.total, 1)

    def now(self) -> tuple[str, str, Sequence[str]]:
        left = left_words(self.seconds_left) if self.stage is Stage.RUNNING else ""
        return self._run_words(), left, self.doubts

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
        if any(isinstance(event, Reported) for event in events):
            self.reported.emit()

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
        elif isinstance(event, Reported):
            self.report = event.report if event.report.runs else None
            self.cells = heats(self.sweep, event.report.summary) if self.sweep is not None else ()
            self.curves, self.doubts = event.curves, event.doubts
        elif isinstance(event, PairLoaded):
            self.pairs |= dict.fromkeys(event.lanes, event.pair)
        else:
            super()._fold(event)

    def _keep(self, event: RunDone) -> None:
        job = event.job
        self.records |= event.records
        self.done, self.total, self.seconds_left = event.done, event.total, event.seconds_left
        if event.trace is None:
            self.live.pop(job.lane, None)
        elif job.lane in self.live:
            self.live[job.lane].end(event.trace.totals)
        self.jobs[job.lane] = job

    def _run_words(self) -> str:
        done = f"{self.done:,} of {numbers.count(self.total, 'run')}"
        job, experiment = self.job, self.experiment
        shown = self._stage_words(done)
        if shown or job is None or experiment is None:
            return shown or done
        depth = experiment.prompts[job.prompt].depth
        behind = "" if depth is None else f" · depth {depth:,}"
        return (
            f"{done} · repeat {job.repeat + 1} of {experiment.repeats} · prompt {job.prompt + 1} of "
            f"{len(experiment.prompts)}{behind} · {lane_names(experiment)[job.lane]}"
        )
