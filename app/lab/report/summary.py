"""The rows of the table: a summary for each lane, folded from its runs; speed-ups with intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from math import fsum
from statistics import fmean, median, variance

import msgspec

from app.base.numbers import NONE, factor
from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.record.stats import Statistics
from app.lab.runs.compare import is_measured
from app.lab.runs.record import Latency, RunRecord, StrategyShare, folds_of, percentiles

_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t at 97.5 % for 1 to 30 degrees of freedom."""
_FEWEST_DEGREES = 1.5
"""Degrees of freedom that an interval needs: with 1, Student's t is 12.7, too wide to be useful."""


class SpeedFinding(StrEnum):
    """What an interval shows."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no difference shown"
    UNSURE = "too little for an interval"


class Spread(msgspec.Struct, frozen=True):
    """Median and range of several measurements."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """The spread of the values that are not None; None without any."""
        known = [value for value in values if value is not None]
        return cls(median(known), min(known), max(known)) if known else None


class Speedup(msgspec.Struct, frozen=True):
    """A factor and its 95 % confidence interval, whose bounds are None if there is too little data."""

    factor: float
    low: float | None = None
    high: float | None = None
    repeats: int = 1  # in the interval
    prompts: int = 1  # in the interval

    @property
    def finding(self) -> SpeedFinding:
        if self.low is None or self.high is None:
            return SpeedFinding.UNSURE
        if self.low > 1:
            return SpeedFinding.FASTER
        return SpeedFinding.SLOWER if self.high < 1 else SpeedFinding.SAME

    @classmethod
    def of(cls, ratios: Mapping[int, Mapping[int, float]]) -> Speedup | None:
        """The speed-up from `ratios` (by repeat, then prompt), each to the baseline's run of the same prompt
        and repeat. None without ratios.

        The factor is the geometric mean over prompts of each prompt's mean over repeats. The interval treats
        prompts and repeats as random samples, and estimates the factor for similar prompts at a different
        time (`_half_width`). With one prompt it is over the repeats alone, with one repeat over the prompts
        alone. A repeat without some of the prompts counts only for the factor. There is no interval if it
        would depend only on the difference of two prompts, or of two repeats.
        """
        factor = mean_factor((prompt, ratio) for each in ratios.values() for prompt, ratio in each.items())
        if factor is None:
            return None
        prompts = sorted({prompt for each in ratios.values() for prompt in each})
        logs = [
            [math.log(row[prompt]) for prompt in prompts]
            for row in ratios.values()
            if len(row) == len(prompts)
        ]
        reach = _half_width(logs)
        if reach is None:
            return cls(factor)
        middle = math.log(factor)
        return cls(factor, math.exp(middle - reach), math.exp(middle + reach), len(logs), len(prompts))


def _half_width(logs: Sequence[Sequence[float]]) -> float | None:
    """Half the width of the 95 % interval of the mean of `logs`, rows of repeats and columns of prompts. None
    below _FEWEST_DEGREES degrees of freedom. Two-way random effects without replication: a value is the mean,
    plus its prompt's effect, its repeat's effect, and noise. The variance of the mean is (prompts' + repeats'
    - residual mean square) / values, with Satterthwaite's degrees of freedom (1946). So two repeats that
    agree do not count as one observation. The numerator is at least the larger of the first two, which it
    estimates if the smaller is noise.
    """
    rows, columns = len(logs), len(logs[0]) if logs else 0
    if max(rows, columns) < 2:
        return None
    of_rows = [fmean(row) for row in logs]
    of_columns = [fmean(column) for column in zip(*logs, strict=True)]
    if rows == 1 or columns == 1:
        values = of_columns if rows == 1 else of_rows
        return _reach(variance(values) / len(values), len(values) - 1)
    mean = fmean(of_rows)
    prompts, repeats = rows * variance(of_columns), columns * variance(of_rows)
    left = (rows - 1) * (columns - 1)
    noise = (
        math.fsum(
            (value - of_rows[row] - of_columns[column] + mean) ** 2
            for row, each in enumerate(logs)
            for column, value in enumerate(each)
        )
        / left
    )
    square = max(prompts + repeats - noise, prompts, repeats)
    if square == 0:
        return 0.0
    degrees = square**2 / (prompts**2 / (columns - 1) + repeats**2 / (rows - 1) + noise**2 / left)
    return _reach(square / (rows * columns), degrees)


def _reach(variance_of_mean: float, degrees: float) -> float | None:
    return None if degrees < _FEWEST_DEGREES else student_t(degrees) * math.sqrt(variance_of_mean)


def mean_factor(ratios: Iterable[tuple[int, float]]) -> float | None:
    """The geometric mean of (prompt, ratio); all prompts have equal weight, however often measured. None
    without ratios."""
    logs: dict[int, list[float]] = {}
    for prompt, ratio in ratios:
        logs.setdefault(prompt, []).append(math.log(ratio))
    return math.exp(fmean(map(fmean, logs.values()))) if logs else None


def merit(speedup: Speedup) -> tuple[int, float]:
    """A key for `max`: speed-ups shown to be faster rank first, those shown to be slower last."""
    return {SpeedFinding.FASTER: 2, SpeedFinding.SLOWER: 0}.get(speedup.finding, 1), speedup.factor


def student_t(degrees: float) -> float:
    """The quantile of a two-sided 95 % interval, for 1 degree of freedom or more."""
    if degrees > len(_T):
        # Beyond the table, the first term of the expansion around the normal's is exact to three digits.
        return 1.960 + 2.372 / degrees
    below = math.floor(degrees)
    if below == degrees:
        return _T[below - 1]
    # Between two entries the logarithm is nearly linear in 1 / degrees.
    share = (1 / below - 1 / degrees) * below * (below + 1)
    return math.exp((1 - share) * math.log(_T[below - 1]) + share * math.log(_T[below]))


def middle(spread: Spread | None) -> float | None:
    return None if spread is None else spread.median


def speedup_words(value: Speedup | None) -> str:
    """The factor and its interval: "1.42× (1.38 to 1.47)"."""
    if value is None:
        return NONE
    if value.low is None or value.high is None or value.low == value.high:  # alone, or against itself
        return factor(value.factor)
    return f"{factor(value.factor)} ({value.low:.2f} to {value.high:.2f})"


class Summary(Latency, frozen=True):
    """A lane's numbers over all prompts and repeats, or over one category.

    Counts and times are sums over the measured runs; ratios are pooled, never means of ratios. A ratio
    whose denominator is zero is None.
    """

    lane: int
    strategy: str
    category: str | None  # None: all prompts
    runs: int  # measured, and answered by every lane
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
    draft_seconds: float | None  # this and the next: None for a server
    target_seconds: float | None
    first_token_seconds: Spread | None
    prompt_seconds: Spread | None
    compared: int  # runs with a baseline; these three count runs that are left out too
    identical: int  # of these, runs with the same tokens
    near_ties: int  # of these, runs whose parting is explained by the batch shapes alone
    tokens_per_pass: float | None = None  # these and the following are defined in app.engine.record.stats
    draft_length: float | None = None
    acc_per_pos: tuple[float, ...] = ()
    acceptance_by_place: tuple[float, ...] = ()
    judged_acceptance_by_place: tuple[float | None, ...] = ()
    accepted_per_round: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    strategies: dict[str, StrategyShare] = msgspec.field(default_factory=dict)
    alternatives: AlternativeStatistics = msgspec.field(default_factory=AlternativeStatistics)
    joules: float | None = None  # of all measured runs; None if the system does not report it
    energy_of: str = ""  # what was counted
    failure: str = ""  # why the first run that failed did
    depth: int | None = None  # tokens of documents before the prompt; None: all prompts
    prompt_tokens: Spread | None = None
    left_out: int = 0  # measured runs that count nowhere but below: another lane failed to answer

    @property
    def equal(self) -> bool | None:
        """Whether all compared runs equal the baseline, apart from rounding ties; None if nothing was
        compared."""
        return self.identical + self.near_ties == self.compared if self.compared else None


class UncomparedPrompt(msgspec.Struct, frozen=True):
    """A prompt and repeat that is not compared: some lanes answered it, but `lanes` failed."""

    prompt_index: int
    repeat: int
    lanes: tuple[int, ...]


def left_out(runs: Sequence[RunRecord]) -> tuple[UncomparedPrompt, ...]:
    """Prompts that lanes failed to answer, because medians over different prompts cannot be compared. A lane
    that answered none of these `runs` does not count."""
    answering, failed = set(), []
    for run in runs:
        if is_measured(run):
            answering.add(run.lane)
        else:
            failed.append(run)
    lanes: dict[tuple[int, int], list[int]] = {}
    for run in failed:
        if run.lane in answering:
            lanes.setdefault((run.prompt_index, run.repeat), []).append(run.lane)
    return tuple(UncomparedPrompt(*place, tuple(sorted(lanes[place]))) for place in sorted(lanes))


def summarise(
    lane: int,
    strategy: str,
    mine: Sequence[RunRecord],
    category: str | None = None,
    depth: int | None = None,
    without: Collection[UncomparedPrompt] = (),
) -> Summary:
    """The summary of a lane. `mine` are all its runs, or those of a `category` or `depth`, with comparisons.
    Answers to `without` are not compared."""
    places = {(out.prompt_index, out.repeat) for out in without}
    answered = [run for run in mine if is_measured(run)]
    measured = [run for run in answered if (run.prompt_index, run.repeat) not in places]
    baselines = [run for run in measured if run.speedup is not None]
    texts = [run for run in answered if run.speedup is not None]
    total = Statistics.pooled(run.statistics for run in measured)
    numbers = folds_of(total, Summary) | {
        "lane": lane,
        "strategy": strategy,
        "category": category,
        "depth": depth,
        "runs": len(measured),
        "failed": len(mine) - len(answered),
        "left_out": len(answered) - len(measured),
        "tokens_per_second": Spread.of(run.tokens_per_second for run in measured),
        "speedup": Speedup.of(ratios_of(baselines)),
        "whole_speedup": mean_factor(
            (run.prompt_index, run.end_to_end_speedup) for run in baselines if run.end_to_end_speedup
        ),
        "n_tokens": total.emitted,
        "first_token_seconds": Spread.of(run.first_token_seconds for run in measured),
        "prompt_seconds": Spread.of(run.prompt_seconds + run.draft_prompt_seconds for run in measured),
        "prompt_tokens": Spread.of(run.prompt_tokens for run in measured),
        "compared": len(texts),
        "identical": sum(bool(run.identical_to_baseline) for run in texts),
        "near_ties": sum(bool(run.first_divergence and run.first_divergence.near_tie) for run in texts),
        "alternatives": AlternativeStatistics.pooled(run.alternatives for run in measured),
        "joules": _joules(measured),
        "energy_of": next((run.energy_of for run in measured if run.energy_of), ""),
        "failure": next((run.failure for run in mine if run.failure), ""),
    }
    if any(run.target_seconds is None for run in measured):  # a server does not report them
        numbers |= {"draft_seconds": None, "target_seconds": None}
    latency = percentiles(
        (run.first_token_seconds for run in measured), ((run.n_tokens, run.arrival_gaps) for run in measured)
    )
    return Summary(**numbers, **latency)


def _joules(measured: Sequence[RunRecord]) -> float | None:
    """The energy of all runs; None if unknown for any."""
    known = [run.joules for run in measured if run.joules is not None]
    return fsum(known) if known and len(known) == len(measured) else None


def ratios_of(runs: Iterable[RunRecord]) -> dict[int, dict[int, float]]:
    """The speed-ups of compared runs by repeat, then by prompt."""
    ratios: dict[int, dict[int, float]] = {}
    for run in runs:
        ratios.setdefault(run.repeat, {})[run.prompt_index] = run.speedup or 1.0
    return ratios
