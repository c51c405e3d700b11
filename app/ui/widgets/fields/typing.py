"""When typed text counts: after Enter, when the focus leaves the field, or after a pause."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal, SignalInstance, Slot
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

PAUSE_MS = 800


class Typing(QObject):
    """Reports typed text once, as a whole: half of a number is another number."""

    settled = Signal()
    """The text is settled; it may be wrong."""

    def __init__(self, field: QWidget, edited: SignalInstance) -> None:
        """`field` has the focus meanwhile; `edited` is its signal for every key."""
        super().__init__(field)
        self._timer = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._timer.timeout.connect(self.settled)
        edited.connect(self._timer.start)
        field.installEventFilter(self)
        if isinstance(field, QLineEdit):
            field.returnPressed.connect(self.settle)

    @Slot()
    def settle(self) -> None:
        """Report the typed text now, if it was not reported yet."""
        if self._timer.isActive():
            self._timer.stop()
            self.settled.emit()

    def forget(self) -> None:
        """The text was replaced, and is known."""
        self._timer.stop()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut:
            self.settle()
        return False


def settle_typing() -> None:
    """Report whatever is being typed now, before something that depends on it."""
    field = QApplication.focusWidget()
    if field is not None:
        for typing in field.findChildren(Typing, options=Qt.FindChildOption.FindDirectChildrenOnly):
            typing.settle()
