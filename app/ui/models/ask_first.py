"""Asks before something is deleted, right where it was asked for."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget


class AskFirst(QWidget):
    """A question with two answers; hidden while nothing is asked."""

    def __init__(self) -> None:
        super().__init__()
        self._action: Callable[[], None] = lambda: None
        self._words = QLabel()
        self._words.setWordWrap(True)
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self.yes = QPushButton()
        self.yes.clicked.connect(self._do)
        self.no = QPushButton("Keep")
        self.no.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._words, 1)
        row.addWidget(self.yes)
        row.addWidget(self.no)
        self.hide()

    def ask(self, words: str, yes: str, action: Callable[[], None]) -> None:
        """Ask; `action` is done on `yes`."""
        self._action = action
        self._words.setText(words)
        self.yes.setText(yes)
        self.show()
        self.no.setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)

    @Slot()
    def _do(self) -> None:
        self.hide()
        self._action()
