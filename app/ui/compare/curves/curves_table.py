"""The numbers below the curves: a row for each lane and place."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QTableWidgetItem

from app.ui.theme import Theme
from app.ui.widgets.data.quiet_table import alignment, selected_rows
from app.ui.widgets.data.text_table import TextTable


class CurvesTable(TextTable):
    """Rows of texts, the lane's name first."""

    lane_chosen = Signal(object)
    """The name of the lane of the selected row, or None."""

    def __init__(self, theme: Theme, name: str, titles: Sequence[str]) -> None:
        super().__init__(theme, name, titles)
        self.lines: list[list[str]] = []
        self.itemSelectionChanged.connect(self._choose)
        self.restyle()

    def set_lines(self, lines: Sequence[Sequence[str]]) -> None:
        """Show these rows; the selection stays."""
        self.lines = [list(line) for line in lines]
        self.fill()

    def texts(self) -> Sequence[Sequence[str]]:
        return self.lines

    def fill(self) -> None:
        self.setRowCount(len(self.lines))
        for row, line in enumerate(self.lines):
            for column, text in enumerate(line):
                item = self.item(row, column)
                if item is None:
                    item = QTableWidgetItem()
                    item.setTextAlignment(alignment(right=column > 0))
                    self.setItem(row, column, item)
                item.setText(text)
                item.setFont(self._theme.mono(-0.5) if column == 0 else self._theme.sans())

    @Slot()
    def _choose(self) -> None:
        rows = selected_rows(self)
        self.lane_chosen.emit(self.lines[rows[0]][0] if rows else None)
