"""Keys that act in a place or in a part of it, arrow keys in a grid of controls, and the moment at which
typed text counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QEvent, QKeyCombination, QObject, Qt, QTimer, Signal, SignalInstance
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from app.ui.widgets.kit import reveal

Owner = TypeVar("Owner")
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_COMMANDS = (
    Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier
)


class KeyTable(Generic[Owner]):
    """Maps keys to their words and to actions of the owner. Shift is ignored unless a row names it."""

    def __init__(self, *rows: tuple[str, str, Callable[[Owner], object]]) -> None:
        """A row is (keys, words, act). Keys are such as "Alt+Left", or several separated by spaces. If an act
        returns False, the key is not used up."""
        self._rows = rows
        self._acts = {_combined(key): act for keys, _words, act in rows for key in keys.split()}

    def act(self, owner: Owner, event: QKeyEvent) -> bool:
        """Do what the key of an event does; False for any other key."""
        key, modifiers = event.key(), event.modifiers()
        act = self._acts.get(key | (modifiers & (_COMMANDS | _SHIFT)).value)
        act = act or self._acts.get(key | (modifiers & _COMMANDS).value)
        return act is not None and act(owner) is not False

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """The words and the keys, as this system writes them."""
        form = QKeySequence.SequenceFormat.NativeText
        for keys, words, _act in self._rows:
            yield words, " or ".join(QKeySequence(key).toString(form) for key in keys.split())


def _combined(key: str) -> int:
    """A key with its modifiers as one number."""
    found: QKeyCombination = QKeySequence(key)[0]  # type: ignore[index] # its annotations leave that out
    return found.toCombined()


Grid = Sequence[Sequence[QWidget]]
_STEPS = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}


class GridKeys(QObject):
    """Moves the focus among the controls; at an edge it stays.

    By default Qt goes to the next or the previous control with all four keys.
    """

    def __init__(self, parent: QWidget, grid: Callable[[], Grid]) -> None:
        """`grid` returns the controls as they are laid out now, row by row. `watch` each of them."""
        super().__init__(parent)
        self._grid = grid

    def watch(self, control: QWidget) -> None:
        control.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None:
            return False
        grid = self._grid()
        at = next((y, row.index(watched)) for y, row in enumerate(grid) if watched in row)
        y, x = at[0] + step[0], at[1] + step[1]
        if 0 <= y < len(grid) and 0 <= x < len(grid[y]):
            grid[y][x].setFocus(Qt.FocusReason.TabFocusReason)
            reveal(grid[y][x])
        return True


PAUSE_MS = 800


class Typing(QObject):
    """Reports typed text once, when it is complete, because half of a number is a different number."""

    settled = Signal()
    """The text is complete; it may be wrong."""

    def __init__(self, field: QWidget, edited: SignalInstance) -> None:
        """`field` has the focus while text is typed; `edited` is its signal for every key."""
        super().__init__(field)
        self._timer = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._timer.timeout.connect(self.settled)
        edited.connect(self._timer.start)
        field.installEventFilter(self)
        if isinstance(field, QLineEdit):
            field.returnPressed.connect(self.settle)

    def settle(self) -> None:
        """Report the typed text now, if it was not reported yet."""
        if self._timer.isActive():
            self._timer.stop()
            self.settled.emit()

    def forget(self) -> None:
        """The text was replaced by the program, and needs no report."""
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
