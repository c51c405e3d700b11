"""Makes a chat readable for screen readers: questions and answers, line by line.

The transcript paints its text by hand, so Qt knows none of it. A complete text interface cannot be written in
Python with PySide, but QPlainTextEdit has one. So the transcript uses that of a QPlainTextEdit which is never
shown. It is made when a screen reader asks, and filled again if the chat changes.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QAccessible,
    QAccessibleTextCursorEvent,
    QColor,
    QKeyEvent,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QAccessibleWidget, QPlainTextEdit, QWidget
from shiboken6 import Shiboken
from typing_extensions import override

from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.block import Item
from app.ui.transcript.text.spans import AnswerTurn
from app.ui.widgets.words import count, factor

if TYPE_CHECKING:
    from app.ui.transcript.view import TranscriptView

_CARET_KEYS = (
    Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Home, Qt.Key.Key_End,
)  # fmt: skip
_LENT = (QAccessible.InterfaceType.TextInterface, QAccessible.InterfaceType.AttributesInterface)


def answer_summary(answer: AnswerModel) -> str:
    """An answer in one line: "29 rounds, 97 accepted, 6 rejected, 1.3×"."""
    numbers = answer.statistics
    said = [f"{count(numbers.rounds)} round{'s' * (numbers.rounds != 1)}"]
    if numbers.drafted:
        said += [f"{count(numbers.accepted)} accepted", f"{count(numbers.rejected)} rejected"]
    return ", ".join(said if answer.speed_up is None else [*said, factor(answer.speed_up)])


class TranscriptText(QPlainTextEdit):
    """The chat as a document, with the screen reader's caret."""

    def __init__(self, theme: Theme, view: QWidget) -> None:
        super().__init__(view, readOnly=True)
        self.setWindowFlags(Qt.WindowType.Window)  # deleted with the view, but no part of it
        self._theme = theme
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByKeyboard)

    def fill(self, items: list[Item]) -> None:
        """Write the chat; the caret stays where it was."""
        at = self.textCursor().position()
        writer = QTextCursor(self.document())
        writer.beginEditBlock()
        writer.select(QTextCursor.SelectionType.Document)
        writer.removeSelectedText()
        for item in items:
            writer.insertText(f"{_head(item)}:\n", QTextCharFormat())
            for text, fate in _parts(item):
                writer.insertText(text, self._look(fate))
            writer.insertText("\n", QTextCharFormat())
        writer.endEditBlock()
        caret = self.textCursor()
        caret.setPosition(min(at, self.document().characterCount() - 1))
        self.setTextCursor(caret)

    def _look(self, fate: str) -> QTextCharFormat:
        """The text attributes of a fate."""
        made = QTextCharFormat()
        if fate:
            made.setForeground(QColor(self._theme.palette.fate(fate)))
        return made


def _head(item: Item) -> str:
    """The label of a turn: who speaks, and for an answer the counts of its drafts' fates."""
    if isinstance(item, AnswerItem) and isinstance(item.turn, AnswerTurn):
        return f"{item.turn.name or 'Answer'}, {answer_summary(item.answer)}"
    return item.label


def _parts(item: Item) -> list[tuple[str, str]]:
    """The text of a turn; that of an answer is in parts, each of one fate."""
    if not isinstance(item, AnswerItem):
        return [(item.text, "")]
    shown = [span for span in item.spans if not span.struck]
    parts = [
        ("".join(span.text for span in spans), fate) for fate, spans in groupby(shown, lambda span: span.fate)
    ]
    if "".join(text for text, _fate in parts) != item.text:
        return [(item.text, "")]  # the stored text differs from its trace
    return parts


class TranscriptAccess(QAccessibleWidget):
    """The transcript as a read-only text."""

    def __init__(self, view: TranscriptView) -> None:
        super().__init__(view, QAccessible.Role.EditableText)

    @override
    def interface_cast(self, kind: QAccessible.InterfaceType) -> Any:
        view = self.object()
        if kind in _LENT and getattr(view, "can_speak", False):  # it is asked while the view is made, too
            lent = QAccessible.queryAccessibleInterface(view.spoken_text())  # type: ignore[attr-defined]
            found = lent.interface_cast(kind)
        else:
            found = super().interface_cast(kind)
        return found if isinstance(found, Shiboken.VoidPtr) else Shiboken.VoidPtr(0)  # all else would crash

    @override
    def state(self) -> QAccessible.State:
        state = super().state()
        state.readOnly = state.multiLine = state.selectableText = True
        return state


def move_caret(view: TranscriptView, event: QKeyEvent) -> None:
    """Move the caret of a screen reader. The key also scrolls, because other programs than screen readers
    activate Qt's accessibility, too."""
    alone = not event.modifiers() & ~(Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier)
    if not QAccessible.isActive() or event.key() not in _CARET_KEYS or not alone:
        return
    text = view.spoken_text()
    text.keyPressEvent(event)
    QAccessible.updateAccessibility(QAccessibleTextCursorEvent(view, text.textCursor().position()))
    event.accept()  # the text may have let go of it
