"""A number as every room writes it."""

from __future__ import annotations

import math

NONE = "–"
SIZE_UNITS = ("kB", "MB", "GB", "TB")


def significant(value: float | None) -> str:
    """Three significant digits, above that whole: 1.20e-07, 0.0512, 4.24, 42.4, 214, 12,345."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0.00"
    if abs(value) < 1e-4:
        return f"{value:.2e}"
    # Rounded first: 9.996 has one digit more before the point than it seems.
    exponent = math.floor(math.log10(abs(float(f"{value:.2e}"))))
    return f"{value:,.{max(2 - exponent, 0)}f}"


def file_size(size: float) -> str:
    """Bytes in the unit that fits, three significant digits: 512 B, 34.1 MB, 4.37 GB. Decimal units, as disks
    and the Hub count."""
    if abs(size) < 999.5:
        return f"{size:.0f} B"
    value, place = size / 1000, 0
    while abs(value) >= 999.5 and place < len(SIZE_UNITS) - 1:
        value /= 1000
        place += 1
    return f"{significant(value)} {SIZE_UNITS[place]}"
