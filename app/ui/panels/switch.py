"""A switch: on or off."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.ui.theme import Theme
from app.ui.theme.palette import blend
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring


class Switch(QAbstractButton):
    """Says "on" by place as well as by colour; `toggled` tells of changes."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setCheckable(True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        height = max(20, round(self.fontMetrics().height() * 1.4))
        return QSize(round(height * 1.75), height)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        hint = self.sizeHint()
        track = QRectF(0, 0, hint.width(), hint.height())
        track.moveCenter(QRectF(self.rect()).center())
        track.adjust(3, 3, -3, -3)
        ground = colours.text if self.isChecked() else blend(colours.text, colours.ground, 0.4)
        if not self.isEnabled():
            ground = colours.line
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(ground))
        painter.drawRoundedRect(track, track.height() / 2, track.height() / 2)
        side = track.height() - 4
        left = track.right() - 2 - side if self.isChecked() else track.left() + 2
        painter.setBrush(QColor(colours.ground))
        painter.drawEllipse(QRectF(left, track.top() + 2, side, side))
        if ring_shown(self):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(focus_ring(colours)), 1.5))
            ring = track.adjusted(-2.2, -2.2, 2.2, 2.2)
            painter.drawRoundedRect(ring, ring.height() / 2, ring.height() / 2)
