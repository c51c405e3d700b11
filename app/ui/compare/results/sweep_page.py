"""The page of a sweep: the heat map, and actions for the chosen cell."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.lab.axes import is_of_strategy
from app.lab.report.heat import Heat
from app.lab.report.report import SweepFacts
from app.ui.compare.results.heat_view import METRICS, HeatView, cell_words
from app.ui.theme import Theme
from app.ui.widgets.fields.segmented import Segmented


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
        self.cell = QLabel()
        self.cell.setTextFormat(Qt.TextFormat.PlainText)
        self.cell.setWordWrap(True)
        self.cell.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.use = QPushButton("Use it in the chat")
        self.use.clicked.connect(self._use)
        self.compare = QPushButton("Compare it side by side")
        self.compare.clicked.connect(self._compare)
        self.close_button = QPushButton("Back to the lanes")
        self.close_button.clicked.connect(self.closed)
        self._at_work = False
        self._of_strategy = False  # whether both axes are settings of the strategy
        top = QHBoxLayout()
        top.addWidget(self.number)
        top.addStretch(1)
        top.addWidget(self.close_button)
        below = QHBoxLayout()
        below.setSpacing(8)
        below.addWidget(self.cell, 1)
        below.addWidget(self.use)
        below.addWidget(self.compare)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 16, 24, 12)
        column.setSpacing(12)
        column.addLayout(top)
        column.addWidget(self.heat, 1)
        column.addLayout(below)

    def set_cells(self, facts: SweepFacts, cells: tuple[Heat, ...], at_work: bool) -> None:
        """Show the cells measured so far, row by row."""
        self._at_work = at_work
        self._of_strategy = is_of_strategy(facts.x) and is_of_strategy(facts.y)
        self.heat.set_cells(facts, cells)
        self.close_button.setVisible(not at_work)
        self._show_cell(self.heat.current)

    @Slot(object)
    def _show_cell(self, heat: Heat | None) -> None:
        # The chat and a lane take a strategy; how models are loaded and tokens drawn is set elsewhere.
        usable = heat is not None and not heat.problem and self._of_strategy and not self._at_work
        self.cell.setText(cell_words(heat) if heat is not None else "")
        self.use.setVisible(usable)
        self.compare.setVisible(usable)

    @Slot()
    def _use(self) -> None:
        if self.heat.current is not None:
            self.use_wanted.emit(self.heat.current.strategy)

    @Slot()
    def _compare(self) -> None:
        if self.heat.current is not None:
            self.compare_wanted.emit((self.heat.current.strategy,))
