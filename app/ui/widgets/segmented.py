"""A few choices side by side, one of them chosen; offline mode."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QWidget

from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import chosen, focus_ring, hover
from app.ui.widgets.access import ChoiceAccess, tell_readers

EDGE = 2  # pixels around the choices
PADDING, LEAST_PADDING = 20, 12  # pixels beside the words of a choice: with room, and without


class Segmented(QWidget):
    """A row of choices with a single stop for Tab; Left and Right choose."""

    picked = Signal(str)
    """The user chose a different one."""
    refused = Signal(str)
    """The user chose one that is not available."""

    def __init__(self, theme: Theme, name: str, choices: Sequence[str]) -> None:
        tell_readers(Segmented, ChoiceAccess)
        super().__init__()
        self._theme = theme
        self._name = name
        self._choices = tuple(choices)
        self._index = 0
        self._dim = False
        self._unavailable: frozenset[str] = frozenset()
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

    def set_choices(self, choices: Sequence[str]) -> None:
        """Offer other choices; the one shown stays if it is among them, else the first is shown."""
        shown, self._choices = self.choice(), tuple(choices)
        self._index = self._choices.index(shown) if shown in self._choices else 0
        self._describe()
        self._refresh()

    def set_dim(self, dim: bool) -> None:
        """Draw the row dimmed, because it has no effect."""
        self._dim = dim
        self.update()

    def set_unavailable(self, choices: Collection[str]) -> None:
        """Set the choices that cannot be made now. If one of them is shown already, it stays."""
        self._unavailable = frozenset(choices)
        self.update()

    def sizeHint(self) -> QSize:
        return self._size(PADDING)

    def minimumSizeHint(self) -> QSize:
        return self._size(LEAST_PADDING)

    def _size(self, padding: int) -> QSize:
        width = sum(self._words()) + padding * len(self._choices) + 2 * EDGE
        return QSize(width, self.fontMetrics().height() + 12)

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
            available = self.isEnabled() and self._choices[index] not in self._unavailable
            painter.setPen(QColor(shade if available else colours.faint))
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
        if index == self._index:
            return
        if self._choices[index] in self._unavailable:
            self.refused.emit(self._choices[index])
        else:
            self._index = index
            self._describe()
            self.update()
            self.picked.emit(self.choice())

    def set_help(self, words: str) -> None:
        """Set the tooltip, which a screen reader says too."""
        self.setToolTip(words)
        self._describe()

    def _describe(self) -> None:
        self.setAccessibleName(f"{self._name}: {self.choice()}")
        place = f"{self._index + 1} of {len(self._choices)}"
        self.setAccessibleDescription(f"{place}\n{self.toolTip()}".strip())

    def _refresh(self) -> None:
        self.updateGeometry()
        self.update()

    def _words(self) -> list[int]:
        """The widths of the choices, without padding."""
        metrics = self.fontMetrics()
        return [metrics.horizontalAdvance(choice) for choice in self._choices]

    def _places(self) -> list[QRectF]:
        words = self._words()
        room = (self.width() - 2 * EDGE - sum(words)) // len(words)
        padding = min(max(room, LEAST_PADDING), PADDING)
        places = []
        left = float(EDGE)
        for width in words:
            places.append(QRectF(left, EDGE, width + padding, self.height() - 2 * EDGE))
            left += width + padding
        return places


OFFLINE = "Use no network. Downloaded models still work."
FORCED = "HF_HUB_OFFLINE is set: the network is not used until it is unset."


class OfflineSwitch(QCheckBox):
    """The switch of offline mode. It cannot be turned off while the environment forbids the network."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Offline mode")
        self.setProperty("kind", "bare")

    def show_mode(self, offline: bool, *, forced: bool) -> str:
        """Show whether offline mode is on or forced, without a signal; returns that in words."""
        self.blockSignals(True)
        self.setChecked(offline or forced)
        self.blockSignals(False)
        self.setEnabled(not forced)
        return FORCED if forced else OFFLINE
