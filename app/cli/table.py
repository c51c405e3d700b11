"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned lines: the first column to the left, the others, which are numbers, to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]

    def row(cells: Sequence[str]) -> str:
        first, *others = cells
        numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        return "  ".join([first.ljust(widths[0]), *numbers]).rstrip()

    return [row(lines[0]), "  ".join("-" * width for width in widths), *map(row, lines[1:])]
