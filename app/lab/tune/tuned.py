"""What a search tried, and what came out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.engine.record.stats import Statistics
from app.engine.strategy import NONE
from app.lab.experiment import Experiment
from app.lab.report.interval import Speedup
from app.lab.report.summary import ratios_of
from app.lab.runs.run_record import RunRecord
from app.lab.tune.halving import FINALISTS, kept_of, survivors

WORTH_IT = 1.03
"""A smaller gain is not worth a setting, even where it is shown."""


class Score(msgspec.Struct, frozen=True):
    """One candidate in one rung."""

    strategy: str
    speedup: Speedup | None  # None where no run of it could be done
    acceptance_rate: float | None
    answers: int  # measured, a repeat counted anew
    kept: bool
    error: str = ""  # why there is no speed-up
    over_repeats: bool = False  # there was one prompt: the interval does not say how others would fare


class Rung(msgspec.Struct, frozen=True):
    """Candidates on the same prompts; the best first."""

    max_tokens: int
    seconds: float
    scores: tuple[Score, ...]

    @property
    def refuted(self) -> bool:
        """Whether it is shown that none of these is worth it."""
        known = [score.speedup for score in self.scores if score.speedup is not None]
        return bool(known) and all(speedup.high is not None and speedup.high < WORTH_IT for speedup in known)


class Tuned(msgspec.Struct, frozen=True):
    """What came out, and everything that was tried on the way."""

    winner: str  # a strategy spec; "none" where speculation does not pay
    speedup: Speedup | None  # the winner's, or that of the best where none won
    best: str  # the best that was tried
    reason: str  # in sentences
    rungs: tuple[Rung, ...]
    tried: int
    candidates: int  # that there were; more than were tried where the time was short
    seconds: float
    complete: bool  # False where it was cancelled or the time was up too early

    @property
    def headline(self) -> str:
        """What came out, no surer than it is."""
        if self.winner != NONE:
            return f"{self.winner} wins"
        return "Speculation does not pay here" if self.refuted else "No winner was found"

    @property
    def refuted(self) -> bool:
        """Whether it is shown that speculation does not pay."""
        return self.winner == NONE and self.complete and bool(self.rungs) and self.rungs[-1].refuted

    @property
    def latest(self) -> tuple[tuple[int, Score], ...]:
        """Every setting with its last rung, from 1, and how it did there: those that got furthest first."""
        last = {
            score.strategy: (at, score)
            for at, rung in enumerate(self.rungs, start=1)
            for score in rung.scores
        }
        return tuple(sorted(last.values(), key=lambda each: (-each[0], -_factor(each[1]))))

    def fate(self, score: Score) -> str:
        """What became of a setting, in a few words."""
        if score.strategy == self.winner:
            return "the winner"
        return score.error or ("stayed in" if score.kept else "out")

    def left(self, candidates: Sequence[str]) -> tuple[str, ...]:
        """What more time is for: the settings that are still in, then those that were not tried."""
        if not self.rungs:
            return tuple(candidates)
        last, tried = self.rungs[-1].scores, {score.strategy for _at, score in self.latest}
        still_in = [score.strategy for score in last if score.kept or len(last) <= FINALISTS]
        return (*still_in, *(name for name in candidates if name not in tried))


def _factor(score: Score) -> float:
    return score.speedup.factor if score.speedup else 0.0


def scored(experiment: Experiment, groups: Sequence[dict[int, RunRecord]], seconds: float) -> Rung | None:
    """The scores over groups of runs of one prompt each; None where nothing could be compared."""
    scores: dict[str, float] = {}
    found: dict[str, Score] = {}
    for lane, candidate in enumerate(experiment.lanes):
        runs = [group[lane] for group in groups if lane in group]
        if candidate.strategy == NONE or not runs:
            continue
        measured = [run for run in runs if run.speedup is not None]
        over_repeats = len({run.prompt_index for run in measured}) == 1 < len(measured)
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
        )
    if not found:
        return None
    kept = survivors(scores, kept_of(len(experiment.lanes) - 1, len(scores)))
    order = sorted(found, key=lambda name: scores.get(name, 0.0), reverse=True)
    return Rung(
        experiment.max_tokens,
        seconds,
        tuple(msgspec.structs.replace(found[name], kept=name in kept) for name in order),
    )
