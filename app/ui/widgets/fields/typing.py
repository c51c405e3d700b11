"""When a text that is being typed stands: after Enter, when the keyboard leaves, or when the hand pauses."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal, SignalInstance, Slot
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

PAUSE_MS = 800


class Typing(QObject):
    """What is typed into a field is told once, as a whole: half of a number is another number."""

    settled = Signal()
    """The text stands, right or wrong."""

    def __init__(self, field: QWidget, edited: SignalInstance) -> None:
        """`field` is what has the keyboard meanwhile, `edited` the signal of every key."""
        super().__init__(field)
        self._timer = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._timer.timeout.connect(self.settled)
        edited.connect(self._timer.start)
        field.installEventFilter(self)
        if isinstance(field, QLineEdit):
            field.returnPressed.connect(self.settle)

    @Slot()
    def settle(self) -> None:
        """Tell now what was typed, if it was not told yet."""
        if self._timer.isActive():
            self._timer.stop()
            self.settled.emit()

    def forget(self) -> None:
        """The text is another one, and known."""
        self._timer.stop()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut:
            self.settle()
        return False


def settle_typing() -> None:
    """Whatever is being typed stands now: something is done that counts on it."""
    field = QApplication.focusWidget()
    if field is not None:
        for typing in field.findChildren(Typing, options=Qt.FindChildOption.FindDirectChildrenOnly):
            typing.settle()
