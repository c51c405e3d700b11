"""Decides what a search measures next, without an engine or a clock: it gives the next part and takes the
results.

Candidates are the settings of every registered strategy worth trying on an unknown machine. A few answers
with and without drafts come first: with them the cost model predicts which settings may win. These are
measured by successive halving (Jamieson and Talwalkar 2016): all briefly, then the better half longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import NamedTuple

import msgspec

from app.base import numbers
from app.engine.drafters.base import StrategyKind
from app.engine.drafters.registry import KINDS
from app.engine.explain.predict import Predictor
from app.engine.strategy import NONE, SYNTHETIC, StrategySpec, drafting_with
from app.engine.types import PairInfo
from app.lab.experiment import Experiment, Job, Lane, Prompt, conversations
from app.lab.runs.events import LabEvent
from app.lab.runs.record import RunRecord
from app.lab.tune.tuned import FEWEST_PROMPTS, FINALISTS, WORTH_IT, LeftOut, Rung, Tuned, kept_of, scored


class Family(NamedTuple):
    """A strategy or a mix, with settings worth trying, most promising first."""

    name: str
    settings: tuple[str, ...]


def families(*, has_draft: bool, temperature: float = 0.0) -> tuple[Family, ...]:
    """All families that can work, most promising first; strategies with a draft model only if there is
    one."""
    usable = [kind for kind in KINDS.values() if not kind.is_synthetic and not kind.is_head]
    alone = [kind for kind in usable if not kind.needs_draft]
    drafting = [kind for kind in usable if kind.needs_draft and has_draft]
    found = [Family(kind.name, tuple(_settings_of(kind, temperature))) for kind in (*drafting, *alone)]
    found += [_mix(first, second.name, second.settings_behind) for second in drafting for first in alone]
    # Without a draft model: long repetitions first, then short ones.
    found += [_mix(kind, kind.before, KINDS[kind.before].settings[:1]) for kind in alone if kind.before]
    return tuple(found)


def cannot_work(*, has_draft: bool) -> tuple[LeftOut, ...]:
    """The registered strategies that `families` leaves out, and why."""
    found = [LeftOut(kind.name, SYNTHETIC) for kind in KINDS.values() if kind.is_synthetic]
    if not has_draft:
        found.append(LeftOut("strategies with a draft model", "there is no draft model"))
    return tuple(found)


def _settings_of(kind: StrategyKind, temperature: float) -> Iterator[str]:
    settings = kind.settings
    if temperature > 0:
        settings = (*settings[:2], *kind.settings_drawn, *settings[2:])
    for setting in settings:
        yield f"{kind.name}:{setting}".rstrip(":")


def _mix(first: StrategyKind, second: str, settings: Iterable[str]) -> Family:
    """The first strategy with its most promising settings, then the second."""
    (best, *_) = _settings_of(first, 0.0)
    return Family(f"{first.name}+{second}", tuple(f"{best}+{second}:{setting}" for setting in settings))


_FINAL_SHARE = 2.0  # the last rung's time, relative to every other rung's
_FIRST_TOKENS = 64  # of an answer in the first rung; the number doubles with each rung
_LOADING_TOKENS = 8
_MOST_RUNS = 10_000  # more than a rung reaches: it ends by the clock
_CALIBRATION = 0.25  # share of the budget after which no more prompts are answered to calibrate
_PATIENCE = 0.5  # share of the budget that the last rung may take besides, until it has enough prompts


class SearchPart(NamedTuple):
    """Runs that are measured together."""

    experiment: Experiment
    jobs: tuple[Job, ...]
    seconds: float = math.inf

    @property
    def strategies(self) -> tuple[str, ...]:
        """The candidates, without the baseline."""
        return tuple(lane.strategy for lane in self.experiment.lanes if lane.strategy != NONE)


class Planned(LabEvent, frozen=True):
    """The cost model has ruled out settings: `promising` of `candidates` are left, and `tried` of these will
    be measured. Measuring all that are left would take `seconds`."""

    tried: int
    promising: int
    candidates: int
    seconds: float

    @property
    def words(self) -> str:
        may = f"{self.promising} of {numbers.count(self.candidates, 'setting')} may win on these prompts"
        takes = f"measuring them takes {numbers.duration(self.seconds)}"
        if self.tried < self.promising:
            return f"{may}; {takes}, so the {self.tried} best by prediction are measured."
        return f"{may}; {takes}."


class Search:
    """The decisions of one search."""

    def __init__(self, experiment: Experiment, budget: float, before: Tuned | None = None) -> None:
        """`experiment` has all candidates as lanes; `budget` is in seconds of measuring. The search continues
        after `before`."""
        self.experiment, self._budget = experiment, budget
        self._before = before
        self.left = self._left()
        """The candidates that are still in."""
        self.done = list(before.rungs) if before is not None else []
        self.left_out = list(before.left_out) if before is not None else []
        self.runs: list[tuple[str, RunRecord]] = []
        """The runs of all rungs, with their strategies."""
        self.spent = 0.0
        """Seconds of measuring."""
        self.complete = False
        self._groups: dict[tuple[int, int], dict[int, RunRecord]] = {}
        self._refused = 0  # runs since the last one that was done
        self._part: SearchPart | None = None

    # --- calibration

    def first_answer(self) -> SearchPart:
        """A short answer without drafts, which loads the pair."""
        experiment = self._of((NONE,), mixed(self.experiment.prompts, 0)[:1], _LOADING_TOKENS)
        return SearchPart(experiment, (Job(0, 0, 0),))

    def _of(
        self, strategies: Iterable[str], prompts: tuple[Prompt, ...], tokens: int, repeats: int = 1
    ) -> Experiment:
        """The experiment with other lanes and prompts, and at most this many tokens."""
        lanes, tokens = tuple(map(Lane, strategies)), min(self.experiment.max_tokens, tokens)
        changed = {"lanes": lanes, "prompts": prompts, "max_tokens": tokens, "repeats": repeats}
        return msgspec.structs.replace(self.experiment, **changed)

    def suit(self, pair: PairInfo | None) -> None:
        """Use a head's own strategy instead of draft-simple if the loaded draft is a head."""
        architecture = pair.draft.architecture if pair is not None and pair.draft is not None else ""
        names = dict.fromkeys(drafting_with(lane.strategy, architecture) for lane in self.experiment.lanes)
        self.experiment = self.experiment.with_lanes([Lane(name) for name in names])
        self.left = self._left()

    def _left(self) -> tuple[str, ...]:
        every = tuple(lane.strategy for lane in self.experiment.lanes if lane.strategy != NONE)
        return self._before.left(every) if self._before is not None else every

    def calibration(self, probe: str) -> SearchPart:
        """A few answers without drafts, and with the draft model if there is a `probe`."""
        prompts = mixed(self.experiment.prompts, 0)[:FEWEST_PROMPTS]
        experiment = self._of((NONE, probe) if probe else (NONE,), prompts, _FIRST_TOKENS)
        lanes = range(len(experiment.lanes))
        jobs = (Job(0, prompt, lane) for prompt in range(len(experiment.prompts)) for lane in lanes)
        return SearchPart(experiment, tuple(jobs), _CALIBRATION * self._budget)

    def calibrated(
        self, predictors: Sequence[Predictor], records: Sequence[RunRecord], seconds: float
    ) -> Planned:
        """Leave out the candidates that cannot win by the cost model, and those without time. `records` are
        the calibration's answers, which took `seconds` in all."""
        self.spent += seconds
        candidates = self.left
        ranked, hopeful = promising(candidates, predictors, WORTH_IT, FINALISTS)
        ranked, hopeless = ranked[:hopeful], ranked[hopeful:]
        if hopeless:
            what = numbers.count(len(hopeless), "setting")
            prompts = "one prompt" if len(predictors) == 1 else f"each of {len(predictors)} prompts"
            reason = f"the cost model predicts less than {WORTH_IT:g}× on {prompts}"
            self.left_out.append(LeftOut(what, reason, hopeless))
        each = self._seconds_of_kinds(records)

        def wanted(settings: int) -> float:
            return rungs_left(settings) * (settings + 1) * each

        most = len(ranked)
        while most > FINALISTS and wanted(most) > self._budget - self.spent:
            most -= 1
        self.left = ranked[:most]
        return Planned(most, len(ranked), len(candidates), self.spent + wanted(len(ranked)))

    def _seconds_of_kinds(self, records: Sequence[RunRecord]) -> float:
        """The time to answer a prompt of each kind once: reading takes as long as the text."""
        prompts, asked = self.experiment.prompts, mixed(self.experiment.prompts, 0)
        letters = sum(_letters(asked[each.prompt_index]) for each in records)
        reading = sum(each.prompt_seconds for each in records) / max(1, letters)
        answering = sum(each.whole_seconds - each.prompt_seconds for each in records) / max(1, len(records))
        kinds = max(FEWEST_PROMPTS, len({prompt.category for prompt in prompts}))
        return min(kinds, len(prompts)) * (sum(map(_letters, prompts)) / len(prompts) * reading + answering)

    # --- rungs

    def next(self) -> SearchPart | None:
        """The next rung; None at the end.

        The most promising candidates come first. If there is no time for one prompt with all of them, the
        rest are out.
        """
        seconds = time_share(rungs_left(len(self.left)), self._budget - self.spent)
        if not self.left or self.complete or seconds <= 0:
            return None
        lanes, rung = (NONE, *self.left), len(self.done)
        prompts = mixed(self.experiment.prompts, rung)[: _MOST_RUNS // len(lanes)]
        repeats = _MOST_RUNS // (len(lanes) * len(prompts))
        experiment = self._of(lanes, prompts, _FIRST_TOKENS * 2**rung, repeats)
        self._groups, self._refused = {}, 0
        self._part = SearchPart(experiment, _promising_first(experiment), seconds)
        return self._part

    def told(self, job: Job, records: Iterable[RunRecord], seconds: float) -> bool:
        """Take a run of the rung, and earlier ones that can now be compared, after this many seconds of the
        rung. Returns whether the rung ends: its time is up, or every run of every prompt was refused."""
        assert self._part is not None
        experiment = self._part.experiment
        group = self._groups.setdefault((job.repeat, job.prompt), {})
        group |= {record.lane: record for record in records}
        self._refused = self._refused + 1 if group[job.lane].failure else 0
        if self._refused == len(experiment.prompts) * len(experiment.lanes):
            return True
        late = seconds >= self._part.seconds
        if len(self.left) <= FINALISTS and seconds < self._part.seconds + _PATIENCE * self._budget:
            done = {
                prompt for (_, prompt), each in self._groups.items() if len(each) == len(experiment.lanes)
            }
            late = late and len(done) >= min(FEWEST_PROMPTS, len(experiment.prompts))
        whole = len(group) == len(experiment.lanes) or len(self._groups) == 1 < len(group)
        return late and whole

    def finish(self, runs: Iterable[RunRecord], seconds: float, cancelled: bool = False) -> Rung | None:
        """End the rung, which took this many seconds; returns None if nothing can be compared."""
        assert self._part is not None
        self.spent += seconds
        lanes = self._part.experiment.lanes
        self.runs += [(lanes[run.lane].strategy, run) for run in runs]
        whole = [group for group in self._groups.values() if len(group) == len(lanes)]
        rung = scored(self._part.experiment, whole or list(self._groups.values())[:1], seconds)
        if rung is not None:
            self.done.append(rung)
            self.complete = len(self.left) <= FINALISTS and not cancelled
            self.left = tuple(score.strategy for score in rung.scores if score.kept)
        return rung


def promising(
    candidates: Sequence[str], predictors: Sequence[Predictor], least: float, fewest: int
) -> tuple[tuple[str, ...], int]:
    """(the candidates, most promising first; how many may reach `least` on an answer by the cost model). The
    number is at least `fewest`, because a recommendation must be measured, even if it is none."""
    found = {name: [each.of(StrategySpec.parse(name)) for each in predictors] for name in candidates}

    def value(name: str, at: int) -> float:
        factor = found[name][at]
        return factor.value if factor is not None else 0.0

    def may_win(name: str) -> bool:
        return not found[name] or any(factor is None or factor.high >= least for factor in found[name])

    answers = range(len(predictors))
    # The best on all answers, then the best on each in turn: kinds of prompt may differ.
    groups = [sorted(candidates, key=lambda name: -sum(value(name, at) for at in answers))]
    groups += [sorted(candidates, key=partial(value, at=at), reverse=True) for at in answers]
    ranked = tuple(sorted(in_turn(groups), key=may_win, reverse=True))
    return ranked, max(sum(map(may_win, ranked)), min(fewest, len(ranked)))


def in_turn(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The first of each group, then the second of each, each setting once."""
    rows = zip_longest(*groups)
    return tuple(dict.fromkeys(spec for spec in chain.from_iterable(rows) if spec))


def rungs_left(candidates: int) -> int:
    """The number of rungs left, including this one."""
    count = 1
    while candidates > FINALISTS:
        candidates = kept_of(candidates, candidates)
        count += 1
    return count


def time_share(rungs: int, left: float) -> float:
    """Seconds for the next of `rungs` rungs, out of `left` seconds: equal parts, but more for the last."""
    before_last = rungs - 1
    return left / (before_last + _FINAL_SHARE) if before_last else left


def mixed(prompts: Sequence[Prompt], rung: int) -> tuple[Prompt, ...]:
    """The prompts with categories in turn, so the first few are of all kinds. Each rung begins at a different
    prompt: the same prompts would select the same winners. Conversations stay whole."""
    by_category: dict[str | None, list[tuple[Prompt, ...]]] = {}
    for turns in conversations(prompts):
        by_category.setdefault(turns[0].category, []).append(turns)
    longest = max(len(group) for group in by_category.values())
    ordered = [group[at] for at in range(longest) for group in by_category.values() if at < len(group)]
    start = rung * max(1, len(ordered) // 3) % len(ordered)
    return tuple(prompt for turns in ordered[start:] + ordered[:start] for prompt in turns)


def _letters(prompt: Prompt) -> int:
    """The length of the text to read; a document's token counts as four letters."""
    return len(prompt.prompt) + sum(map(len, prompt.before)) + 4 * (prompt.depth or 0)


def _promising_first(experiment: Experiment) -> tuple[Job, ...]:
    """All runs. Those of the first prompt come in the lanes' order, in case there is no time for more."""
    first = [Job(0, 0, lane) for lane in range(len(experiment.lanes))]
    return (*first, *(job for job in experiment.jobs() if (job.repeat, job.prompt) != (0, 0)))
