"""Tune for me: finds the fastest strategy on the user's prompts within a time budget, or none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence

import msgspec

from app.base import numbers
from app.engine.explain.advice import cause
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import AdviceFacts, Factor
from app.engine.explain.predict import Predictor
from app.engine.process.messages import Forced, ForcedText
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.strategy import NONE, StrategySpec
from app.engine.types import PairInfo, Round
from app.lab.experiment import Experiment, Job, Lane, Prompt, conversations, make_experiment
from app.lab.report.interval import SpeedFinding, Speedup, speedup_words
from app.lab.runs.control import Control
from app.lab.runs.disturbance import other_load, unsteady
from app.lab.runs.events import EngineReplaced, LabEvent, PairLoaded, Paused, RunDone, RunStarted
from app.lab.runs.journal.run_record import RunRecord
from app.lab.runs.lab_engine import LabEngine
from app.lab.runs.runner import MakeHome, Runner
from app.lab.tune.candidates import LeftOut, Planned, cannot_work, families, in_turn, promising
from app.lab.tune.halving import FINALISTS, rungs_left, time_share
from app.lab.tune.rung_time import Ending, Stopwatch
from app.lab.tune.tuned import WORTH_IT, Rung, Score, Tuned, best_by_kind, scored

_FIRST_TOKENS = 64  # of an answer in the first rung; the number doubles with each rung
_MOST_RUNS = 50_000  # more than a rung reaches: it ends by the clock
_BASELINE_ROUNDS = 200
_PROMPTS = 3  # prompts that a recommendation rests on at least, if there are so many
_PROBE = "draft-simple:n_max=8"  # shows how far the draft model agrees
_CALIBRATION = 0.25  # share of the budget after which no more prompts are answered to calibrate
_PATIENCE = 1.5  # times its seconds that the last rung may take, until it has so many prompts


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
        self._left_out = [] if strategies else list(cannot_work(has_draft=has_draft))
        self.experiment = make_experiment(
            experiment.with_lanes([Lane(strategy) for strategy in tried]), len(tried) + 1
        )
        """Pair, prompts and settings of the search; its lanes are all candidates."""
        self.pair: PairInfo | None = None
        """The loaded pair; None before."""
        self._before = before
        self._doubts: list[str] = []  # what disturbed the last rung
        self._make_home = make_home
        self._budget = budget
        self._clock = clock
        self._spent = 0.0
        self._statistics: dict[str, Statistics] = {}
        self._costs: dict[str, CostModel] = {}
        self._plain: list[Round] = []  # of the baseline: passes over one token
        self._runs: list[tuple[str, RunRecord]] = []  # of all rungs, with their strategies
        self.result: Tuned | None = None

    def run(self) -> Iterator[LabEvent]:
        """Search; the last event and `result` hold the result. Raises UserError."""
        engine = LabEngine(self._make_home, self.control)
        left = tuple(lane.strategy for lane in self.experiment.lanes if lane.strategy != NONE)
        done: list[Rung] = []
        if self._before is not None:
            left, done = self._before.left(left), list(self._before.rungs)
            self._left_out = list(self._before.left_out)
        complete = False
        try:
            if self._before is None and not self._given:
                left = yield from self._promising(engine, left)
            while left and not complete and not self.control.cancelled:
                rungs = rungs_left(len(left))
                seconds = time_share(rungs, self._budget - self._spent)
                if seconds <= 0:
                    break
                yield RungBegun(len(done), len(done) + rungs, left, seconds)
                result = yield from self._rung(engine, len(done), left, seconds)
                if result is None:
                    break
                yield RungDone(len(done), result)
                done.append(result)
                complete = len(left) <= FINALISTS and not self.control.cancelled
                left = tuple(score.strategy for score in result.scores if score.kept)
        finally:
            engine.close()
        before = self._before
        new = before is None or len(done) > len(before.rungs)
        if before is not None and (not new or (before.complete and not complete)):
            self.result = before  # more certain than a search that was cut short
        else:
            self.result = self.conclude(done, complete)
        yield TuneEnded(self.result)

    def _promising(
        self, engine: LabEngine, candidates: Sequence[str]
    ) -> Generator[LabEvent, None, tuple[str, ...]]:
        """The candidates that may win by the cost model, the most promising first, as many as there is time
        for. Answers a few prompts without drafts and with the draft model, and times passes of the target."""
        probe = (NONE, _PROBE) if self.experiment.pair.draft is not None else (NONE,)
        experiment = msgspec.structs.replace(
            self.experiment,
            lanes=tuple(map(Lane, probe)),
            prompts=_mixed(self.experiment.prompts, 0)[:_PROMPTS],
            max_tokens=min(self.experiment.max_tokens, _FIRST_TOKENS),
            repeats=1,
        )
        control = engine.control = Ending(self.control)
        jobs = [
            Job(0, prompt, lane) for prompt in range(len(experiment.prompts)) for lane in range(len(probe))
        ]
        runner = Runner(experiment, self._make_home, control=control, engine=engine, jobs=jobs)
        traces: dict[int, dict[int, Trace]] = {}
        watch = Stopwatch(self._clock)
        try:
            for event in runner.run():
                self._timed(watch, event)
                yield event
                if isinstance(event, RunDone) and event.trace is not None:
                    mine = traces.setdefault(event.job.prompt, {})
                    mine[event.job.lane] = event.trace
                    if len(mine) == len(probe) and watch.seconds > _CALIBRATION * self._budget:
                        control.end()  # the target is slow: the rest of the time is for measuring
            engine.control = self.control
            asked = ForcedText(experiment.request(0, NONE), ())
            passes = None
            if traces and not self.control.cancelled:
                forced = [event for event in engine.force((asked,)) if isinstance(event, Forced)]
                passes = forced[-1].seconds
        finally:
            runner.close()
            watch.stop()
        self._spent += watch.seconds
        whole = [found for found in traces.values() if len(found) == len(probe)]
        predictors = [
            Predictor(AdviceFacts.of([found[len(probe) - 1]], [found[0]], calibration=passes))
            for found in whole
        ]
        ranked, hopeful = promising(candidates, predictors, WORTH_IT, FINALISTS)
        ranked, hopeless = ranked[:hopeful], ranked[hopeful:]
        if hopeless:
            what = numbers.count(len(hopeless), "setting")
            reason = f"the cost model predicts less than {WORTH_IT:g}× on each of {len(whole)} prompts"
            self._left_out.append(LeftOut(what, reason, hopeless))
        answer = watch.seconds / max(1, len(traces) * len(probe))

        def wanted(settings: int) -> float:
            return rungs_left(settings) * (settings + 1) * len(experiment.prompts) * answer

        most = len(ranked)
        while most > FINALISTS and wanted(most) > self._budget - self._spent:
            most -= 1
        yield Planned(most, len(ranked), len(candidates), self._spent + wanted(len(ranked)))
        return ranked[:most]

    def _timed(self, watch: Stopwatch, event: LabEvent) -> None:
        """Keep the time of measuring and the pair, as an event says."""
        if isinstance(event, RunStarted):
            watch.start()
        elif isinstance(event, Paused | EngineReplaced):
            watch.stop()
        elif isinstance(event, PairLoaded):
            self.pair = event.pair

    def _rung(
        self, engine: LabEngine, rung: int, strategies: Sequence[str], seconds: float
    ) -> Generator[LabEvent, None, Rung | None]:
        """Measure until the time is up, every candidate on the same prompts.

        The most promising candidates come first: where there is not enough time for one prompt with all of
        them, the rest are out. The rung also ends where every run of every prompt was refused. Returns None
        where nothing can be compared.
        """
        lanes = (Lane(NONE), *map(Lane, strategies))
        prompts = _mixed(self.experiment.prompts, rung)[: _MOST_RUNS // len(lanes)]
        experiment = msgspec.structs.replace(
            self.experiment,
            lanes=lanes,
            prompts=prompts,
            max_tokens=min(self.experiment.max_tokens, _FIRST_TOKENS * 2**rung),
            repeats=_MOST_RUNS // (len(lanes) * len(prompts)),
        )
        control = Ending(self.control)
        engine.control = control
        runner = Runner(
            experiment, self._make_home, control=control, engine=engine, jobs=_promising_first(experiment)
        )
        patience = len(experiment.prompts) * len(experiment.lanes)
        refused = 0  # runs since the last one that was done
        groups: dict[tuple[int, int], dict[int, RunRecord]] = {}
        watch = Stopwatch(self._clock)
        try:
            for event in runner.run():
                self._timed(watch, event)
                yield event
                if not isinstance(event, RunDone):
                    continue
                self._learn(experiment.lanes[event.job.lane].strategy, event)
                group = groups.setdefault((event.job.repeat, event.job.prompt), {})
                group |= {event.job.lane: event.record} | {record.lane: record for record in event.others}
                refused = refused + 1 if event.record.failure else 0
                if refused == patience:
                    control.end()
                late = watch.seconds >= seconds
                if len(strategies) <= FINALISTS and watch.seconds < _PATIENCE * seconds:
                    done = {prompt for (_, prompt), each in groups.items() if len(each) == len(lanes)}
                    late = late and len(done) >= min(_PROMPTS, len(prompts))
                if late and (len(group) == len(experiment.lanes) or len(groups) == 1 < len(group)):
                    control.end()
        finally:
            runner.close()
        watch.stop()
        self._spent += watch.seconds
        runs, threads = tuple(runner.records.values()), self.pair.target.threads if self.pair else 1
        self._doubts = [*other_load(runs, os.cpu_count() or 1, threads), *unsteady(runs, 0, NONE)]
        self._runs += [(lanes[run.lane].strategy, run) for run in runs]
        whole = [group for group in groups.values() if len(group) == len(experiment.lanes)]
        return scored(experiment, whole or list(groups.values())[:1], watch.seconds)

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
        hopeless = sum(len(left_out.strategies) for left_out in self._left_out)
        spent = self._spent + (self._before.seconds if self._before is not None else 0.0)
        known = [score for score in done[-1].scores if score.speedup] if done else []
        if not known:
            reason = (
                "Nothing could be measured in this time. Give the search more time."
                if not done
                else _errors(done[-1])
            )
            return Tuned(
                NONE,
                None,
                NONE,
                reason,
                tuple(done),
                tried,
                every,
                spent,
                complete=False,
                left_out=tuple(self._left_out),
            )
        # A setting shown to be faster wins, even over one with a larger factor that may be chance.
        won = next((score for score in known if score.speedup and _is_worth_it(score.speedup)), None)
        best = won or known[0]
        wins, speedup = won is not None, best.speedup
        assert speedup is not None
        reason = (
            self._won(best, known, complete) if wins else self._lost(best.strategy, speedup, done, complete)
        )
        if best.over_repeats:
            reason += " There was one prompt, so the interval is over its repeats; other prompts may differ."
        if hopeless:
            more = numbers.count(hopeless, "more setting")
            reason += f" {more} cannot win by the cost model and were not tried."
        if tried < every - hopeless:
            reason += f" Only {tried} of {every - hopeless} candidates could be tried in this time."
        kinds = best_by_kind(self._runs)
        if len({kind.strategy for kind in kinds}) > 1:
            reason += f" By kind of prompt: {'; '.join(map(str, kinds))}."
        reason = " ".join([reason, *self._doubts])
        return Tuned(
            best.strategy if wins else NONE,
            speedup,
            best.strategy,
            reason,
            tuple(done),
            tried,
            every,
            spent,
            complete,
            tuple(self._left_out),
            kinds,
        )

    def _won(self, best: Score, known: Sequence[Score], complete: bool) -> str:
        text = f"{best.strategy} is {speedup_words(best.speedup)} as fast as none on these prompts."
        at = known.index(best)
        for score in known[:at]:
            text += f" {score.strategy} measured {speedup_words(score.speedup)}, and that may be chance."
        if known[at + 1 :]:
            text += f" Next came {known[at + 1].strategy}, {speedup_words(known[at + 1].speedup)}."
        return text if complete else f"{text} The search was not finished; more time may find a better one."

    def _lost(self, best: str, speedup: Speedup, done: Sequence[Rung], complete: bool) -> str:
        """Why no strategy wins."""
        shown = speedup_words(speedup)
        if speedup.factor >= WORTH_IT:
            text = (
                f"none: the best that was found, {best}, measured {shown}, and that may be chance. "
                "More time or more prompts would tell."
            )
        elif not (complete and done[-1].refuted):
            text = (
                f"none: not enough was measured to tell whether speculation pays here. The best, {best}, "
                f"measured {shown}. More time or more prompts would tell."
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


def _is_worth_it(speedup: Speedup) -> bool:
    return speedup.factor >= WORTH_IT and speedup.finding is SpeedFinding.FASTER


def _best_with_model(done: Sequence[Rung]) -> Score | None:
    """The best candidate with a draft model, in the last rung that had one."""
    for rung in reversed(done):
        for score in rung.scores:
            if score.speedup is not None and StrategySpec.parse(score.strategy).needs_draft:
                return score
    return None


def _mixed(prompts: Sequence[Prompt], rung: int) -> tuple[Prompt, ...]:
    """The prompts with the categories in turn, so that the first few are of all kinds. Each rung begins at
    another prompt: the same prompts would select the same winners. Conversations stay whole."""
    by_category: dict[str | None, list[tuple[Prompt, ...]]] = {}
    for turns in conversations(prompts):
        by_category.setdefault(turns[0].category, []).append(turns)
    longest = max(len(group) for group in by_category.values())
    mixed = [group[at] for at in range(longest) for group in by_category.values() if at < len(group)]
    start = rung * max(1, len(mixed) // 3) % len(mixed)
    return tuple(prompt for turns in mixed[start:] + mixed[:start] for prompt in turns)


def _promising_first(experiment: Experiment) -> list[Job]:
    """All runs; those of the first prompt in the lanes' order, in case there is no time for more."""
    first = [Job(0, 0, lane) for lane in range(len(experiment.lanes))]
    return [*first, *(job for job in experiment.jobs() if (job.repeat, job.prompt) != (0, 0))]


def _errors(rung: Rung) -> str:
    """Why no candidate was measured."""
    error = next((score.error for score in rung.scores if score.error), "")
    return f"No setting could be measured: {error}" if error else "No setting could be measured."
