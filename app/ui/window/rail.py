"""The places of the window: the narrow rail on the left with one button for each, and the keys that lead to
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QButtonGroup, QStackedWidget, QWidget

from app.ui.theme import Theme
from app.ui.widgets import kit
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
    """The buttons of the places; the last one is at the foot, above Help."""

    place_chosen = Signal(str)

    def __init__(self, theme: Theme, places: Sequence[Place]) -> None:
        super().__init__()
        self._theme = theme
        self._buttons: dict[str, IconButton] = {}
        self._group = QButtonGroup(self)
        self.help = IconButton(theme, "help", "Help", side=18)
        *above, last = map(self._button, places)
        kit.column(*above, kit.Spring(1), last, self.help, margins=(8, 12, 8, 12), spacing=8, on=self)
        kit.ground(self, "rail")
        theme.follow(self._fit)

    def _button(self, place: Place) -> IconButton:
        tooltip = f"{place.title} ({place.shortcut})" if place.shortcut else place.title
        act = lambda: self.place_chosen.emit(place.name)  # noqa: E731
        button = IconButton(self._theme, place.name, tooltip, side=18, kind="place", act=act)
        button.setCheckable(True)
        self._group.addButton(button)
        self._buttons[place.name] = button
        return button

    def set_place(self, place: str) -> None:
        """Mark the place that is on the screen."""
        self._buttons[place].setChecked(True)

    def _fit(self) -> None:
        side = round((WIDTH - 16) * self._theme.scale)
        for button in (*self._buttons.values(), self.help):
            button.setFixedSize(side, side)
        self.setFixedWidth(side + 16)


class PlaceStack(QStackedWidget):
    """Shows one place at a time. Keys of the places work from every focused widget, also where a system's
    text fields use Ctrl+E and Ctrl+K themselves."""

    def __init__(self, places: Sequence[Place]) -> None:
        super().__init__()
        self._widgets = {place.name: place.widget for place in places}
        self._keys = {place.shortcut for place in places}
        for place in places:
            self.addWidget(place.widget)
        self.place = self.before = places[0].name  # the place that is shown; the one before it
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._focus_moved)

    def show_place(self, name: str) -> None:
        if name != self.place:
            self.before, self.place = self.place, name
        self.setCurrentWidget(self._widgets[name])

    def _focus_moved(self, old: QWidget | None, new: QWidget | None) -> None:
        if old is not None:
            old.removeEventFilter(self)
        if new is not None and new.window() is self.window():
            new.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keep the keys of the places."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            keys = QKeySequence(event.keyCombination()).toString(QKeySequence.SequenceFormat.PortableText)
            if keys in self._keys:
                event.ignore()
                return True
        return super().eventFilter(watched, event)
