"""Switches: on or off."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.ui.theme import Theme
from app.ui.theme.palette import blend
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring


class Switch(QAbstractButton):
    """Shows "on" by position as well as by colour; `toggled` reports changes."""

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


class QuietSwitch(QAbstractButton):
    """A small switch with its words; on and off differ in shape, not in colour alone."""

    def __init__(self, theme: Theme, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setText(text)
        self.setAccessibleName(text)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.changed.connect(self._theme_changed)
        self._theme_changed()

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.font())
        width = metrics.horizontalAdvance(self.text()) + self._track.width() + 18
        return QSize(round(width), round(metrics.height() * 1.6))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self.isEnabled():
            painter.setOpacity(0.45)
        if ring_shown(self):
            painter.setPen(QPen(QColor(focus_ring(palette)), 1.5))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 5, 5)
        track = self._track.translated(6, (self.height() - self._track.height()) / 2)
        on = self.isChecked()
        strong = self.underMouse() and self.isEnabled()
        ink = palette.text if strong else palette.secondary
        painter.setPen(QPen(QColor(ink), 1.2))
        painter.setBrush(QColor(ink if on else palette.ground))
        radius = track.height() / 2
        painter.drawRoundedRect(track, radius, radius)
        side = track.height() - 4
        x = track.right() - side - 2 if on else track.left() + 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(palette.ground if on else blend(ink, palette.ground, 0.75)))
        painter.drawEllipse(QRectF(x, track.top() + 2, side, side))
        painter.setPen(QColor(ink))
        painter.setFont(self.font())
        room = QRectF(self.rect()).adjusted(track.right() + 6, 0, 0, 0)
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self.text())
        painter.end()

    @Slot()
    def _theme_changed(self) -> None:
        self.setFont(self._theme.sans(-0.5))
        height = round(QFontMetricsF(self.font()).height() * 0.72)
        self._track = QRectF(0, 0, round(height * 1.75), height)
        self.updateGeometry()
        self.update()
