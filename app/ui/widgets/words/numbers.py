"""Numbers in the window's typography: three significant digits, thousands separators, units, "–" for none.

Units stand behind a no-break space, so that a line never ends between a number and its unit.
"""

from __future__ import annotations

import math

from app.base import numbers

NONE, significant = numbers.NONE, numbers.significant
SPACE = "\N{NO-BREAK SPACE}"


def count(value: int | None) -> str:
    """A number of things: 2,048."""
    return NONE if value is None else f"{value:,}"


def ratio(value: float | None) -> str:
    """A share or rate in [0, 1], always with the same width: 0.812, 1.000."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:.3f}"


def probability(value: float | None) -> str:
    """Like `ratio`, but a value above zero never reads as zero, nor one below one as one."""
    if value is None or not math.isfinite(value):
        return NONE
    if 0 < value < 0.0005:
        return "<.001"
    if 0.9995 <= value < 1:
        return ">.999"
    return f"{value:.3f}"


def percent(value: float | None) -> str:
    """A share as whole percent: 43 %."""
    return numbers.percent(value, 0)


def factor(value: float | None) -> str:
    """How many times as much: 1.42×."""
    shown = significant(value)
    return shown if shown == NONE else f"{shown}×"


def per_second(value: float | None) -> str:
    """A rate in tokens: 214 tok/s."""
    shown = significant(value)
    return shown if shown == NONE else f"{shown}{SPACE}tok/s"


def duration(seconds: float | None) -> str:
    """A time in the unit that fits: 85.0 µs, 1.10 ms, 231 ms, 4.20 s, 2 min 03 s."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds == 0:
        return f"0.00{SPACE}ms"
    if round(seconds) >= 120:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes:,}{SPACE}min{SPACE}{rest:02d}{SPACE}s"
    rounded = abs(float(f"{seconds:.2e}"))  # so that 0.9996 s reads 1.00 s, not 1,000 ms
    if rounded < 1e-3:
        return f"{significant(seconds * 1e6)}{SPACE}µs"
    if rounded < 1:
        return f"{significant(seconds * 1e3)}{SPACE}ms"
    return f"{significant(seconds)}{SPACE}s"


def file_size(size: float) -> str:
    """Bytes in the unit that fits: 34.1 MB, 4.37 GB."""
    return numbers.file_size(size).replace(" ", SPACE)
