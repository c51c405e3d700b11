"""What the window can do, one action each: the menu, the keys and Help show the same list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenuBar

from app.ui.widgets.fields.typing import settle_typing

MENUS = ("Chat", "View", "Help")


@dataclass(frozen=True, slots=True)
class AppAction:
    """An action of the window: its menu, its words, its keys and what it does."""

    menu: str
    name: str
    words: str
    keys: tuple[str, ...]
    act: Callable[[], object]
    only_in_chat: bool = False  # elsewhere its effect would be invisible


class WindowActions(QObject):
    """The actions of a window. Their keys act wherever the focus is."""

    def __init__(self, window: QMainWindow, commands: Iterable[AppAction]) -> None:
        super().__init__(window)
        self._commands = tuple(commands)
        self._actions: dict[str, QAction] = {}
        self._impossible: set[str] = set()
        self._place = "chat"
        for command in self._commands:
            action = QAction(command.words, window)
            action.setShortcuts([QKeySequence(keys) for keys in command.keys])
            action.triggered.connect(settle_typing)
            action.triggered.connect(lambda _checked=False, act=command.act: act())
            # On macOS Qt moves actions by their words, such as "Settings" and "About", into its own menu.
            roles = QAction.MenuRole
            action.setMenuRole(roles.QuitRole if command.name == "quit" else roles.NoRole)
            window.addAction(action)
            self._actions[command.name] = action

    def __getitem__(self, name: str) -> QAction:
        return self._actions[name]

    def named(self, name: str) -> str:
        """An action's words and keys for the tooltip of its button, such as "Chats (Ctrl+B)"."""
        action = self._actions[name]
        keys = keys_of(action)
        return f"{action.text()} ({keys[0]})" if keys else action.text()

    def set_place(self, place: str) -> None:
        """Switch the actions that belong to the chat off where it is not shown."""
        self._place = place
        self._show_possible()

    def set_possible(self, name: str, possible: bool) -> None:
        """Say whether an action can be done now."""
        (self._impossible.discard if possible else self._impossible.add)(name)
        self._show_possible()

    def _show_possible(self) -> None:
        for command in self._commands:
            here = self._place == "chat" or not command.only_in_chat
            self._actions[command.name].setEnabled(here and command.name not in self._impossible)

    def listed(self) -> dict[str, list[tuple[str, str]]]:
        """For each menu the words and keys of its actions that have keys."""
        listed: dict[str, list[tuple[str, str]]] = {menu: [] for menu in MENUS}
        for command in self._commands:
            if command.keys:
                keys = keys_of(self._actions[command.name])
                listed[command.menu].append((command.words, " or ".join(keys)))
        return listed

    def fill(self, bar: QMenuBar) -> None:
        """Put the actions into the menus of a menu bar."""
        for name in MENUS:
            menu = bar.addMenu(name)
            for command in self._commands:
                if command.menu == name:
                    menu.addAction(self._actions[command.name])


def keys_of(action: QAction) -> list[str]:
    """The keys of an action as this system writes them."""
    return [keys.toString(QKeySequence.SequenceFormat.NativeText) for keys in action.shortcuts()]
