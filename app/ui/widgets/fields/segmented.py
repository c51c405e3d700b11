"""A few choices side by side, one of them chosen."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import chosen, focus_ring, hover


class Segmented(QWidget):
    """One stop for Tab: left and right choose."""

    picked = Signal(str)
    """The user chose a different one."""

    def __init__(
        self, theme: Theme, name: str, choices: Sequence[str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._name = name
        self._choices = tuple(choices)
        self._index = 0
        self._dim = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._describe()
        theme.changed.connect(self._refresh)

    def choice(self) -> str:
        return self._choices[self._index]

    def set_choice(self, choice: str) -> None:
        """Show a choice, without emitting a signal."""
        self._index = self._choices.index(choice)
        self._describe()
        self.update()

    def set_dim(self, dim: bool) -> None:
        """Draw it as having no effect."""
        self._dim = dim
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(sum(self._widths()) + 4, self.fontMetrics().height() + 12)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(hover(colours)))
        painter.drawRoundedRect(QRectF(self.rect()), 6, 6)
        for index, place in enumerate(self._places()):
            shade = colours.text if index == self._index and not self._dim else colours.secondary
            if index == self._index:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(chosen(colours)))
                painter.drawRoundedRect(place, 5, 5)
            painter.setPen(QColor(shade if self.isEnabled() else colours.faint))
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, self._choices[index])
        if ring_shown(self):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(focus_ring(colours)), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        for index, place in enumerate(self._places()):
            if place.contains(event.position()):
                self._choose(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        self._choose(min(max(self._index + step, 0), len(self._choices) - 1))

    def _choose(self, index: int) -> None:
        if index != self._index:
            self._index = index
            self._describe()
            self.update()
            self.picked.emit(self.choice())

    def _describe(self) -> None:
        self.setAccessibleName(f"{self._name}: {self.choice()}")

    @Slot()
    def _refresh(self) -> None:
        self.updateGeometry()
        self.update()

    def _widths(self) -> list[int]:
        metrics = self.fontMetrics()
        return [metrics.horizontalAdvance(choice) + 20 for choice in self._choices]

    def _places(self) -> list[QRectF]:
        places = []
        left = 2.0
        for width in self._widths():
            places.append(QRectF(left, 2, width, self.height() - 4))
            left += width
        return places
