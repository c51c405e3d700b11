"""Pages of curves over depths or loads, with every number below. Also the heat map of a sweep, with actions
for the chosen cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import (
    QFrame,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.base import numbers
from app.lab.axes import is_of_strategy
from app.lab.report.plots import MAPS, CurvePlot, Curves, Heat, best_cell
from app.lab.report.report import SweepFacts
from app.ui.compare.line_table import LineTable
from app.ui.theme import Theme
from app.ui.theme.palette import Palette, blend
from app.ui.theme.rings import ring_shown
from app.ui.widgets import kit
from app.ui.widgets.chart import Chart, dashed
from app.ui.widgets.labels import as_text
from app.ui.widgets.plot import Cell, Plot
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.tables import selected_rows

_NARROWEST = 210  # pixels of a plot at text scale 1; if they would be narrower, they stand in two rows
_LOWEST = 168  # of a row of plots
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
        self._rows = 1
        self.legend = kit.label(wrap=True)
        super().__init__(theme, name)
        self.column.insertWidget(0, self.legend)

    def set_curves(self, curves: Curves | None) -> None:
        """Show these curves; None shows what will be there."""
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
        return QSize(280, round(_LOWEST * self._theme.scale) * self._rows)

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
        if (rows := math.ceil(len(shown) / across) if shown else 1) != self._rows:
            self._rows = rows
            self.updateGeometry()
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
        name = escape(self.curves.lanes[lane]).replace("-", "-\N{WORD JOINER}")
        return f'<span style="color: {colour}">{sample}&nbsp;{name}</span>'


class CurvesPage(QWidget):
    """Shows the results so far; it scrolls if plots and table would be too low to read."""

    def __init__(self, theme: Theme, name: str, file_stem: str, titles: Sequence[str], about: str) -> None:
        """`name` says what the curves are, `titles` are the table's, `about` defines its columns."""
        super().__init__()
        self.view = CurvesView(theme, name, file_stem)
        self.table = LineTable(theme, f"{name}, in numbers", titles)
        self.table.itemSelectionChanged.connect(self._choose)
        self._left_out, definition = (
            kit.label(words, "caption", wrap=True, plain=True, selectable=True) for words in ("", about)
        )
        parts = kit.splitter((self.view, 3), (self.table, 2), upright=True)
        title, below = kit.label(name, "title"), (self._left_out, definition)
        inner = kit.holder(kit.column(title, (parts, 1), *below, margins=(24, 16, 24, 12), spacing=10))
        scroll = kit.scroll(name, inner)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        kit.column(scroll, margins=(0, 0, 0, 0), spacing=0, on=self)
        theme.follow(self._restyle)

    def _restyle(self) -> None:
        """Keep the head of the table and four of its lines in sight."""
        lines = 4 * self.table.verticalHeader().defaultSectionSize()
        self.table.setMinimumHeight(self.table.horizontalHeader().sizeHint().height() + lines)

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


_Index = QModelIndex | QPersistentModelIndex
METRICS = {each.title: each for each in MAPS}
_MOST_INK = 0.36  # the darkest shade on which numbers are legible


def shade(colours: Palette, share: float) -> str:
    """The colour of a cell; `share` is the number's position from the lowest (0) to the highest (1)."""
    return blend(colours.text, colours.ground, 0.03 + (_MOST_INK - 0.03) * share)


class HeatView(Plot):
    """The heat map as a table. The fastest cell is framed; a click or the arrow keys choose a cell."""

    chosen = Signal(object)
    """The Heat of the cell."""

    file_stem = "heat-map"

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._facts: SweepFacts | None = None
        self.cells: tuple[Heat, ...] = ()
        self._metric = "tokens/s"
        self._axes = kit.label("", "caption", plain=True)
        self.grid = QTableWidget()
        self.grid.setAccessibleName("Heat map")
        self.grid.setFrameShape(QFrame.Shape.NoFrame)
        self.grid.setShowGrid(False)
        self.grid.setStyleSheet("QTableCornerButton::section { background: transparent; border: none; }")
        self.grid.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.grid.setSelectionMode(QTableWidget.SelectionMode.SingleSelection)
        self.grid.setTabKeyNavigation(False)
        self.grid.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # that of the plot opens
        self.grid.setItemDelegate(_HeatCells(self))
        for head in (self.grid.horizontalHeader(), self.grid.verticalHeader()):
            head.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
            head.setHighlightSections(False)
        self.grid.currentCellChanged.connect(self._choose)
        kit.column(self._axes, (self.grid, 1), spacing=4, on=self)
        theme.changed.connect(self._fill)

    @property
    def current(self) -> Heat | None:
        """The chosen cell."""
        at = self._at(self.grid.currentRow(), self.grid.currentColumn())
        return self.cells[at] if 0 <= at < len(self.cells) else None

    def _at(self, row: int, column: int) -> int:
        return row * self.grid.columnCount() + column

    def set_cells(self, facts: SweepFacts, cells: tuple[Heat, ...]) -> None:
        """Show these cells, row by row; none while a sweep has no numbers yet."""
        new, self._facts, self.cells = facts != self._facts, facts, cells
        self.grid.blockSignals(True)
        if not cells:
            self.grid.clearContents()
        if new:
            self._axes.setText(f"{facts.x} across, {facts.y} down")
            self.grid.setRowCount(len(facts.y_values))
            self.grid.setColumnCount(len(facts.x_values))
            self.grid.setHorizontalHeaderLabels(facts.x_values)
            self.grid.setVerticalHeaderLabels(facts.y_values)
        self._fill()
        if new:
            self.grid.setCurrentCell(0, 0)
        self.grid.blockSignals(False)

    def set_metric(self, metric: str) -> None:
        """Show one of METRICS."""
        self._metric = metric
        self._fill()

    def _choose(self, row: int, column: int) -> None:
        if 0 <= self._at(row, column) < len(self.cells):
            self.chosen.emit(self.cells[self._at(row, column)])

    def sizeHint(self) -> QSize:
        return QSize(520, 320)

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
        facts = self._facts
        shown = (facts.x, facts.y) if facts is not None else ()
        names = (*shown, "strategy", *(each.key for each in MAPS))
        rows = [
            (heat.cell.x, heat.cell.y, heat.strategy, *(each.value(heat) for each in MAPS))
            for heat in self.cells
        ]
        return names, rows

    def _fill(self) -> None:
        """Give each cell its number, its shade and all its numbers as a tooltip."""
        shown, colours = METRICS[self._metric], self._theme.palette
        known = [number for heat in self.cells if (number := shown.value(heat)) is not None]
        low, high = min(known, default=0.0), max(known, default=1.0)
        for at, heat in enumerate(self.cells):
            number, refused = shown.value(heat), bool(heat.problem)
            share = 0.0 if number is None else (number - low) / (high - low) if high > low else 0.5
            item = QTableWidgetItem("left out" if refused else shown.text(heat))
            item.setToolTip(as_text(cell_words(heat)))
            item.setBackground(QColor(colours.ground if refused else shade(colours, share)))
            item.setForeground(QColor(colours.secondary if refused else colours.text))
            self.grid.setItem(*divmod(at, self.grid.columnCount()), item)

    def draw_cell(self, painter: QPainter, rect: QRectF, item: QTableWidgetItem) -> None:
        """Paint a cell into its place."""
        colours, heat = self._theme.palette, self.cells[self._at(item.row(), item.column())]
        place = rect.adjusted(2, 2, -2, -2)
        painter.fillRect(rect, QColor(colours.ground))  # over the view's own mark of the chosen cell
        dashed = QPen(QColor(colours.line), 1, Qt.PenStyle.DashLine)
        painter.setPen(dashed if heat.problem else Qt.PenStyle.NoPen)
        painter.setBrush(item.background())
        painter.drawRoundedRect(place, 4, 4)
        frame = place.adjusted(1, 1, -1, -1)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._facts is not None and heat is best_cell(self._facts, self.cells):
            painter.setPen(QPen(QColor(colours.good), 2))
            painter.drawRoundedRect(frame, 4, 4)
        if item is self.grid.currentItem():
            painter.setPen(QPen(QColor(colours.text), 2 if ring_shown(self.grid) else 1))
            painter.drawRoundedRect(frame.adjusted(3, 3, -3, -3), 3, 3)
        painter.setPen(item.foreground().color())
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, item.text())


class _HeatCells(QStyledItemDelegate):
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        view = self.parent()
        assert isinstance(view, HeatView)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        item = view.grid.item(index.row(), index.column())
        if item is not None:
            view.draw_cell(painter, QRectF(option.rect), item)


def cell_words(heat: Heat) -> str:
    """All numbers of a cell."""
    if heat.problem:
        return f"{heat.name}: {heat.problem}" if heat.name else heat.problem
    if heat.tokens_per_second is None:
        return f"{heat.name}: not measured yet"
    return (
        f"{heat.name}: {numbers.digits(heat.tokens_per_second)} tokens/\N{WORD JOINER}s, speed-up "
        f"{numbers.factor(heat.speedup)}, end to end {numbers.factor(heat.end_to_end_speedup)}, acceptance "
        f"{numbers.percent(heat.acceptance_rate)}"
    )


class SweepPage(QWidget):
    """Shows the heat map of one of METRICS."""

    use_wanted = Signal(str)
    compare_wanted = Signal(object)
    """Compare these strategies side by side (a tuple of specs)."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.number = Segmented(theme, "Number", tuple(METRICS))
        self.heat = HeatView(theme)
        self.number.picked.connect(self.heat.set_metric)
        self.heat.chosen.connect(self._show_cell)
        self.cell = kit.label(wrap=True, plain=True, selectable=True)
        self.use = kit.button("Use it in the chat", self._use)
        self.compare = kit.button("Compare it side by side", self._compare)
        self._at_work = False
        self._of_strategy = False  # whether both axes are settings of the strategy
        top = kit.row(self.number, kit.Spring(1))
        below = kit.row((self.cell, 1), self.use, self.compare, spacing=8)
        kit.column(top, (self.heat, 1), below, margins=(24, 16, 24, 12), spacing=12, on=self)

    def set_cells(self, facts: SweepFacts, cells: tuple[Heat, ...], at_work: bool) -> None:
        """Show the cells measured so far, row by row."""
        self._at_work = at_work
        self._of_strategy = is_of_strategy(facts.x) and is_of_strategy(facts.y)
        self.heat.set_cells(facts, cells)
        self._show_cell(self.heat.current)

    def _show_cell(self, heat: Heat | None) -> None:
        # The chat and a lane take a strategy; how models are loaded and tokens drawn is set elsewhere.
        usable = heat is not None and not heat.problem and self._of_strategy and not self._at_work
        self.cell.setText(cell_words(heat) if heat is not None else "")
        self.use.setVisible(usable)
        self.compare.setVisible(usable)

    def _use(self) -> None:
        if self.heat.current is not None:
            self.use_wanted.emit(self.heat.current.strategy)

    def _compare(self) -> None:
        if self.heat.current is not None:
            self.compare_wanted.emit((self.heat.current.strategy,))
