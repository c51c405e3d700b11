"""The table: one row a lane, folded from its runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.lab.report.compare import is_measured
from app.lab.report.interval import Speedup, Spread, mean_factor
from app.lab.runs.run_record import RunRecord


class Summary(msgspec.Struct, frozen=True):
    """A lane over all prompts and repeats, or over those of one category.

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
    whole_speedup: float | None  # with reading the prompt, from the request to the end
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
    compared: int  # runs that have a baseline's beside them
    identical: int  # of these, with the same tokens
    near_ties: int  # parted where the batch shapes alone explain it

    @property
    def equal(self) -> bool | None:
        """Equal to the baseline everywhere, near-ties apart; None where nothing was compared."""
        return self.identical + self.near_ties == self.compared if self.compared else None


Rates = Mapping[tuple[int, int, int], float]
"""Tokens/s from the request to the end, by lane, repeat and prompt."""


def whole_rates(runs: Iterable[RunRecord]) -> Rates:
    """Of all measured runs: those of a lane are held against those of its baseline."""
    return {
        (one.lane, one.repeat, one.prompt_index): one.n_tokens / one.whole_seconds
        for one in runs
        if is_measured(one) and one.whole_seconds > 0
    }


def summarise(
    lane: int, strategy: str, mine: Sequence[RunRecord], rates: Rates, category: str | None = None
) -> Summary:
    """The fold over a lane's runs; `mine` are all of them, or those of a `category`. They hold their
    comparisons."""
    measured = [one for one in mine if is_measured(one)]
    baselines = [one for one in measured if one.speedup is not None]
    accepted, drafted = _sum(measured, "accepted"), _sum(measured, "drafted")
    seconds = math.fsum(one.seconds for one in measured)
    drafted_rounds = _sum(measured, "drafted_rounds")
    judged = accepted + _sum(measured, "rejected")
    by_block = any(one.drafted and one.alpha is None and one.accepted + one.rejected for one in measured)
    native = math.fsum((1 - (one.engine_overhead or 0.0)) * one.seconds for one in measured)
    return Summary(
        lane=lane,
        strategy=strategy,
        category=category,
        runs=len(measured),
        failed=len(mine) - len(measured),
        tokens_per_second=Spread.of(one.tokens_per_second for one in measured),
        speedup=Speedup.of(ratios_of(baselines)),
        whole_speedup=_whole_speedup(baselines, rates),
        acceptance_rate=accepted / drafted if drafted else None,
        alpha=accepted / judged if judged and not by_block else None,
        tau=1 + accepted / drafted_rounds if drafted_rounds else None,
        draft_share=accepted / tokens if (tokens := _sum(measured, "n_tokens")) else None,
        engine_overhead=1 - native / seconds if seconds else None,
        n_tokens=tokens,
        rounds=_sum(measured, "rounds"),
        drafted=drafted,
        accepted=accepted,
        seconds=seconds,
        draft_seconds=math.fsum(one.draft_seconds for one in measured),
        target_seconds=math.fsum(one.target_seconds for one in measured),
        first_token_seconds=Spread.of(one.first_token_seconds for one in measured),
        prompt_seconds=Spread.of(one.prompt_seconds + one.draft_prompt_seconds for one in measured),
        compared=len(baselines),
        identical=sum(bool(one.identical_to_baseline) for one in baselines),
        near_ties=sum(bool(one.first_divergence and one.first_divergence.near_tie) for one in baselines),
    )


def _sum(runs: Iterable[RunRecord], name: str) -> int:
    return sum(getattr(one, name) for one in runs)


def ratios_of(runs: Iterable[RunRecord]) -> dict[int, dict[int, float]]:
    """The speed-ups of compared runs by repeat, then by prompt."""
    ratios: dict[int, dict[int, float]] = {}
    for one in runs:
        ratios.setdefault(one.repeat, {})[one.prompt_index] = one.speedup or 1.0
    return ratios


def _whole_speedup(runs: Sequence[RunRecord], rates: Rates) -> float | None:
    """Geometric mean of (tokens / time from the request to the end) over the baseline's."""
    ratios = []
    for one in runs:
        if one.baseline_lane is None:
            continue
        base = rates.get((one.baseline_lane, one.repeat, one.prompt_index))
        mine = rates.get((one.lane, one.repeat, one.prompt_index))
        if base and mine:
            ratios.append((one.prompt_index, mine / base))
    return mean_factor(ratios)
