"""The editor that takes the place of a sent message."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit, QWidget

from app.saved.chats.conversation import Question
from app.ui.theme import Theme
from app.ui.theme.rings import FocusBefore
from app.ui.theme.style import focus_ring
from app.ui.widgets import kit

_HINT = "Enter to send  ·  Shift+Enter for a new line  ·  Esc to cancel"
_MOST_LINES = 12
GAP_WORDS = "The answer goes here"


class TurnEditor(QWidget):
    """A text field in place of a message, or two around a gap. Sending drops the answers after it, so it
    takes a deliberate key."""

    submitted = Signal(object)  # Question
    cancelled = Signal()
    resized = Signal()

    def __init__(self, theme: Theme, question: Question, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.before = FocusBefore(self)
        space = round(8 * theme.scale)
        self._hint_height = round(QFontMetricsF(theme.sans(-1)).height() * 1.4)
        self._column = kit.column(margins=(space, space, space, space + self._hint_height), on=self)
        self.suffix: QPlainTextEdit | None = None  # the text after the gap
        if question.suffix is None:
            self.field = self._add_field("Edit the message", question.text, "prose")
        else:
            self.field = self._add_field("Edit the text before the gap", question.text, "mono")
            caption = kit.label(GAP_WORDS, "caption")
            caption.setIndent(round(self.field.document().documentMargin()))
            self._column.addWidget(caption)
            self.suffix = self._add_field("Edit the text after the gap", question.suffix, "mono")
            self.field.setTabChangesFocus(True)
        self.field.moveCursor(self.field.textCursor().MoveOperation.End)
        self.setFocusProxy(self.field)
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def _add_field(self, name: str, text: str, kind: str) -> _TurnField:
        """A field in the font of its kind, "prose" or "mono"."""
        field = _TurnField(self)
        field.setProperty("kind", kind)
        field.setFont(self._theme.mono(1) if kind == "mono" else self._theme.sans(2))
        field.setPlainText(text)
        field.setAccessibleName(name)
        field.setAccessibleDescription(_HINT)
        field.enter.connect(self._submit)
        field.escape.connect(self.cancelled)
        field.focus.connect(self.update)
        field.document().documentLayout().documentSizeChanged.connect(self.resized)
        self._column.addWidget(field)
        return field

    @property
    def question(self) -> Question:
        """What was typed."""
        suffix = self.suffix.toPlainText() if self.suffix is not None else None
        return Question(self.field.toPlainText(), suffix)

    def wanted_height(self) -> int:
        """The height for the text, up to a dozen lines in each field."""
        margins = self._column.contentsMargins()
        height = margins.top() + margins.bottom()
        for field in self._fields:
            line = QFontMetricsF(field.font()).lineSpacing()
            lines = max(1, min(field.document().size().height(), _MOST_LINES))
            field.setMinimumHeight(round(lines * line + 2 * field.document().documentMargin() + 8))
            height += field.minimumHeight()
        for label in self.findChildren(QLabel):
            height += label.sizeHint().height() + 2 * self._column.spacing()
        return round(height)

    @property
    def _fields(self) -> list[QPlainTextEdit]:
        return [self.field] if self.suffix is None else [self.field, self.suffix]

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focused = any(field.hasFocus() for field in self._fields)
        ring = focus_ring(palette) if focused else palette.line
        painter.setPen(QPen(QColor(ring), 1.5))
        painter.setBrush(QColor(palette.panel))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        painter.setFont(self._theme.sans(-1))
        painter.setPen(QColor(palette.secondary))
        room = QRectF(self.rect()).adjusted(12, 0, -12, -6)
        painter.drawText(room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom, _HINT)
        painter.end()

    def _submit(self) -> None:
        if not self.question.is_blank:
            self.submitted.emit(self.question)


class _TurnField(QPlainTextEdit):
    enter = Signal()
    escape = Signal()
    focus = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setStyleSheet("background: transparent")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not shift:
            self.enter.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escape.emit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus.emit()
