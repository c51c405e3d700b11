"""A table of texts that can be copied."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QTableWidget, QTableWidgetItem

from app.ui.theme import Theme
from app.ui.widgets.data.quiet_table import (
    add_action,
    alignment,
    copy_texts,
    fit_rows,
    quiet_table,
    selected_rows,
)


class TextTable(QTableWidget):
    """A quiet table of texts: Ctrl+C copies the selected rows, the menu all of them."""

    def __init__(self, theme: Theme, name: str, titles: Sequence[str]) -> None:
        """A column without a title holds no text. The derived class calls `restyle` when it is ready."""
        super().__init__(0, len(titles))
        self._theme = theme
        self._titles = tuple(titles)
        self.setAccessibleName(name)
        quiet_table(self)
        for column, title in enumerate(titles):
            item = QTableWidgetItem(title)
            item.setTextAlignment(alignment(right=column > 0))
            self.setHorizontalHeaderItem(column, item)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        add_action(self, "Copy", self.copy, QKeySequence.StandardKey.Copy)
        add_action(self, "Copy the whole table", self.copy_all)
        theme.changed.connect(self.restyle)

    def explain(self, definitions: Sequence[str]) -> None:
        """Give every column's title its definition as a tooltip."""
        for column, definition in enumerate(definitions):
            item = self.horizontalHeaderItem(column)
            assert item is not None
            item.setToolTip(definition)

    def texts(self) -> Sequence[Sequence[str]]:
        """The texts of all rows."""
        raise NotImplementedError

    def fill(self) -> None:
        """Put the rows into the table, in the theme's fonts and colours."""
        raise NotImplementedError

    @Slot()
    def restyle(self) -> None:
        fit_rows(self, self._theme)
        self.fill()

    @Slot()
    def copy(self) -> None:
        """Copy the selected rows, or all where none is selected, as a table for spreadsheets."""
        texts = self.texts()
        self._copy([texts[row] for row in selected_rows(self)] or texts)

    @Slot()
    def copy_all(self) -> None:
        self._copy(self.texts())

    def _copy(self, texts: Sequence[Sequence[str]]) -> None:
        copy_texts([[title for title in self._titles if title], *texts])
