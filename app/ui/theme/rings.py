"""Focus rings for people who use the keyboard: a click does not leave one behind."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QApplication, QWidget

PROPERTY = "ring"  # true: the keyboard brought the focus; false: the mouse did; unset: nobody looked


class FocusRings(QObject):
    """Marks the widget in focus with how the focus came, for the style sheet and for `ring_shown`."""

    def __init__(self, application: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        application.focusChanged.connect(self._changed)

    @Slot(QWidget, QWidget)
    def _changed(self, _old: QWidget | None, now: QWidget | None) -> None:
        if now is None:
            return
        # Focus moves while the button is down; everything else, keys and code, may show its ring.
        mouse = QApplication.mouseButtons() != Qt.MouseButton.NoButton
        if now.property(PROPERTY) is not (not mouse):
            now.setProperty(PROPERTY, not mouse)
            now.style().unpolish(now)
            now.style().polish(now)
            now.update()


def by_mouse(widget: QWidget) -> bool:
    """Whether a click gave this widget the focus that it has."""
    return widget.hasFocus() and widget.property(PROPERTY) is False


def ring_shown(widget: QWidget) -> bool:
    """Whether a widget that paints itself shows that it has the keyboard."""
    return widget.hasFocus() and not by_mouse(widget)
