"""The Settings place."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.paths import Paths, find_paths
from app.ui.settings_page import SettingsPage
from app.ui.theme import Theme
from tests.ui.windows import Windows


def page_of(qtbot: QtBot, theme: Theme, paths: Paths | None = None) -> SettingsPage:
    page = SettingsPage(
        theme, paths or find_paths({"DRAFTSCOPE_HOME": "somewhere"}), "in a process of its own"
    )
    qtbot.addWidget(page)
    return page


def test_it_shows_the_theme_in_use_and_tells_only_the_users_changes(qtbot: QtBot, theme: Theme) -> None:
    page = page_of(qtbot, theme)
    modes: list[str] = []
    scales: list[float] = []
    page.theme_mode_changed.connect(modes.append)
    page.text_scale_changed.connect(scales.append)
    theme.set_mode("dark")
    theme.set_scale(1.3)
    assert (page._mode.choice(), page._scale.value()) == ("dark", 1.3)
    assert (modes, scales) == ([], [])
    page._scale.setValue(1.5)
    page._mode.picked.emit("light")
    assert (modes, scales) == (["light"], [1.5])
    page._scale.setValue(99)
    assert page._scale.value() == 2.5


def test_it_says_where_things_are_and_what_runs(qtbot: QtBot, theme: Theme) -> None:
    paths = find_paths({"DRAFTSCOPE_HOME": "somewhere"})
    page = page_of(qtbot, theme, paths)
    words = [label.text() for label in page.findChildren(QLabel)]
    for folder in (paths.chats, paths.config, paths.logs):
        assert str(folder) in words
    assert "in a process of its own" in words
    names = [button.accessibleName() for button in page.findChildren(QPushButton)]
    assert "Open the folder of chats" in names


def test_the_look_changes_at_once_and_is_kept(windows: Windows) -> None:
    desk = windows.open(ready=False)
    page = desk.window.settings_page
    page._mode.picked.emit("dark")
    page._scale.setValue(1.2)
    assert (desk.window.look.theme.mode, desk.window.look.theme.scale) == ("dark", 1.2)
    windows.close(desk)
    again = windows.open(ready=False)
    assert (again.window.look.theme.mode, again.window.look.theme.scale) == ("dark", 1.2)
    assert again.window.settings_page._scale.value() == 1.2


def test_emptying_the_trash_ends_undo(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("away with it")
    desk.header.clear.click()
    trash = desk.paths.chats / ".trash"
    assert len(list(trash.iterdir())) == 1
    assert desk.page.chats._toast.isVisible()
    button = next(
        one for one in desk.window.settings_page.findChildren(QPushButton) if one.text() == "Empty the trash"
    )
    button.click()
    assert list(trash.iterdir()) == []
    assert desk.page.chats._toast.isHidden()
    desk.page.chats._undo()
    assert "deleted chat is gone" in desk.error()
