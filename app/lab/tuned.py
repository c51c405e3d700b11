"""What a search tried, and what came out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.engine.strategy import NONE
from app.lab.experiment import Experiment
from app.lab.halving import kept_of, survivors
from app.lab.interval import Speedup
from app.lab.run_record import RunRecord


class Score(msgspec.Struct, frozen=True):
    """One candidate in one rung."""

    strategy: str
    speedup: Speedup | None  # None where no run of it could be done
    acceptance_rate: float | None
    prompts: int  # measured, a repeat counted anew
    kept: bool
    error: str = ""


class Rung(msgspec.Struct, frozen=True):
    """Candidates on the same prompts; the best first."""

    max_tokens: int
    seconds: float
    scores: tuple[Score, ...]


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

    def to_json(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"


def scored(experiment: Experiment, groups: Sequence[dict[int, RunRecord]], seconds: float) -> Rung | None:
    """The scores over groups of runs of one prompt each; None where nothing could be compared.

    Every prompt is a measurement of its own here: the interval says how far the factor would be off on
    other prompts like these.
    """
    scores: dict[str, float] = {}
    found: dict[str, Score] = {}
    for lane, one in enumerate(experiment.lanes):
        runs = [group[lane] for group in groups if lane in group]
        if one.strategy == NONE or not runs:
            continue
        ratios = {at: [run.speedup] for at, run in enumerate(runs) if run.speedup is not None}
        drafted = sum(run.drafted for run in runs)
        speedup = Speedup.of(ratios)
        if speedup is not None:
            scores[one.strategy] = speedup.factor
        rate = sum(run.accepted for run in runs) / drafted if drafted else None
        error = next((run.error for run in runs if run.error), "")
        found[one.strategy] = Score(one.strategy, speedup, rate, len(ratios), kept=False, error=error)
    if not found:
        return None
    kept = survivors(scores, kept_of(len(experiment.lanes) - 1, len(scores)))
    order = sorted(found, key=lambda name: scores.get(name, 0.0), reverse=True)
    return Rung(
        experiment.max_tokens,
        seconds,
        tuple(msgspec.structs.replace(found[name], kept=name in kept) for name in order),
    )
