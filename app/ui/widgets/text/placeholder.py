"""What a view shows while it has nothing else to show: why, and what to do."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget

from app.ui.widgets import kit

WIDTH = 440  # pixels


class Placeholder(QWidget):
    """A title, a sentence and, where there is something to do, buttons."""

    def __init__(self) -> None:
        super().__init__()
        self._title = kit.label("", "title")
        self._words = kit.label("", "secondary", wrap=True)
        self._words.setMaximumWidth(WIDTH)
        self._words.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(8)
        column = kit.column(kit.Spring(2), margins=(24, 24, 24, 24), spacing=8, on=self)
        for label in (self._title, self._words):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter)
            label.setTextFormat(Qt.TextFormat.PlainText)
        column.addWidget(self._title, 0, Qt.AlignmentFlag.AlignHCenter)
        words = QHBoxLayout()  # not by alignment, which would take the label's height at its narrowest
        words.addStretch(1)
        words.addWidget(self._words, 1000)
        words.addStretch(1)
        column.addLayout(words)
        column.addSpacing(8)
        row = kit.row(kit.Spring(1), self._buttons, kit.Spring(1))
        column.addLayout(row)
        column.addStretch(3)

    @property
    def text(self) -> str:
        return f"{self._title.text()} {self._words.text()}".strip()

    def say(self, title: str, words: str = "") -> None:
        """Show these words."""
        self._title.setText(title)
        self._title.setVisible(bool(title))
        self._words.setText(words)
        self._words.setVisible(bool(words))

    def add_button(self, words: str) -> QPushButton:
        """Add a button; the caller connects it."""
        button = QPushButton(words)
        self._buttons.addWidget(button)
        return button
