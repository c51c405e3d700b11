"""Thinking beside the prompt box: offered where the template supports it, kept with the chat, used in
requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QCheckBox, QWidget
from pytestqt.qtbot import QtBot

from app.engine.record.recheck import recheck
from app.engine.templates.options import TemplateOptions, Thinking, switched
from app.engine.types import ModelOptions
from app.ui.chat.prompt_box import PromptBox
from app.ui.chat.prompt_foot import ThinkingChoice
from app.ui.theme import Theme
from tests.files.tiny import EFFORT_TEMPLATE, THINKING_TEMPLATE, Tiny
from tests.ui.windows import Desk, Windows

ON, OFF = Thinking(("enable_thinking",), on=True), Thinking(("thinking",), on=False)
EFFORTS = Thinking(("reasoning_effort",), None, ("low", "medium", "high"), "medium")
PREFILLED = "<think>\n\n</think>\n\n"


def click(qtbot: QtBot, switch: QCheckBox) -> None:
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton)


# --------------------------------------------------------------------------------- by the box


def test_there_is_a_switch_only_where_the_template_has_one(box: PromptBox) -> None:
    thinking = box.thinking
    assert not thinking.isVisible()
    box.set_thinking(ON)
    assert thinking.isVisible() and thinking.switch.isVisible() and thinking.switch.isChecked()
    assert not thinking.efforts.isVisible()
    box.set_thinking(OFF)
    assert not thinking.switch.isChecked(), "the template's default"
    box.set_mode("completion")
    assert not thinking.isVisible(), "a completion goes through no template"
    box.set_mode("chat")
    box.set_thinking(Thinking(("reasoning_effort",)))
    assert not thinking.isVisible(), "the template offers no efforts"
    box.set_thinking(None)
    assert not thinking.isVisible()


def test_a_click_and_the_keyboard_switch_it(qtbot: QtBot, box: PromptBox) -> None:
    box.set_thinking(ON)
    box.set_template_options({"reasoning_effort": "low"})
    with qtbot.waitSignal(box.options_changed) as told:
        click(qtbot, box.thinking.switch)
    assert told.args == [{"reasoning_effort": "low", **switched(False)}]
    box.thinking.switch.setFocus(Qt.FocusReason.TabFocusReason)
    with qtbot.waitSignal(box.options_changed) as told:
        qtbot.keyClick(box.thinking.switch, Qt.Key.Key_Space)
    assert told.args == [{"reasoning_effort": "low", **switched(True)}]
    assert box.thinking.switch.hasFocus()


def test_efforts_are_a_choice(qtbot: QtBot, box: PromptBox) -> None:
    box.set_thinking(EFFORTS)
    efforts = box.thinking.efforts
    assert efforts.isVisible() and not box.thinking.switch.isVisible()
    assert [efforts.itemText(place) for place in range(efforts.count())] == ["low", "medium", "high"]
    assert efforts.currentText() == "medium"
    with qtbot.waitSignal(box.options_changed) as told:
        qtbot.keyClick(efforts, Qt.Key.Key_Down)
    assert told.args == [{"reasoning_effort": "high"}]
    box.set_template_options({"reasoning_effort": "low"})
    assert efforts.currentText() == "low"
    box.set_template_options({"reasoning_effort": "no_think"})
    assert efforts.currentText() == "no_think", "an option of another template stays shown"


def test_showing_options_tells_nobody_but_who_looks(qtbot: QtBot, theme: Theme) -> None:
    choice = ThinkingChoice(theme)
    qtbot.addWidget(choice)
    choice.set_thinking(ON)
    with qtbot.assertNotEmitted(choice.picked), qtbot.waitSignal(choice.changed):
        choice.set_options(switched(False))
    assert not choice.switch.isChecked()
    with qtbot.assertNotEmitted(choice.changed):
        choice.set_options(switched(False))


@pytest.mark.parametrize("thinking", [ON, EFFORTS])
@pytest.mark.parametrize("width", [328, 380, 460, 560, 800])
def test_nothing_is_cut_at_any_width(qtbot: QtBot, theme: Theme, thinking: Thinking, width: int) -> None:
    around = QWidget()  # a top-level window keeps a minimum width
    qtbot.addWidget(around)
    around.resize(900, 400)
    box = PromptBox(theme)
    box.setParent(around)
    around.show()
    box.set_thinking(thinking)
    box.set_try_offered(True)
    box.resize(width, 200)
    control = box.thinking.switch if thinking is ON else box.thinking.efforts

    def whole() -> bool:
        shown = [widget for widget in (control, *box.findChildren(QAbstractButton)) if widget.isVisible()]
        return all(
            widget.width() >= widget.sizeHint().width()
            and widget.mapTo(box, QPoint(widget.width(), 0)).x() <= width
            and widget.mapTo(box, QPoint(0, widget.height())).y() <= box.height()
            for widget in shown
        )

    qtbot.waitUntil(whole)


# --------------------------------------------------------------------------------- in the window


@pytest.fixture
def thinks(tiny_file: Callable[[Tiny], Path]) -> ModelOptions:
    return ModelOptions(str(tiny_file(Tiny(name="thinks", template=THINKING_TEMPLATE))))


def told(desk: Desk) -> tuple[TemplateOptions, bool]:
    """The template options of the answer that the instruments show, and whether its prompt
    ends with PREFILLED."""
    trace = desk.trace
    assert trace is not None and not recheck(trace)
    return trace.header.template_options, trace.header.prompt.endswith(PREFILLED)


def test_each_answer_is_told_what_was_chosen_when_asked(
    windows: Windows, qtbot: QtBot, thinks: ModelOptions
) -> None:
    desk = windows.open(target=thinks, draft=None, strategy="prompt-lookup")
    switch = desk.page.prompt.thinking.switch
    assert switch.isVisible() and switch.isChecked()
    desk.ask("hello")
    assert told(desk) == ({}, False)
    click(qtbot, switch)
    assert told(desk) == ({}, False), "the answers so far stay as they are"
    assert desk.prompt.hasFocus(), "the prompt has the focus"
    item = desk.ask("again")
    assert told(desk) == ({"enable_thinking": False}, True)
    assert item.text and item.text == item.text_without_reasoning
    click(qtbot, switch)
    desk.controller.regenerate()
    desk.answered()
    assert told(desk) == ({"enable_thinking": True}, False)


def test_the_choice_belongs_to_its_chat_and_outlives_the_window(
    windows: Windows, qtbot: QtBot, thinks: ModelOptions
) -> None:
    desk = windows.open(target=thinks, draft=None, strategy="none")
    click(qtbot, desk.page.prompt.thinking.switch)
    desk.ask("hello")
    first = desk.controller.shown.id
    desk.controller.new_chat()
    assert desk.page.prompt.thinking.switch.isChecked()
    desk.ask("there")
    desk.controller.open_chat(first)
    assert not desk.page.prompt.thinking.switch.isChecked()
    windows.close(desk)
    desk = windows.open()
    assert desk.controller.shown.id == first
    assert desk.page.prompt.thinking.switch.isVisible()
    assert not desk.page.prompt.thinking.switch.isChecked()
    desk.ask("more")
    assert told(desk) == ({"enable_thinking": False}, True)


def test_going_on_and_the_baseline_are_told_the_same(
    windows: Windows, qtbot: QtBot, thinks: ModelOptions
) -> None:
    desk = windows.open(target=thinks, draft=None, strategy="prompt-lookup", max_tokens=8)
    switch = desk.page.prompt.thinking.switch
    click(qtbot, switch)
    desk.ask("hello")
    click(qtbot, switch)
    request = desk.controller.request_of_answer()
    assert request is not None and request.template_options == {"enable_thinking": False}
    desk.page.transcript.note_action.emit(desk.items()[1].turn)
    desk.answered()
    assert told(desk) == ({"enable_thinking": False}, True)
    assert desk.tokens() == 16


def test_another_pair_shows_what_its_template_has(
    windows: Windows, qtbot: QtBot, thinks: ModelOptions, tiny_file: Callable[[Tiny], Path]
) -> None:
    desk = windows.open()
    thinking = desk.page.prompt.thinking
    assert not thinking.isVisible(), "this template reads none of them"
    desk.load(target=Path(thinks.path))
    assert thinking.switch.isVisible()
    click(qtbot, thinking.switch)
    desk.load(target=tiny_file(Tiny(name="effort", template=EFFORT_TEMPLATE)))
    assert thinking.efforts.isVisible() and not thinking.switch.isVisible()
    qtbot.mouseClick(thinking.efforts, Qt.MouseButton.LeftButton)
    qtbot.keyClick(thinking.efforts.view(), Qt.Key.Key_Down)
    qtbot.keyClick(thinking.efforts.view(), Qt.Key.Key_Return)
    assert thinking.efforts.currentText() == "high"
    assert desk.prompt.hasFocus(), "the prompt has the focus"
    desk.load(target=Path(thinks.path))
    assert not thinking.switch.isChecked(), "the chat keeps it"


def test_the_llama_cpp_command_follows(windows: Windows, qtbot: QtBot, thinks: ModelOptions) -> None:
    desk = windows.open(target=thinks, draft=None)
    buttons = desk.header.strategy_panel.command.findChildren(QAbstractButton)
    (copy,) = [button for button in buttons if button.accessibleName() == "Copy the llama.cpp command"]
    flag = "--chat-template-kwargs"

    def command() -> str:
        copy.click()
        return QApplication.clipboard().text()

    assert flag not in command()
    click(qtbot, desk.page.prompt.thinking.switch)
    assert f"""{flag} '{{"enable_thinking":false}}'""" in command()
    desk.controller.new_chat()
    assert flag not in command()
