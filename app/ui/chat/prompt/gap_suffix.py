"""The part of the prompt box behind the gap that the model fills: the mark of the gap, the text after it."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.ui.chat.prompt.prompt_edit import PromptEdit
from app.ui.transcript.overlays.turn_editor import GAP_WORDS

LINES = 6


class GapSuffix(QWidget):
    """A line that marks the gap below the text before it, and a field for the text after it.

    Where the cursor stands within the text before the gap, a button moves the gap there: code is pasted
    whole more often than in two parts.
    """

    moved = Signal()
    """The gap was moved by its button."""

    def __init__(self, prefix: PromptEdit) -> None:
        """`prefix` is the field for the text before the gap."""
        super().__init__()
        self._prefix = prefix
        self.edit = PromptEdit(LINES)
        self.edit.setProperty("kind", "mono")
        self.edit.setAccessibleName("Text after the gap")
        self.edit.setPlaceholderText("Text after the gap")
        self._words = QLabel(GAP_WORDS)
        self._words.setProperty("role", "caption")
        self.move_here = QPushButton("Put the gap at the cursor")
        self.move_here.setProperty("kind", "flat")
        self.move_here.setToolTip("Moves the text behind the cursor below the gap")
        self.move_here.clicked.connect(self._move)
        prefix.cursorPositionChanged.connect(self._offer)
        prefix.textChanged.connect(self._offer)
        mark = QHBoxLayout()
        mark.setSpacing(8)
        mark.addWidget(self._words)
        mark.addWidget(_line(), 1)
        mark.addWidget(self.move_here)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 8, 0)
        layout.setSpacing(4)
        layout.addLayout(mark)
        layout.addWidget(self.edit)
        self.set_why_not("")
        self._offer()

    def set_why_not(self, why: str) -> None:
        """Say why the loaded target cannot fill the gap; "" where it can."""
        self._words.setText(why or GAP_WORDS)

    @Slot()
    def _offer(self) -> None:
        cursor = self._prefix.textCursor()
        self._words.setMinimumHeight(self.move_here.sizeHint().height())  # the button moves nothing
        self.move_here.setVisible(not cursor.atEnd() and not cursor.atStart())

    @Slot()
    def _move(self) -> None:
        """Move the text behind the cursor to the start of the text after the gap; both fields can undo it."""
        cursor = self._prefix.textCursor()
        cursor.clearSelection()
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        start = self.edit.textCursor()
        start.movePosition(QTextCursor.MoveOperation.Start)
        # As a block of plain text: Qt separates the paragraphs of a selection by another character.
        start.insertText(cursor.selection().toPlainText())
        cursor.removeSelectedText()
        self.moved.emit()


def _line() -> QFrame:
    line = QFrame()
    line.setProperty("kind", "line")
    line.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return line
