"""The list of chats in a whole window: renaming, searching, deleting and taking that back."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from PySide6.QtWidgets import QLineEdit

from app.saved.chats.store import ChatStore
from tests.ui.named import named
from tests.ui.windows import Desk, Windows


def test_clear_and_undo(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("keep me")
    shown = desk.fates()
    desk.header.clear.click()
    assert desk.items() == [] and desk.chats() == []
    assert desk.page.instruments.answer.statistics.emitted == 0
    desk.page.chats.undo()
    assert desk.chats() == ["keep me"]
    assert desk.texts()[0] == "keep me" and desk.fates() == shown
    desk.ask("and on")
    assert len(desk.items()) == 4


def test_deleting_the_chat_that_is_answering(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("long")
    desk.until_streaming(5)
    chat_id = desk.controller.shown.id
    desk.page.chats.delete_requested.emit(chat_id)
    assert desk.items() == []
    desk.until_ready()
    assert desk.chats() == [] and desk.error() == ""
    desk.page.chats.undo()
    assert desk.controller.shown.id == chat_id
    assert desk.tokens() >= 5 and desk.notes() == ["Stopped."]


def test_rename_and_search(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("about lanterns")
    desk.controller.new_chat()
    desk.ask("about foxes")
    chat_id = desk.controller.shown.id
    desk.page.chats.renamed.emit(chat_id, "Vulpes")
    assert desk.chats() == ["Vulpes", "about lanterns"]
    desk.ask("more of them")
    assert desk.chats()[0] == "Vulpes", "a new turn keeps the title"
    search = named(desk.page.chats, "Search chats", QLineEdit)
    for words, found in (("LANTERN", ["about lanterns"]), ("foxes", ["Vulpes"]), ("nowhere", [])):
        search.setText(words)
        desk.until(lambda found=found: desk.chats() == found)  # type: ignore[misc]
    search.clear()
    desk.until(lambda: len(desk.chats()) == 2)


def test_what_another_window_does_is_seen_in_the_list(windows: Windows) -> None:
    desk = windows.open()
    store = ChatStore(desk.paths.chats)
    chat = store.ask(store.new(), "from the other window")
    desk.until(lambda: desk.chats() == ["from the other window"])
    store.rename(chat.id, "Renamed there")
    desk.until(lambda: desk.chats() == ["Renamed there"])
    store.delete(chat.id)
    desk.until(lambda: desk.chats() == [])
    store.restore(chat.id)
    desk.until(lambda: desk.chats() == ["Renamed there"])
    assert [head.title for head in store.heads()] == desk.chats(), "the list shows what is saved"


def test_a_folder_of_chats_that_is_gone_is_said(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("keep me")
    words = desk.texts()
    shutil.rmtree(desk.paths.chats)
    desk.ask("and on")
    assert "folder of the chats is gone" in desk.error()
    assert desk.texts()[:2] == words and len(desk.texts()) == 4
    desk.controller.chats.refresh()
    assert "folder of the chats is gone" in desk.error()
    desk.header.clear.click()
    assert desk.texts()[:2] == words
