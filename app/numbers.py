"""A number as every room writes it."""

from __future__ import annotations

import math

NONE = "–"


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
