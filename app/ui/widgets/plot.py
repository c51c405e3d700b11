"""Plots that their widget paints. A right click saves them as a picture, or their data as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QPixmap, QRegion
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from app.base.files import SHARED, explained, write_atomic
from app.base.numbers import csv_text
from app.engine.errors import UserError
from app.ui.theme import Theme

Cell = int | float | str | None
ChooseFile = Callable[[QWidget, str, str], str]
"""(window, suggested file name, filter) -> chosen path, or "" if the choice was dismissed."""

_SCALE = 2  # pictures are for papers and slides
_MARGIN = 12


def choose_file(window: QWidget, name: str, pattern: str) -> str:
    """Let the user choose where to save, with the system's dialog."""
    path, _ = QFileDialog.getSaveFileName(window, "Save as", name, pattern)
    return path


def png_picture(widget: QWidget, ground: str) -> bytes:
    """The widget as a PNG, at twice its size in pixels."""
    margins = QSize(2 * _MARGIN, 2 * _MARGIN)
    picture = QPixmap((widget.size() + margins) * _SCALE)
    picture.setDevicePixelRatio(_SCALE)
    picture.fill(QColor(ground))
    # Children only: the widget's own background is whatever lies behind it in the window.
    flags = QWidget.RenderFlag.DrawChildren
    widget.render(picture, QPoint(_MARGIN, _MARGIN), QRegion(), flags)
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    picture.save(buffer, "PNG")
    buffer.close()
    return bytes(data.data())


def write_export(path: Path, data: bytes) -> None:
    """Write an exported file; raises UserError with a sentence for people."""
    with explained(f"{path.name} was not saved", "Choose a different folder."):
        write_atomic(path, data, SHARED)


class Plot(QWidget):
    """A widget that can be saved as a picture, and its data as a table."""

    failed = Signal(object)
    """The UserError of an export that failed."""
    saved = Signal(str)
    """The name of the file that was written."""
    file_stem = "plot"

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.ask_where: ChooseFile = choose_file
        theme.changed.connect(self.update)

    def table(self) -> tuple[Sequence[str], Iterable[Sequence[Cell]]]:
        """Names of columns, and rows; no rows while nothing is shown."""
        raise NotImplementedError

    def has_rows(self) -> bool:
        """Whether there is data to save."""
        return any(True for _ in self.table()[1])

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self.has_rows():
            self.open_menu(event)

    def open_menu(self, event: QContextMenuEvent) -> None:
        """Open the menu at the place of a right click."""
        menu = self.menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())

    def menu(self) -> QMenu:
        """The menu of a right click."""
        menu = QMenu(self)
        menu.addAction("Save picture as PNG…", self.save_picture)
        menu.addAction("Save data as CSV…", self.save_table).setEnabled(self.has_rows())
        return menu

    def save_picture(self) -> None:
        path = self.ask_where(self.window(), f"{self.file_stem}.png", "PNG picture (*.png)")
        if path:
            self._write(path, self.picture())

    def picture(self) -> bytes:
        """Save what is shown as a PNG."""
        return png_picture(self, self._theme.palette.ground)

    def save_table(self) -> None:
        path = self.ask_where(self.window(), f"{self.file_stem}.csv", "CSV table (*.csv)")
        if path:
            self._write(path, csv_text(*self.table()).encode())

    def _write(self, path: str, data: bytes) -> None:
        try:
            write_export(Path(path), data)
        except UserError as error:
            self.failed.emit(error)
        else:
            self.saved.emit(Path(path).name)
