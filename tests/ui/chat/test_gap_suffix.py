"""The prompt box in the mode infill: two fields, the gap between them, and what becomes of what was typed."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.saved.chats.conversation import INFILL, Question
from app.ui.chat.prompt_box import INFILL_NEEDS, NO_TARGET, NO_TOKENS, PromptBox
from app.ui.chat.prompt_edit import GapSuffix, PromptEdit
from app.ui.theme import Theme
from app.ui.widgets.notice import Notice
from app.ui.widgets.segmented import Segmented
from tests.ui.traces import make_header

ENTER = Qt.Key.Key_Return
PAIR = make_header().pair
CODER = msgspec.structs.replace(PAIR, fills_middle=True)
CODE = "def add(a, b):\n    \n\nprint(add(1, 2))"


@pytest.fixture
def box(box: PromptBox) -> PromptBox:
    box.resize(700, 300)
    box.set_pair(CODER)
    box.set_mode(INFILL)
    return box


def field(box: PromptBox, name: str) -> PromptEdit:
    return next(edit for edit in box.findChildren(PromptEdit) if edit.accessibleName() == name)


def before(box: PromptBox) -> PromptEdit:
    return field(box, "Text before the gap")


def after(box: PromptBox) -> PromptEdit:
    return field(box, "Text after the gap")


def mode(box: PromptBox) -> Segmented:
    found = box.findChild(Segmented)
    assert found is not None
    return found


def gap(box: PromptBox) -> GapSuffix:
    found = box.findChild(GapSuffix)
    assert found is not None
    return found


def notices(box: PromptBox) -> list[str]:
    return [notice.message for notice in box.findChildren(Notice) if notice.isVisible()]


def test_both_texts_are_sent_from_either_field(qtbot: QtBot, box: PromptBox) -> None:
    for sender in (before, after):
        before(box).set_text("def add(a, b):")
        after(box).set_text("\nprint(add(1, 2))")
        with qtbot.waitSignal(box.submitted) as told:
            qtbot.keyClick(sender(box), ENTER)
        assert told.args == [Question("def add(a, b):", "\nprint(add(1, 2))")]
        assert before(box).is_empty() and after(box).is_empty()
        qtbot.waitUntil(before(box).hasFocus)


def test_one_of_the_texts_is_enough_and_nothing_sends_nothing(qtbot: QtBot, box: PromptBox) -> None:
    box.set_suggestion("A demo prompt")
    with qtbot.assertNotEmitted(box.submitted):
        qtbot.keyClick(before(box), ENTER)
    assert "demo" not in before(box).placeholderText()
    after(box).set_text("return a + b")
    with qtbot.waitSignal(box.submitted) as told:
        qtbot.keyClick(after(box), ENTER)
    assert told.args == [Question("", "return a + b")]


def test_tab_goes_from_field_to_field(qtbot: QtBot, box: PromptBox) -> None:
    qtbot.waitUntil(before(box).hasFocus)
    qtbot.keyClick(before(box), Qt.Key.Key_Tab)
    qtbot.waitUntil(after(box).hasFocus)
    qtbot.keyClick(after(box), Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(before(box).hasFocus)


def test_up_brings_both_texts_back(qtbot: QtBot, box: PromptBox) -> None:
    box.set_last_prompt(Question("a(", ")"))
    qtbot.keyClick(before(box), Qt.Key.Key_Up)
    assert (before(box).text(), after(box).text()) == ("a(", ")")


def test_what_was_typed_outlives_a_change_of_mode(qtbot: QtBot, box: PromptBox) -> None:
    before(box).set_text("def add(a, b):")
    after(box).set_text("print(add(1, 2))")
    for _ in range(2):
        qtbot.keyClick(mode(box), Qt.Key.Key_Left)
        assert box.text() == "def add(a, b):" and not gap(box).isVisible()
    for _ in range(2):
        qtbot.keyClick(mode(box), Qt.Key.Key_Right)
    assert gap(box).isVisible()
    assert (before(box).text(), after(box).text()) == ("def add(a, b):", "print(add(1, 2))")


def test_a_message_sent_in_between_leaves_the_text_after_the_gap(qtbot: QtBot, box: PromptBox) -> None:
    after(box).set_text("print(add(1, 2))")
    box.set_mode("chat")
    box.set_text("Hello")
    with qtbot.waitSignal(box.submitted) as told:
        qtbot.keyClick(field(box, "Prompt"), ENTER)
    assert told.args == [Question("Hello")]
    box.set_mode(INFILL)
    assert after(box).text() == "print(add(1, 2))"


def test_what_could_not_be_sent_comes_back_before_what_was_typed(box: PromptBox) -> None:
    before(box).set_text("typed")
    box.give_back(Question("a(", ")"), "No model is loaded.", "")
    assert (before(box).text(), after(box).text()) == ("a(\n\ntyped", ")")


def test_the_gap_is_put_at_the_cursor(qtbot: QtBot, box: PromptBox) -> None:
    button = gap(box).move_here
    before(box).set_text(CODE)
    assert not button.isVisible(), "there is nothing behind the cursor"
    cursor = before(box).textCursor()
    cursor.setPosition(CODE.index("\n\nprint"))
    before(box).setTextCursor(cursor)
    assert button.isVisible()
    height = box.height()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert (before(box).text(), after(box).text()) == ("def add(a, b):\n    ", "\n\nprint(add(1, 2))")
    assert not button.isVisible() and box.height() >= height
    before(box).undo()
    assert before(box).text() == CODE
    qtbot.waitUntil(before(box).hasFocus)


@pytest.mark.parametrize(("pair", "why"), [(PAIR, NO_TOKENS), (None, NO_TARGET)])
def test_infill_is_offered_where_the_target_has_tokens(qtbot: QtBot, box: PromptBox, pair, why: str) -> None:
    box.set_mode("completion")
    box.set_pair(pair)
    assert f"{why} {INFILL_NEEDS}" in mode(box).toolTip()
    assert mode(box).accessibleDescription() == f"2 of 3\n{mode(box).toolTip()}"
    right = QPoint(mode(box).width() - 12, mode(box).height() // 2)
    with qtbot.assertNotEmitted(box.mode_changed):
        qtbot.keyClick(mode(box), Qt.Key.Key_Right)
        qtbot.mouseClick(mode(box), Qt.MouseButton.LeftButton, pos=right)
    assert mode(box).choice() == "completion" and notices(box) == [why]
    box.set_pair(CODER)
    assert notices(box) == [] and why not in mode(box).toolTip()
    with qtbot.waitSignal(box.mode_changed) as told:
        qtbot.mouseClick(mode(box), Qt.MouseButton.LeftButton, pos=right)
    assert told.args == [INFILL]


def test_a_target_without_the_tokens_is_told_at_the_gap(box: PromptBox) -> None:
    box.set_pair(PAIR)
    assert [label.text() for label in gap(box).findChildren(QLabel)] == [NO_TOKENS]
    assert mode(box).choice() == INFILL, "what was typed stays where it was typed"


def test_code_is_typed_in_the_code_font(box: PromptBox, theme: Theme) -> None:
    assert before(box).font().family() == after(box).font().family() == theme.mono().family()
    box.set_mode("chat")
    assert field(box, "Prompt").font().family() == theme.sans().family()
