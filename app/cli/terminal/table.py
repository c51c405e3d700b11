"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol


class Defined(Protocol):
    """A number with a title and a definition."""

    @property
    def title(self) -> str: ...

    @property
    def definition(self) -> str: ...


def definitions(columns: Iterable[Defined]) -> list[str]:
    """What the columns of a table mean, a line each."""
    return [f"{column.title}: {column.definition}" for column in columns]


def aligned(head: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()) -> list[str]:
    """The lines of a table, columns two spaces apart; those named in `right` are aligned to the right."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def row(cells: Sequence[str]) -> str:
        placed = (
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(cells, widths, head, strict=True)
        )
        return "  ".join(placed).rstrip()

    return list(map(row, lines))


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] | None = None
) -> list[str]:
    """As `aligned`, with a rule below each heading; by default all columns but the first are in `right`."""
    rule = ["-" * max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return aligned(head, [rule, *rows], right=head[1:] if right is None else right)
