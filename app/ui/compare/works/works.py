"""The kinds of work in Compare: measure lanes, a grid, depths, load; search. One runs at a time."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.lab.runs.runner import MakeHome
from app.ui.compare.curves.load_work import LoadWork
from app.ui.compare.works.lab_session import LabSession
from app.ui.compare.works.tune_session import TuneSession
from app.ui.state.engine.engine_session import EngineSession
from app.ui.state.lab_work import LabWork, Stage


class Measurements(QObject):
    """The kinds of work, and their signals joined."""

    stage_changed = Signal()
    progressed = Signal()  # rounds, runs or numbers changed
    reported = Signal()  # a report changed
    replaced = Signal(str)  # the engine died and was replaced
    failed = Signal(object)  # UserError: the work cannot continue
    over = Signal()  # the work has ended, and the machine is free

    def __init__(
        self, engine: EngineSession, make_home: MakeHome, key_of: Callable[[str], str], parent: QObject
    ) -> None:
        """`key_of` gives the key of a server."""
        super().__init__(parent)
        self.session = LabSession(engine, make_home, key_of)
        self.sweep = LabSession(engine, make_home, key_of)
        self.depth = LabSession(engine, make_home, key_of)
        self.load = LoadWork(engine, key_of)
        self.tune = TuneSession(engine, make_home)
        self.shown: LabWork = self.session
        for work in self._every:
            work.setParent(self)
            work.stage_changed.connect(self.stage_changed)
            work.replaced.connect(self.replaced)
            work.failed.connect(self.failed)
            work.over.connect(self.over)
        for experiment in (self.session, self.sweep, self.depth):
            experiment.lanes_changed.connect(self.progressed)
            experiment.reported.connect(self.reported)
        self.load.changed.connect(self.progressed)
        self.load.changed.connect(self.reported)
        self.tune.changed.connect(self.progressed)

    @property
    def at_work(self) -> bool:
        return any(work.at_work for work in self._every)

    @property
    def may_start(self) -> bool:
        """Whether no work runs and the chat is not writing an answer."""
        return all(work.may_start for work in self._every)

    @property
    def measured(self) -> LabSession:
        """The experiment that is shown and exported."""
        return self.shown if isinstance(self.shown, LabSession) else self.session

    @Slot()
    def cancel(self) -> None:
        self.shown.cancel()

    @Slot()
    def pause(self) -> None:
        """Pause, or continue a paused work."""
        if self.shown.stage is Stage.PAUSED:
            self.shown.resume()
        else:
            self.shown.pause()

    def close(self) -> None:
        """End all work before the window closes."""
        for work in self._every:
            work.close()

    @property
    def _every(self) -> tuple[LabWork, ...]:
        return self.session, self.sweep, self.depth, self.load, self.tune
