"""The frame of the prompt box."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.ui.chat.prompt.prompt_edit import PromptEdit
from app.ui.theme import Theme


class PromptFrame(QWidget):
    """The rounded background of the box; its border shows whether the focus is inside."""

    def __init__(self, theme: Theme, edits: Sequence[PromptEdit]) -> None:
        super().__init__()
        self._theme = theme
        self._edits = edits
        for edit in edits:
            edit.focus_changed.connect(self.update)
            edit.viewport().setAutoFillBackground(False)
            edit.setAutoFillBackground(False)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor(colours.panel))
        border, width = colours.frame, 1.0
        if any(edit.hasFocus() for edit in self._edits):
            # Quiet, because it is nearly always on the screen: the caret shows where typing goes.
            border, width = colours.faint, 1.0
        painter.setPen(QPen(QColor(border), width))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 10, 10)
