"""The numbers below the curves: a row for each lane and place."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import QTableWidget, QTableWidgetItem

from app.ui.theme import Theme
from app.ui.widgets.quiet_table import add_action, alignment, fit_rows, quiet_table


class CurvesTable(QTableWidget):
    """Rows of texts, the lane's name first; Ctrl+C copies."""

    lane_chosen = Signal(object)
    """The name of the lane of the selected row, or None."""

    def __init__(self, theme: Theme, name: str, titles: Sequence[str]) -> None:
        super().__init__(0, len(titles))
        self._theme = theme
        self._titles = tuple(titles)
        self.lines: list[list[str]] = []
        self.setAccessibleName(name)
        quiet_table(self)
        for column, title in enumerate(titles):
            item = QTableWidgetItem(title)
            item.setTextAlignment(alignment(right=column > 0))
            self.setHorizontalHeaderItem(column, item)
        self.itemSelectionChanged.connect(self._choose)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        add_action(self, "Copy", self.copy, QKeySequence.StandardKey.Copy)
        add_action(self, "Copy the whole table", self.copy_all)
        theme.changed.connect(self._restyle)
        self._restyle()

    def explain(self, definitions: Sequence[str]) -> None:
        """Give every column's title its definition as a tooltip."""
        for column, definition in enumerate(definitions):
            item = self.horizontalHeaderItem(column)
            assert item is not None
            item.setToolTip(definition)

    def set_lines(self, lines: Sequence[Sequence[str]]) -> None:
        """Show these rows; the selection stays."""
        self.lines = [list(line) for line in lines]
        self._fill()

    @Slot()
    def copy(self) -> None:
        """Copy the selected rows, or all where none is selected, as a table for spreadsheets."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        self._copy([self.lines[row] for row in rows] or self.lines)

    @Slot()
    def copy_all(self) -> None:
        self._copy(self.lines)

    def _copy(self, lines: Sequence[Sequence[str]]) -> None:
        QGuiApplication.clipboard().setText("\n".join("\t".join(line) for line in [self._titles, *lines]))

    def _fill(self) -> None:
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
        rows = self.selectionModel().selectedRows()
        self.lane_chosen.emit(self.lines[rows[0].row()][0] if rows else None)

    @Slot()
    def _restyle(self) -> None:
        fit_rows(self, self._theme)
        self._fill()
