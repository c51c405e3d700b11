"""A search for the best setting, in the window."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import Signal

from app.engine.types import PairInfo
from app.lab.experiment import Experiment
from app.lab.runs.control import Control
from app.lab.runs.events import LabEvent, PairLoaded, RunDone, RunStarted
from app.lab.runs.runner import MakeHome
from app.lab.tune.search import Planned
from app.lab.tune.tuned import Rung, Tuned
from app.lab.tune.tuner import RungBegun, RungDone, TuneEnded, Tuner
from app.ui.state.engine.engine_session import EngineSession
from app.ui.state.lab_thread import LabThread
from app.ui.state.lab_work import LabWork, Stage


class TuneSession(LabWork):
    """The rounds of a search, as they arrive."""

    changed = Signal()

    def __init__(self, engine: EngineSession, make_home: MakeHome) -> None:
        super().__init__(engine)
        self._make_home = make_home
        self._rung_began: float | None = None
        self.rungs: list[Rung] = []
        self.rung = 0
        self.of = 0
        self.strategies: tuple[str, ...] = ()  # still in
        self.seconds = 0.0  # that the current round may take
        self.runs = 0
        self.plan = ""  # what is measured and how long that takes, in a sentence
        self.result: Tuned | None = None
        self.experiment: Experiment | None = None
        self.pair: PairInfo | None = None  # the loaded pair
        self._before: Tuned | None = None  # the result before the search was continued

    @property
    def rung_share(self) -> float:
        """The share of its time that the current round has used, in [0, 1]."""
        if self._rung_began is None or self.seconds <= 0:
            return 0.0
        return min(1.0, (time.monotonic() - self._rung_began) / self.seconds)

    @property
    def share(self) -> float:
        """The share of the search that is done, by rounds, in [0, 1]."""
        return (self.rung + self.rung_share) / self.of if self.of else 0.0

    def start(self, experiment: Experiment, budget: float) -> None:
        """Search for so many seconds; the experiment's lanes are ignored."""
        self.experiment, self.pair = experiment, None
        self.rungs, self.runs = [], 0
        self._search(experiment, budget, None)

    def go_on(self, budget: float) -> None:
        """Search for so many seconds more, with the settings that are still in."""
        assert self.experiment is not None
        self._search(self.experiment, budget, self.result)

    def _search(self, experiment: Experiment, budget: float, before: Tuned | None) -> None:
        self.rung, self.of, self.strategies, self.plan = 0, 0, (), ""
        self.result, self._rung_began, self._before = None, None, before

        def make(control: Control) -> Iterator[LabEvent]:
            return Tuner(experiment, self._make_home, budget, control=control, before=before).run()

        self._begin(make, needs_engine=True)

    def _folded(self, events: list[LabEvent]) -> None:
        self.changed.emit()

    def _over(self, thread: LabThread) -> None:
        self._rung_began = None
        self.result = self.result or self._before  # where it broke, the earlier result still holds

    def _fold(self, event: LabEvent) -> None:
        if isinstance(event, RungBegun):
            self.rung, self.of, self.strategies = event.rung, event.of, event.strategies
            self.seconds, self._rung_began = event.seconds, None
        elif isinstance(event, RunStarted):
            if self._rung_began is None:
                self._rung_began = time.monotonic()
            if self.stage not in (Stage.ENDING, Stage.RUNNING):
                self._set(Stage.RUNNING)
        elif isinstance(event, RunDone):
            self.runs += 1
        elif isinstance(event, PairLoaded):
            self.pair = event.pair
        elif isinstance(event, Planned):
            self.plan = event.words
        elif isinstance(event, RungDone):
            self.rungs.append(event.result)
        elif isinstance(event, TuneEnded):
            self.result = event.result
            self.rungs = list(event.result.rungs)
            self._set(Stage.ENDED)
        else:
            super()._fold(event)
