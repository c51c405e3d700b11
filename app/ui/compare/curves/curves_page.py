"""The page of a measurement against a number: curves, every number below, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSplitter, QVBoxLayout, QWidget

from app.lab.report.curves import Curves
from app.ui.compare.curves.curves_table import CurvesTable
from app.ui.compare.curves.curves_view import CurvesView
from app.ui.theme import Theme


class CurvesPage(QWidget):
    """Shows what the lab has folded so far."""

    closed = Signal()

    def __init__(self, theme: Theme, name: str, file_stem: str, titles: Sequence[str], about: str) -> None:
        """`name` says what the curves are, `titles` are the table's, `about` defines its columns."""
        super().__init__()
        self.view = CurvesView(theme, name, file_stem)
        self.table = CurvesTable(theme, f"{name}, in numbers", titles)
        self.table.lane_chosen.connect(self._lane_chosen)
        title = QLabel(name)
        title.setProperty("role", "title")
        self._left_out = _caption()
        definition = _caption()
        definition.setText(about)
        self.close_button = QPushButton("Back to the lanes")
        self.close_button.clicked.connect(self.closed)
        top = QHBoxLayout()
        top.addWidget(title, 1)
        top.addWidget(self.close_button)
        parts = QSplitter(Qt.Orientation.Vertical)
        parts.setChildrenCollapsible(False)
        parts.addWidget(self.view)
        parts.addWidget(self.table)
        parts.setStretchFactor(0, 3)
        parts.setStretchFactor(1, 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 16, 24, 12)
        column.setSpacing(10)
        column.addLayout(top)
        column.addWidget(parts, 1)
        column.addWidget(self._left_out)
        column.addWidget(definition)

    @property
    def left_out(self) -> str:
        """What could not be measured, a line for each."""
        return self._left_out.text()

    def set_content(
        self, curves: Curves | None, lines: Sequence[Sequence[str]], left_out: Sequence[str], *, at_work: bool
    ) -> None:
        """Show the numbers so far; `lines` are the table's, `left_out` says what is missing and why."""
        self.view.set_curves(curves)
        self.table.set_lines(lines)
        self._left_out.setText("\n".join(left_out))
        self._left_out.setVisible(bool(left_out))
        self.close_button.setVisible(not at_work)

    @Slot(object)
    def _lane_chosen(self, name: str | None) -> None:
        curves = self.view.curves
        known = curves is not None and name in curves.lanes
        self.view.stand_out(curves.lanes.index(name) if curves is not None and known and name else None)


def _caption() -> QLabel:
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setProperty("role", "caption")
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
