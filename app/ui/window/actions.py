"""What the window can do, one action each: the menu, the keys and Help show the same list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenuBar

from app.ui.help import TITLES
from app.ui.widgets.keys import settle_typing

if TYPE_CHECKING:
    from app.ui.window.main_window import MainWindow


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
        """Disable the chat's actions if the chat is not shown."""
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


def commands(window: MainWindow) -> tuple[AppAction, ...]:
    """Everything that the menu and the keys of a window do, in the order of the menus."""
    controller, page, look, to_chat = window.controller, window.page, window.appearance, window.to_chat
    find, fold = page.transcript.open_find, page.toggle_instruments
    places = (
        AppAction("View", place.name, place.title, (place.shortcut,), partial(window.go, place.name))
        for place in window.places
        if place.shortcut
    )
    return (
        AppAction("Chat", "new", "New chat", ("Ctrl+N",), lambda: to_chat(controller.new_chat)),
        AppAction("Chat", "write", "Write a message", ("Ctrl+L",), lambda: to_chat(page.prompt.setFocus)),
        AppAction("Chat", "try", "Try this", ("Ctrl+T",), lambda: to_chat(window.trying.open)),
        AppAction("Chat", "regenerate", "Regenerate", ("Ctrl+R",), controller.regenerate, only_in_chat=True),
        AppAction("Chat", "stop", "Stop", (), controller.stop),
        AppAction("Chat", "clear", "Clear", (), controller.clear, only_in_chat=True),
        AppAction("Chat", "undo", "Undo a deletion", ("Ctrl+Z",), page.chats.undo, only_in_chat=True),
        AppAction("Chat", "find", "Find in the chat", ("Ctrl+F",), find, only_in_chat=True),
        AppAction("Chat", "quit", "Quit", ("Ctrl+Q",), window.close),
        AppAction("View", "chat", "Chat", (), partial(window.go, "chat")),
        *places,
        AppAction("View", "chats", "Chats", ("Ctrl+B",), page.toggle_sidebar, only_in_chat=True),
        AppAction("View", "instruments", "Instruments", ("Ctrl+I",), fold, only_in_chat=True),
        AppAction("View", "larger", "Larger text", ("Ctrl++", "Ctrl+="), lambda: look.scale_by(0.1)),
        AppAction("View", "smaller", "Smaller text", ("Ctrl+-",), lambda: look.scale_by(-0.1)),
        AppAction("View", "usual", "System text size", ("Ctrl+0",), lambda: look.set_scale(1.0)),
        AppAction("Help", "help", "Help", ("F1",), window.help.toggle),
        AppAction("Help", "tour", "Take the tour", (), window.chat_side.tour),
        *(
            AppAction("Help", f"help {name}", title, (), partial(window.help.open_at, name))
            for name, title in TITLES.items()
        ),
    )
