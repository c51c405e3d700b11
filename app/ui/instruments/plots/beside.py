"""Where words stand beside the point that they name, so that they hide nothing else of the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, QSizeF

_STEP = 2.0  # pixels between two places of a line that are looked at
_HIDDEN = 1000  # how much worse it is to hide a mark, or to be cut, than to cross a line
_ANCHORS = (  # shares of the words' width and height at which the point lies; the first that is free serves
    (0.5, 1.25), (0.5, -0.25), (-0.1, 0.5), (1.1, 0.5), (0.0, 1.15), (1.0, 1.15), (0.0, -0.15), (1.0, -0.15),
)  # fmt: skip


def free_anchor(
    point: QPointF,
    size: QSizeF,
    room: QRectF,
    marks: Sequence[QRectF],
    lines: Sequence[Sequence[QPointF]],
    margin: float,
) -> tuple[float, float]:
    """The anchor of words of that size, all in pixels: they lie inside `room`, and hide no mark and as little
    as possible of the lines. `margin` is the empty edge around the letters."""
    places = [place for line in lines for place in _along(line)]

    def hidden(anchor: tuple[float, float]) -> int:
        across, down = anchor
        corner = point - QPointF(across * size.width(), down * size.height())
        letters = QRectF(corner, size).adjusted(margin, margin, -margin, -margin)
        covered = sum(letters.intersects(mark) for mark in marks) + (not room.contains(letters))
        return _HIDDEN * covered + sum(letters.contains(place) for place in places)

    return min(_ANCHORS, key=hidden)


def _along(line: Sequence[QPointF]) -> Iterator[QPointF]:
    """Places on a line, close to each other."""
    for first, last in pairwise(line):
        way = last - first
        steps = max(1, round((abs(way.x()) + abs(way.y())) / _STEP))
        yield from (first + way * (step / steps) for step in range(steps + 1))
