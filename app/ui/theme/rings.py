"""How a control got the focus: a click shows no focus ring, and focus taken by a panel is given back."""

from __future__ import annotations

from weakref import WeakKeyDictionary, ref

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget
from shiboken6 import isValid

PROPERTY = "ring"  # true: the keyboard brought the focus; false: the mouse did; unset: not marked yet
_before: WeakKeyDictionary[QWidget, ref[QWidget]] = WeakKeyDictionary()
"""A button that was clicked -> what had the focus until then."""


class FocusRings(QObject):
    """Records on the focused widget how it got the focus, for the style sheet and for `ring_shown`. If the
    keyboard gave a button the focus, Enter clicks it, as Space does."""

    def __init__(self, application: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        application.focusChanged.connect(self._changed)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Click the focused button on Enter."""
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return False
        alone = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier and not event.isAutoRepeat()
        enters = alone and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if not enters or not isinstance(watched, QAbstractButton) or not ring_shown(watched):
            return False
        watched.click()
        return True

    def _changed(self, old: QWidget | None, now: QWidget | None) -> None:
        if isinstance(old, QAbstractButton):
            old.removeEventFilter(self)
        if now is None:
            return
        if isinstance(now, QAbstractButton):
            now.installEventFilter(self)
        # Focus moves while the button is down; everything else, keys and code, may show its ring. What was
        # clicked and went away hands its focus on: no one pressed a key then either.
        gone = old is not None and not old.isVisible()
        handed_on = gone and old is not None and old.property(PROPERTY) is False
        pressed = QApplication.mouseButtons() != Qt.MouseButton.NoButton
        mouse = pressed or handed_on
        if pressed and isinstance(now, QAbstractButton):
            if old is not None:
                _before[now] = ref(old)
            else:
                _before.pop(now, None)
        _show(now, not mouse)


def _show(widget: QWidget, ring: bool) -> None:
    if widget.property(PROPERTY) is not ring:
        widget.setProperty(PROPERTY, ring)
        font, own = widget.font(), widget.testAttribute(Qt.WidgetAttribute.WA_SetFont)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
        if own:  # unpolishing takes the letters back that the first polishing found
            widget.setFont(font)
        widget.update()


def by_mouse(widget: QWidget) -> bool:
    """Whether this widget got its focus by a click."""
    return widget.hasFocus() and widget.property(PROPERTY) is False


def ring_shown(widget: QWidget) -> bool:
    """Whether a widget that paints itself shows a focus ring."""
    return widget.hasFocus() and not by_mouse(widget)


class FocusBefore:
    """The widget that had the focus when something opened; it gets the focus back when that closes."""

    def __init__(self, inside: QWidget) -> None:
        """`inside` is the widget that opens."""
        self._inside = inside
        self._widget: QWidget | None = None
        self._ring = False  # whether it showed one

    def remember(self) -> None:
        """Remember the focus when it opens. If a click on a button opened it, the button had the focus only
        for the click."""
        now = QApplication.focusWidget()
        if isinstance(now, QAbstractButton) and by_mouse(now):
            before = _before.get(now)
            now = before() if before is not None else None
        if now is None or not isValid(now) or not self._holds(now):
            self._widget = now
            self._ring = now is not None and isValid(now) and now.property(PROPERTY) is not False

    def give_back(self, otherwise: QWidget | None = None) -> None:
        """Before it closes, return a focus inside it to the earlier widget, or to `otherwise`. The ring is
        shown only if there was one."""
        if not self._holds(QApplication.focusWidget()):
            return
        for widget in (self._widget, otherwise):
            if widget is not None and isValid(widget) and widget.isVisible() and widget.isEnabled():
                widget.setFocus(Qt.FocusReason.PopupFocusReason)
                _show(widget, self._ring)
                return

    def _holds(self, widget: QWidget | None) -> bool:
        return widget is not None and (widget is self._inside or self._inside.isAncestorOf(widget))
