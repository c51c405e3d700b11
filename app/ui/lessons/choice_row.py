"""A possible answer to a lesson's question."""

from __future__ import annotations

from enum import StrEnum

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from app.engine.fates import Origin, Verdict
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring, hover

_WRAP = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop


class ChoiceState(StrEnum):
    """What an answer turned out to be, in words."""

    OPEN = ""
    RIGHT = "right"
    WRONG = "your answer"


_EDGES = {ChoiceState.RIGHT: Origin.ACCEPTED.value, ChoiceState.WRONG: Verdict.REJECTED.value}
LETTERS = 1  # points by which the words of a lesson are larger than the theme's


class ChoiceRow(QAbstractButton):
    """The number of its key, its words on as many lines as they need, and what it turned out to be."""

    def __init__(self, theme: Theme, number: int) -> None:
        super().__init__()
        self._theme = theme
        self._number = number
        self._outcome = ChoiceState.OPEN
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.updateGeometry)

    def show_choice(self, text: str, outcome: ChoiceState) -> None:
        """Show an answer."""
        self.setText(text)
        self._outcome = outcome
        said = f"{self._number}: {text}"
        self.setAccessibleName(f"{said}. {outcome}" if outcome else said)
        self.updateGeometry()
        self.update()

    @property
    def _words(self) -> str:
        return f"{self.text()}  ({self._outcome})" if self._outcome else self.text()

    def _room(self, width: int) -> QRect:
        """Where the words stand in a row of a width."""
        pad = round(8 * self._theme.scale)
        metrics = QFontMetrics(self._theme.sans(LETTERS))
        left = 2 * pad + metrics.horizontalAdvance("0") + pad
        height = metrics.boundingRect(QRect(0, 0, width - left - pad, 10_000), _WRAP, self._words).height()
        return QRect(left, pad, width - left - pad, height)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._room(width).height() + round(16 * self._theme.scale)

    def sizeHint(self) -> QSize:
        width = round(240 * self._theme.scale)
        return QSize(width, self.heightForWidth(max(self.width(), width)))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.heightForWidth(max(self.width(), 80)))

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        card = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        edge = palette.fate(_EDGES[self._outcome]) if self._outcome else palette.line
        painter.setPen(QPen(QColor(focus_ring(palette) if ring_shown(self) else edge), 2))
        pointed = self.underMouse() and self.isEnabled()
        painter.setBrush(QColor(hover(palette) if pointed or self.isDown() else palette.ground))
        painter.drawRoundedRect(card, 6, 6)
        painter.setFont(self._theme.sans(LETTERS))
        room = self._room(self.width())
        painter.setPen(QColor(palette.secondary))
        number = QRect(round(12 * self._theme.scale), room.top(), room.left(), room.height())
        painter.drawText(number, _WRAP, str(self._number))
        painter.setPen(QColor(palette.text))
        painter.drawText(room, _WRAP, self._words)
        painter.end()
