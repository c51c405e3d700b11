"""A speed-up from paired repeats, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from statistics import fmean, median, stdev

import msgspec

_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t at 97.5 % for 1 to 30 degrees of freedom."""


class Finding(StrEnum):
    """What an interval says."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no difference shown"
    UNSURE = "fewer than two whole repeats"


class Spread(msgspec.Struct, frozen=True):
    """Several measurements of one thing."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """None where there is no value."""
        known = [one for one in values if one is not None]
        return cls(median(known), min(known), max(known)) if known else None


class Speedup(msgspec.Struct, frozen=True):
    """A factor and its 95 % confidence interval; without bounds where fewer than two repeats were whole."""

    factor: float
    low: float | None = None
    high: float | None = None
    repeats: int = 1  # that the interval is over

    @property
    def finding(self) -> Finding:
        if self.low is None or self.high is None:
            return Finding.UNSURE
        if self.low > 1:
            return Finding.FASTER
        return Finding.SLOWER if self.high < 1 else Finding.SAME

    @classmethod
    def of(cls, ratios: Mapping[int, Mapping[int, float]]) -> Speedup | None:
        """`ratios` by repeat, then by prompt, each against the baseline's run of the same prompt and repeat.

        The factor is the geometric mean over prompts, each with the mean of its repeats. Repeats are the
        independent measurements: a repeat is the mean of its log ratios, and the interval is Student's t
        over those means. It says how far a measurement on these prompts may be off, not how other prompts
        would fare. A repeat without some of the prompts would bring their difference into the interval: it
        counts for the factor only.
        """
        factor = mean_factor((prompt, one) for each in ratios.values() for prompt, one in each.items())
        if factor is None:
            return None
        prompts = {prompt for each in ratios.values() for prompt in each}
        means = [fmean(map(math.log, one.values())) for one in ratios.values() if len(one) == len(prompts)]
        if len(means) < 2:
            return cls(factor)
        middle = math.log(factor)
        reach = student_t(len(means) - 1) * stdev(means) / math.sqrt(len(means))
        return cls(factor, math.exp(middle - reach), math.exp(middle + reach), len(means))


def mean_factor(ratios: Iterable[tuple[int, float]]) -> float | None:
    """The geometric mean of (prompt, ratio): a prompt weighs the same however often it was measured. None
    without any."""
    logs: dict[int, list[float]] = {}
    for prompt, ratio in ratios:
        logs.setdefault(prompt, []).append(math.log(ratio))
    return math.exp(fmean(map(fmean, logs.values()))) if logs else None


def merit(one: Speedup) -> tuple[int, float]:
    """For `max`: what is shown to be faster goes before what may be, what is slower comes last."""
    return {Finding.FASTER: 2, Finding.SLOWER: 0}.get(one.finding, 1), one.factor


def student_t(degrees: int) -> float:
    """The quantile of a two-sided 95 % interval."""
    # Behind the table the first term of its expansion around the normal's is exact to three digits.
    return _T[degrees - 1] if degrees <= len(_T) else 1.960 + 2.372 / degrees
