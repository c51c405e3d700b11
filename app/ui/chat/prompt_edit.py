"""The text field of the prompt box: it grows with its text, sends on Enter, and handles megabytes of text."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from PySide6 import QtGui
from PySide6.QtCore import QEvent, QMimeData, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

from app.ui.theme.style import set_role
from app.ui.transcript.turn_editor import GAP_WORDS
from app.ui.widgets import kit
from app.ui.widgets.keys import KeyTable

MOST_LINES = 8
# Qt lays out a whole line at every key press: a line of a megabyte freezes the window for 20 s. Longer lines
# are therefore broken by two invisible characters and a line break, which text() removes.
LONGEST_LINE = 2000
_JOINT = "\u2060\u200b"


class PromptEdit(QPlainTextEdit):
    """Plain text. Enter sends, Shift+Enter breaks the line."""

    entered = Signal()
    """Enter was pressed, and no input method is composing text."""
    escaped = Signal()
    recall_requested = Signal()
    """Up was pressed in an empty field."""
    focus_changed = Signal()

    def __init__(self, most_lines: int = MOST_LINES) -> None:
        super().__init__()
        self.most_lines = most_lines
        self._composing = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QtGui.QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
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

    def use_font(self, font: QtGui.QFont) -> None:
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
            and isinstance(event, QtGui.QKeyEvent)
            and event.matches(QtGui.QKeySequence.StandardKey.Undo)
            and not self.document().isUndoAvailable()
        ):
            event.ignore()  # the window may have another action to undo
            return True
        return super().event(event)

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
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
        """Start a new line."""
        self.textCursor().insertBlock()
        self.ensureCursorVisible()

    def recall(self) -> bool:
        """Ask for the last message; False if there is text, in which Up moves the cursor."""
        empty = self.is_empty()
        if empty:
            self.recall_requested.emit()
        return empty

    def inputMethodEvent(self, event: QtGui.QInputMethodEvent) -> None:
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

    def focusInEvent(self, event: QtGui.QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QtGui.QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._composing = False
        self.focus_changed.emit()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self._grow()
        QTimer.singleShot(0, self, self._grow)  # of two heights set one within the other, Qt mixes the limits

    def _grow(self) -> None:
        lines = max(1, round(self.document().size().height()))  # wrapped lines, not pixels
        shown = min(lines, self.most_lines)
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if lines > shown else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        metrics = QtGui.QFontMetricsF(self.font())
        line = ceil(metrics.ascent()) + ceil(metrics.descent())  # lineSpacing may be a pixel less than a line
        height = shown * line + 4
        if (height, height) != (self.minimumHeight(), self.maximumHeight()) or height != self.height():
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
    ("Up", "The last message, if the box is empty", lambda edit: edit.recall()),
)


class PromptFrame(QWidget):
    """The rounded background of the box; its border shows whether the focus is inside."""

    def __init__(self, edits: Sequence[PromptEdit]) -> None:
        super().__init__()
        self._edits = edits
        kit.ground(self, "prompt")
        for edit in edits:
            edit.focus_changed.connect(self._show_focus)
            edit.viewport().setAutoFillBackground(False)
            edit.setAutoFillBackground(False)

    def _show_focus(self) -> None:
        # Quiet, because it is nearly always on the screen: the caret shows where typing goes.
        set_role(self, focused=str(any(edit.hasFocus() for edit in self._edits)).lower())


DELAY_MS = 500
SYSTEM_LINES = 4


class SystemPrompt(QWidget):
    """A caption, the text and a line below it."""

    edited = Signal(str)
    """The user edited the text. Emitted shortly after the last key press."""
    left = Signal()
    """Enter was pressed: the focus returns to the prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.edit = PromptEdit(SYSTEM_LINES)
        self.edit.setAccessibleName("System prompt")
        self.edit.setPlaceholderText("Instructions for the model in this chat")
        self.edit.focus_changed.connect(self.tell)
        self.edit.entered.connect(self.left)
        self.told = ""  # the text that was last reported
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self.tell)
        self.edit.textChanged.connect(self._timer.start)
        caption = kit.label("System prompt", "caption")
        kit.column(caption, self.edit, 4, kit.line(), margins=(0, 0, 8, 0), spacing=4, on=self)
        self.setFocusProxy(self.edit)

    def show_text(self, text: str) -> None:
        """Show a chat's system prompt, without a signal."""
        self.told = text
        if text != self.edit.text():
            self.edit.set_text(text)
        self._timer.stop()

    def tell(self) -> None:
        """Report an edit now, if there was one."""
        self._timer.stop()
        text = self.edit.text()
        if text != self.told:
            self.told = text
            self.edited.emit(text)


SUFFIX_LINES = 6


class GapSuffix(QWidget):
    """A line that marks the gap, and a field for the text after it. If the cursor is within the text before
    the gap, a button moves the gap there, because code is usually pasted whole."""

    moved = Signal()
    """The gap was moved by its button."""

    def __init__(self, prefix: PromptEdit) -> None:
        """`prefix` is the field for the text before the gap."""
        super().__init__()
        self._prefix = prefix
        self.edit = PromptEdit(SUFFIX_LINES)
        self.edit.setProperty("kind", "mono")
        self.edit.setAccessibleName("Text after the gap")
        self.edit.setPlaceholderText("Text after the gap")
        self._words = kit.label(GAP_WORDS, "caption")
        self.move_here = kit.button(
            "Move the gap to the cursor",
            self._move,
            kind="flat",
            tip="Move the text after the cursor to the field below the gap",
        )
        prefix.cursorPositionChanged.connect(self._offer)
        prefix.textChanged.connect(self._offer)
        mark = kit.row(self._words, (_line(), 1), self.move_here, spacing=8)
        kit.column(mark, self.edit, margins=(0, 0, 8, 0), spacing=4, on=self)
        self.set_why_not("")
        self._offer()

    def set_why_not(self, why: str) -> None:
        """Say why the loaded target cannot fill the gap; "" if it can."""
        self._words.setText(why or GAP_WORDS)

    def _offer(self) -> None:
        cursor = self._prefix.textCursor()
        self._words.setMinimumHeight(self.move_here.sizeHint().height())  # the button moves nothing
        self.move_here.setVisible(not cursor.atEnd() and not cursor.atStart())

    def _move(self) -> None:
        """Move the text after the cursor to the start of the text after the gap; both fields can undo it."""
        cursor = self._prefix.textCursor()
        cursor.clearSelection()
        cursor.movePosition(QtGui.QTextCursor.MoveOperation.End, QtGui.QTextCursor.MoveMode.KeepAnchor)
        start = self.edit.textCursor()
        start.movePosition(QtGui.QTextCursor.MoveOperation.Start)
        # As a block of plain text: Qt separates the paragraphs of a selection by another character.
        start.insertText(cursor.selection().toPlainText())
        cursor.removeSelectedText()
        self.moved.emit()


def _line() -> QFrame:
    line = kit.line()
    line.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return line
