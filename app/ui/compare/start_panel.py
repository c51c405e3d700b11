"""What the panels of Compare that start a measurement have in common."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLayout, QPushButton, QVBoxLayout, QWidget

from app.engine.errors import SettingError
from app.ui.theme.style import set_role


class StartPanel(QWidget):
    """A title, what is measured, the fields of a derived class, how much that is, and two buttons."""

    last_wanted = Signal()
    """Show what was measured last."""

    def __init__(self, title: str, words: str, start: str, last: str) -> None:
        super().__init__()
        self._title = QLabel(title)
        self._title.setProperty("role", "title")
        self._words = QLabel(words)
        self._words.setProperty("role", "secondary")
        self._words.setWordWrap(True)
        self.amount = QLabel()
        self.amount.setWordWrap(True)
        self.start = QPushButton(start)
        self.start.setProperty("kind", "primary")
        self.start.clicked.connect(self._start)
        self.last = QPushButton(last)
        self.last.clicked.connect(self.last_wanted)
        self.last.hide()

    def lay_out(self, fields: QLayout) -> None:
        """Put the fields of the derived class in their place; Tab goes from them to the buttons."""
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.amount, 1)
        row.addWidget(self.last)
        row.addWidget(self.start)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addWidget(self._title)
        column.addWidget(self._words)
        column.addLayout(fields)
        column.addLayout(row)

    def amount_words(self) -> str:
        """How much would be measured; raises SettingError."""
        raise NotImplementedError

    @Slot()
    def check(self) -> None:
        """Say how much will be measured, or what is wrong."""
        try:
            words, role = self.amount_words(), "secondary"
        except SettingError as error:
            words, role = str(error), "error"
        self.start.setEnabled(role != "error")
        self.amount.setText(words)
        set_role(self.amount, role=role)

    @Slot()
    def _start(self) -> None:
        """Ask for the measurement."""
        raise NotImplementedError
