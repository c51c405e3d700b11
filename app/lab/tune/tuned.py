"""The result of a search: its rungs, their scores, the winner, and the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, exp, log, sqrt
from statistics import fmean

import msgspec

from app.base import numbers
from app.engine.record.stats import Statistics
from app.engine.strategy import NONE
from app.engine.types import PairInfo
from app.lab.experiment import Experiment, Prompt
from app.lab.facts import Digest, PairFacts, SystemFacts, no_digest, pair_facts, system_facts
from app.lab.report.charts import finding_class
from app.lab.report.page import facts, page
from app.lab.report.report import ReportSettings, now
from app.lab.report.summary import SpeedFinding, Speedup, mean_factor, ratios_of, speedup_words
from app.lab.runs.record import JsonFile, RunRecord

FINALISTS = 3
"""The number of candidates in the last rung: the last choice needs the most certainty, and a runner-up."""
FEWEST_PROMPTS = 3
"""The least number of prompts behind a recommendation, if there are this many."""
WORTH_IT = 1.03
"""The smallest speed-up that counts: a smaller gain is not worth a setting, even if it is certain."""
_USUAL_NOISE = 0.07  # deviation of one measured speed-up, where few prompts were repeated,
_USUAL_DEGREES = 4  # and how many repeats weigh as much as this guess
_SIGMAS = 2.0


class LeftOut(msgspec.Struct, frozen=True):
    """Settings that are not tried, and why, in words."""

    what: str
    reason: str
    strategies: tuple[str, ...] = ()


class Score(msgspec.Struct, frozen=True):
    """One candidate in one rung."""

    strategy: str
    speedup: Speedup | None  # None if no run was measured
    acceptance_rate: float | None
    answers: int  # measured; each repeat counts
    kept: bool
    error: str = ""  # why there is no speed-up
    over_repeats: bool = False  # there was one prompt: the interval says nothing of other prompts
    low_here: float | None = None
    """The lower bound of the speed-up on these prompts; None if too few were measured."""
    whole_speedup: float | None = None  # from the request to the end, with reading the prompt


class Rung(msgspec.Struct, frozen=True):
    """Candidates measured on the same prompts, the best first."""

    max_tokens: int
    seconds: float
    scores: tuple[Score, ...]

    @property
    def refuted(self) -> bool:
        """Whether every candidate is shown to gain less than WORTH_IT."""
        known = [score.speedup for score in self.scores if score.speedup is not None]
        return bool(known) and all(speedup.high is not None and speedup.high < WORTH_IT for speedup in known)


def winner_of(rung: Rung) -> Score | None:
    """The first setting of a rung that is shown to be faster on these prompts. It wins even over a larger
    factor that may be chance, such as that of a setting without accepted tokens."""
    gaining = (score for score in rung.scores if score.acceptance_rate and (score.low_here or 0.0) > 1)
    return next((score for score in gaining if score.speedup and score.speedup.factor >= WORTH_IT), None)


def kept_of(candidates: int, scored: int) -> int:
    """How many of a rung's `candidates` survive, if `scored` could be measured; 1 survives the last rung."""
    return 1 if candidates <= FINALISTS else max(FINALISTS, ceil(scored / 2))


class KindBest(msgspec.Struct, frozen=True):
    """The best strategy on one kind of prompt; "none" if nothing was faster."""

    category: str
    strategy: str
    factor: float
    answers: int

    def __str__(self) -> str:
        return f"{self.category}: {self.strategy}" + (
            f" {numbers.factor(self.factor)}" if self.strategy != NONE else ""
        )


def best_by_kind(runs: Sequence[tuple[str, RunRecord]]) -> tuple[KindBest, ...]:
    """The best strategy on each kind of prompt, from all (strategy, run) of a search. With few answers there,
    a strategy must lead by more: among fifty settings, one answer is lucky by chance."""
    logs: dict[str, dict[str, list[float]]] = {}
    for strategy, run in runs:
        if run.category is not None and run.speedup:
            mine = logs.setdefault(run.category, {})
            if run.accepted:  # else a better time is chance
                mine.setdefault(strategy, []).append(log(run.speedup))
    found = []
    for category, mine in logs.items():
        best = max(mine, key=lambda name: sum(mine[name]) / (len(mine[name]) + 1), default=NONE)
        if best == NONE:
            found.append(KindBest(category, NONE, 1.0, 0))
            continue
        factor = exp(fmean(mine[best]))
        won = factor >= WORTH_IT
        found.append(KindBest(category, best if won else NONE, factor if won else 1.0, len(mine[best])))
    return tuple(found)


class Tuned(JsonFile, frozen=True):
    """The result, and everything that was tried."""

    winner: str  # a strategy spec; "none" where speculation does not pay
    speedup: Speedup | None  # the winner's; that of `best` where no strategy won
    best: str  # the best that was tried
    reason: str  # in sentences
    rungs: tuple[Rung, ...]
    tried: int
    candidates: int  # more than `tried` where the time was short
    seconds: float
    complete: bool  # False if the search was cancelled or the time was up too early
    left_out: tuple[LeftOut, ...] = ()  # what was not tried, and why
    kinds: tuple[KindBest, ...] = ()  # the best on each kind of prompt

    @property
    def headline(self) -> str:
        """The result in a few words, claiming no more than was shown."""
        if self.winner != NONE:
            shown = self.speedup is not None and self.speedup.finding is SpeedFinding.FASTER
            return f"{self.winner} wins" + ("" if shown else " on these prompts")
        return "Speculation does not pay here" if self.refuted else "No winner was found"

    @property
    def by_kind(self) -> str:
        """The best for each kind of prompt, in words; "" if it is the same for all."""
        differ = len({kind.strategy for kind in self.kinds}) > 1
        return f"By kind of prompt: {'; '.join(map(str, self.kinds))}." if differ else ""

    @property
    def refuted(self) -> bool:
        """Whether it is shown that speculation does not pay."""
        return self.winner == NONE and self.complete and bool(self.rungs) and self.rungs[-1].refuted

    @property
    def latest(self) -> tuple[tuple[int, Score], ...]:
        """(number of its last rung, from 1; score there) of every setting, the furthest first."""
        last = {
            score.strategy: (at, score)
            for at, rung in enumerate(self.rungs, start=1)
            for score in rung.scores
        }
        return tuple(sorted(last.values(), key=lambda each: (-each[0], -_factor(each[1]))))

    def fate(self, at: int, score: Score) -> str:
        """The fate of a setting whose last stage is number `at`, in a few words. Stages measure different
        prompts, so one that is out may have a larger factor than the winner: its place says why it is out."""
        if score.strategy == self.winner:
            return "the winner"
        scores = self.rungs[at - 1].scores
        out = f"out: place {scores.index(score) + 1} of {len(scores)}"
        return score.error or ("stayed in" if score.kept else out)

    def left(self, candidates: Sequence[str]) -> tuple[str, ...]:
        """The settings that a longer search would measure: those still in, then those without time."""
        if not self.rungs:
            return tuple(candidates)
        last, out = self.rungs[-1].scores, {score.strategy for _at, score in self.latest}
        out |= {strategy for left_out in self.left_out for strategy in left_out.strategies}
        still_in = [score.strategy for score in last if score.kept or len(last) <= FINALISTS]
        return (*still_in, *(name for name in candidates if name not in out))


def _factor(score: Score) -> float:
    return score.speedup.factor if score.speedup else 0.0


def _noise(groups: Iterable[Mapping[int, RunRecord]]) -> float:
    """The relative deviation of one measured speed-up. It is estimated from answers without drafts, which
    take as long as the baseline's, and from repeats of the same prompts."""
    cells: dict[tuple[int, int], list[float]] = {}
    squares: list[float] = []
    for group in groups:
        for lane, run in group.items():
            if run.speedup and run.drafted:
                cells.setdefault((lane, run.prompt_index), []).append(log(run.speedup))
            elif run.speedup:
                squares.append(log(run.speedup) ** 2)
    degrees = len(squares) + sum(len(cell) - 1 for cell in cells.values())
    squares += [(value - fmean(cell)) ** 2 for cell in cells.values() for value in cell]
    return sqrt((sum(squares) + _USUAL_DEGREES * _USUAL_NOISE**2) / (degrees + _USUAL_DEGREES))


def scored(experiment: Experiment, groups: Sequence[dict[int, RunRecord]], seconds: float) -> Rung | None:
    """The scores over `groups`, each the runs of one prompt by lane; None if nothing could be compared."""
    scores: dict[str, float] = {}
    found: dict[str, Score] = {}
    noise = _noise(groups)
    tried = [run for group in groups for run in group.values()]
    refused = {run.prompt_index for run in tried} - {run.prompt_index for run in tried if run.speedup}
    enough = min(FEWEST_PROMPTS, len(experiment.prompts) - len(refused))
    for lane, candidate in enumerate(experiment.lanes):
        runs = [group[lane] for group in groups if lane in group]
        if candidate.strategy == NONE or not runs:
            continue
        measured = [run for run in runs if run.speedup is not None]
        prompts = {run.prompt_index for run in measured}
        over_repeats = len(prompts) == 1 < len(measured)
        speedup = Speedup.of(ratios_of(measured))
        if speedup is not None:
            scores[candidate.strategy] = speedup.factor
        rate = Statistics.pooled(run.statistics for run in runs).acceptance_rate
        error = "" if measured else next((run.failure for run in runs if run.failure), "")
        found[candidate.strategy] = Score(
            candidate.strategy,
            speedup,
            rate,
            len(measured),
            kept=False,
            error=error,
            over_repeats=over_repeats,
            low_here=speedup.factor * exp(-_SIGMAS * noise / sqrt(len(measured)))
            if speedup is not None and len(prompts) >= enough
            else None,
            whole_speedup=mean_factor(
                (run.prompt_index, run.end_to_end_speedup) for run in measured if run.end_to_end_speedup
            ),
        )
    if not found:
        return None
    order = sorted(found, key=lambda name: scores.get(name, 0.0), reverse=True)
    kept = [name for name in order if name in scores][: kept_of(len(experiment.lanes) - 1, len(scores))]
    return Rung(
        experiment.max_tokens,
        seconds,
        tuple(msgspec.structs.replace(found[name], kept=name in kept) for name in order),
    )


class TuneReport(Tuned, frozen=True, kw_only=True):
    """A search's result, with machine, models, settings and prompts."""

    format: str = "1.0"
    title: str
    created_at: str  # ISO 8601, UTC
    system: SystemFacts
    pairs: tuple[PairFacts, ...]  # the loaded pair; empty if it could not be loaded
    settings: ReportSettings  # `max_tokens` is the longest answer's; the first rungs have shorter answers
    prompts: tuple[Prompt, ...]

    @classmethod
    def of(
        cls, tuned: Tuned, experiment: Experiment, pair: PairInfo | None, digest: Digest = no_digest
    ) -> TuneReport:
        return cls(
            **msgspec.structs.asdict(tuned),
            title=experiment.title,
            created_at=now(),
            system=system_facts(pair),
            pairs=(pair_facts(pair, digest),) if pair is not None else (),
            settings=ReportSettings.of(experiment),
            prompts=experiment.prompts,
        )


TRIED = ("setting", "speed-up (95 %)", "end to end", "acceptance", "answers", "stage", "")
"""The titles of a table of settings."""


def tried(tuned: Tuned) -> Iterator[tuple[Score, list[str]]]:
    """(the score of a setting in its last stage, its row under TRIED), those that got furthest first."""
    for rung, score in tuned.latest:
        factors = speedup_words(score.speedup), numbers.factor(score.whole_speedup)
        counts = numbers.percent(score.acceptance_rate), str(score.answers), str(rung)
        yield score, [score.strategy, *factors, *counts, tuned.fate(rung, score)]


def tune_html(report: TuneReport) -> str:
    """The report of a search as an HTML document."""
    return page(
        "search.html",
        report.title or "Draftscope search",
        report.to_json(),
        report=report,
        what=_what(report),
        head=TRIED,
        rows=[
            (setting, (finding_class(score.speedup), speedup), *others)
            for score, (setting, speedup, *others) in tried(report)
        ],
        left_out=[f"{left_out.what}: {left_out.reason}" for left_out in report.left_out],
        measured_with=facts(report.system, report.settings, report.pairs, str(report.system.threads)),
    )


def _what(report: TuneReport) -> str:
    return (
        f"Search for the fastest setting: {report.tried} of {numbers.count(report.candidates, 'candidate')} "
        f"tried in {numbers.duration(report.seconds)}, on {numbers.count(len(report.prompts), 'prompt')}, "
        f"up to {numbers.count(report.settings.max_tokens, 'token')}; every run cold. "
        f"{report.created_at[:10]}"
    )
