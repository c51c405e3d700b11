"""The panel behind the pair chip: Compare uses the pair of the chat."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

WORDS = (
    "Lanes run on the chat's pair, with the same load options. Choose another pair there, or give a lane a "
    "pair of its own. During a measurement the chat's models are unloaded; they are loaded again afterwards."
)


class PairPanel(QWidget):
    """Shows the files of the pair, and where to change them."""

    place_wanted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        title = QLabel("Pair")
        title.setProperty("role", "title")
        self._pair = QLabel()
        self._pair.setTextFormat(Qt.TextFormat.PlainText)
        self._pair.setWordWrap(True)
        words = QLabel(WORDS)
        words.setProperty("role", "secondary")
        words.setWordWrap(True)
        row = QHBoxLayout()
        row.setSpacing(8)
        for name, place in (("Change it in Chat", "chat"), ("Find models", "models")):
            button = QPushButton(name)
            button.clicked.connect(lambda _checked=False, to=place: self.place_wanted.emit(to))
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        for part in (title, self._pair, words):
            column.addWidget(part)
        column.addLayout(row)

    def set_pair(self, target: str, draft: str) -> None:
        """Show the files."""
        self._pair.setText(f"Target: {target}\nDraft: {draft or 'none'}")
