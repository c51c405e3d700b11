"""Plots as files: a picture of what is shown, and a table of its data."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QSize
from PySide6.QtGui import QColor, QPixmap, QRegion
from PySide6.QtWidgets import QFileDialog, QWidget

from app.base.files import SHARED, reason, write_atomic
from app.base.numbers import cell
from app.engine.errors import UserError

Cell = int | float | str | None
ChooseFile = Callable[[QWidget, str, str], str]
"""(window, suggested file name, filter) -> chosen path, or "" where the choice was dismissed."""

_SCALE = 2  # pictures are for papers and slides
_MARGIN = 12


def choose_file(window: QWidget, name: str, pattern: str) -> str:
    """Let the user choose where to save, with the system's dialog."""
    path, _ = QFileDialog.getSaveFileName(window, "Save as", name, pattern)
    return path


def csv_table(names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """Comma-separated lines under one line of names; None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(cell, names))
    writer.writerows(map(cell, row) for row in rows)
    return text.getvalue().encode()


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
    """Write an exported file; raises UserError in a sentence for people."""
    try:
        write_atomic(path, data, SHARED)
    except OSError as error:
        raise UserError(f"{path.name} was not saved: {reason(error)}.", "Choose another folder.") from error
