"""An experiment in the window: its progress and its results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import Signal

from app.engine.errors import UserError
from app.engine.record.trace import Trace
from app.engine.types import PairInfo, Round
from app.lab.depths import depth_curves
from app.lab.experiment import Experiment, Job
from app.lab.report.export import server_limits
from app.lab.report.plots import Curves, Heat, heats
from app.lab.report.report import Report, SweepFacts, make_report
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
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import EngineSession
from app.ui.state.lab_work import LabThread, LabWork, Stage


class KeptRuns:
    """Has the attributes of a finished Runner."""

    def __init__(self, journal: Journal) -> None:
        """Raises UserError where the traces are not accessible."""
        self.traces = TraceStore(journal.trace_folder)
        self.pairs: dict[int, PairInfo] = journal.pairs
        self.records: dict[Job, RunRecord] = {}
        self._journal = journal

    def run(self) -> Iterator[LabEvent]:
        """Compare the runs with their baselines, as the measurement did."""
        self.records = compared_runs(self._journal.experiment, self._journal.records, self.traces)
        total = len(self._journal.experiment.jobs())
        yield Begun(self._journal.experiment, len(self.records), total)
        yield Ended(len(self.records) == total)

    def close(self) -> None:
        """Does nothing: no engine is held."""


_PAUSE = 0.5  # seconds between two reports
_SHARE = 10  # the pause is at least so many times the time that making a report takes


class Reported(LabEvent, frozen=True):
    """The report so far, what disturbed the measurement, and what servers did not tell."""

    report: Report
    doubts: tuple[str, ...]
    curves: Curves | None  # of a depth measurement


def reported(
    runner: Runner | KeptRuns, experiment: Experiment, sweep: SweepFacts | None
) -> Iterator[LabEvent]:
    """The runner's events with reports in between; the last report comes before the end."""
    due = 0.0

    def fold() -> Reported:
        nonlocal due
        began = time.monotonic()
        report = make_report(experiment, runner.records, runner.pairs, sweep=sweep)
        doubts = (*disturbances(report), *server_limits(report))
        now = time.monotonic()
        due = now + max(_PAUSE, _SHARE * (now - began))
        return Reported(report, doubts, depth_curves(report))

    try:
        for event in runner.run():
            if isinstance(event, Ended):
                yield fold()
            yield event
            if isinstance(event, Begun | RunDone) and time.monotonic() >= due:
                yield fold()
    except UserError:
        yield fold()
        raise


class LabSession(LabWork):
    """The runs of an experiment, as they arrive."""

    lanes_changed = Signal()  # rounds, runs or numbers changed
    run_over = Signal()  # a run ended, or the pair is loaded
    reported = Signal()  # the report changed

    def __init__(
        self, engine: EngineSession, make_home: MakeHome, key_of: Callable[[str], str] = find_key
    ) -> None:
        """`key_of` gives the key of a server."""
        super().__init__(engine)
        self._make_home = make_home
        self._key_of = key_of
        self.runner: Runner | KeptRuns | None = None  # has the traces, also after it has ended
        self.experiment: Experiment | None = None
        self.sweep: SweepFacts | None = None  # the grid, where the lanes are its cells
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
        self.done = 0
        self.total = 0
        self.seconds_left: float | None = None

    def start(self, experiment: Experiment, journal: Path, sweep: SweepFacts | None = None) -> None:
        """Measure, or continue from the journal."""
        self._prepare(experiment, sweep)

        def make(control: Control) -> Iterator[LabEvent]:
            self.runner = Runner(
                experiment, self._make_home, journal=journal, control=control, key_of=self._key_of
            )
            return reported(self.runner, experiment, sweep)

        self._begin(make, needs_engine=True)

    def show(self, journal: Journal, sweep: SweepFacts | None = None) -> None:
        """Show what a complete journal holds; no engine is needed for that."""
        self._prepare(journal.experiment, sweep)

        def make(_control: Control) -> Iterator[LabEvent]:
            self.runner = KeptRuns(journal)
            return reported(self.runner, journal.experiment, sweep)

        self._begin(make, needs_engine=False)

    def close(self) -> None:
        super().close()
        if self.runner is not None:
            self.runner.close()

    def trace(self, job: Job) -> Trace | None:
        """The trace of a finished run. Raises TraceError where its file is damaged."""
        return self.runner.traces.get(job) if self.runner is not None else None

    @property
    def traces(self) -> TraceStore | None:
        """The traces of all runs; None before the first."""
        return self.runner.traces if self.runner is not None and self.records else None

    # ------------------------------------------------------------------ inside

    def _prepare(self, experiment: Experiment, sweep: SweepFacts | None) -> None:
        if self.runner is not None:
            self.runner.close()
        self.runner, self.experiment, self.sweep = None, experiment, sweep
        self.total = len(experiment.jobs())
        self.records, self.pairs, self.live, self.jobs = {}, {}, {}, {}
        self.report, self.cells, self.curves, self.doubts = None, (), None, ()
        self.job, self.done, self.seconds_left = None, 0, None
        self._rounds.clear()

    def _add_rounds(self) -> None:
        """Add the rounds of a batch to their answers, lane by lane."""
        for lane, rounds in self._rounds.items():
            self.live[lane].add(rounds)
        self._rounds.clear()

    def _folded(self, events: list[LabEvent]) -> None:
        self._add_rounds()
        self.lanes_changed.emit()
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
            if self.stage not in (Stage.ENDING, Stage.RUNNING):
                self._set(Stage.RUNNING)
        elif isinstance(event, RunDone):
            self._keep(event)
        elif isinstance(event, RunDropped):
            self.live.pop(event.job.lane, None)
            self.jobs.pop(event.job.lane, None)
            self.job = None
        elif isinstance(event, Begun):
            self.experiment, self.done, self.total = event.experiment, event.done, event.total
            if self.runner is not None:
                self.records, self.pairs = self.runner.records, dict(self.runner.pairs)
        elif isinstance(event, Reported):
            self.report = event.report if event.report.runs else None
            self.cells = heats(self.sweep, event.report.summary) if self.sweep is not None else ()
            self.curves, self.doubts = event.curves, event.doubts
        elif isinstance(event, PairLoaded):
            self.pairs |= dict.fromkeys(event.lanes, event.pair)
        elif isinstance(event, Ended):
            self._set(Stage.ENDED)
        else:
            super()._fold(event)

    def _keep(self, event: RunDone) -> None:
        job = event.job
        self.records[job] = event.record
        for record in event.others:
            self.records[Job(record.repeat, record.prompt_index, record.lane)] = record
        self.done, self.total, self.seconds_left = event.done, event.total, event.seconds_left
        if event.trace is None:
            self.live.pop(job.lane, None)
        elif job.lane in self.live:
            self.live[job.lane].end(event.trace.totals)
        self.jobs[job.lane] = job
