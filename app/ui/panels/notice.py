"""What went wrong, and what to do about it, right where the user acted."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.ui.icons import IconButton
from app.ui.theme import Theme


class Notice(QWidget):
    """A message and its hint beside a coloured line; hidden while there is nothing to say."""

    dismissed = Signal()
    acted = Signal()
    """The offered way out was taken."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._message = QLabel()
        self._hint = QLabel()
        self._hint.setProperty("role", "secondary")
        for label in (self._message, self._hint):
            label.setWordWrap(True)
            # Messages may name strange files: their text is text.
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._action = QPushButton()
        self._action.clicked.connect(self.acted)
        close = IconButton(theme, "close", "Dismiss")
        close.clicked.connect(self._dismiss)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._message)
        words.addWidget(self._hint)
        self._way_out = QWidget()
        below = QHBoxLayout(self._way_out)
        below.setContentsMargins(0, 6, 0, 2)
        below.addWidget(self._action)
        below.addStretch()
        words.addWidget(self._way_out)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 8, 8, 8)
        layout.addLayout(words, 1)
        layout.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def message(self) -> str:
        return self._message.text()

    @property
    def hint(self) -> str:
        return self._hint.text()

    @property
    def action(self) -> str:
        return self._action.text()

    def show_error(self, message: str, hint: str = "", action: str = "") -> None:
        """Say what is wrong; `action` are the words of a button that offers a way out."""
        self._message.setText(message)
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        self._action.setText(action)
        self._way_out.setVisible(bool(action))
        self.setAccessibleName(f"{message} {hint}".strip())
        self.show()

    def clear(self) -> None:
        """Nothing is wrong any more."""
        self._message.clear()
        self._hint.clear()
        self._action.setText("")
        self.hide()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.tint("rejected")))
        painter.drawRoundedRect(self.rect(), 6, 6)
        painter.setBrush(QColor(colours.rejected))
        painter.drawRoundedRect(0, 0, 3, self.height(), 1.5, 1.5)

    @Slot()
    def _dismiss(self) -> None:
        self.clear()
        self.dismissed.emit()
