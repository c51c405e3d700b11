"""Keys that act in a place or in a part of it, in one table: the part acts by it, and Help lists it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from PySide6.QtCore import QKeyCombination, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

Owner = TypeVar("Owner")
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_COMMANDS = (
    Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier
)


class KeyTable(Generic[Owner]):
    """Keys, what they do in words, and what they do to their owner. Shift makes no difference where no row
    names it."""

    def __init__(self, *rows: tuple[str, str, Callable[[Owner], object]]) -> None:
        """A row is keys such as "Alt+Left", or several separated by spaces, the words, and the act. An act
        that returns False leaves the key to others."""
        self._rows = rows
        self._acts = {_combined(key): act for keys, _words, act in rows for key in keys.split()}

    def act(self, owner: Owner, event: QKeyEvent) -> bool:
        """Do what the key of an event stands for; False for any other key."""
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
