"""A plot: painted by its widget, saved by a right click."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QMenu, QWidget

from app.engine.errors import UserError
from app.ui.theme import Theme
from app.ui.widgets.data.export import Cell, ChooseFile, choose_file, csv_table, png_picture, write_export


class Plot(QWidget):
    """What is shown as a picture, and its data as a table."""

    failed = Signal(object)
    """The UserError of an export that failed."""
    file_stem = "plot"

    def __init__(self, theme: Theme, choose: ChooseFile = choose_file) -> None:
        super().__init__()
        self._theme = theme
        self._choose = choose
        theme.changed.connect(self.update)

    def table(self) -> tuple[Sequence[str], Iterable[Sequence[Cell]]]:
        """Names of columns, and rows; no rows while nothing is shown."""
        raise NotImplementedError

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if any(True for _ in self.table()[1]):
            menu = self.menu()
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(event.globalPos())

    def menu(self) -> QMenu:
        """The menu of a right click."""
        menu = QMenu(self)
        menu.addAction("Save picture as PNG…", self.save_picture)
        menu.addAction("Save data as CSV…", self.save_table)
        return menu

    @Slot()
    def save_picture(self) -> None:
        path = self._choose(self.window(), f"{self.file_stem}.png", "PNG picture (*.png)")
        if path:
            self._write(path, png_picture(self, self._theme.palette.ground))

    @Slot()
    def save_table(self) -> None:
        path = self._choose(self.window(), f"{self.file_stem}.csv", "CSV table (*.csv)")
        if path:
            self._write(path, csv_table(*self.table()))

    def _write(self, path: str, data: bytes) -> None:
        try:
            write_export(Path(path), data)
        except UserError as error:
            self.failed.emit(error)
