"""Makes two widgets that Qt does not know accessible to screen readers: a row of choices, and a box for a
number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface, QGuiApplication
from PySide6.QtWidgets import QAbstractSpinBox, QAccessibleWidget, QApplication, QLineEdit, QWidget
from shiboken6 import Shiboken
from typing_extensions import override

NO_MORE = " "
"""The description of a widget whose name says everything. Without one, Qt reports the tooltip, which repeats
the name."""


class ChoiceAccess(QAccessibleWidget):
    """A row of choices, read as the radio button that is on. Left and Right choose a different one."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget, QAccessible.Role.RadioButton)

    @override
    def state(self) -> QAccessible.State:
        state = super().state()
        state.checkable = state.checked = True
        return state


_LENT = (QAccessible.InterfaceType.TextInterface, QAccessible.InterfaceType.EditableTextInterface)
_FALSE = (QAccessible.InterfaceType.ValueInterface,)


class NumberAccess(QAccessibleWidget):
    """A box for a number, read as its text. Qt's own interface would say "0, from 0 to 0"."""

    def __init__(self, box: QAbstractSpinBox) -> None:
        super().__init__(box, QAccessible.Role.SpinBox)

    @override
    def interface_cast(self, kind: QAccessible.InterfaceType) -> Any:
        found: Any = None
        if kind in _LENT:
            line = cast(QWidget, self.object()).findChild(QLineEdit)
            lent = QAccessible.queryAccessibleInterface(line) if line is not None else None
            found = lent.interface_cast(kind) if lent is not None else None
        elif kind not in _FALSE:
            found = super().interface_cast(kind)
        return found if isinstance(found, Shiboken.VoidPtr) else Shiboken.VoidPtr(0)  # all else would crash


_installed: dict[type[QWidget], Callable[[str, QObject], QAccessibleInterface | None]] = {}


def tell_readers(kind: type[QWidget], access: Callable[[Any], QAccessibleInterface]) -> None:
    """Have screen readers use `access` for every widget of a class."""

    def make(_key: str, thing: QObject) -> QAccessibleInterface | None:
        return access(thing) if isinstance(thing, kind) else None

    if kind not in _installed:
        _installed[kind] = make
        QAccessible.installFactory(make)


def announce(widget: QWidget, text: str) -> None:
    """Let a screen reader say `text` after its current sentence; without a screen reader nothing happens.

    On Linux the text becomes the focused widget's description until the focus returns. Every Orca says a
    changed description, but only versions from 45.2 say an announcement.
    """
    if not QAccessible.isActive() or not text:
        return
    focused = QApplication.focusWidget()
    if focused is None or QGuiApplication.platformName() not in ("xcb", "wayland"):
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, text))
    elif focused.accessibleDescription() != text:  # else the widget says it itself
        lent = focused.findChild(_Lent, options=Qt.FindChildOption.FindDirectChildrenOnly) or _Lent(focused)
        focused.setAccessibleDescription(text)
        lent.said = text


class _Lent(QObject):
    """Gives a widget its own description back once it gets the focus again."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.said = ""
        self._widget, self._own = widget, widget.accessibleDescription()
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusIn:
            if self._widget.accessibleDescription() == self.said:
                self._widget.setAccessibleDescription(self._own)
            self._widget.removeEventFilter(self)
            self.setParent(None)  # or `announce` would still find it
            self.deleteLater()
        return False
