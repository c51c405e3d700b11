"""Asks before something is deleted, right where it was asked for."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QPushButton, QWidget
from shiboken6 import isValid


class AskFirst(QWidget):
    """A question with two answers; hidden while nothing is asked."""

    def __init__(self) -> None:
        super().__init__()
        self._action: Callable[[], None] = lambda: None
        self._asked_at: QWidget | None = None  # what had the keyboard before
        self._words = QLabel()
        self._words.setWordWrap(True)
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self.yes = QPushButton()
        self.yes.clicked.connect(self._do)
        self.no = QPushButton("Keep")
        self.no.clicked.connect(self._close)
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
        self._asked_at = QApplication.focusWidget()
        self._words.setText(words)
        self.yes.setText(yes)
        self.show()
        self.no.setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._close()
        else:
            super().keyPressEvent(event)

    @Slot()
    def _do(self) -> None:
        self._close()
        self._action()

    @Slot()
    def _close(self) -> None:
        """Give the keyboard back: what is hidden while it has it would hand it to whatever comes next."""
        held = QApplication.focusWidget()
        if held is not None and self.isAncestorOf(held):
            if self._asked_at is not None and isValid(self._asked_at) and self._asked_at.isVisible():
                self._asked_at.setFocus(Qt.FocusReason.OtherFocusReason)
            else:
                held.clearFocus()
        self.hide()
