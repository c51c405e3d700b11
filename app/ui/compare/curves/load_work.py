"""A measurement of servers under load, in the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal

from app.lab.experiment import Experiment
from app.lab.load.levels import LoadPlan
from app.lab.load.report import BurstDone, BurstReport, load_curves
from app.lab.report.curves import Curves
from app.lab.runs.control import Control
from app.lab.runs.events import Begun, Ended, LabEvent
from app.ui.state.engine.engine_session import EngineSession
from app.ui.state.lab_thread import LabThread
from app.ui.state.lab_work import LabWork, Stage

if TYPE_CHECKING:
    from app.lab.load.runner import LoadRunner


class LoadReported(LabEvent, frozen=True):
    """The report so far and its curves."""

    report: BurstReport
    curves: Curves


class LoadWork(LabWork):
    """The bursts, as they arrive. A pause would have to wait for a burst to end: Cancel does that too."""

    pausable = False
    changed = Signal()

    def __init__(self, engine: EngineSession, key_of: Callable[[str], str]) -> None:
        super().__init__(engine)
        self._key_of = key_of
        self.experiment: Experiment | None = None
        self.report: BurstReport | None = None
        self.curves: Curves | None = None
        self.latest: BurstDone | None = None  # the burst that was done last
        self.total = 0  # bursts

    def start(self, experiment: Experiment, load: LoadPlan) -> None:
        """Measure the lanes of `experiment`, all of them servers', under this load."""
        self.experiment = experiment
        self.total = len(experiment.lanes) * len(load.levels) * experiment.repeats
        self.report, self.curves, self.latest = None, None, None

        def make(control: Control) -> Iterator[LabEvent]:
            from app.lab.load.runner import LoadRunner  # the HTTP client takes a moment to import

            return _reported(LoadRunner(experiment, load, control=control, key_of=self._key_of))

        self._begin(make, needs_engine=True)

    def _folded(self, events: list[LabEvent]) -> None:
        self.changed.emit()

    def _over(self, thread: LabThread) -> None:
        self.changed.emit()

    def _fold(self, event: LabEvent) -> None:
        if isinstance(event, BurstDone):
            self.latest = event
        elif isinstance(event, Begun):
            if self.stage is not Stage.ENDING:
                self._set(Stage.RUNNING)
        elif isinstance(event, LoadReported):
            self.report, self.curves = event.report, event.curves
        elif isinstance(event, Ended):
            self._set(Stage.ENDED)
        else:
            super()._fold(event)


def _reported(runner: LoadRunner) -> Iterator[LabEvent]:
    """The runner's events, with a report behind each burst."""
    for event in runner.run():
        yield event
        if isinstance(event, BurstDone):
            report = runner.report()
            yield LoadReported(report, load_curves(report))
    yield Ended(not runner.control.cancelled)
