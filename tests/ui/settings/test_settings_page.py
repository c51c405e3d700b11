"""The Settings place."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.base.paths import find_paths
from app.engine.record.trace import write_trace
from app.ui.settings.settings_page import SettingsPage
from app.ui.state.chat_side import SettingsInUse
from app.ui.theme import PALETTES, Theme
from app.ui.widgets.field import NumberBox
from app.ui.widgets.segmented import Segmented
from tests.ui.named import name_of, words_in
from tests.ui.pixels import colours_of
from tests.ui.traces import simulate
from tests.ui.windows import Desk, Windows, settings_in_use

PATHS = find_paths({"DRAFTSCOPE_HOME": "somewhere"})


def page_of(qtbot: QtBot, theme: Theme, settings: SettingsInUse | None = None) -> SettingsPage:
    page = SettingsPage(theme, PATHS, settings or settings_in_use(PATHS), "separate process")
    qtbot.addWidget(page)
    return page


def choice_of(page: SettingsPage, name: str) -> Segmented:
    return next(
        segmented for segmented in page.findChildren(Segmented) if name_of(segmented).startswith(f"{name}: ")
    )


def colours(page: SettingsPage) -> Segmented:
    return choice_of(page, "Colours")


def size_box(page: SettingsPage) -> NumberBox:
    return next(box for box in page.findChildren(NumberBox) if box.accessibleName() == "Text size")


def type_size(qtbot: QtBot, page: SettingsPage, text: str) -> None:
    line = size_box(page).lineEdit()
    line.selectAll()
    qtbot.keyClicks(line, text)
    qtbot.keyClick(line, Qt.Key.Key_Return)


def test_it_shows_the_theme_and_changes_only_the_settings(qtbot: QtBot, theme: Theme) -> None:
    settings = settings_in_use(PATHS)
    page = page_of(qtbot, theme, settings)
    told: list[set[str]] = []
    settings.changed.connect(told.append)
    theme.set_mode("dark")
    theme.set_scale(1.3)
    assert (colours(page).choice(), size_box(page).value()) == ("dark", 1.3)
    assert told == []
    type_size(qtbot, page, "1.5")
    colours(page).picked.emit("light")
    assert told == [{"text_scale"}, {"theme"}]
    assert (settings.now.theme, settings.now.text_scale) == ("light", 1.5)
    type_size(qtbot, page, "99")
    assert settings.now.text_scale == 1.5 and theme.scale == 1.3, "the theme follows in the window"
    assert "from 0.7 to 2.5" in " ".join(label.text() for label in page.findChildren(QLabel))


def test_it_says_where_things_are_and_what_runs(qtbot: QtBot, theme: Theme) -> None:
    paths = PATHS
    page = page_of(qtbot, theme)
    words = [label.text() for label in page.findChildren(QLabel)]
    for folder in (paths.chats, paths.config, paths.logs):
        assert str(folder) in words
    assert "separate process" in words
    names = [button.accessibleName() for button in page.findChildren(QPushButton)]
    assert "Open the folder of chats" in names


def test_the_look_changes_at_once_and_is_kept(windows: Windows) -> None:
    desk = windows.open(ready=False)
    page = desk.window.settings_page
    colours(page).picked.emit("dark")
    type_size(desk.qtbot, page, "1.2")
    assert (desk.window.appearance.theme.mode, desk.window.appearance.theme.scale) == ("dark", 1.2)
    windows.close(desk)
    again = windows.open(ready=False)
    assert (again.window.appearance.theme.mode, again.window.appearance.theme.scale) == ("dark", 1.2)
    assert size_box(again.window.settings_page).value() == 1.2


@pytest.mark.parametrize("place", ["chat", "inspector"])
def test_a_palette_is_in_force_at_once_and_is_kept(windows: Windows, tmp_path: Path, place: str) -> None:
    trace = tmp_path / "answer.jsonl"
    write_trace(trace, simulate("The windows overlap, so every value is seen. " * 20, seed=3))
    desk = windows.open(ready=False)
    window = desk.window
    window.resize(1600, 1000)
    desk.open_trace(trace)
    window.go(place)
    desk.until_laid_out()
    window.grab()  # draws what waits for the first frame
    accepted = [palette.fate("accepted") for palette, _dark in PALETTES.values()]
    for name, colour in zip(("high contrast", "colour-blind"), (accepted[2], accepted[1]), strict=True):
        choice_of(window.settings_page, "Palette").picked.emit(name)
        desk.until_laid_out()
        shown = colours_of(window.grab().toImage())
        assert shown[colour] > 100 and not any(shown[old] for old in accepted if old != colour)
    windows.close(desk)
    again = windows.open(ready=False)
    assert again.window.appearance.theme.palette.name == "colour-blind"
    assert choice_of(again.window.settings_page, "Palette").choice() == "colour-blind"


def look_of(desk: Desk) -> list[tuple[str, QRect, str]]:
    """Kind, place and font of every widget on the screen."""
    desk.until_laid_out()
    shown = [widget for widget in desk.window.findChildren(QWidget) if widget.isVisible()]
    return [(type(widget).__name__, widget.geometry(), widget.font().toString()) for widget in shown]


@pytest.mark.parametrize("place", ["chat", "settings"])
def test_after_changes_to_and_fro_the_look_is_that_of_the_start(windows: Windows, place: str) -> None:
    desk = windows.open()
    desk.window.go(place)
    before = look_of(desk)
    theme = desk.window.appearance.theme
    for scale, mode in ((1.2, "dark"), (1.0, "light")):
        theme.set_scale(scale)
        theme.set_mode(mode)
        assert (look_of(desk) == before) is (scale == 1.0)


def test_emptying_the_trash_ends_undo(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("away with it")
    desk.header.clear.click()
    trash = desk.paths.chats / ".trash"
    assert len(list(trash.iterdir())) == 1
    assert "Deleted “" in words_in(desk.page.chats)
    button = next(
        button
        for button in desk.window.settings_page.findChildren(QPushButton)
        if button.text() == "Empty the trash"
    )
    button.click()
    assert list(trash.iterdir()) == []
    assert "Deleted “" not in words_in(desk.page.chats)
    desk.page.chats.undo_requested.emit()
    assert "deleted chat is gone" in desk.error()
