"""What a plot draws between its axes: lines, dots, and words at a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPen

if TYPE_CHECKING:
    from app.ui.state.series import Floats

_RAISED = 5  # pixels between words and the dot that they name
_NOTHING = np.empty(0)

Values = TypeVar("Values", float, "Floats")


@dataclass(frozen=True, slots=True)
class PlotArea:
    """Where values lie in a plot."""

    rect: QRectF  # pixels
    across: tuple[float, float]  # the values at its left and right edge
    up: tuple[float, float]  # those at its lower and upper edge

    def x_of(self, values: Values) -> Values:
        """Pixels of values on the horizontal axis."""
        first, last = self.across
        return self.rect.left() + (values - first) / (last - first) * self.rect.width()

    def y_of(self, values: Values) -> Values:
        """Pixels of values on the vertical axis."""
        low, high = self.up
        return self.rect.bottom() - (values - low) / (high - low) * self.rect.height()


class PlotMark:
    """A mark that a canvas paints."""

    def paint(self, painter: QPainter, area: PlotArea) -> None:
        """Paint with antialiasing, nothing outside of `area`. The painter may be left in any state."""
        raise NotImplementedError


class _PointsMark(PlotMark):
    """A mark made of points; those with a value that is not finite are left out."""

    def __init__(self) -> None:
        self.x: Floats = _NOTHING
        self.y: Floats = _NOTHING

    def set_points(self, x: Floats | Sequence[float], y: Floats | Sequence[float]) -> None:
        """Show these points: one array for each axis."""
        self.x, self.y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)

    def _runs(self, area: PlotArea) -> Iterator[list[QPointF]]:
        """The points in pixels, in runs without a gap."""
        pixels = zip(area.x_of(self.x).tolist(), area.y_of(self.y).tolist(), strict=True)
        known = zip(np.isfinite(self.y).tolist(), pixels, strict=True)
        for finite, run in groupby(known, key=lambda point: point[0]):
            if finite:
                yield [QPointF(x, y) for _, (x, y) in run]


class PlotLine(_PointsMark):
    """A line from point to point, with a gap where a value is not finite."""

    def __init__(self) -> None:
        super().__init__()
        self.pen = QPen()

    def set_look(self, colour: str, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> None:
        self.pen = QPen(QColor(colour), width, style)

    def paint(self, painter: QPainter, area: PlotArea) -> None:
        painter.setPen(self.pen)
        for run in self._runs(area):
            painter.drawPolyline(run)


class PlotDots(_PointsMark):
    """A dot at every point."""

    def __init__(self, size: float) -> None:
        """`size` is the diameter in pixels."""
        super().__init__()
        self._size = size
        self._pen = QPen(Qt.PenStyle.NoPen)
        self._brush = QBrush(Qt.BrushStyle.NoBrush)

    def set_filled(self, colour: str, alpha: float = 1.0) -> None:
        shade = QColor(colour)
        shade.setAlphaF(alpha)
        self._brush = QBrush(shade)

    def set_outlined(self, colour: str, width: float) -> None:
        self._pen = QPen(QColor(colour), width)

    def paint(self, painter: QPainter, area: PlotArea) -> None:
        painter.setPen(self._pen)
        painter.setBrush(self._brush)
        radius = self._size / 2
        for run in self._runs(area):
            for point in run:
                painter.drawEllipse(point, radius, radius)


class PlotWords(PlotMark):
    """Words above a point."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at: tuple[float, float] | None = None
        self._font = QFont()
        self._colour = QColor()

    def set_look(self, font: QFont, colour: str) -> None:
        self._font, self._colour = font, QColor(colour)

    def show_at(self, at: tuple[float, float] | None) -> None:
        """Show them at this (x, y); None hides them."""
        self._at = at

    def paint(self, painter: QPainter, area: PlotArea) -> None:
        if self._at is None:
            return
        metrics = QFontMetricsF(self._font)
        size = QRectF(0, 0, metrics.horizontalAdvance(self._text), metrics.height())
        size.moveBottom(area.y_of(self._at[1]) - size.height() / 4 - _RAISED)
        size.moveLeft(area.x_of(self._at[0]) - size.width() / 2)
        painter.setFont(self._font)
        painter.setPen(self._colour)
        painter.drawText(size, Qt.AlignmentFlag.AlignCenter, self._text)
