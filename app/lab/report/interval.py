"""A speed-up over prompts and repeats, with its confidence interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from statistics import fmean, median, variance

import msgspec

from app.base.numbers import NONE, factor

_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t at 97.5 % for 1 to 30 degrees of freedom."""
_FEWEST_DEGREES = 1.5
"""Degrees of freedom that an interval needs: with 1, Student's t is 12.7, and an interval says nothing."""


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
    """A factor and its 95 % confidence interval, whose bounds are None where there is too little data."""

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
        """The speed-up over `ratios`, by repeat, then by prompt, each to the baseline's run of the same
        prompt and repeat; None without any.

        The factor is the geometric mean over prompts of each prompt's mean over repeats. The interval says
        where it would lie for similar prompts measured at another time: prompts and repeats are both taken as
        drawn at random (`_half_width`). With one prompt it is over the repeats alone, with one repeat over
        the prompts alone. A repeat without some of the prompts counts for the factor only. There is no
        interval where everything depends on the difference of two prompts, or of two repeats.
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
    """Half the width of the 95 % interval of the mean of `logs`, rows of repeats and columns of prompts; None
    below _FEWEST_DEGREES degrees of freedom.

    Two-way random effects without replication: a value is the mean, what its prompt adds, what its repeat
    adds, and noise. The variance of the mean is (prompts' + repeats' - residual mean square) / values, with
    Satterthwaite's degrees of freedom (1946), so that two repeats that agree do not count as one observation.
    The numerator is never taken below the larger of the first two, which it estimates where the smaller is
    noise.
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
    """The geometric mean of (prompt, ratio), each prompt weighing the same however often it was measured.
    None without any."""
    logs: dict[int, list[float]] = {}
    for prompt, ratio in ratios:
        logs.setdefault(prompt, []).append(math.log(ratio))
    return math.exp(fmean(map(fmean, logs.values()))) if logs else None


def merit(speedup: Speedup) -> tuple[int, float]:
    """The key for `max`: a speed-up shown to be faster ranks first, one shown to be slower last."""
    return {SpeedFinding.FASTER: 2, SpeedFinding.SLOWER: 0}.get(speedup.finding, 1), speedup.factor


def student_t(degrees: float) -> float:
    """The quantile of a two-sided 95 % interval, from 1 degree of freedom."""
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
