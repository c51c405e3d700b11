"""The tracks of the timeline as they were painted: a step paints only the rounds that come or go with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import ceil

from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QColor, QPainter, QPixmap

from app.ui.inspector.timeline.axis import RoundAxis

PaintRounds = Callable[[QPainter, int, int], None]
"""Paints the rounds from one on up to, not including, another."""


class TrackPicture:
    """Keeps what was painted, from the left edge of the axis on."""

    def __init__(self) -> None:
        self._pixels = QPixmap()
        self._look: Hashable = None
        self._first = 0.0  # of the axis
        self._end = 0  # the round behind the last painted one

    def forget(self) -> None:
        """The rounds are others now."""
        self._look = None

    def pixels(
        self, look: Hashable, ground: str, size: QSize, ratio: float, axis: RoundAxis, group: int, end: int,
        paint: PaintRounds,
    ) -> QPixmap:  # fmt: skip
        """The rounds in sight before `end`. A bar stands for `group` rounds; that of a whole group never
        changes. `look` is everything else that bars depend on, but for the place of the axis."""
        look = look, ground, size, ratio, axis.pitch, group
        whole = QRect(0, 0, size.width(), size.height())
        shift = round((axis.first - self._first) * axis.pitch, 6)
        scrolls = shift.is_integer() and (shift * ratio).is_integer() and abs(shift) < size.width()
        changed = []
        if look != self._look or not scrolls:
            self._pixels = QPixmap(size * ratio)
            self._pixels.setDevicePixelRatio(ratio)
            changed = [whole]
        else:
            if shift:
                self._pixels.scroll(-round(shift * ratio), 0, self._pixels.rect())
                beyond = size.width() if shift > 0 else -size.width()
                changed = [whole.translated(beyond - round(shift), 0)]
            if end != self._end:
                left = round(axis.x_of(min(end, self._end) // group * group) - 0.5)
                right = ceil(axis.x_of(max(end, self._end)) + 0.5)
                part = QRect(left, 0, right - left, size.height())
                changed = [part.united(rect) for rect in changed if part.intersects(rect)] or [*changed, part]
        self._look, self._first, self._end = look, axis.first, end
        for part in (rect & whole for rect in changed):
            if not part.isEmpty():
                painter = QPainter(self._pixels)
                painter.setClipRect(part)
                painter.fillRect(part, QColor(ground))
                last = axis.round_at(part.left() + part.width())
                paint(painter, max(int(axis.round_at(part.left())), 0), min(ceil(last), end))
                painter.end()
        return self._pixels
