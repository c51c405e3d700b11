"""Buttons: an icon that opens a panel, and two lines of text."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import paint_row
from app.ui.widgets.icons import IconButton, pixmap
from app.ui.widgets.labels import as_text
from app.ui.widgets.popover import Popover


class PanelButton(IconButton):
    """Checked while its panel is open."""

    def __init__(self, theme: Theme, name: str, tooltip: str, popover: Popover) -> None:
        super().__init__(theme, name, tooltip)
        self._popover = popover
        popover.setParent(self)  # deleted with the button; once opened it belongs to the window
        popover.closed.connect(self._closed)
        self.setCheckable(True)
        self.clicked.connect(self._toggle)

    def close_panel(self) -> None:
        """Close the panel if it is open."""
        self._popover.close_panel()

    def _toggle(self, opened: bool) -> None:
        if opened:
            self._popover.open_below(self)
        else:
            self._popover.close_panel()

    def _closed(self) -> None:
        self.setChecked(False)


_PADDING = 8
_CHECK = 14
_GAP = 2  # between the lines


class TwoLineButton(QAbstractButton):
    """The name and, below it, the description; a check mark if it is in use."""

    def __init__(self, theme: Theme, name: str, words: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._name = name
        self._words = words
        self._current = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setToolTip(as_text(words))
        self.set_current(False)
        theme.changed.connect(self.updateGeometry)

    @property
    def current(self) -> bool:
        return self._current

    def set_current(self, current: bool) -> None:
        """Mark it as the one in use."""
        self._current = current
        self.setAccessibleName(f"{self._name}, in use" if current else self._name)
        self.setAccessibleDescription(self._words)
        self.update()

    def sizeHint(self) -> QSize:
        height = self._metrics(self._strong()).height() + self._metrics(self._small()).height()
        return QSize(160, height + _GAP + round(12 * self._theme.scale))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        card, on = QRectF(self.rect()).adjusted(1, 1, -1, -1), self._current or self.isDown()
        ring = card if ring_shown(self) else None
        paint_row(painter, colours, card, on=on, under=self.underMouse(), ring=ring)
        side = round(_CHECK * self._theme.scale)
        room = self.rect().adjusted(_PADDING, 0, -_PADDING - side - _PADDING, 0)
        high = self._metrics(self._strong()).height()
        low = self._metrics(self._small()).height()
        top = (self.height() - high - low - _GAP) // 2
        self._line(painter, QRect(room.left(), top, room.width(), high), self._strong(), self._name, True)
        below = QRect(room.left(), top + high + _GAP, room.width(), low)
        self._line(painter, below, self._small(), self._words, False)
        if self._current:
            ratio = self.devicePixelRatio()
            check = pixmap("check", colours.text, round(side * ratio))
            check.setDevicePixelRatio(ratio)
            painter.drawPixmap(self.width() - _PADDING - side, (self.height() - side) // 2, check)

    def enterEvent(self, event: object) -> None:
        self.update()

    def leaveEvent(self, event: object) -> None:
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def _line(self, painter: QPainter, room: QRect, font: QFont, text: str, strong: bool) -> None:
        colours = self._theme.palette
        painter.setFont(font)
        painter.setPen(QColor(colours.text if strong else colours.secondary))
        shown = self._metrics(font).elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)

    def _strong(self) -> QFont:
        return self._theme.sans(0, QFont.Weight.Medium)

    def _small(self) -> QFont:
        return self._theme.sans(-1)

    def _metrics(self, font: QFont) -> QFontMetrics:
        return QFontMetrics(font, self)
