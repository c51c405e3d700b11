"""What the plots draw, asked of pyqtgraph."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg

from app.ui.instruments.plot_card import Canvas


def lines(canvas: Canvas) -> list[Any]:
    """The lines of a plot, in the order in which they are painted."""
    return [item for item in canvas.view.box.allChildren() if isinstance(item, pg.PlotCurveItem)]


def dots(canvas: Canvas) -> list[Any]:
    """The groups of dots of a plot, in the order in which they are painted."""
    return [item for item in canvas.view.box.allChildren() if isinstance(item, pg.ScatterPlotItem)]


def top(canvas: Canvas) -> float:
    """The value at the upper edge of a plot."""
    return canvas.view.box.viewRange()[1][1]


def words(canvas: Canvas) -> Any:
    """The words in a plot."""
    (item,) = (item for item in canvas.view.box.allChildren() if isinstance(item, pg.TextItem))
    return item
