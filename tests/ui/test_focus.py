"""Where typing goes: what closes returns the focus, and keys that no widget uses go into the prompt box."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QWidget

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET
from app.engine.types import ModelOptions
from app.ui.chat.try_prompts import TryPanel
from tests.quiet import stays
from tests.ui.windows import Desk, Windows

Key = Qt.Key
Ctrl = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def desk(windows: Windows) -> Iterator[Desk]:
    made = windows.open(ready=False)
    made.window.activateWindow()
    made.until(made.window.isActiveWindow)
    made.until(made.prompt.hasFocus)
    yield made


def _has_answers(desk: Desk, number: int) -> bool:
    return len(desk.answers()) == number


def type_somewhere(desk: Desk, text: str) -> None:
    """Type a text into whatever widget has the focus."""
    for letter in text:
        desk.qtbot.keyClick(QApplication.focusWidget() or desk.window, letter)


def press(key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(QApplication.focusWidget(), key, modifier)


def click(desk: Desk, widget: QWidget) -> None:
    desk.qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)


def test_escape_in_the_find_bar_gives_the_keyboard_back(desk: Desk) -> None:
    press(Key.Key_F, Ctrl)
    desk.until(desk.page.transcript.find_bar.field.hasFocus)
    type_somewhere(desk, "fox")
    press(Key.Key_Escape)
    assert desk.prompt.hasFocus()
    type_somewhere(desk, "a question")
    assert desk.prompt.text() == "a question"


@pytest.mark.parametrize("name", ["target", "draft", "strategy", "sampling", "presets"])
def test_escape_in_a_panel_gives_the_keyboard_back_to_where_it_was(desk: Desk, name: str) -> None:
    opener = getattr(desk.header, name)
    click(desk, opener)
    desk.until(opener.isChecked)
    assert not desk.prompt.hasFocus()
    press(Key.Key_Escape)
    assert desk.prompt.hasFocus(), "a click on the chip took the keyboard only to open the panel"
    opener.setFocus(Qt.FocusReason.TabFocusReason)
    press(Key.Key_Space)
    desk.until(opener.isChecked)
    press(Key.Key_Escape)
    assert opener.hasFocus(), "here the keyboard was on the chip itself"


def test_escape_in_the_menu_of_prompts_gives_the_keyboard_back(windows: Windows) -> None:
    desk = windows.open(ready=False, target=ModelOptions(BUNDLED_TARGET), draft=ModelOptions(BUNDLED_DRAFT))
    desk.window.activateWindow()
    desk.until(desk.prompt.hasFocus)
    press(Key.Key_T, Ctrl)
    desk.until(desk.page.prompt.try_panel.isVisible)
    press(Key.Key_Escape)
    assert desk.prompt.hasFocus()


def test_escape_in_a_message_that_is_edited_gives_the_keyboard_back(desk: Desk) -> None:
    desk.until_ready()
    desk.ask("hello")
    desk.prompt.setFocus()
    desk.page.transcript.edit(desk.items()[0].turn)
    assert not desk.prompt.hasFocus()
    press(Key.Key_Escape)
    assert desk.prompt.hasFocus()


@pytest.mark.parametrize("where", ["regenerate", "transcript", "rail"])
def test_what_nothing_takes_is_typed_into_the_prompt_box(desk: Desk, where: str) -> None:
    places: dict[str, QWidget] = {
        "regenerate": desk.header.regenerate,
        "transcript": desk.page.transcript,
        "rail": desk.window.rail.findChildren(QAbstractButton)[0],
    }
    desk.header.regenerate.setEnabled(True)
    places[where].setFocus()
    type_somewhere(desk, "Wh")
    assert desk.prompt.hasFocus() and desk.prompt.text() == "Wh"


def test_what_is_typed_while_a_panel_is_open_does_not_leave_it(desk: Desk) -> None:
    click(desk, desk.header.sampling)
    type_somewhere(desk, "x")
    assert desk.prompt.text() == "" and not desk.prompt.hasFocus()


def test_enter_clicks_the_button_that_the_keyboard_reached(desk: Desk) -> None:
    chip, rail = desk.header.sampling, desk.window.rail.findChildren(QAbstractButton)
    chip.setFocus(Qt.FocusReason.TabFocusReason)
    press(Key.Key_Return)
    assert chip.isChecked()
    press(Key.Key_Escape)
    assert not chip.isChecked()
    inspector = next(button for button in rail if "Inspector" in button.toolTip())
    inspector.setFocus(Qt.FocusReason.TabFocusReason)
    press(Key.Key_Enter)
    assert not desk.page.isVisible()


def test_the_name_of_a_preset_can_be_typed_at_once(desk: Desk) -> None:
    click(desk, desk.header.presets)
    field = desk.header.presets_panel.field
    desk.until(field.hasFocus)
    type_somewhere(desk, "mine")
    press(Key.Key_Return)
    assert [row.name for row in desk.header.presets_panel.rows] == ["mine"]


def test_arrows_walk_among_presets_and_what_can_be_done_with_them(desk: Desk) -> None:
    panel = desk.header.presets_panel
    click(desk, desk.header.presets)
    for name in ("first", "second"):
        type_somewhere(desk, name)
        press(Key.Key_Return)
    panel.rows[0].button.setFocus()
    for key, expected in (
        (Key.Key_Up, (0, 0)),
        (Key.Key_Down, (1, 0)),
        (Key.Key_Right, (1, 1)),
        (Key.Key_Up, (0, 1)),
        (Key.Key_Right, (0, 2)),
        (Key.Key_Down, (1, 2)),
    ):
        press(key)
        row, place = expected
        assert panel.rows[row].controls[place].hasFocus()


@pytest.mark.parametrize(("width", "below"), [(720, 2), (400, 1)])
def test_arrows_walk_in_both_directions_of_the_prompts_to_try(
    windows: Windows, width: int, below: int
) -> None:
    desk = windows.open(ready=False, target=ModelOptions(BUNDLED_TARGET), draft=ModelOptions(BUNDLED_DRAFT))
    panel: TryPanel = desk.page.prompt.try_panel
    panel.setParent(None)
    desk.qtbot.addWidget(panel)
    panel.resize(width, 600)
    panel.show()
    panel.activateWindow()
    desk.until(panel.isActiveWindow)
    rows = list(panel.rows.values())
    rows[0].setFocus()
    press(Key.Key_Down)
    assert rows[below].hasFocus()
    press(Key.Key_Right)
    assert rows[below + below - 1].hasFocus(), "to the right, where there is a button"
    press(Key.Key_Up)
    assert rows[below - 1].hasFocus()


def test_ctrl_z_takes_the_deletion_of_a_chat_back(desk: Desk) -> None:
    desk.until_ready()
    desk.ask("keep me")
    kept = desk.controller.shown.id
    click(desk, desk.header.clear)
    assert desk.controller.shown.id != kept
    desk.page.prompt.setFocus()
    press(Key.Key_Z, Ctrl)
    assert desk.controller.shown.id == kept
    click(desk, desk.header.clear)
    desk.page.prompt.setFocus()
    type_somewhere(desk, "ab")
    press(Key.Key_Z, Ctrl)
    assert desk.prompt.text() == "" and desk.controller.shown.id != kept, "what was typed comes first"
    press(Key.Key_Z, Ctrl)
    assert desk.controller.shown.id == kept


def type_limit(desk: Desk, number: str) -> None:
    """Type another limit of tokens, and leave the cursor there."""
    click(desk, desk.header.sampling)
    limit = next(
        widget
        for widget in desk.header.sampling_panel.findChildren(QWidget)
        if widget.accessibleName() == "max_tokens"
    )
    limit.setFocus()
    line = limit.findChild(QLineEdit)
    assert line is not None
    line.selectAll()
    type_somewhere(desk, number)


def test_a_value_that_is_being_typed_counts_when_the_answer_is_asked_again(desk: Desk) -> None:
    desk.until_ready()
    desk.ask("hello")
    type_limit(desk, "5")
    press(Key.Key_R, Ctrl)
    desk.answered()
    assert desk.trace is not None and desk.trace.header.max_tokens == 5


def test_a_value_that_is_being_typed_is_saved_with_the_window(windows: Windows, desk: Desk) -> None:
    type_limit(desk, "77")
    windows.close(desk)
    assert windows.open(ready=False).window.settings.now.max_tokens == 77


def test_enter_sends_wherever_a_click_left_the_focus(windows: Windows) -> None:
    desk = windows.open(target=ModelOptions(BUNDLED_TARGET), draft=ModelOptions(BUNDLED_DRAFT))
    for number, typed in enumerate(("", "abc"), start=1):  # an empty chat offers a demo prompt
        desk.page.prompt.set_text(typed)
        desk.prompt.clearFocus()
        desk.qtbot.keyClick(desk.window, Key.Key_Return)
        desk.until(partial(_has_answers, desk, number))
        assert desk.prompt.text() == ""
        desk.until_ready()
    desk.prompt.clearFocus()
    desk.qtbot.keyClick(desk.window, Key.Key_Return)
    assert stays(lambda: len(desk.answers())) and len(desk.answers()) == 2 and not desk.prompt.hasFocus()
