"""Labels and buttons that are cut where they do not fit."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QWidget


class ElidedLabel(QLabel):
    """One line of plain text, cut where it does not fit."""

    def __init__(
        self,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        *,
        text: str = "",
        role: str = "",
    ) -> None:
        """`role` is one of the style sheet's."""
        super().__init__()
        self._mode = mode
        if role:
            self.setProperty("role", role)
        self._full = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        if text:
            self.set_text(text)

    def set_text(self, text: str) -> None:
        """Show a text."""
        self._full = text
        self.setText(text)
        self.setAccessibleName(text)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        shown = self.fontMetrics().elidedText(self._full, self._mode, self.width())
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, shown)


class ElidedButton(QPushButton):
    """A button as wide as its row, its text cut in the middle; the tooltip has the whole text."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._full = text
        self.setAccessibleName(text)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setText(text)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = event.size().width() - 2 * self.fontMetrics().height()
        self.setText(self.fontMetrics().elidedText(self._full, Qt.TextElideMode.ElideMiddle, room))
