"""The editor that takes the place of a sent message."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFocusEvent, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.theme.rings import FocusBefore
from app.ui.theme.style import focus_ring

_HINT = "Enter sends  ·  Shift+Enter starts a line  ·  Esc cancels"
_MOST_LINES = 12


class TurnEditor(QWidget):
    """A text field in place of a message. Sending drops the answers after it, so it takes a deliberate
    key."""

    submitted = Signal(str)
    cancelled = Signal()
    resized = Signal()

    def __init__(self, theme: Theme, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.before = FocusBefore(self)
        self.field = _Field(self)
        self.field.setPlainText(text)
        self.field.setFont(theme.sans(2))
        self.field.setAccessibleName("Edit the message")
        self.field.setAccessibleDescription(_HINT)
        self.field.moveCursor(self.field.textCursor().MoveOperation.End)
        self.field.enter.connect(self._submit)
        self.field.escape.connect(self.cancelled)
        self.field.focus.connect(self.update)
        self.field.document().documentLayout().documentSizeChanged.connect(self.resized)
        space = round(8 * theme.scale)
        self._hint_height = round(QFontMetricsF(theme.sans(-1)).height() * 1.4)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(space, space, space, space + self._hint_height)
        self._column.addWidget(self.field)
        self.setFocusProxy(self.field)
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def wanted_height(self) -> int:
        """The height for the text, up to a dozen lines."""
        line = QFontMetricsF(self.field.font()).lineSpacing()
        lines = max(1, min(self.field.document().size().height(), _MOST_LINES))
        margins = self._column.contentsMargins()
        edges = margins.top() + margins.bottom() + 2 * self.field.document().documentMargin()
        return round(lines * line + edges + 8)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ring = focus_ring(palette) if self.field.hasFocus() else palette.line
        painter.setPen(QPen(QColor(ring), 1.5))
        painter.setBrush(QColor(palette.panel))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        painter.setFont(self._theme.sans(-1))
        painter.setPen(QColor(palette.secondary))
        room = QRectF(self.rect()).adjusted(12, 0, -12, -6)
        painter.drawText(room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom, _HINT)
        painter.end()

    @Slot()
    def _submit(self) -> None:
        text = self.field.toPlainText()
        if text.strip():
            self.submitted.emit(text)


class _Field(QPlainTextEdit):
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
