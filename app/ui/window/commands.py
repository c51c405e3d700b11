"""The list of the window's actions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.ui.help.sections import TITLES
from app.ui.window.actions import AppAction

if TYPE_CHECKING:
    from app.ui.window.main_window import MainWindow


def commands(window: MainWindow) -> tuple[AppAction, ...]:
    """Everything that the menu and the keys of a window do, in the order of the menus."""
    controller, page, look, to_chat = window.controller, window.page, window.look, window.to_chat
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
        AppAction("Chat", "undo", "Take back a deletion", ("Ctrl+Z",), page.chats.undo, only_in_chat=True),
        AppAction("Chat", "find", "Find in the chat", ("Ctrl+F",), find, only_in_chat=True),
        AppAction("Chat", "quit", "Quit", ("Ctrl+Q",), window.close),
        AppAction("View", "chat", "Chat", (), partial(window.go, "chat")),
        *places,
        AppAction("View", "chats", "Chats", ("Ctrl+B",), page.toggle_sidebar, only_in_chat=True),
        AppAction("View", "instruments", "Instruments", ("Ctrl+I",), fold, only_in_chat=True),
        AppAction("View", "larger", "Larger text", ("Ctrl++", "Ctrl+="), lambda: look.scale_by(0.1)),
        AppAction("View", "smaller", "Smaller text", ("Ctrl+-",), lambda: look.scale_by(-0.1)),
        AppAction("View", "usual", "The system's text size", ("Ctrl+0",), lambda: look.set_scale(1.0)),
        AppAction("Help", "help", "Help", ("F1",), window.help.toggle),
        AppAction("Help", "tour", "Take the tour", (), window.chat_side.tour),
        *(
            AppAction("Help", f"help {name}", title, (), partial(window.help.open_at, name))
            for name, title in TITLES.items()
        ),
    )
