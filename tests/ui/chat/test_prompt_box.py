"""The prompt box: sending, stopping, recalling, composing, and megabytes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QInputMethodEvent
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from app.demo import FIRST_PROMPT
from app.saved.chats.conversation import Question
from app.ui.chat.prompt_box import PromptBox
from app.ui.chat.prompt_edit import LONGEST_LINE, MOST_LINES, PromptEdit
from app.ui.chat.prompt_foot import BUSY_HINT, IDLE_HINT, STOPPING_HINT, TRY_HELP
from app.ui.theme import Theme
from app.ui.widgets.form import FoldButton
from app.ui.widgets.labels import WrappedLabel
from app.ui.widgets.notice import Notice, WayOut
from app.ui.widgets.segmented import Segmented
from tests.ui.widgets.test_icons import colours
from tests.ui.windows import PATIENCE, Windows

ENTER = Qt.Key.Key_Return
SHIFT = Qt.KeyboardModifier.ShiftModifier
CONTROL = Qt.KeyboardModifier.ControlModifier


def edit(box: PromptBox, name: str = "Prompt") -> PromptEdit:
    return next(field for field in box.findChildren(PromptEdit) if field.accessibleName() == name)


def button(box: PromptBox, name: str) -> QToolButton:
    return next(button for button in box.findChildren(QToolButton) if button.accessibleName() == name)


def words(box: PromptBox) -> list[str]:
    return [label.text() for label in box.findChildren(QLabel) if label.isVisible()]


def system_button(box: PromptBox) -> QPushButton:
    return next(button for button in box.findChildren(QPushButton) if "System" in button.text())


def compose(widget: PromptEdit, preedit: str, commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(widget, event)


def test_enter_sends_and_clears(qtbot: QtBot, box: PromptBox) -> None:
    qtbot.keyClicks(edit(box), "Hello")
    with qtbot.waitSignal(box.submitted) as told:
        qtbot.keyClick(edit(box), ENTER)
    assert told.args == [Question("Hello")]
    assert box.text() == ""


def test_shift_enter_breaks_the_line(qtbot: QtBot, box: PromptBox) -> None:
    with qtbot.assertNotEmitted(box.submitted):
        qtbot.keyClicks(edit(box), "a")
        qtbot.keyClick(edit(box), ENTER, SHIFT)
        qtbot.keyClicks(edit(box), "b")
    assert box.text() == "a\nb"
    with qtbot.waitSignal(box.submitted) as told:
        qtbot.keyClick(edit(box), Qt.Key.Key_Enter)  # Enter of the number pad
    assert told.args == [Question("a\nb")]


def test_the_button_sends_too(qtbot: QtBot, box: PromptBox) -> None:
    box.set_text("Hello")
    with qtbot.waitSignal(box.submitted):
        qtbot.mouseClick(button(box, "Send"), Qt.MouseButton.LeftButton)


def test_the_arrow_is_plain_on_its_filled_button(box: PromptBox, theme: Theme) -> None:
    assert colours(button(box, "Send").icon().pixmap(48).toImage()) == {theme.palette.ground}


@pytest.mark.parametrize("typed", ["", "  \n "])
def test_an_empty_field_sends_the_suggestion(qtbot: QtBot, box: PromptBox, typed: str) -> None:
    box.set_text(typed)
    with qtbot.assertNotEmitted(box.submitted):
        qtbot.keyClick(edit(box), ENTER)
    assert edit(box).placeholderText() == "Ask"
    box.set_suggestion("A demo prompt")
    assert edit(box).placeholderText() == "Ask, or press Enter for a demo prompt"
    with qtbot.waitSignal(box.submitted) as told:
        qtbot.keyClick(edit(box), ENTER)
    assert told.args == [Question("A demo prompt")]


def test_up_recalls_the_last_prompt_into_an_empty_field(qtbot: QtBot, box: PromptBox) -> None:
    box.set_text("first\nsecond")
    qtbot.keyClick(edit(box), ENTER)
    qtbot.keyClick(edit(box), Qt.Key.Key_Up)
    assert box.text() == "first\nsecond"
    qtbot.keyClick(edit(box), Qt.Key.Key_Up)  # moves the cursor, as always
    assert box.text() == "first\nsecond"
    box.set_text("")
    box.set_last_prompt(Question("of the chat that was opened"))
    qtbot.keyClick(edit(box), Qt.Key.Key_Up)
    assert box.text() == "of the chat that was opened"


def test_enter_that_ends_a_composition_does_not_send(qtbot: QtBot, box: PromptBox) -> None:
    box.set_suggestion("A demo prompt")
    compose(edit(box), "にほん")
    with qtbot.assertNotEmitted(box.submitted):
        qtbot.keyClick(edit(box), ENTER)
    compose(edit(box), "", "日本")
    assert box.text() == "日本"
    with qtbot.waitSignal(box.submitted) as told:
        qtbot.keyClick(edit(box), ENTER)
    assert told.args == [Question("日本")]


def test_busy_send_is_stop_and_enter_keeps_the_text(qtbot: QtBot, box: PromptBox) -> None:
    box.set_text("next")
    box.set_busy(True)
    assert BUSY_HINT in words(box)
    with qtbot.assertNotEmitted(box.submitted):
        qtbot.keyClick(edit(box), ENTER)
    assert box.text() == "next"
    with qtbot.waitSignal(box.stop_requested):
        qtbot.mouseClick(button(box, "Stop"), Qt.MouseButton.LeftButton)
    assert STOPPING_HINT in words(box)
    with qtbot.assertNotEmitted(box.stop_requested):
        qtbot.keyClick(edit(box), Qt.Key.Key_Escape)  # the answer is stopping already
    box.set_busy(False)
    assert IDLE_HINT in words(box)
    with qtbot.waitSignal(box.submitted):
        qtbot.keyClick(edit(box), ENTER)


def test_escape_stops_only_what_runs(qtbot: QtBot, box: PromptBox) -> None:
    with qtbot.assertNotEmitted(box.stop_requested):
        qtbot.keyClick(edit(box), Qt.Key.Key_Escape)
    box.set_busy(True)
    with qtbot.waitSignal(box.stop_requested):
        qtbot.keyClick(edit(box), Qt.Key.Key_Escape)


def test_the_field_grows_up_to_eight_lines(qtbot: QtBot, box: PromptBox) -> None:
    line = edit(box).fontMetrics().lineSpacing()
    height = edit(box).height()
    assert line <= height < 2 * line
    box.set_text("a\nb\nc")
    assert edit(box).height() == pytest.approx(height + 2 * line, abs=3)
    box.set_text("\n" * 50)
    assert edit(box).height() == pytest.approx(height + (MOST_LINES - 1) * line, abs=MOST_LINES)
    box.set_text("")
    assert edit(box).height() == height


@pytest.mark.parametrize("scale", [1.0, 1.3, 1.6, 2.0])
def test_every_line_is_whole_at_every_text_size(box: PromptBox, theme: Theme, scale: float) -> None:
    theme.set_scale(scale)
    box.set_text("\n".join(["a"] * 7))
    field = edit(box)
    QApplication.processEvents()
    block, needed = field.document().firstBlock(), 0.0
    while block.isValid():
        needed, block = needed + field.blockBoundingRect(block).height(), block.next()
    assert field.viewport().height() >= needed > 0


def test_a_prompt_that_needs_a_line_more_in_larger_text_stays_at_its_edge(windows: Windows) -> None:
    desk = windows.open(ready=False)
    desk.window.resize(1600, 1000)
    desk.page.prompt.set_text(FIRST_PROMPT)
    desk.until_laid_out()
    top, height = desk.prompt.y(), desk.prompt.height()
    desk.window.appearance.set_scale(1.6)
    desk.until(lambda: desk.prompt.height() > 1.6 * height)
    desk.until_laid_out()
    assert desk.prompt.y() == top


def test_wrapped_lines_count_as_lines(qtbot: QtBot, box: PromptBox) -> None:
    height = edit(box).height()
    box.set_text("word " * 60)
    qtbot.waitUntil(lambda: edit(box).height() > 2 * height)


def test_larger_text_makes_a_larger_field(box: PromptBox, theme: Theme) -> None:
    before = edit(box).height()
    theme.set_scale(2.0)
    assert edit(box).height() > before * 1.5


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "word " * 200_000,
        "def mean(values): return sum(values) / len(values)\n" * 20_000,
        "日本語" * 330_000,
    ],
    ids=["one line", "words", "lines", "wide"],
)
def test_a_megabyte_is_pasted_whole_and_stays_responsive(qtbot: QtBot, box: PromptBox, text: str) -> None:
    QGuiApplication.clipboard().setText(text)
    before = time.process_time()
    qtbot.keyClick(edit(box), Qt.Key.Key_V, CONTROL)
    QApplication.processEvents()
    pasted = time.process_time() - before
    qtbot.keyClicks(edit(box), "end")
    QApplication.processEvents()
    typed = time.process_time() - before - pasted
    # Far above the usual time, far below the 20 s and more of a long line.
    assert pasted < 2
    assert typed < 0.5
    assert box.text() == text + "end"
    with qtbot.waitSignal(box.submitted) as told:
        qtbot.keyClick(edit(box), ENTER)
    assert told.args == [Question(text + "end")]
    assert edit(box).height() <= (MOST_LINES + 1) * edit(box).fontMetrics().lineSpacing()


def test_long_lines_are_whole_again_when_copied_and_undone(qtbot: QtBot, box: PromptBox) -> None:
    text = "x" * (3 * LONGEST_LINE + 5) + "\ny"
    data = QMimeData()
    data.setText(text)
    edit(box).insertFromMimeData(data)
    edit(box).selectAll()
    qtbot.keyClick(edit(box), Qt.Key.Key_C, CONTROL)
    assert QGuiApplication.clipboard().text() == text
    qtbot.keyClick(edit(box), Qt.Key.Key_X, CONTROL)
    assert box.text() == ""
    qtbot.keyClick(edit(box), Qt.Key.Key_Z, CONTROL)
    assert box.text() == text


def test_only_text_is_pasted(qtbot: QtBot, box: PromptBox) -> None:
    data = QMimeData()
    data.setHtml("<b>bold</b>")
    data.setText("bold\r\nand plain")
    edit(box).insertFromMimeData(data)
    assert box.text() == "bold\nand plain"


def test_the_mode_is_switched(qtbot: QtBot, box: PromptBox) -> None:
    mode = box.findChild(Segmented)
    assert mode is not None
    with qtbot.waitSignal(box.mode_changed) as told:
        qtbot.keyClick(mode, Qt.Key.Key_Right)
    assert told.args == ["completion"]
    assert edit(box).placeholderText() == "Start a text to continue (nothing else is sent)"
    assert not system_button(box).isVisible()  # a completion has no system prompt
    with qtbot.assertNotEmitted(box.mode_changed):
        box.set_mode("chat")
    assert system_button(box).isVisible()


def test_the_system_prompt_unfolds_and_tells_when_edited(qtbot: QtBot, box: PromptBox) -> None:
    system = edit(box, "System prompt")
    assert not system.isVisible()
    qtbot.mouseClick(system_button(box), Qt.MouseButton.LeftButton)
    assert system.isVisible()
    assert system.hasFocus()
    with qtbot.waitSignal(box.system_changed, timeout=PATIENCE) as told:
        qtbot.keyClicks(system, "Be short.")
    assert told.args == ["Be short."]
    assert system_button(box).text() == "System prompt · set"
    qtbot.keyClick(system, ENTER)
    assert edit(box).hasFocus()


def test_the_system_prompt_is_told_before_the_prompt(qtbot: QtBot, box: PromptBox) -> None:
    seen: list[tuple[str, str]] = []
    box.system_changed.connect(lambda text: seen.append(("system", text)))
    box.submitted.connect(lambda question: seen.append(("prompt", question.text)))
    qtbot.mouseClick(system_button(box), Qt.MouseButton.LeftButton)
    qtbot.keyClicks(edit(box, "System prompt"), "S")
    box.set_text("P")
    button(box, "Send").click()  # where a click takes no focus, as on macOS
    assert seen == [("system", "S"), ("prompt", "P")]


def test_setting_the_system_prompt_tells_nobody(qtbot: QtBot, box: PromptBox) -> None:
    with qtbot.assertNotEmitted(box.system_changed):
        box.set_system("Of the chat that was opened")
        box.set_busy(False)
    assert not any(timer.isActive() for timer in box.findChildren(QTimer)), "nor a moment later"
    assert edit(box, "System prompt").text() == "Of the chat that was opened"


def test_an_error_stands_above_until_it_is_dismissed(qtbot: QtBot, box: PromptBox) -> None:
    box.notices.tell("The prompt is too long.", "Shorten it.")
    notice = box.findChild(Notice)
    assert notice is not None
    assert (notice.message, notice.hint) == ("The prompt is too long.", "Shorten it.")
    assert notice.geometry().bottom() < edit(box).mapTo(box, edit(box).rect().topLeft()).y()
    qtbot.mouseClick(button(box, "Dismiss"), Qt.MouseButton.LeftButton)
    assert not notice.isVisible()
    box.notices.tell("Again.")
    box.set_text("Hello")
    qtbot.keyClick(edit(box), ENTER)
    assert not notice.isVisible()


def test_an_error_of_the_new_prompt_is_not_swept_away(qtbot: QtBot, box: PromptBox) -> None:
    """The window answers `submitted` at once where it cannot send."""

    def refuse(question: Question) -> None:
        box.notices.tell("No model is loaded.")
        box.put_back(question)

    box.submitted.connect(refuse)
    box.set_text("Hello")
    qtbot.keyClick(edit(box), ENTER)
    notice = box.findChild(Notice)
    assert notice is not None
    assert notice.isVisible()
    assert box.text() == "Hello"


@pytest.mark.parametrize(("width", "height", "prompt"), [(1024, 768, "a\n" * 9), (1600, 1000, "")])
def test_no_text_of_a_message_is_cut(windows: Windows, width: int, height: int, prompt: str) -> None:
    desk = windows.open(ready=False)
    desk.window.resize(width, height)
    desk.window.appearance.set_scale(1.6)
    desk.page.prompt.set_text(prompt)
    desk.page.prompt.remark.tell(
        "What to look for: " + "a word and " * 20, "Changed for this demo: the seed."
    )
    for message in ("The engine was ended.", "Something went wrong.", "The end."):
        desk.page.prompt.notices.tell(message, "Your chats are safe. " * 9, WayOut("Copy a report", str))
    desk.until_laid_out()
    area = desk.page.prompt.messages
    for label in area.findChildren(WrappedLabel):
        assert label.isHidden() or label.height() >= label.heightForWidth(label.width()), label.text()
    newest = desk.page.prompt.notices.strips[-1]
    assert newest.mapTo(area.viewport(), QPoint()).y() >= 0
    assert area.minimumSizeHint().height() <= area.height() <= 0.4 * desk.page.height()
    assert desk.page.transcript.height() > area.height() / 2
    desk.page.prompt.notices.clear()
    desk.page.prompt.remark.clear()
    assert area.isHidden()


def test_focus_and_theme_show(qtbot: QtBot, box: PromptBox, theme: Theme) -> None:
    qtbot.waitUntil(edit(box).hasFocus)
    focused = box.grab().toImage()
    button(box, "Send").setFocus()
    plain = box.grab().toImage()
    assert plain != focused
    theme.set_mode("dark")
    assert box.grab().toImage() != plain


def test_tab_leaves_the_field(qtbot: QtBot, box: PromptBox) -> None:
    qtbot.keyClick(edit(box), Qt.Key.Key_Tab)
    assert not edit(box).hasFocus()
    assert box.text() == ""


def test_what_was_copied_outlives_the_program() -> None:
    """The clipboard is emptied after Python has ended: an object made by Python would crash there."""
    script = (
        "from PySide6.QtWidgets import QApplication\n"
        "application = QApplication([])\n"
        "from app.ui.chat.prompt_edit import PromptEdit\n"
        "edit = PromptEdit()\n"
        "edit.set_text('x' * 5000)\n"
        "edit.selectAll()\n"
        "edit.copy()\n"
        "assert application.clipboard().text() == 'x' * 5000\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[3],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_row_of_buttons_gives_way_word_by_word(qtbot: QtBot, box: PromptBox) -> None:
    """First the hint goes, then half a name, then a word, then the other word; accessible names keep hidden
    words."""
    box.set_system("Be brief.")
    box.set_try_offered(True)
    seen = []
    box.setMinimumWidth(1)
    for width in range(800, box.minimumSizeHint().width() - 1, -2):
        box.resize(width, 200)
        QApplication.processEvents()
        system = next(button for button in box.findChildren(FoldButton) if button.isVisible())
        beside = box.try_this.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        now = (IDLE_HINT in words(box), system.text(), beside)
        if not seen or now != seen[-1]:
            seen.append(now)
        assert system.accessibleName() == "System prompt · set"
        assert box.try_this.accessibleName() == TRY_HELP
    assert seen == [
        (True, "System prompt · set", True),
        (False, "System prompt · set", True),
        (False, "System · set", True),
        (False, "System · set", False),
        (False, "set", False),
        (False, "System prompt · set", True),  # in a row below
        (False, "System · set", True),
    ]
    system = next(button for button in box.findChildren(FoldButton) if button.isVisible())
    mode = box.findChild(Segmented)
    assert mode is not None and mode.width() >= mode.minimumSizeHint().width()
    assert system.mapTo(box, QPoint()).y() > mode.mapTo(box, QPoint()).y() + mode.height(), "a row below"
    box.resize(331, 200)  # the width that the smallest window gives it
    QApplication.processEvents()
    assert system.mapTo(box, QPoint()).y() < mode.mapTo(box, QPoint()).y() + mode.height(), "the same row"
    box.set_try_offered(False)
    assert not box.try_this.isVisible()
