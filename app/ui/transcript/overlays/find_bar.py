"""The find bar of the transcript."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QWidget

from app.ui.theme import Theme
from app.ui.theme.rings import FocusBefore
from app.ui.theme.style import set_role
from app.ui.widgets.icons import IconButton
from app.ui.widgets.words.numbers import count


class FindBar(QWidget):
    """A field with the number of matches. Enter goes to the next, Shift+Enter to the one before."""

    text_changed = Signal(str)
    step_asked = Signal(bool)  # forward
    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._before = FocusBefore(self)
        self.field = QLineEdit(self)
        self.field.setPlaceholderText("Find in this chat")
        self.field.setAccessibleName("Find in this chat")
        self.field.setMinimumWidth(round(190 * theme.scale))
        self.count = QLabel(self)
        set_role(self.count, role="secondary")
        self.count.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.before = IconButton(theme, "chevron-up", "Previous match (Shift+Enter)", self)
        self.next = IconButton(theme, "chevron-down", "Next match (Enter)", self)
        self.close_button = IconButton(theme, "close", "Close (Esc)", self)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 8, 8, 8)
        row.setSpacing(4)
        for widget in (self.field, self.count, self.before, self.next, self.close_button):
            row.addWidget(widget)
        self.field.textChanged.connect(self.text_changed)
        self.before.clicked.connect(lambda: self.step_asked.emit(False))
        self.next.clicked.connect(lambda: self.step_asked.emit(True))
        self.close_button.clicked.connect(self.closed)
        theme.changed.connect(self._theme_changed)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self._theme_changed()
        self.show_count(0, 0)
        self.hide()

    def open(self) -> None:
        """Show the bar, with the last search selected."""
        self._before.remember()
        self.show()
        self.raise_()
        self.field.setFocus()
        self.field.selectAll()

    def end(self, otherwise: QWidget) -> None:
        """Hide the bar and return the focus; to `otherwise` where the widget that had it is gone."""
        self._before.give_back(otherwise)
        self.hide()

    def show_count(self, current: int, total: int) -> None:
        """Show the number of the current match and the total."""
        if not self.field.text():
            words = ""
        elif not total:
            words = "none"
        else:
            words = f"{count(current)} of {count(total)}"
        self.count.setText(words)
        for button in (self.before, self.next):
            button.setEnabled(total > 0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.step_asked.emit(not event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        elif event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(palette.line), 1))
        painter.setBrush(QColor(palette.raised))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        painter.end()

    @Slot()
    def _theme_changed(self) -> None:
        self.count.setFont(self._theme.sans())
        # Wide enough for a long chat, so that the buttons do not move.
        width = QFontMetricsF(self.count.font()).horizontalAdvance("888 of 888")
        self.count.setMinimumWidth(round(width))
        self.adjustSize()
