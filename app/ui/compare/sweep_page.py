"""The page of a sweep: the heat map, and actions for the chosen cell."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QToolTip, QWidget

from app.base import numbers
from app.lab.axes import is_of_strategy
from app.lab.report.plots import MAPS, Heat, best_cell
from app.lab.report.report import SweepFacts
from app.ui.theme import Theme
from app.ui.theme.palette import Palette, blend
from app.ui.theme.rings import ring_shown
from app.ui.widgets import kit
from app.ui.widgets.labels import as_text
from app.ui.widgets.plot import Cell, ChooseFile, Plot, choose_file
from app.ui.widgets.segmented import Segmented

METRICS = {each.title: each for each in MAPS}
_MOST_INK = 0.36  # the darkest shade on which numbers are legible


def shade(colours: Palette, share: float) -> str:
    """The colour of a cell; `share` is the number's position from the lowest (0) to the highest (1)."""
    return blend(colours.text, colours.ground, 0.03 + (_MOST_INK - 0.03) * share)


class HeatView(Plot):
    """The heat map. The fastest cell is framed; a click or the arrow keys choose a cell."""

    chosen = Signal(object)
    """The Heat of the cell."""

    file_stem = "heat-map"

    def __init__(self, theme: Theme, choose: ChooseFile = choose_file) -> None:
        super().__init__(theme, choose)
        self._facts: SweepFacts | None = None
        self.cells: tuple[Heat, ...] = ()
        self._metric = "tokens/s"
        self._at = 0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Heat map")

    @property
    def current(self) -> Heat | None:
        """The chosen cell."""
        return self.cells[self._at] if self._at < len(self.cells) else None

    def set_cells(self, facts: SweepFacts, cells: tuple[Heat, ...]) -> None:
        """Show these cells, row by row."""
        if facts != self._facts:
            self._at = 0
        self._facts, self.cells = facts, cells
        self.update()

    def set_metric(self, metric: str) -> None:
        """Show one of METRICS."""
        self._metric = metric
        self.update()

    def choose(self, at: int) -> None:
        """Choose a cell by its index."""
        if 0 <= at < len(self.cells):
            self._at = at
            self.update()
            self.chosen.emit(self.cells[at])

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

    # ------------------------------------------------------------------ where things are

    def _grid(self) -> QRectF:
        metrics = QFontMetricsF(self._theme.sans(-0.5))
        facts = self._facts
        widest = max((metrics.horizontalAdvance(text) for text in facts.y_values), default=0) if facts else 0
        left = widest + 20
        top = 2 * metrics.height() + 12
        return QRectF(left, top, max(self.width() - left - 4, 1), max(self.height() - top - 4, 1))

    def _places(self) -> list[QRectF]:
        """The rectangles of the cells, row by row."""
        assert self._facts is not None
        grid, across, down = self._grid(), len(self._facts.x_values), len(self._facts.y_values)
        width, height = grid.width() / across, grid.height() / down
        return [
            QRectF(grid.left() + x * width, grid.top() + y * height, width, height)
            for y in range(down)
            for x in range(across)
        ]

    def _cell_at(self, x: float, y: float) -> int | None:
        places = self._places() if self.cells else []
        return next((at for at, place in enumerate(places) if place.contains(x, y)), None)

    # ------------------------------------------------------------------ painting

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._facts is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        places = self._places()
        self._draw_axes(painter, self._facts, places)
        shown = METRICS[self._metric]
        known = [number for heat in self.cells if (number := shown.value(heat)) is not None]
        low, high = min(known, default=0.0), max(known, default=1.0)
        best = best_cell(self._facts, self.cells)
        for at, heat in enumerate(self.cells):
            number = shown.value(heat)
            share = 0.0 if number is None else (number - low) / (high - low) if high > low else 0.5
            self._draw_cell(painter, at, places[at], share, shown.text(heat), heat is best)

    def _draw_axes(self, painter: QPainter, facts: SweepFacts, places: Sequence[QRectF]) -> None:
        colours, grid = self._theme.palette, self._grid()
        painter.setFont(self._theme.sans(-0.5))
        painter.setPen(QColor(colours.secondary))
        line = QFontMetricsF(painter.font()).height()
        painter.drawText(QRectF(grid.left(), 0, grid.width(), line), f"{facts.x} across, {facts.y} down")
        centre = Qt.AlignmentFlag.AlignCenter
        for at, value in enumerate(facts.x_values):
            place = places[at]
            painter.drawText(QRectF(place.left(), grid.top() - line - 4, place.width(), line), centre, value)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for row, value in enumerate(facts.y_values):
            place = places[row * len(facts.x_values)]
            painter.drawText(QRectF(0, place.top(), grid.left() - 8, place.height()), right, value)

    def _draw_cell(
        self, painter: QPainter, at: int, place: QRectF, share: float, text: str, best: bool
    ) -> None:
        colours, place = self._theme.palette, place.adjusted(2, 2, -2, -2)
        refused = bool(self.cells[at].problem)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.ground if refused else shade(colours, share)))
        if refused:
            painter.setPen(QPen(QColor(colours.line), 1, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(place, 4, 4)
        frame = place.adjusted(1, 1, -1, -1)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if best:
            painter.setPen(QPen(QColor(colours.good), 2))
            painter.drawRoundedRect(frame, 4, 4)
        if at == self._at:
            painter.setPen(QPen(QColor(colours.text), 2 if ring_shown(self) else 1))
            painter.drawRoundedRect(frame.adjusted(3, 3, -3, -3), 3, 3)
        painter.setFont(self._theme.sans())
        painter.setPen(QColor(colours.secondary if refused else colours.text))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, "left out" if refused else text)

    # ------------------------------------------------------------------ what people do

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self._cell_at(event.position().x(), event.position().y())
        if at is not None:
            self.choose(at)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        across = len(self._facts.x_values) if self._facts is not None else 1
        keys = Qt.Key
        step = {keys.Key_Left: -1, keys.Key_Right: 1, keys.Key_Up: -across, keys.Key_Down: across}
        by = step.get(Qt.Key(event.key()))
        if by is None:
            super().keyPressEvent(event)
        else:
            self.choose(self._at + by)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            at = self._cell_at(event.x(), event.y())
            if at is not None:
                QToolTip.showText(event.globalPos(), as_text(cell_words(self.cells[at])), self)
                return True
        return super().event(event)


def cell_words(heat: Heat) -> str:
    """All numbers of a cell."""
    if heat.problem:
        return f"{heat.name}: {heat.problem}" if heat.name else heat.problem
    return (
        f"{heat.name}: {numbers.digits(heat.tokens_per_second)} tokens/s, speed-up "
        f"{numbers.factor(heat.speedup)}, end to end {numbers.factor(heat.end_to_end_speedup)}, acceptance "
        f"{numbers.percent(heat.acceptance_rate)}"
    )


class SweepPage(QWidget):
    """Shows the heat map of one of METRICS."""

    use_wanted = Signal(str)
    compare_wanted = Signal(object)
    """Compare these strategies side by side (a tuple of specs)."""
    closed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.number = Segmented(theme, "Number", tuple(METRICS))
        self.heat = HeatView(theme)
        self.number.picked.connect(self.heat.set_metric)
        self.heat.chosen.connect(self._show_cell)
        self.cell = kit.label(wrap=True, plain=True, selectable=True)
        self.use = kit.button("Use it in the chat", self._use)
        self.compare = kit.button("Compare it side by side", self._compare)
        self.close_button = kit.button("Back to the lanes", self.closed)
        self._at_work = False
        self._of_strategy = False  # whether both axes are settings of the strategy
        top = kit.row(self.number, kit.Spring(1), self.close_button)
        below = kit.row((self.cell, 1), self.use, self.compare, spacing=8)
        kit.column(top, (self.heat, 1), below, margins=(24, 16, 24, 12), spacing=12, on=self)

    def set_cells(self, facts: SweepFacts, cells: tuple[Heat, ...], at_work: bool) -> None:
        """Show the cells measured so far, row by row."""
        self._at_work = at_work
        self._of_strategy = is_of_strategy(facts.x) and is_of_strategy(facts.y)
        self.heat.set_cells(facts, cells)
        self.close_button.setVisible(not at_work)
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
