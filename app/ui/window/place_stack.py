"""The places of the window, and the keys that lead to them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Slot
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QStackedWidget, QWidget

from app.ui.window.rail import Place


class PlaceStack(QStackedWidget):
    """Shows a place at a time. Every widget that has the focus leaves the keys of the places to the window:
    on some systems a text field takes Ctrl+E and Ctrl+K as its own."""

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

    @Slot(QWidget, QWidget)
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
