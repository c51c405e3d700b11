"""Makes a static lookup cache for ngram-cache from text files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton, QVBoxLayout, QWidget

from app.ui.theme.style import set_role
from app.ui.widgets.words.numbers import count

WORDS = (
    "Texts like the answers that you expect: documents, code, earlier answers. ngram-cache then drafts what "
    "followed each pair of tokens there."
)


def ask_for_texts(parent: QWidget) -> tuple[str, ...]:
    """Let the user choose text files with the system's dialog; none where nothing was chosen."""
    return tuple(QFileDialog.getOpenFileNames(parent, "Choose texts in UTF-8", str(Path.home()))[0])


def ask_for_output(parent: QWidget, folder: str) -> str:
    """Let the user name the file to write; "" where nothing was named."""
    proposed = str(Path(folder) / "static.lookup")
    return QFileDialog.getSaveFileName(parent, "Save the lookup cache", proposed)[0]


class LookupMaker(QWidget):
    """A button, and below it what it is for, then what came of it."""

    wanted = Signal(object, str)
    """(text files, the file to write)"""

    def __init__(
        self,
        texts: Callable[[QWidget], tuple[str, ...]] = ask_for_texts,
        output: Callable[[QWidget, str], str] = ask_for_output,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._texts, self._output = texts, output
        self.button = QPushButton("Make a lookup cache from texts…")
        self.button.clicked.connect(self._ask)
        self.told = QLabel(WORDS)
        self.told.setProperty("role", "caption")
        self.told.setWordWrap(True)
        self.told.setTextFormat(Qt.TextFormat.PlainText)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.told)

    def show_made(self, tokens: int, n_grams: int) -> None:
        """Say what was counted; the file is in use."""
        self._say(f"{count(n_grams)} pairs of tokens, from {count(tokens)} tokens. It is in use.")

    def show_failure(self, words: str) -> None:
        """Say why there is no lookup cache."""
        self._say(words, "error")

    @Slot()
    def _ask(self) -> None:
        texts = self._texts(self)
        output = self._output(self, str(Path(texts[0]).parent)) if texts else ""
        if output:
            self._say("Counting…")
            self.wanted.emit(texts, output)

    def _say(self, words: str, role: str = "caption") -> None:
        self.told.setText(words)
        set_role(self.told, role=role)
