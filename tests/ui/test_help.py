"""Help: every word, key and file, found by typing, reached and left by the keyboard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QMenuBar, QPushButton, QTextBrowser, QWidget

from app.engine.fates import FATES
from app.ui.help import HelpPanel, glossary
from app.ui.instruments.definitions import ALPHA, GLOSSARY, TOKENS_PER_SECOND, Q
from tests.ui.named import named
from tests.ui.windows import Desk, Windows

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"


@pytest.fixture
def desk(windows: Windows) -> Desk:
    return windows.open(ready=False)


def open_help(desk: Desk) -> QLineEdit:
    """Press F1; returns the search field."""
    desk.press(Qt.Key.Key_F1)
    field = named(desk.window, "Search help", QLineEdit)
    desk.until(field.hasFocus)
    return field


def text_of(desk: Desk) -> QTextBrowser:
    return named(desk.window, "Help text", QTextBrowser)


def choose_link(desk: Desk, number: int) -> None:
    """Go to a link with Tab, from the search field on, and press Enter."""
    text = text_of(desk)
    named(desk.window, "Search help", QLineEdit).setFocus()
    links = -1
    for _ in range(60):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        links += text.hasFocus() and text.textCursor().selectedText() in ("Open", "Copy")
        if links == number:
            break
    QTest.keyClick(text, Qt.Key.Key_Return)


def test_f1_opens_it_and_esc_gives_the_focus_back(desk: Desk) -> None:
    desk.prompt.setFocus()
    field = open_help(desk)
    assert field.isVisible() and text_of(desk).toPlainText()
    desk.press(Qt.Key.Key_Escape, field)
    desk.until(desk.prompt.hasFocus)
    assert not field.isVisible()
    field = open_help(desk)
    desk.press(Qt.Key.Key_F1, field)
    desk.until(desk.prompt.hasFocus)
    assert not field.isVisible(), "F1 closes it too, where the keyboard is in it"


def test_it_is_searched_by_typing_wherever_the_keyboard_is_in_it(desk: Desk) -> None:
    field = open_help(desk)
    text = text_of(desk)
    text.setFocus()
    QTest.keyClicks(text, "w")
    desk.until(field.hasFocus)
    QTest.keyClicks(field, "arm caches")
    assert text.toPlainText().startswith("Words\nwarm\n") and "τ" not in text.toPlainText()
    assert not named(desk.window, "Keys in help", QPushButton).isEnabled()
    field.setText("zzz")
    assert text.toPlainText() == "Nothing found"
    assert desk.prompt.toPlainText() == "", "nothing of it went into the prompt"


def test_tab_goes_round_inside_it(desk: Desk) -> None:
    field = open_help(desk)
    help_panel = named(desk.window, "Help", HelpPanel)
    seen: list[str] = []
    for _ in range(60):
        focused = QApplication.focusWidget()
        assert help_panel.isAncestorOf(focused)
        seen.append(focused.accessibleName())
        QTest.keyClick(focused, Qt.Key.Key_Tab)
        if field.hasFocus():
            break
    assert field.hasFocus()
    assert all(seen) and {"Search help", "Words in help", "Help text", "Close help (Esc)"} <= set(seen)


def test_the_keys_that_it_lists_are_those_that_act(desk: Desk) -> None:
    open_help(desk)
    listed = text_of(desk).toPlainText()
    for action in desk.window.findChildren(QAction):
        for keys in action.shortcuts() if action in desk.window.actions() else ():
            shown = keys.toString(QKeySequence.SequenceFormat.NativeText)
            assert re.search(rf"^{re.escape(action.text())}\n.*{re.escape(shown)}", listed, re.M), shown
    for place in desk.window.places:
        rows = list(place.keys())
        assert all(f"{act}\n{keys}" in listed for act, keys in rows), place.name


def test_tooltips_name_keys_that_act(desk: Desk) -> None:
    keys = {keys.toString() for action in desk.window.actions() for keys in action.shortcuts()}
    named_keys = {
        found
        for widget in desk.window.findChildren(QWidget)
        for found in re.findall(r"\(((?:Ctrl|Alt|F\d)[^ )]*)\)", widget.toolTip())
    }
    assert {"Ctrl+B", "F1"} <= named_keys <= keys


def test_files_are_opened_and_copied_by_the_keyboard(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("app.ui.help.QDesktopServices.openUrl", lambda url: opened.append(url.toLocalFile()))
    open_help(desk)
    choose_link(desk, 0)
    assert opened == [str(desk.paths.chats)], "the first of two links for each file"
    choose_link(desk, 7)
    assert QGuiApplication.clipboard().text() == str(desk.paths.presets)


def test_large_text_keeps_it_inside_the_window(desk: Desk) -> None:
    desk.window.resize(1100, 700)
    desk.window.appearance.theme.set_scale(2.0)
    field = open_help(desk)
    help_panel = named(desk.window, "Help", HelpPanel)
    assert desk.window.rect().contains(help_panel.geometry())
    text = text_of(desk)
    assert text.horizontalScrollBar().maximum() == 0
    assert text.document().defaultFont().pointSizeF() == pytest.approx(
        desk.window.appearance.theme.sans().pointSizeF()
    )
    desk.window.resize(760, 480)
    desk.until(lambda: desk.window.rect().contains(help_panel.geometry()))
    QTest.keyClick(field, Qt.Key.Key_PageDown)
    assert text.verticalScrollBar().value() > 0


def test_large_text_breaks_no_word_in_the_left_column(desk: Desk) -> None:
    desk.window.appearance.theme.set_scale(1.6)
    desk.window.resize(1024, 768)
    open_help(desk)
    desk.until_laid_out()
    document = text_of(desk).document()
    heads = {"Measurements", "Regenerate", "Draftscope"}
    block = document.begin()
    while block.isValid():
        if block.text() in heads:
            document.documentLayout().blockBoundingRect(block)  # lays it out
            assert block.layout().lineCount() == 1, block.text()
            heads.remove(block.text())
        block = block.next()
    assert not heads


def test_the_glossary_and_the_tooltips_have_one_text() -> None:
    told = {entry.head: entry.text for entry in glossary().entries}
    assert ALPHA.lower() == f"α, judged acceptance: {told['α, judged acceptance'].lower()}"
    assert TOKENS_PER_SECOND.lower() == f"tokens/s: {told['tokens/s'].lower()}"
    assert f"q: {told['q'].lower()}" == Q.lower()
    for name, fate in FATES.items():
        assert fate.definition in (text for head, text in told.items() if head.startswith(name))


def test_the_glossary_has_every_word_of_the_plan() -> None:
    table = ARCHITECTURE.read_text().split("## Glossary")[1]
    known = ", ".join(GLOSSARY | {entry.head: "" for entry in glossary().entries}).lower()
    for row in re.findall(r"^\| ([^|]+) \|", table, re.M)[1:]:
        for word in row.split(", "):
            if not word.startswith("---"):
                assert word.lower() in known, word


def test_a_menu_bar_has_the_same_actions(desk: Desk) -> None:
    bar = QMenuBar()
    desk.window.commands.fill(bar)
    menus = {menu.title(): menu.actions() for menu in bar.findChildren(QMenu)}
    assert list(menus) == ["Chat", "View", "Help"]
    assert all(action in desk.window.actions() for actions in menus.values() for action in actions)
    shown = {action.text(): action for action in menus["Help"]}
    shown["Files"].trigger()
    text = text_of(desk)
    desk.until(lambda: text.cursorForPosition(text.rect().center()).position() > 0)
    top = QTextCursor(text.cursorForPosition(text.rect().topLeft()))
    assert top.position() > text.document().find("Keys · Inspector").position()
    bar.deleteLater()


def test_what_belongs_to_the_chat_is_off_elsewhere(desk: Desk) -> None:
    commands = desk.window.commands
    desk.window.go("settings")
    assert not commands["find"].isEnabled() and commands["new"].isEnabled()
    desk.window.go("chat")
    assert commands["find"].isEnabled() and not commands["regenerate"].isEnabled(), "there is no answer yet"
