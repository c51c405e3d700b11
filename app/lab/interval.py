"""A speed-up from paired repeats, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from statistics import fmean, median, stdev

import msgspec

CONFIDENCE = 0.95

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
    UNSURE = "one repeat only"


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
    """A factor and its 95 % confidence interval; without bounds where there was one repeat only."""

    factor: float
    low: float | None = None
    high: float | None = None
    repeats: int = 1

    @property
    def finding(self) -> Finding:
        if self.low is None or self.high is None:
            return Finding.UNSURE
        if self.low > 1:
            return Finding.FASTER
        return Finding.SLOWER if self.high < 1 else Finding.SAME

    @classmethod
    def of(cls, ratios: Mapping[int, Sequence[float]]) -> Speedup | None:
        """`ratios` by repeat: one per prompt, each against the baseline's run of the same prompt and repeat.

        The factor is the geometric mean of all prompts. Repeats are the independent measurements: a repeat
        is the mean of its log ratios, and the interval is Student's t over those means. It says how far a
        measurement on these prompts may be off, not how other prompts would fare.
        """
        means = [fmean(map(math.log, one)) for one in ratios.values() if one]
        if not means:
            return None
        middle = fmean(means)
        if len(means) < 2:
            return cls(math.exp(middle))
        reach = student_t(len(means) - 1) * stdev(means) / math.sqrt(len(means))
        return cls(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach), len(means))


def student_t(degrees: int) -> float:
    """The quantile of a two-sided 95 % interval."""
    # Behind the table the first term of its expansion around the normal's is exact to three digits.
    return _T[degrees - 1] if degrees <= len(_T) else 1.960 + 2.372 / degrees
