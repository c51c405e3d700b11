"""Tune: finds the fastest strategy on the user's prompts within a time budget, or none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence

import msgspec

from app.base import numbers
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import AdviceFacts, Factor, cause
from app.engine.explain.predict import Predictor
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.strategy import NONE, StrategySpec, drafting_with
from app.engine.types import PairInfo, Round
from app.lab.experiment import Experiment, Lane, make_experiment
from app.lab.report.summary import SpeedFinding, Speedup, speedup_words
from app.lab.runs.disturbance import other_load, unsteady
from app.lab.runs.events import Control, EngineReplaced, LabEvent, PairLoaded, Paused, RunDone, RunStarted
from app.lab.runs.lab_engine import LabEngine
from app.lab.runs.runner import MakeHome, Runner
from app.lab.tune.search import Search, SearchPart, cannot_work, families, in_turn, rungs_left
from app.lab.tune.tuned import WORTH_IT, Rung, Score, Tuned, best_by_kind, winner_of

_BASELINE_ROUNDS = 200
PROBE = "draft-simple:n_max=8"  # shows how far the draft model agrees


class Stopwatch:
    """Adds up measuring time, without loading, pauses and new engines."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._before = 0.0
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        return self._before + (0.0 if self._since is None else self._clock() - self._since)

    def start(self) -> None:
        if self._since is None:
            self._since = self._clock()

    def stop(self) -> None:
        self._before, self._since = self.seconds, None


class Ending(Control):
    """The control of a rung: ends it when its time is up, and follows the search's control."""

    def __init__(self, whole: Control) -> None:
        super().__init__()
        self._whole = whole

    @property
    def paused(self) -> bool:
        return self._whole.paused

    @property
    def cancelled(self) -> bool:
        return self._cancelled or self._whole.cancelled

    @property
    def interrupted(self) -> bool:
        return self.paused or self.cancelled

    def end(self) -> None:
        super().cancel()

    def wait(self) -> None:
        self._whole.wait()


class RungBegun(LabEvent, frozen=True):
    """A rung (0 is the first) of `of` begins: its candidates, and the seconds it may take."""

    rung: int
    of: int
    strategies: tuple[str, ...]
    seconds: float


class RungDone(LabEvent, frozen=True):
    rung: int
    result: Rung


class TuneEnded(LabEvent, frozen=True):
    result: Tuned


class Tuner:
    """One search. `run` may be called on one thread only; `control` is safe from any."""

    def __init__(
        self,
        experiment: Experiment,
        make_home: MakeHome,
        budget: float,
        *,
        strategies: Sequence[str] = (),
        control: Control | None = None,
        clock: Callable[[], float] = time.monotonic,
        before: Tuned | None = None,
        first: str = "",
    ) -> None:
        """`experiment` gives pair, prompts, sampling and max_tokens; its lanes are ignored. `budget` is in
        seconds, without loading. `strategies` are tried instead of `families`, `first` is tried before all of
        them. The search continues after `before` with new measurements; if these are cut short, a complete
        `before` remains the result.

        Raises SettingError for a strategy that cannot be used.
        """
        self.control = control or Control()
        has_draft = experiment.pair.draft is not None
        every = families(has_draft=has_draft, temperature=experiment.sampling.temperature)
        found = strategies or in_turn(family.settings for family in every)
        # In one spelling, as the lanes have them.
        tried = tuple(dict.fromkeys(str(StrategySpec.parse(each)) for each in (first, *found) if each))
        self._given = bool(strategies)
        lanes = [Lane(strategy) for strategy in tried]
        self._search = Search(make_experiment(experiment.with_lanes(lanes), len(tried) + 1), budget, before)
        if not strategies and before is None:
            self._search.left_out += cannot_work(has_draft=has_draft)
        self.pair: PairInfo | None = None
        """The loaded pair; None before."""
        self._before = before
        self._doubts: list[str] = []  # what disturbed the last rung
        self._make_home = make_home
        self._clock = clock
        self._statistics: dict[str, Statistics] = {}
        self._costs: dict[str, CostModel] = {}
        self._plain: list[Round] = []  # of the baseline: passes over one token
        self.result: Tuned | None = None

    @property
    def experiment(self) -> Experiment:
        """Pair, prompts and settings of the search; its lanes are all candidates."""
        return self._search.experiment

    @experiment.setter
    def experiment(self, experiment: Experiment) -> None:
        self._search.experiment = experiment

    def run(self) -> Iterator[LabEvent]:
        """Search; the last event and `result` hold the result. Raises UserError."""
        engine, search = LabEngine(self._make_home, self.control), self._search
        try:
            if not self._given and self.experiment.pair.draft is not None:
                for event in self._runner(engine, search.first_answer(), self.control).run():
                    self._timed(Stopwatch(self._clock), event)
                    yield event
                search.suit(self.pair)
            if not self._given and self._before is None:
                yield from self._calibrate(engine)
            while not self.control.cancelled and (part := search.next()) is not None:
                rung = len(search.done)
                yield RungBegun(rung, rung + rungs_left(len(part.strategies)), part.strategies, part.seconds)
                result = yield from self._rung(engine, part)
                if result is None:
                    break
                yield RungDone(rung, result)
        finally:
            engine.close()
        before, done = self._before, search.done
        new = before is None or len(done) > len(before.rungs)
        if before is not None and (not new or (before.complete and not search.complete)):
            self.result = before  # more certain than a search that was cut short
        else:
            self.result = self.conclude(done, search.complete)
        yield TuneEnded(self.result)

    def _calibrate(self, engine: LabEngine) -> Iterator[LabEvent]:
        """Answer a few prompts without drafts and with the draft model, and time the target's passes, so that
        the search can leave out what cannot win."""
        draft = self.pair.draft if self.pair is not None else None
        part = self._search.calibration(drafting_with(PROBE, draft.architecture) if draft is not None else "")
        control = Ending(self.control)
        traces: dict[int, dict[int, Trace]] = {}
        answers = len(part.experiment.lanes)
        watch = Stopwatch(self._clock)
        runner = self._runner(engine, part, control)
        try:
            for event in runner.run():
                self._timed(watch, event)
                yield event
                if isinstance(event, RunDone) and event.trace is not None:
                    mine = traces.setdefault(event.job.prompt, {})
                    mine[event.job.lane] = event.trace
                    if len(mine) == answers and watch.seconds > part.seconds:
                        control.end()  # the target is slow: the rest of the time is for measuring
            engine.control = self.control
            if traces and not self.control.cancelled:
                engine.time_passes()
        finally:
            runner.close()
            watch.stop()
        predictors = [
            Predictor(AdviceFacts.of([found[answers - 1]], [found[0]], calibration=engine.passes))
            for found in traces.values()
            if len(found) == answers
        ]
        yield self._search.calibrated(predictors, tuple(runner.records.values()), watch.seconds)

    def _runner(self, engine: LabEngine, part: SearchPart, control: Control) -> Runner:
        engine.control = control
        return Runner(part.experiment, self._make_home, control=control, engine=engine, jobs=part.jobs)

    def _timed(self, watch: Stopwatch, event: LabEvent) -> None:
        """Note measuring time and pair from an event."""
        if isinstance(event, RunStarted):
            watch.start()
        elif isinstance(event, Paused | EngineReplaced):
            watch.stop()
        elif isinstance(event, PairLoaded):
            self.pair = event.pair

    def _rung(self, engine: LabEngine, part: SearchPart) -> Generator[LabEvent, None, Rung | None]:
        """Measure until the search has enough, every candidate on the same prompts; returns None if
        nothing can be compared."""
        control, watch = Ending(self.control), Stopwatch(self._clock)
        runner = self._runner(engine, part, control)
        try:
            for event in runner.run():
                self._timed(watch, event)
                yield event
                if isinstance(event, RunDone):
                    self._learn(part.experiment.lanes[event.job.lane].strategy, event)
                    if self._search.told(event.job, (event.record, *event.others), watch.seconds):
                        control.end()
        finally:
            runner.close()
        watch.stop()
        runs, threads = tuple(runner.records.values()), self.pair.target.threads if self.pair else 1
        self._doubts = [*other_load(runs, os.cpu_count() or 1, threads), *unsteady(runs, 0, NONE)]
        return self._search.finish(runs, watch.seconds, self.control.cancelled)

    def _learn(self, strategy: str, event: RunDone) -> None:
        """Keep the counts and costs that explain a result."""
        if event.trace is None:
            return
        if strategy == NONE:
            self._plain = [*self._plain, *event.trace.rounds][-_BASELINE_ROUNDS:]
            return
        statistics = self._statistics.setdefault(strategy, Statistics())
        cost = self._costs.setdefault(strategy, CostModel())
        for round in event.trace.rounds:
            statistics.add(round)
            cost.add(round)

    def conclude(self, done: list[Rung], complete: bool) -> Tuned:
        tried = len({score.strategy for rung in done for score in rung.scores})
        every = len(self.experiment.lanes) - 1
        left_out = tuple(self._search.left_out)
        hopeless = sum(len(each.strategies) for each in left_out)
        spent = self._search.spent + (self._before.seconds if self._before is not None else 0.0)
        result = Tuned(NONE, None, NONE, "", tuple(done), tried, every, spent, False, left_out)
        known = [score for score in done[-1].scores if score.speedup] if done else []
        if not known:
            return msgspec.structs.replace(result, reason=self._unmeasured(done))
        won = winner_of(done[-1])
        best = won or known[0]
        wins, speedup = won is not None, best.speedup
        assert speedup is not None
        reason = (
            self._won(best, known, complete) if wins else self._lost(best.strategy, speedup, done, complete)
        )
        if best.over_repeats:
            reason += (
                " There was one prompt, so the interval covers only its repeats; other prompts may differ."
            )
        if hopeless:
            more = numbers.count(hopeless, "more setting")
            reason += f" {more} cannot win by the cost model and were not tried."
        if tried < every - hopeless:
            reason += f" Only {tried} of {every - hopeless} candidates could be tried in this time."
        return msgspec.structs.replace(
            result,
            winner=best.strategy if wins else NONE,
            speedup=speedup,
            best=best.strategy,
            reason=" ".join([reason, *self._doubts]),
            complete=complete,
            kinds=best_by_kind(self._search.runs),
        )

    def _unmeasured(self, done: Sequence[Rung]) -> str:
        """Why nothing can be compared."""
        if done:
            errors = [score.error for score in done[-1].scores if score.error]
            return f"No setting could be measured{f': {errors[0]}' if errors else '.'}"
        if self.control.cancelled:
            return "The search was cancelled before a setting was measured."
        return "Nothing could be measured in this time. Give the search more time."

    def _won(self, best: Score, known: Sequence[Score], complete: bool) -> str:
        text = f"{best.strategy} is {speedup_words(best.speedup)} as fast as the baseline on these prompts."
        if best.speedup is not None and best.speedup.finding is SpeedFinding.SAME:
            text += " It was faster here, but the interval includes 1×: similar prompts may gain nothing."
        at = known.index(best)
        for score in known[:at]:
            text += f" {score.strategy} measured {speedup_words(score.speedup)}, which may be chance."
        if known[at + 1 :]:
            text += f" Next came {known[at + 1].strategy}, {speedup_words(known[at + 1].speedup)}."
        return (
            text if complete else f"{text} The search was not finished; more time may find a better setting."
        )

    def _lost(self, best: str, speedup: Speedup, done: Sequence[Rung], complete: bool) -> str:
        """Why no strategy wins."""
        shown = speedup_words(speedup)
        if speedup.factor >= WORTH_IT:
            text = (
                f"none: the best that was found, {best}, measured {shown}, which may be chance. "
                "Add time or prompts."
            )
        elif not (complete and done[-1].refuted):
            text = (
                f"none: too little was measured to say whether speculation pays here. The best, {best}, "
                f"measured {shown}. Add time or prompts."
            )
        else:
            text = (
                "none: speculation does not pay here, because even the best that was tried, "
                f"{best}, measured {shown}. {self._advice(best, speedup)}"
            ).rstrip()
            # A setting that seldom drafts is near 1× by doing nothing: the best draft model says more.
            model = None if StrategySpec.parse(best).needs_draft else _best_with_model(done)
            if model is not None and model.speedup is not None:
                text += (
                    f" The best with the draft model, {model.strategy}, measured "
                    f"{speedup_words(model.speedup)}. {self._advice(model.strategy, model.speedup)}"
                ).rstrip()
        return text if complete else f"{text} The search was not finished."

    def _advice(self, strategy: str, speedup: Speedup) -> str:
        """The cause of a strategy's speed-up, by its costs."""
        statistics, cost = self._statistics.get(strategy), self._costs.get(strategy)
        if statistics is None or cost is None:
            return ""
        for round in self._plain:
            cost.add(round, plain=True)
        measured = Factor(speedup.factor, speedup.factor, speedup.factor)
        facts = AdviceFacts(StrategySpec.parse(strategy), statistics, cost, measured=measured, pair=self.pair)
        return cause(facts)[1]


def _best_with_model(done: Sequence[Rung]) -> Score | None:
    """The best candidate with a draft model, in the last rung that had one."""
    for rung in reversed(done):
        for score in rung.scores:
            if score.speedup is not None and StrategySpec.parse(score.strategy).needs_draft:
                return score
    return None
