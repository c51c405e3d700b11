"""The values of a plot over the rounds, drawn by pyqtgraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QTransform
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from app.engine.fates import Origin
from app.ui.state.folds import Bins
from app.ui.theme import Palette, Theme
from app.ui.widgets.chart import Area, Axes, dashed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.ui.state.folds import Floats

    Ints = NDArray[np.int64]


class DraftBars(pg.GraphicsObject):
    """One bar per group of rounds: accepted tokens, and on top the target's own token in the colour of its
    origin. The grey bar behind them is the draft's length; what shows of it are tokens drafted in
    vain."""

    def __init__(self) -> None:
        super().__init__()
        self._bins: Bins | None = None
        self._colours: dict[Origin, QColor] = {}
        self._behind = QColor()

    def set_palette(self, palette: Palette) -> None:
        self._colours = {origin: QColor(palette.area(origin)) for origin in Origin}
        self._behind = QColor(palette.line)
        self.update()

    def set_bins(self, bins: Bins | None) -> None:
        self.prepareGeometryChange()
        self._bins = bins
        self.update()

    def boundingRect(self) -> QRectF:
        bins = self._bins
        if bins is None or not len(bins.left):
            return QRectF()
        highest = float((bins.drafted + 1).max())
        first, last = float(bins.left[0]), float(bins.right[-1])
        return QRectF(first - 0.5, 0, last - first, highest)

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        bins = self._bins
        if bins is None or not len(bins.left):
            return
        # Bars are drawn on whole pixels: narrow ones would otherwise blur and differ in width.
        to_pixels = painter.transform()
        painter.save()
        painter.setTransform(QTransform())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(Qt.PenStyle.NoPen)

        def x_of(rounds: Floats) -> Ints:
            return np.rint((rounds - 0.5) * to_pixels.m11() + to_pixels.dx()).astype(int)

        def y_of(values: Floats) -> Ints:
            return np.rint(values * to_pixels.m22() + to_pixels.dy()).astype(int)

        left = x_of(bins.left)
        room = x_of(bins.right) - left
        width = np.maximum(room - np.maximum(np.rint(room * 0.2).astype(int), 1), 1)
        below = np.zeros(len(left))
        layers = [(below, bins.drafted, self._behind)]
        for origin, stack in bins.origins.items():
            layers.append((below, below + stack, self._colours[origin]))
            below = below + stack
        for low, high, colour in layers:
            top = y_of(high)
            rects = np.stack((left, top, width, y_of(low) - top), axis=1)
            painter.setBrush(colour)
            painter.drawRects([QRect(*row) for row in rects[rects[:, 3] > 0].tolist()])
        painter.restore()


class PlotView(Area):
    """Numbers at the left; lines, dots, bars and the marked round."""

    def __init__(self, ringed: Callable[[], bool]) -> None:
        """`ringed` says whether to paint a focus ring."""
        super().__init__()
        self._ringed = ringed
        self._edge = QColor()
        self.axes = Axes(plain=True)
        self.box = self.axes.box
        self.box.setMouseEnabled(y=False)
        self.addItem(self.axes)
        self._level, self._marker = (pg.InfiniteLine(angle=angle, movable=False) for angle in (0, 90))
        for line in (self._level, self._marker):
            self.axes.add(line).hide()
        self._marker.setZValue(-5)

    def dress(self, theme: Theme) -> None:
        self.axes.left.dress(theme, -2)
        self.axes.left.setWidth(QFontMetricsF(theme.sans(-2)).horizontalAdvance("8,888") + 8)
        self._level.setPen(dashed(theme.palette.secondary, 1))
        self._marker.setPen(pg.mkPen(theme.palette.faint, width=1))
        self._edge = QColor(theme.palette.secondary)

    def mark(self, index: int | None) -> None:
        """Draw a thin line at that round."""
        self._marker.setVisible(index is not None)
        self._marker.setValue(index or 0)

    def show_level(self, value: float | None) -> None:
        """Draw a dashed line across."""
        self._level.setVisible(value is not None)
        self._level.setValue(value or 0)

    def add_line(self) -> Any:
        """A line with a gap at values that are not finite."""
        return self.axes.add(pg.PlotCurveItem(antialias=True, connect="finite"))

    def add_dots(self, size: float) -> Any:
        """Dots of that diameter in pixels."""
        return self.axes.add(pg.ScatterPlotItem(size=size, pen=None, brush=None))

    def add_words(self, text: str) -> Any:
        """Words beside a point; `anchor` is their place relative to it."""
        return self.axes.add(pg.TextItem(text))

    def add_bars(self) -> DraftBars:
        bars: DraftBars = self.axes.add(DraftBars())
        return bars

    def drawForeground(self, painter: QPainter, rect: QRectF) -> None:  # noqa: N802
        if self._ringed():
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setPen(self._edge)
            painter.drawRect(self.box.mapRectToScene(self.box.rect()).toRect().adjusted(0, 0, 0, -1))
