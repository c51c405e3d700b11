"""The narrow rail on the left: one button for every place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets.icons import IconButton

WIDTH = 56  # pixels at text scale 1


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the window. Its icon has the same name."""

    name: str
    title: str
    shortcut: str
    widget: QWidget
    keys: Callable[[], Iterable[tuple[str, str]]] = tuple  # for Help: what a key does there, and the key


class Rail(QWidget):
    """The buttons of the places; the last one stands at the foot, above Help."""

    place_chosen = Signal(str)

    def __init__(self, theme: Theme, places: Sequence[Place]) -> None:
        super().__init__()
        self._theme = theme
        self._buttons: dict[str, IconButton] = {}
        self._group = QButtonGroup(self)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(8, 12, 8, 12)
        self._layout.setSpacing(8)
        for place in places:
            self._add(place)
        self._layout.insertStretch(len(places) - 1, 1)
        self.help = IconButton(theme, "help", "Help", side=18)
        self._layout.addWidget(self.help)
        theme.changed.connect(self._fit)
        self._fit()

    def _add(self, place: Place) -> None:
        tooltip = f"{place.title} ({place.shortcut})" if place.shortcut else place.title
        button = IconButton(self._theme, place.name, tooltip, side=18)
        set_role(button, kind="place")
        button.setCheckable(True)
        button.clicked.connect(lambda: self.place_chosen.emit(place.name))
        self._group.addButton(button)
        self._buttons[place.name] = button
        self._layout.addWidget(button)

    def set_place(self, place: str) -> None:
        """Mark the place that is on the screen."""
        self._buttons[place].setChecked(True)

    @Slot()
    def _fit(self) -> None:
        side = round((WIDTH - 16) * self._theme.scale)
        for button in (*self._buttons.values(), self.help):
            button.setFixedSize(side, side)
        self.setFixedWidth(side + 16)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.palette.panel)
        painter.fillRect(self.width() - 1, 0, 1, self.height(), self._theme.palette.line)
