"""The values of a plot, drawn by pyqtgraph over the axes of its canvas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QGraphicsView, QWidget

from app.ui.instruments.plots.bars import DraftBars


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
        # The canvas paints it anew: a scene that asked for that itself would paint every plot twice.
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
