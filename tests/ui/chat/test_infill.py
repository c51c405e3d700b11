"""Filling in the middle over a real engine: asked, painted, kept, asked again, measured, refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.engine.record.recheck import recheck
from app.engine.record.trace import write_trace
from app.engine.types import ModelOptions
from app.saved.chats.conversation import INFILL, Question
from app.saved.chats.store import ChatStore
from app.ui.chat.prompt_edit import PromptEdit
from app.ui.state.engine_session import Activity
from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.widgets.segmented import Segmented
from tests.files.tiny import CONTROL, Tiny
from tests.ui.named import named
from tests.ui.transcript.places import open_editor
from tests.ui.windows import Desk, Windows

FIM = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
PREFIX, SUFFIX = "def add(a, b):\n    ", "\n\nprint(add(1, 2))\n"


@pytest.fixture(scope="session")
def coder(tiny_file: Callable[[Tiny], Path]) -> dict[str, ModelOptions]:
    """A tiny pair that has tokens to fill in the middle."""
    pair = Tiny(name="coder", n_ctx=1024, control=(*CONTROL, *FIM))
    near = Tiny(name="coder draft", n_ctx=1024, control=(*CONTROL, *FIM), noise=0.15, noise_seed=7)
    return {role: ModelOptions(str(tiny_file(tiny))) for role, tiny in (("target", pair), ("draft", near))}


@pytest.fixture
def desk(windows: Windows, coder: dict[str, ModelOptions]) -> Desk:
    made = windows.open(target=coder["target"], draft=coder["draft"])
    choose_infill(made)
    return made


def choose_infill(desk: Desk) -> None:
    for mode in ("chat", "completion"):
        desk.press(Qt.Key.Key_Right, named(desk.page.prompt, f"Mode: {mode}", Segmented))


def fill(desk: Desk, prefix: str = PREFIX, suffix: str = SUFFIX) -> AnswerItem:
    desk.page.prompt.put_back(Question(prefix, suffix))
    desk.press(Qt.Key.Key_Return)
    return desk.answered()


def asked(desk: Desk) -> tuple[str, str | None]:
    assert desk.trace is not None
    return desk.trace.header.prompt, desk.trace.header.suffix


def typed(desk: Desk) -> tuple[str, str]:
    return desk.page.prompt.text(), named(desk.page.prompt, "Text after the gap", PromptEdit).text()


def test_the_answer_is_painted_between_its_texts(desk: Desk) -> None:
    words = [label.text() for label in desk.page.transcript.findChildren(QLabel)]
    assert "Write the text before and after a gap." in words
    item = fill(desk)
    assert asked(desk) == (PREFIX, SUFFIX)
    assert desk.trace is not None and recheck(desk.trace) == []
    assert item.text_with_gap == PREFIX + item.text + SUFFIX
    assert {"accepted", "resampled"} <= {fate for _text, fate, _round, _place in desk.fates()[0]}
    assert desk.chats() == ["def add(a, b):"] and typed(desk) == ("", "")
    assert desk.error() == ""


def test_a_filled_gap_is_there_again_after_a_restart(windows: Windows, desk: Desk) -> None:
    item = fill(desk)
    shown, fates = [block.text for block in item.blocks], desk.fates()
    windows.close(desk)
    again = windows.open()
    assert [block.text for block in again.answers()[0].blocks] == shown and again.fates() == fates
    assert named(again.page.prompt, f"Mode: {INFILL}", Segmented)
    chat = ChatStore(again.paths.chats).load(again.controller.shown.id)
    assert chat.turns[0] == Question(PREFIX, SUFFIX) and chat.head.mode == INFILL
    again.controller.regenerate()
    again.answered()
    assert asked(again) == (PREFIX, SUFFIX) and again.fates() == fates
    assert ChatStore(again.paths.chats).search("print(add") != []


def test_an_infill_stays_one_whatever_the_mode_is_now(desk: Desk) -> None:
    fates = (fill(desk), desk.fates())[1]
    for mode in ("chat", "completion"):
        desk.page.prompt.mode_changed.emit(mode)
        desk.controller.regenerate()
        desk.answered()
        assert asked(desk) == (PREFIX, SUFFIX) and desk.fates() == fates


def test_both_texts_of_a_gap_are_edited(desk: Desk) -> None:
    before = fill(desk).text
    transcript = desk.page.transcript
    transcript.edit(desk.items()[0].turn)
    editor = open_editor(transcript)
    assert editor is not None and editor.suffix is not None
    editor.suffix.setPlainText("\nprint(add(3, 4))")
    desk.press(Qt.Key.Key_Return, editor.field)
    item = desk.answered()
    assert asked(desk) == (PREFIX, "\nprint(add(3, 4))")
    assert len(desk.items()) == 2 and item.text != before
    assert item.text_with_gap == PREFIX + item.text + "\nprint(add(3, 4))"


def test_an_infill_is_continued_beyond_its_limit(desk: Desk) -> None:
    first = fill(desk).text
    assert desk.notes() == ["The answer reached its length limit."]
    desk.page.transcript.note_action.emit(desk.items()[1].turn)
    item = desk.answered()
    assert item.text.startswith(first) and desk.tokens() == 48
    assert item.text_with_gap == PREFIX + item.text + SUFFIX and asked(desk) == (PREFIX, SUFFIX)


def test_the_baseline_of_an_infill_is_measured(desk: Desk) -> None:
    fill(desk)
    status = desk.window.status
    desk.until(status.measure.isEnabled)
    status.measure.click()
    desk.until(status.speed_up.isVisible)
    desk.until_ready()
    answer = desk.page.instruments.answer
    assert answer is not None and answer.measurement is not None
    runs = (answer.measurement.baseline, answer.measurement.strategy)
    assert [run.header.suffix for run in runs] == [SUFFIX] * 2 and desk.error() == ""


def test_an_infill_that_is_too_long_comes_back(desk: Desk) -> None:
    desk.page.prompt.put_back(Question("x" * 600, "y" * 600))
    desk.press(Qt.Key.Key_Return)
    desk.until(lambda: "the context has room for 1,024" in desk.error())
    assert typed(desk) == ("x" * 600, "y" * 600) and desk.items() == [] and desk.chats() == []


def test_an_infill_waits_for_the_models(windows: Windows, coder: dict[str, ModelOptions]) -> None:
    desk = windows.open(mode=INFILL, target=coder["target"])
    desk.header.draft_panel.applied.emit(coder["draft"])
    assert desk.session.activity is Activity.LOADING
    desk.page.prompt.put_back(Question(PREFIX, SUFFIX))
    desk.press(Qt.Key.Key_Return)
    desk.press(Qt.Key.Key_Escape)
    assert typed(desk) == (PREFIX, SUFFIX), "stopping the waiting gives both texts back"
    desk.press(Qt.Key.Key_Return)
    desk.until(lambda: desk.tokens() == 24)
    assert asked(desk) == (PREFIX, SUFFIX)


def test_a_target_without_the_tokens_gives_the_infill_back(desk: Desk, pair_files: tuple[Path, Path]) -> None:
    fill(desk)
    shown = desk.fates()
    desk.load(target=pair_files[0])
    desk.until_ready()
    desk.page.prompt.put_back(Question(PREFIX, SUFFIX))
    desk.press(Qt.Key.Key_Return)
    desk.until(desk.error)
    assert "no tokens to fill in the middle" in desk.error()
    assert typed(desk) == (PREFIX, SUFFIX) and desk.fates() == shown
    desk.controller.new_chat()
    assert named(desk.page.prompt, "Mode: chat", Segmented), "a new chat begins in a mode that can be asked"


def test_a_chat_after_an_infill_sends_both_of_its_texts(desk: Desk) -> None:
    filled = fill(desk).text
    desk.page.prompt.set_mode("chat")
    desk.page.prompt.mode_changed.emit("chat")
    desk.ask("Why?")
    assert desk.trace is not None
    contents = [message.content for message in desk.trace.header.messages]
    assert contents == [f"{PREFIX}[…]{SUFFIX}", filled, "Why?"]


def test_a_recorded_infill_is_opened_with_its_texts(desk: Desk, tmp_path: Path) -> None:
    item = fill(desk)
    trace, shown = desk.trace, [block.text for block in item.blocks]
    assert trace is not None
    write_trace(tmp_path / "a.jsonl", trace)
    desk.controller.new_chat()
    desk.window.show_trace(trace, tmp_path / "a.jsonl")
    assert [block.text for block in desk.answers()[0].blocks] == shown
    desk.page.transcript.edit_submitted.emit(desk.items()[0].turn, Question(PREFIX, ""))
    desk.answered()
    assert asked(desk) == (PREFIX, "")
