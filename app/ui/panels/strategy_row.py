"""One strategy to pick: its name, and when it helps."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QLabel, QRadioButton, QVBoxLayout, QWidget

from app.ui.theme import Theme

INDENT = 26  # below the name, beside the button; in pixels at text scale 1


class StrategyRow(QWidget):
    """A radio button with a line of help; a click anywhere on it picks it."""

    def __init__(self, theme: Theme, name: str, summary: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.button = QRadioButton(name)
        self.button.setProperty("role", "mono")
        self.button.setAccessibleDescription(summary)
        self._help = QLabel(summary)
        self._help.setProperty("role", "caption")
        self._help.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self._help)
        theme.changed.connect(self._indent)
        self._indent()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.button.setFocus(Qt.FocusReason.MouseFocusReason)
            self.button.click()

    @Slot()
    def _indent(self) -> None:
        self._help.setContentsMargins(round(INDENT * self._theme.scale), 0, 0, 0)
