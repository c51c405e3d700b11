"""The rows of the table: a summary for each lane, folded from its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.engine.record.stats import Statistics
from app.lab.report.compare import is_measured
from app.lab.report.interval import Speedup, Spread, mean_factor
from app.lab.runs.run_record import RunRecord


class Summary(msgspec.Struct, frozen=True):
    """A lane's numbers over all prompts and repeats, or over those of one category.

    Counts and times are sums over the measured runs; ratios are pooled, never means of ratios. A ratio
    whose denominator is zero is None.
    """

    lane: int
    strategy: str
    category: str | None  # None: all prompts
    runs: int  # measured
    failed: int
    tokens_per_second: Spread | None
    speedup: Speedup | None
    whole_speedup: float | None  # from the request to the end, with reading the prompt
    acceptance_rate: float | None
    alpha: float | None
    tau: float | None
    draft_share: float | None
    engine_overhead: float | None
    n_tokens: int
    rounds: int
    drafted: int
    accepted: int
    seconds: float
    draft_seconds: float
    target_seconds: float
    first_token_seconds: Spread | None
    prompt_seconds: Spread | None
    compared: int  # runs with a baseline
    identical: int  # of these, runs with the same tokens
    near_ties: int  # of these, runs whose parting is explained by the batch shapes alone

    @property
    def equal(self) -> bool | None:
        """Whether all compared runs equal the baseline, near-ties apart; None where nothing was compared."""
        return self.identical + self.near_ties == self.compared if self.compared else None


Rates = Mapping[tuple[int, int, int], float]
"""Tokens/s from the request to the end, by lane, repeat and prompt."""


def whole_rates(runs: Iterable[RunRecord]) -> Rates:
    """The rates of all measured runs."""
    return {
        (run.lane, run.repeat, run.prompt_index): run.n_tokens / run.whole_seconds
        for run in runs
        if is_measured(run) and run.whole_seconds > 0
    }


def summarise(
    lane: int, strategy: str, mine: Sequence[RunRecord], rates: Rates, category: str | None = None
) -> Summary:
    """The summary of a lane; `mine` are all its runs, or those of a `category`, with their comparisons."""
    measured = [run for run in mine if is_measured(run)]
    baselines = [run for run in measured if run.speedup is not None]
    total = Statistics.pooled(run.statistics for run in measured)
    return Summary(
        lane=lane,
        strategy=strategy,
        category=category,
        runs=len(measured),
        failed=len(mine) - len(measured),
        tokens_per_second=Spread.of(run.tokens_per_second for run in measured),
        speedup=Speedup.of(ratios_of(baselines)),
        whole_speedup=_whole_speedup(baselines, rates),
        acceptance_rate=total.acceptance_rate,
        alpha=total.alpha,
        tau=total.tau,
        draft_share=total.draft_share,
        engine_overhead=total.engine_overhead,
        n_tokens=total.emitted,
        rounds=total.rounds,
        drafted=total.drafted,
        accepted=total.accepted,
        seconds=total.seconds,
        draft_seconds=total.draft_seconds,
        target_seconds=total.target_seconds,
        first_token_seconds=Spread.of(run.first_token_seconds for run in measured),
        prompt_seconds=Spread.of(run.prompt_seconds + run.draft_prompt_seconds for run in measured),
        compared=len(baselines),
        identical=sum(bool(run.identical_to_baseline) for run in baselines),
        near_ties=sum(bool(run.first_divergence and run.first_divergence.near_tie) for run in baselines),
    )


def ratios_of(runs: Iterable[RunRecord]) -> dict[int, dict[int, float]]:
    """The speed-ups of compared runs by repeat, then by prompt."""
    ratios: dict[int, dict[int, float]] = {}
    for run in runs:
        ratios.setdefault(run.repeat, {})[run.prompt_index] = run.speedup or 1.0
    return ratios


def _whole_speedup(runs: Sequence[RunRecord], rates: Rates) -> float | None:
    """The geometric mean of the runs' rates over their baselines' rates."""
    ratios = []
    for run in runs:
        if run.baseline_lane is None:
            continue
        base = rates.get((run.baseline_lane, run.repeat, run.prompt_index))
        mine = rates.get((run.lane, run.repeat, run.prompt_index))
        if base and mine:
            ratios.append((run.prompt_index, mine / base))
    return mean_factor(ratios)
