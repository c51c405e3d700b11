"""The marks of the plots, and the values at their edges."""

from __future__ import annotations

from app.ui.instruments.plots.canvas import Canvas
from app.ui.instruments.plots.marks import PlotDots, PlotLine


def lines(canvas: Canvas) -> list[PlotLine]:
    """The lines of a plot, in the order in which they are painted."""
    return [mark for mark in canvas.marks if isinstance(mark, PlotLine)]


def dots(canvas: Canvas) -> list[PlotDots]:
    """The groups of dots of a plot, in the order in which they are painted."""
    return [mark for mark in canvas.marks if isinstance(mark, PlotDots)]


def top(canvas: Canvas) -> float:
    """The value at the upper edge of a plot."""
    return canvas.area.up[1]
