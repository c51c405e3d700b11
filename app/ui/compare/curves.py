"""The page of a measurement against a number: curves, every number below, and what was left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QSize
from PySide6.QtWidgets import QWidget

from app.lab.report.plots import CurvePlot, Curves
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.chart import Chart, dashed
from app.ui.widgets.plot import Cell
from app.ui.widgets.tables import LineTable, selected_rows

_NARROWEST = 210  # pixels of a plot at text scale 1; if they would be narrower, they stand in two rows
_LOWEST = 168
_SHAPES = (("o", "●", "○"), ("s", "■", "□"), ("d", "◆", "◇"), ("t1", "▲", "△"), ("t", "▼", "▽"))
"""Markers: pyqtgraph's name, and the same in the legend, full and hollow. Lanes differ by them: colours
belong to fates."""


class CurvesView(Chart):
    """Hovering reads out a point; one lane may be highlighted."""

    empty = "Each lane becomes a line here once its first answers are measured."

    def __init__(self, theme: Theme, name: str, file_stem: str) -> None:
        self.file_stem = file_stem
        self.curves: Curves | None = None
        self._chosen: int | None = None  # the lane that stands out
        self.legend = kit.label(wrap=True)
        super().__init__(theme, name)
        kit.fill(self.column, self.legend)

    def set_curves(self, curves: Curves | None) -> None:
        """Show these curves; None shows what will come."""
        if curves is None or self.curves is None or curves.lanes != self.curves.lanes:
            self.pointed, self._chosen = (), None
        self.curves = curves
        self.draw()

    def stand_out(self, lane: int | None) -> None:
        """Draw this lane in front of the others, which fade; None draws all alike."""
        if lane != self._chosen:
            self._chosen = lane
            self.draw()

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
        return self.curves.table() if self.curves is not None else ((), ())

    def sizeHint(self) -> QSize:
        return QSize(640, round(300 * self._theme.scale))

    def minimumSizeHint(self) -> QSize:
        return QSize(280, round(_LOWEST * self._theme.scale))

    @property
    def _shown(self) -> list[CurvePlot]:
        return list(self.curves.shown()) if self.curves is not None else []

    def marks(self) -> Iterator[tuple[tuple[int, int], QPointF]]:
        for axes, plot in zip(self.axes, self._shown, strict=True):
            yield from ((mark, axes.pixel(mark[1], value)) for mark, value in plot.values.items())

    def words_of(self, mark: tuple[int, int]) -> str:
        assert self.curves is not None
        return self.curves.reading(*mark)

    def draw(self) -> None:
        shown, curves = self._shown, self.curves
        across = len(shown)
        if self.width() < _NARROWEST * self._theme.scale * across:
            across = math.ceil(across / 2)
        self.arrange(len(shown), across)
        self.legend.setVisible(bool(shown))
        if curves is None:
            return
        front = self.pointed[0][0] if self.pointed else self._chosen
        lanes = sorted(range(len(curves.lanes)), key=lambda lane: (lane == front, lane))
        last = max(1, len(curves.places) - 1)
        for axes, plot in zip(self.axes, shown, strict=True):
            axes.left.words, axes.below.words = plot.text, curves.words_at
            axes.below.setTickDensity(2)
            edge = 0.04 * last
            axes.start(self._theme, plot.title, curves.axis, (-edge, last + edge), (0, plot.top * 1.1))
            if plot.level is not None:
                axes.add_level(plot.level, self._theme)
            for lane in lanes:
                axes.add(self._curve(plot.line(lane, len(curves.places)), lane, front))
            for mark in plot.marks:
                axes.add(pg.ScatterPlotItem([mark.at], [mark.value], size=16, pen=self._plain, brush=None))
                axes.add_words(mark.text, mark.at, mark.value, self._theme.sans(-1), self._plain, (-0.2, 1.2))
        self.legend.setFont(self._theme.mono(-1))
        self.legend.setText(" &nbsp; ".join(self._named(lane, front) for lane in range(len(lanes))))

    @property
    def _plain(self) -> str:
        return self._theme.palette.text

    def _look(self, lane: int, front: int | None) -> tuple[str, bool, bool]:
        """The colour of a lane, whether its line is dashed, and whether its markers are hollow."""
        assert self.curves is not None
        colours, dash = self._theme.palette, lane in self.curves.baselines
        colour = colours.secondary if dash else colours.text
        if front is not None:
            colour = colours.text if lane == front else colours.faint
        return colour, dash, dash or lane // len(_SHAPES) % 2 == 1

    def _curve(self, line: Iterable[tuple[int, float]], lane: int, front: int | None) -> Any:
        colour, dash, hollow = self._look(lane, front)
        width = 2.2 if lane == front else 1.4
        pen = dashed(colour, width) if dash else pg.mkPen(colour, width=width)
        x, y = zip(*line, strict=True) if (line := list(line)) else ((), ())
        return pg.PlotDataItem(
            x, y, pen=pen, antialias=True, symbol=_SHAPES[lane % len(_SHAPES)][0],
            symbolSize=12 if lane == front else 9, symbolPen=pg.mkPen(colour, width=1.4),
            symbolBrush=self._theme.palette.ground if hollow else colour,
        )  # fmt: skip

    def _named(self, lane: int, front: int | None) -> str:
        """A lane in the legend."""
        assert self.curves is not None
        colour, dash, hollow = self._look(lane, front)
        sample = f"{'╌' if dash else '─'}{_SHAPES[lane % len(_SHAPES)][1 + hollow]}{'╌' if dash else '─'}"
        return f'<span style="color: {colour}">{sample}&nbsp;{escape(self.curves.lanes[lane])}</span>'


class CurvesPage(QWidget):
    """Shows what the lab has folded so far."""

    def __init__(self, theme: Theme, name: str, file_stem: str, titles: Sequence[str], about: str) -> None:
        """`name` says what the curves are, `titles` are the table's, `about` defines its columns."""
        super().__init__()
        self.view = CurvesView(theme, name, file_stem)
        self.table = LineTable(theme, f"{name}, in numbers", titles)
        self.table.restyle()
        self.table.itemSelectionChanged.connect(self._choose)
        self._left_out, definition = (
            kit.label(words, "caption", wrap=True, plain=True, selectable=True) for words in ("", about)
        )
        parts = kit.splitter((self.view, 3), (self.table, 2), upright=True)
        title, below = kit.label(name, "title"), (self._left_out, definition)
        kit.column(title, (parts, 1), *below, margins=(24, 16, 24, 12), spacing=10, on=self)

    @property
    def left_out(self) -> str:
        """What could not be measured, a line for each."""
        return self._left_out.text()

    def set_content(
        self, curves: Curves | None, lines: Sequence[Sequence[str]], left_out: Sequence[str]
    ) -> None:
        """Show the numbers so far; `lines` are the table's, `left_out` says what is missing and why."""
        self.view.set_curves(curves)
        self.table.set_rows(lines)
        self._left_out.setText("\n".join(left_out))
        self._left_out.setVisible(bool(left_out))

    def _choose(self) -> None:
        """Highlight the lane of the selected row."""
        rows, curves = selected_rows(self.table), self.view.curves
        name = self.table.rows[rows[0]][0] if rows else None
        known = curves is not None and name in curves.lanes
        self.view.stand_out(curves.lanes.index(name) if curves is not None and known and name else None)
