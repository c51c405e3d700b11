"""The kinds of work in Compare: measure lanes, a grid, depths, load; search. One runs at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.base import numbers
from app.engine.types import PairInfo
from app.lab.experiment import Experiment
from app.lab.facts import Digest
from app.lab.lanes import lane_names
from app.lab.load.export import load_curves, load_findings
from app.lab.load.levels import LoadPlan, level_words
from app.lab.load.report import Burst, BurstDone, BurstReport
from app.lab.report.report import SweepFacts
from app.lab.runs.events import Begun, Control, Ended, LabEvent, PairLoaded, RunDone, RunStarted
from app.lab.runs.runner import MakeHome
from app.lab.tune.search import Planned
from app.lab.tune.tuned import Rung, Tuned, TuneReport
from app.lab.tune.tuner import RungBegun, RungDone, TuneEnded, Tuner
from app.ui.compare.lab_session import CompareWork, LabSession, Reported, reported
from app.ui.state.engine_session import EngineSession
from app.ui.state.lab_work import LabThread, Stage


class LoadWork(CompareWork[BurstReport]):
    """The bursts of requests, as they arrive. They cannot be paused, because a pause would have to wait for
    the end of a burst."""

    pausable = False
    reports = BurstReport
    noun = "burst"

    def __init__(self, engine: EngineSession, key_of: Callable[[str], str]) -> None:
        super().__init__(engine)
        self._key_of = key_of

    def start(self, experiment: Experiment, load: LoadPlan) -> None:
        """Measure the lanes of `experiment`, all of them servers', under this load."""
        self._forget(experiment)
        self._latest: Burst | None = None
        self.total = len(experiment.lanes) * len(load.levels) * experiment.repeats

        def make(control: Control) -> Iterator[LabEvent]:
            from app.lab.load.runner import LoadRunner  # the HTTP client takes a moment to import

            runner = LoadRunner(experiment, load, control=control, key_of=self._key_of)

            def fold() -> Reported:
                report = runner.report()
                return Reported(report, load_curves(report))

            return reported(runner.run(), fold)

        self._begin(make)

    def doing(self, done: str) -> str:
        burst = self._latest
        if burst is None or self.experiment is None:
            return done
        speed = numbers.digits(burst.tokens_per_second, "tokens/s")
        load = level_words(burst.level, by_rate=burst.rate is not None)
        return f"{done} · {lane_names(self.experiment)[burst.lane]}, {load}: {speed}"

    def outcome(self) -> str:
        if (report := self.report) is None:
            return ""
        done = "" if report.complete else f"{self.done_words()}: "
        return done + (" ".join(load_findings(report)) or "Measured without a baseline.")

    def _fold(self, event: LabEvent) -> None:
        if isinstance(event, BurstDone):
            self.done, self._latest = event.done, event.burst
        elif isinstance(event, Begun):
            self._run()
        else:
            super()._fold(event)


class TuneSession(CompareWork[TuneReport]):
    """The stages of a search, as they arrive."""

    reports = TuneReport

    def __init__(self, engine: EngineSession, make_home: MakeHome) -> None:
        super().__init__(engine)
        self._make_home = make_home
        self._continue(None)

    def _forget(self, experiment: Experiment | None) -> None:
        super()._forget(experiment)
        self.pair: PairInfo | None = None  # the loaded pair
        self.rungs: list[Rung] = []

    def _continue(self, before: Tuned | None) -> None:
        """Begin a search, or continue the one of `before`."""
        self._rung_began: float | None = None
        self.rung = RungBegun(0, 0, (), 0.0)  # the current one; of none before the first
        self.running = ""  # the strategy of the current run
        self.plan = ""  # what is measured and how long that takes, in a sentence
        self.result: Tuned | None = None
        self._before = before  # the result before the search was continued

    @property
    def rung_share(self) -> float:
        """The share of its time that the current stage has used, in [0, 1]."""
        if self._rung_began is None or self.rung.seconds <= 0:
            return 0.0
        return min(1.0, (time.monotonic() - self._rung_began) / self.rung.seconds)

    @property
    def share(self) -> float:
        """By stages."""
        return (self.rung.rung + self.rung_share) / max(1, self.rung.of)

    def done_words(self) -> str:
        now = self.rung
        if not now.of:
            return "finding out which settings may win"
        return f"stage {now.rung + 1} of {now.of} · {numbers.count(len(now.strategies), 'setting')}"

    def doing(self, done: str) -> str:
        return f"{done} · {numbers.count(self.done, 'run')}"

    def left_words(self) -> str:
        left = self.rung.seconds * (1 - self.rung_share)
        return f"{numbers.duration(left)} left in this stage" if left >= 1 else ""

    def outcome(self) -> str:
        if (result := self.result) is None:
            return ""
        return f"{result.tried} of {result.candidates} settings tried, {numbers.count(self.done, 'run')}"

    def report_made(self) -> Callable[[Digest], TuneReport] | None:
        if self.result is None or self.experiment is None:
            return None
        return partial(TuneReport.of, self.result, self.experiment, self.pair)

    def start(self, experiment: Experiment, budget: float) -> None:
        """Search for this many seconds; the experiment's lanes are ignored."""
        self._forget(experiment)
        self._search(experiment, budget, None)

    def go_on(self, budget: float) -> None:
        """Search for this many seconds more, with the remaining settings."""
        assert self.experiment is not None
        self._search(self.experiment, budget, self.result)

    def _search(self, experiment: Experiment, budget: float, before: Tuned | None) -> None:
        self._continue(before)

        def make(control: Control) -> Iterator[LabEvent]:
            return Tuner(experiment, self._make_home, budget, control=control, before=before).run()

        self._begin(make)

    def _over(self, thread: LabThread) -> None:
        self._rung_began, self.running = None, ""
        self.result = self.result or self._before  # where it broke, the earlier result still holds

    def _fold(self, event: LabEvent) -> None:
        if isinstance(event, RungBegun):
            self.rung, self._rung_began = event, None
        elif isinstance(event, RunStarted):
            if self._rung_began is None:
                self._rung_began = time.monotonic()
            self.running = event.header.strategy
            self._run()
        elif isinstance(event, RunDone):
            self.done += 1
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
        elif not isinstance(event, Ended):  # which is the end of one stage's runs
            super()._fold(event)


AnyWork = LabSession | LoadWork | TuneSession


class Measurements(QObject):
    """The kinds of work, and their signals joined."""

    stage_changed = Signal()
    progressed = Signal()  # rounds, runs or numbers changed
    reported = Signal()  # a report changed
    replaced = Signal(str)  # the engine died and was replaced
    failed = Signal(object)  # UserError: the work cannot continue
    over = Signal()  # the work has ended, and the machine is free

    def __init__(
        self,
        engine: EngineSession,
        make_home: MakeHome,
        new_journal: Callable[[SweepFacts | None], Path],
        key_of: Callable[[str], str],
        parent: QObject,
    ) -> None:
        """`new_journal` and `key_of` are those of `LabSession`."""
        super().__init__(parent)
        self.session, self.sweep, self.depth = (
            LabSession(engine, make_home, new_journal, key_of) for _kind in range(3)
        )
        self.load = LoadWork(engine, key_of)
        self.tune = TuneSession(engine, make_home)
        self.shown: AnyWork = self.session
        for work in self._every:
            work.setParent(self)
            work.stage_changed.connect(self.stage_changed)
            work.replaced.connect(self.replaced)
            work.failed.connect(self.failed)
            work.over.connect(self.over)
            work.progressed.connect(self.progressed)
            work.reported.connect(self.reported)

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

    def cancel(self) -> None:
        self.shown.cancel()

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
    def _every(self) -> tuple[AnyWork, ...]:
        return self.session, self.sweep, self.depth, self.load, self.tune
