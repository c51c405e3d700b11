"""Numbers as tables, reports and the command line write them; the window's typography builds on this."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

NONE = "–"
SIZE_UNITS = ("kB", "MB", "GB", "TB")


def significant(value: float | None, figures: int = 3) -> str:
    """Three significant digits; whole numbers from 100: 1.20e-07, 0.0512, 4.24, 42.4, 214, 12,345.

    `figures` asks for more digits.
    """
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0.00"
    if abs(value) < 1e-4:
        return f"{value:.{figures - 1}e}"
    # Rounded first: 9.996 becomes 10.0, with one digit more before the point.
    exponent = math.floor(math.log10(abs(float(f"{value:.{figures - 1}e}"))))
    return f"{value:,.{max(figures - 1 - exponent, 0)}f}"


def file_size(size: float) -> str:
    """Bytes in the unit that fits, three significant digits: 512 B, 34.1 MB, 4.37 GB. Units are decimal, as
    on disks and the Hub."""
    if abs(size) < 999.5:
        return f"{size:.0f} B"
    value, place = size / 1000, 0
    while abs(value) >= 999.5 and place < len(SIZE_UNITS) - 1:
        value /= 1000
        place += 1
    return f"{significant(value)} {SIZE_UNITS[place]}"


def digits(value: float | None, unit: str = "") -> str:
    """Three significant digits, then a space and `unit` if it is given."""
    return NONE if value is None else f"{significant(value)} {unit}".rstrip()


def percent(share: float | None, decimals: int = 1) -> str:
    """A share in [0, 1]: 42.5 %."""
    if share is None or not math.isfinite(share):
        return NONE
    return f"{share * 100:.{decimals}f}\N{NO-BREAK SPACE}%"


def factor(value: float | None) -> str:
    """How many times as much: 1.42×."""
    return NONE if value is None else f"{value:.2f}×"


def milliseconds(seconds: float | None) -> str:
    return digits(None if seconds is None else seconds * 1000, "ms")


def duration(seconds: float) -> str:
    """A duration in its two largest units: "45 s", "3 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(n: int, noun: str) -> str:
    """ "1 run", "2,048 runs"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def ordinal(index: int) -> str:
    """An index as people read it: rounds, places and tokens count from 1 in words, from 0 in files."""
    return f"{index + 1:,}"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def positive(text: str) -> float | None:
    """A text as a number above 0; None if it is not one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None


def cell(value: object) -> object:
    """A value as a spreadsheet may hold it."""
    if value is None:
        return ""
    # A spreadsheet would run such a text as a formula.
    if isinstance(value, str) and value.startswith(_OPENS_FORMULA):
        value = f"'{value}"
    return value.replace("\r", " ") if isinstance(value, str) else value  # which ends a line, unquoted


def csv_text(names: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """CSV text with a header line; None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(cell, row) for row in (names, *rows))
    return text.getvalue()


_OPENS_FORMULA = ("=", "+", "-", "@", "\t", "\r")
