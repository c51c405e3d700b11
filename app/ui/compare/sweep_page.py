"""The page of a sweep: the heat map, and actions for the chosen cell."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
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
from app.lab.report.plots import MAPS, Heat, best_cell
from app.lab.report.report import SweepFacts
from app.ui.theme import Theme
from app.ui.theme.palette import Palette, blend
from app.ui.theme.rings import ring_shown
from app.ui.widgets import kit
from app.ui.widgets.labels import as_text
from app.ui.widgets.plot import Cell, Plot
from app.ui.widgets.segmented import Segmented

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
        names = (*shown, "strategy", "tokens_per_second", "speedup", "end_to_end_speedup", "acceptance_rate")
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
