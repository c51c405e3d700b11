"""The values of a plot, drawn by pyqtgraph over the axes of its canvas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QTransform
from PySide6.QtWidgets import QGraphicsView, QStyleOptionGraphicsItem, QWidget

from app.engine.fates import Origin
from app.ui.state.folds import Bins
from app.ui.theme import Palette

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.ui.state.folds import Floats

    Ints = NDArray[np.int64]


class DraftBars(pg.GraphicsObject):
    """One bar per group of rounds: accepted tokens, on top the target's own token in the colour of its
    origin; behind them, in a neutral colour, the length of the draft. What stays neutral was drafted in
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


class PlotView(pg.GraphicsView):
    """Lines, dots, bars and the marked round. It lies over its canvas, which has the input."""

    def __init__(self, canvas: QWidget, draw_over: Callable[[QPainter], None]) -> None:
        """`draw_over` paints what belongs above the values."""
        super().__init__(canvas, background=None)
        self._draw_over = draw_over
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setAutoFillBackground(False)
        self.setStyleSheet("background: transparent")
        # The canvas paints it again: a scene that asked for that itself would paint every plot twice.
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.NoViewportUpdate)
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)
        self.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.box = pg.ViewBox(enableMouse=False, enableMenu=False, defaultPadding=0)
        self.box.disableAutoRange()
        self.addItem(self.box)
        self._marker = self._added(pg.InfiniteLine(angle=90, movable=False))
        self._marker.setZValue(-5)
        self._marker.hide()

    def place(self, whole: QRect, plot: QRectF, values: QRectF) -> None:
        """Show `values` (rounds across, what is plotted upwards) at `plot`, both in pixels of the canvas."""
        self.setGeometry(whole)
        self.box.setGeometry(plot)
        across, up = (values.left(), values.right()), (values.top(), values.bottom())
        self.box.setRange(xRange=across, yRange=up, padding=0, disableAutoRange=True)

    def set_mark_colour(self, colour: str) -> None:
        self._marker.setPen(pg.mkPen(colour, width=1))

    def mark(self, index: int | None) -> None:
        """Draw a thin line at that round."""
        self._marker.setVisible(index is not None)
        if index is not None:
            self._marker.setValue(index)

    def add_line(self) -> Any:
        """A line that is broken where its values are not finite."""
        return self._added(pg.PlotCurveItem(antialias=True, connect="finite"))

    def add_dots(self, size: float) -> Any:
        """Dots of that diameter in pixels."""
        return self._added(pg.ScatterPlotItem(size=size, pen=None, brush=None))

    def add_words(self, text: str) -> Any:
        """Words beside a point, by their anchor."""
        return self._added(pg.TextItem(text))

    def add_bars(self) -> DraftBars:
        bars: DraftBars = self._added(DraftBars())
        return bars

    def _added(self, item: Any) -> Any:
        self.box.addItem(item, ignoreBounds=True)
        return item

    def drawForeground(self, painter: QPainter, rect: QRectF) -> None:  # noqa: N802
        self._draw_over(painter)
