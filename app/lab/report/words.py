"""Numbers as the table, the reports and the command line show them."""

from __future__ import annotations

from collections.abc import Sequence

from app.base.numbers import NONE, significant
from app.lab.report.interval import Speedup, Spread

NOTHING = NONE


def digits(value: float | None, unit: str = "") -> str:
    """Three significant digits."""
    return NOTHING if value is None else f"{significant(value)} {unit}".rstrip()


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share * 100:.1f}\N{NO-BREAK SPACE}%"


def factor(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}×"


def speedup(value: Speedup | None) -> str:
    """The factor and its interval: "1.42× (1.38 to 1.47)"."""
    if value is None:
        return NOTHING
    if value.low is None or value.high is None or value.low == value.high:  # alone, or against itself
        return factor(value.factor)
    return f"{factor(value.factor)} ({value.low:.2f} to {value.high:.2f})"


def middle(spread: Spread | None) -> float | None:
    return None if spread is None else spread.median


def milliseconds(seconds: float | None) -> str:
    return digits(None if seconds is None else seconds * 1000, "ms")


def duration(seconds: float) -> str:
    """Rounded as a person would say it: "45 s", "3 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
