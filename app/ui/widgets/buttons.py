"""Buttons: an icon that opens a panel, and rows, for instance with two lines of text."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QAbstractButton, QLabel

from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import paint_row
from app.ui.widgets import kit
from app.ui.widgets.icons import IconButton, icon
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.popover import Popover


class PanelButton(IconButton):
    """An icon that opens a panel."""

    def __init__(self, theme: Theme, name: str, tooltip: str, popover: Popover) -> None:
        super().__init__(theme, name, tooltip)
        self.popover = popover
        popover.open_by(self)


class RowButton(QAbstractButton):
    """A row as wide as its place, with a layout of labels; Enter presses it as Space does."""

    keys: tuple[Qt.Key, ...] = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
    current = False
    """Whether it is the one in use."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def sizeHint(self) -> QSize:
        layout = self.layout()
        assert layout is not None
        return layout.sizeHint().expandedTo(QSize(160, 0))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in self.keys:
            self.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        card, on = QRectF(self.rect()).adjusted(1, 1, -1, -1), self.current or self.isDown()
        ring = card if ring_shown(self) else None
        paint_row(QPainter(self), self._theme.palette, card, on=on, under=self.underMouse(), ring=ring)

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Enter, QEvent.Type.Leave):
            self.update()
        return super().event(event)


class TwoLineButton(RowButton):
    """The name and, below it, the description; a check mark if it is in use."""

    def __init__(self, theme: Theme, name: str, words: str) -> None:
        super().__init__(theme)
        self._name = name
        self._words = words
        self._check = QLabel()
        title, below = ElidedLabel(text=name, role="strong"), ElidedLabel(text=words, role="caption")
        lines = kit.column(title, below, spacing=2)
        kit.row((lines, 1), self._check, margins=(8, 6, 8, 6), spacing=8, on=self)
        self.setToolTip(as_text(words))
        self.set_current(False)
        theme.follow(self._restyle)

    def set_current(self, current: bool) -> None:
        """Mark it as the one in use."""
        self.current = current
        self.setAccessibleName(f"{self._name}, in use" if current else self._name)
        self.setAccessibleDescription(self._words)
        self._restyle()

    def _restyle(self) -> None:
        side = round(14 * self._theme.scale)
        size, check = QSize(side, side), icon("check", self._theme.palette.text)
        self._check.setFixedSize(size)
        self._check.setPixmap(check.pixmap(size, self.devicePixelRatio()) if self.current else QPixmap())
        self.update()
