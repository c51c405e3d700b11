"""The text field of the prompt box: it grows with its text, sends on Enter, and holds megabytes."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal, Slot
from PySide6.QtGui import (
    QFocusEvent,
    QFont,
    QInputMethodEvent,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QTextOption,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from app.ui.widgets.keys import KeyTable

MOST_LINES = 8
# Qt lays out a whole line at every key press: a line of a megabyte freezes the window for 20 s. Longer lines
# are therefore broken by two invisible characters and a line break, which text() removes.
LONGEST_LINE = 2000
_JOINT = "\u2060\u200b"


class PromptEdit(QPlainTextEdit):
    """Plain text. Enter sends, Shift+Enter breaks the line."""

    entered = Signal()
    """Enter, while nothing is being composed."""
    escaped = Signal()
    recall_requested = Signal()
    """Up, while there is no text."""
    focus_changed = Signal()

    def __init__(self, most_lines: int = MOST_LINES, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.most_lines = most_lines
        self._composing = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._grow)
        self._grow()

    def text(self) -> str:
        """The text as it was typed or pasted."""
        return _joined(self.toPlainText())

    def is_empty(self) -> bool:
        return self.document().isEmpty()

    def set_text(self, text: str) -> None:
        """Replace the text; the cursor goes to its end."""
        self.setPlainText(_broken(text))
        self.moveCursor(self.textCursor().MoveOperation.End)

    def use_font(self, font: QFont) -> None:
        """Show text and placeholder in a font, and fit the height to it."""
        self.setFont(font)
        self.viewport().setFont(
            font
        )  # paints the placeholder, and keeps a font once a style sheet gave it one
        self._grow()

    # ------------------------------------------------------------------ events

    def event(self, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.matches(QKeySequence.StandardKey.Undo)
            and not self.document().isUndoAvailable()
        ):
            event.ignore()  # the window may have another action to undo
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
            event.ignore()  # the window may use it too
        elif not KEYS.act(self, event):
            super().keyPressEvent(event)

    def send(self) -> None:
        """Send the text."""
        if not self._composing:
            # While composing, Enter chooses a candidate; some systems pass it on to the field as well.
            self.entered.emit()

    def break_line(self) -> None:
        """Begin a new line."""
        self.textCursor().insertBlock()
        self.ensureCursorVisible()

    def recall(self) -> bool:
        """Ask for the last message; False where there is text, in which Up moves the cursor."""
        empty = self.is_empty()
        if empty:
            self.recall_requested.emit()
        return empty

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:  # noqa: N802
        """Traces are left to the window, which opens them."""
        trace = any(url.path().endswith(".jsonl") for url in source.urls())
        return not trace and super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802
        self.textCursor().insertText(_broken(source.text()))
        self.ensureCursorVisible()

    def createMimeDataFromSelection(self) -> QMimeData:  # noqa: N802
        # Qt's own object: the clipboard may outlive Python, and deleting an object made by Python would then
        # crash.
        data = super().createMimeDataFromSelection()
        text = _joined(data.text())
        for name in data.formats():
            data.removeFormat(name)
        data.setText(text)
        return data

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._composing = False
        self.focus_changed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._grow()

    @Slot()
    def _grow(self) -> None:
        lines = max(1, round(self.document().size().height()))  # wrapped lines, not pixels
        shown = min(lines, self.most_lines)
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if lines > shown else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        height = shown * self.fontMetrics().lineSpacing() + 4
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)


def _broken(text: str) -> str:
    """The text with no line longer than Qt can take."""
    text = text.replace("\r\n", "\n")
    if len(text) <= LONGEST_LINE:
        return text
    lines = []
    for line in text.split("\n"):
        pieces = [line[i : i + LONGEST_LINE] for i in range(0, len(line), LONGEST_LINE)] or [""]
        lines.append(f"{_JOINT}\n".join(pieces))
    return "\n".join(lines)


def _joined(text: str) -> str:
    return text.replace(f"{_JOINT}\n", "").replace(_JOINT, "")


KEYS: KeyTable[PromptEdit] = KeyTable(
    ("Return Enter Ctrl+Return Ctrl+Enter", "Send", lambda edit: edit.send()),
    ("Shift+Return Shift+Enter", "New line", lambda edit: edit.break_line()),
    ("Up", "The last message, where nothing is written", lambda edit: edit.recall()),
)
