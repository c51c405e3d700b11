"""Text in the font for code, wrapped between words; a word that is too long is broken."""

from __future__ import annotations

import textwrap

from PySide6.QtCore import QRect, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.theme import Theme

PADDING = 8
NBSP = "\u00a0"


class MonoText(QWidget):
    """Hyphens do not break, unlike in a label: options of a command stay whole."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._refresh)

    def text(self) -> str:
        return self._text

    def set_text(self, text: str) -> None:
        """Show a text. Words joined by a no-break space stay together where they fit into a line."""
        if text != self._text:
            self._text = text
            self.setAccessibleName(text)
            self._refresh()

    def lines(self, width: int) -> list[str]:
        """The text, broken into lines for a width in pixels."""
        across = max(1, (width - 2 * PADDING) // max(1, self._metrics().horizontalAdvance("0")))
        joined = (word if len(word) <= across else word.replace(NBSP, " ") for word in self._text.split(" "))
        return textwrap.wrap(" ".join(joined), across, break_on_hyphens=False)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return len(self.lines(width)) * self._metrics().height() + 2 * PADDING

    def sizeHint(self) -> QSize:
        return QSize(300, self.heightForWidth(300))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._metrics().height() + 2 * PADDING)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(colours.line))
        painter.setBrush(QColor(colours.panel))
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 6, 6)
        painter.setFont(self._theme.mono(-1))
        painter.setPen(QColor(colours.text))
        height = self._metrics().height()
        place = QRect(PADDING, PADDING, self.width() - PADDING, height)
        for line in self.lines(self.width()):
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, line)
            place.translate(0, height)

    def _metrics(self) -> QFontMetrics:
        return QFontMetrics(self._theme.mono(-1), self)

    @Slot()
    def _refresh(self) -> None:
        self.updateGeometry()
        self.update()
