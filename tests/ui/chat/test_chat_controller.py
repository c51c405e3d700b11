"""The Chat place over a real engine: asking, waiting, stopping, editing, and what cannot be asked."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from app.base.paths import find_paths
from app.demo import read_demo
from app.engine.types import ModelOptions, Sampling
from app.saved.chats.conversation import Question
from app.saved.chats.store import ChatStore
from app.ui.chat.prompt_box import NO_TEMPLATE
from app.ui.state.engine_session import Activity, EngineState
from app.ui.widgets.icons import IconButton
from app.ui.widgets.segmented import Segmented
from tests.files.tiny import Tiny
from tests.processes import started
from tests.quiet import stays
from tests.stopping import ATTEMPTS, stop_limit
from tests.ui.named import named, words_in
from tests.ui.transcript.places import open_editor
from tests.ui.windows import Desk, Windows, doubted, seconds_until

DEMO = read_demo(find_paths().resources)[0].prompt

on_posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


def test_enter_on_the_empty_prompt_sends_the_demo_prompt(windows: Windows) -> None:
    desk = windows.open()
    assert desk.items() == []
    desk.press(Qt.Key.Key_Return)
    item = desk.answered()
    assert desk.texts()[0].startswith("Write a small Python function")
    assert desk.tokens() == 24 and item.text
    assert {"accepted", "resampled"} <= {fate for _text, fate, _round, _place in desk.fates()[0]}
    assert desk.page.instruments.answer.statistics.emitted == 24
    assert desk.chats() == ["Write a small Python function that removes duplicates from…"]
    assert desk.notes() == ["The answer reached its length limit."]
    assert desk.error() == ""


def test_a_prompt_sent_while_the_models_load_waits_for_them(windows: Windows) -> None:
    desk = windows.open(ready=False)
    assert desk.session.activity is Activity.EMPTY
    seen: list[str] = []

    def send_early(now: EngineState, before: EngineState) -> None:
        if now.activity is Activity.LOADING is not before.activity:
            desk.type("early")
            seen.append(desk.controller.shown.id)
            desk.press(Qt.Key.Key_Escape)
            seen.append(desk.page.prompt.text())
            desk.press(Qt.Key.Key_Return)
            seen.append(desk.page.prompt.text())

    desk.session.changed.connect(send_early)
    desk.until(lambda: desk.tokens() == 24)  # the answer may begin and end between two looks
    desk.until_ready()
    assert seen == ["", "early", ""], "no chat yet; stopping the waiting gives the text back; sent again"
    assert desk.texts()[0] == "early"
    assert desk.window.status.state.text() == "Ready"


def test_what_waits_for_the_models_does_not_end_up_in_another_chat(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("first")
    desk.header.target_panel.applied.emit(ModelOptions(windows.pair[0].as_posix(), ctx_size=512))
    assert desk.session.activity is Activity.LOADING
    first = desk.controller.shown.id
    desk.type("for the first chat")
    desk.page.prompt.set_text("typed since")
    desk.controller.new_chat()
    desk.until_ready()
    assert desk.items() == [] and desk.page.prompt.text() == ""
    desk.controller.open_chat(first)
    assert desk.page.prompt.text() == "for the first chat\n\ntyped since"


def test_what_is_typed_is_kept_with_its_chat_whatever_ends_the_window(windows: Windows) -> None:
    desk = windows.open()
    files = desk.paths.chats

    def again() -> Desk:
        """Another window on the same chats: what a new start finds, while nothing was closed."""
        return windows.open(ready=False)

    desk.qtbot.keyClicks(desk.prompt, "new and unsent")
    desk.until(lambda: "unsent" in (files / ".unsent.json").read_text())
    assert again().page.prompt.text() == "new and unsent"
    desk.press(Qt.Key.Key_Return)
    desk.answered()
    first = desk.controller.shown.id
    assert not (files / ".unsent.json").exists() and not (files / first / "unsent.json").exists()
    desk.qtbot.keyClicks(desk.prompt, "for the first")
    desk.until(lambda: (files / first / "unsent.json").exists() and "first" in _unsent(files / first))
    desk.controller.new_chat()
    assert desk.page.prompt.text() == ""
    desk.qtbot.keyClicks(desk.prompt, "another")
    desk.window.save()  # the chat on the screen
    desk.controller.open_chat(first)
    assert desk.page.prompt.text() == "for the first"
    desk.prompt.clear()
    desk.until(lambda: not (files / first / "unsent.json").exists())
    desk.controller.new_chat()
    assert desk.page.prompt.text() == "another"


def _unsent(chat: Path) -> str:
    return (chat / "unsent.json").read_text(encoding="utf-8")


def test_a_window_that_closes_keeps_what_was_just_typed(windows: Windows) -> None:
    desk = windows.open()
    desk.qtbot.keyClicks(desk.prompt, "just typed")
    desk.window.close()
    assert "just typed" in (desk.paths.chats / ".unsent.json").read_text(encoding="utf-8")


def test_what_waits_for_the_models_is_kept_as_unsent(windows: Windows) -> None:
    desk = windows.open()
    desk.header.target_panel.applied.emit(ModelOptions(windows.pair[0].as_posix(), ctx_size=512))
    desk.type("waits")
    desk.page.prompt.set_text("typed since")
    desk.window.close()
    assert ChatStore(desk.paths.chats).unsent.read("") == Question("waits\n\ntyped since")


def test_what_cannot_be_kept_is_said_until_it_can(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = windows.open()
    with monkeypatch.context() as full:
        full.setattr("app.saved.chats.recorder.write_atomic", _no_room)
        desk.qtbot.keyClicks(desk.prompt, "lost?")
        desk.until(lambda: "What you type is not saved" in desk.error())
    desk.qtbot.keyClicks(desk.prompt, " no")
    desk.until(lambda: desk.error() == "")
    assert ChatStore(desk.paths.chats).unsent.read("") == Question("lost? no")


def test_what_could_not_be_kept_is_kept_without_typing_on(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = windows.open()
    desk.ask("saved")
    first, unsent = desk.controller.shown.id, ChatStore(desk.paths.chats).unsent
    with monkeypatch.context() as full:
        full.setattr("app.saved.chats.recorder.write_atomic", _no_room)
        desk.qtbot.keyClicks(desk.prompt, "in a chat")
        desk.until(lambda: "What you type is not saved" in desk.error())
        desk.controller.new_chat()
        desk.qtbot.keyClicks(desk.prompt, "in a new one")
        desk.controller.open_chat(first)
        assert desk.page.prompt.text() == "in a chat", "it waits"
        assert "What you type is not saved" in desk.error()
    desk.until(lambda: desk.error() == "")
    assert (unsent.read(first).text, unsent.read("").text) == ("in a chat", "in a new one")


def test_a_notice_of_the_disk_goes_when_the_disk_is_back(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("saved")
    chats, config = desk.paths.chats, desk.paths.config
    for folder in (chats, config):
        folder.rename(folder.with_name("away"))
        folder.write_text("no folder")
        desk.window.save()
        desk.controller.chats.refresh()
        assert desk.error()
        folder.unlink()
        folder.with_name("away").rename(folder)
        desk.window.save()
        desk.controller.chats.refresh()
        assert desk.error() == ""


def _no_room(*_what: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_damaged_words_are_said_and_set_aside(windows: Windows) -> None:
    folder = windows.paths.chats
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".unsent.json").write_bytes(b'{"type":"question","te')
    desk = windows.open(ready=False)
    assert "What was typed here is damaged" in desk.error() and desk.page.prompt.text() == ""
    assert [file.read_bytes()[:7] for file in folder.glob(".unsent.json.damaged-*")] == [b'{"type"']


def test_enter_says_why_nothing_is_sent(windows: Windows) -> None:
    desk = windows.open(max_tokens=100_000, target=ModelOptions(windows.pair[0].as_posix()))
    desk.type("write on")
    desk.until_streaming()
    desk.press(Qt.Key.Key_Return)
    assert desk.error() == "", "nothing was to be sent"
    desk.type("and then")
    assert "busy" in desk.error() and desk.page.prompt.text() == "and then"
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    assert desk.error() == "" and desk.page.prompt.text() == "and then"


def _mode(desk: Desk) -> Segmented:
    (mode,) = (
        found for found in desk.page.prompt.findChildren(Segmented) if "Mode" in found.accessibleName()
    )
    return mode


def test_a_target_without_a_template_continues_texts_until_one_with_it_is_back(
    windows: Windows, tiny_file: Callable[[Tiny], Path]
) -> None:
    desk = windows.open()
    desk.ask("in chat")
    desk.load(tiny_file(Tiny(name="base", template="")))
    assert _mode(desk).choice() == "completion" and NO_TEMPLATE in _mode(desk).toolTip()
    desk.press(Qt.Key.Key_Left, _mode(desk))
    assert _mode(desk).choice() == "completion" and NO_TEMPLATE in desk.error()
    desk.ask("continue me")
    assert desk.trace is not None
    assert (desk.trace.header.prompt, desk.trace.header.messages) == ("continue me", ())
    desk.controller.new_chat()
    assert _mode(desk).choice() == "completion" and desk.saved()["mode"] == "chat"
    desk.load(windows.pair[0])
    assert _mode(desk).choice() == "chat" and desk.error() == ""
    desk.ask("in chat again")
    assert [message.content for message in desk.trace.header.messages] == ["in chat again"]


def test_a_template_that_fails_has_a_button_to_completion(
    windows: Windows, tiny_file: Callable[[Tiny], Path]
) -> None:
    failing = tiny_file(Tiny(name="failing", template="{{ raise_exception('not like this') }}"))
    desk = windows.open(target=ModelOptions(str(failing)), draft=None, strategy="none")
    desk.type("hello")
    desk.until(lambda: "not like this" in desk.error())
    assert desk.offers() == ["Use completion"] and desk.page.prompt.text() == "hello"
    named(desk.page.prompt.notices, "Use completion", QPushButton).click()
    assert desk.error() == "" and _mode(desk).choice() == "completion"
    desk.press(Qt.Key.Key_Return)
    desk.answered()
    assert desk.texts()[0] == "hello" and desk.saved()["mode"] == "completion"


def test_enter_without_a_model_says_so(windows: Windows) -> None:
    desk = windows.open(ready=False, target=ModelOptions("/nowhere/target.gguf"), draft=None)
    desk.until(lambda: desk.session.state.failed)
    desk.type("hello")
    assert "No model is loaded." in desk.error() and desk.page.prompt.text() == "hello"


def test_another_message_while_the_models_load_loses_none(windows: Windows) -> None:
    desk = windows.open()
    desk.header.target_panel.applied.emit(ModelOptions(windows.pair[0].as_posix(), ctx_size=512))
    desk.type("typed at length")
    desk.controller.send(Question("suggested"))
    desk.until(lambda: desk.tokens() == 24)  # it may be over already
    assert desk.texts()[0] == "suggested" and desk.page.prompt.text() == "typed at length"


def test_that_the_models_load_is_said_until_they_are_there(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("first")
    desk.header.target_panel.applied.emit(ModelOptions(windows.pair[0].as_posix(), ctx_size=512))
    desk.page.transcript.regenerate_requested.emit(desk.items()[1].turn)
    assert desk.error().startswith("The models are still loading.")
    desk.until_ready()
    assert desk.error() == ""


@on_posix
def test_stop_acts_within_a_tenth_of_a_second(slow: Callable[..., Desk]) -> None:
    desk = slow("process")
    seconds = []
    for _ in range(ATTEMPTS):
        desk.type("go")
        desk.until_streaming(20)
        desk.press(Qt.Key.Key_Escape)
        seconds.append(seconds_until(lambda: desk.session.activity is Activity.READY, 60))
        assert desk.session.activity is Activity.READY
        assert desk.notes()[-1] == "Stopped."
        assert 20 <= desk.tokens() < 8000
        if seconds[-1] < stop_limit():
            return
    raise AssertionError(f"stopping took {seconds} s")


def test_the_stop_button_says_that_it_is_stopping(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("go")
    desk.until_streaming()
    assert desk.header.stop.isVisible() and not desk.header.regenerate.isVisible()
    told: list[tuple[bool, bool]] = []

    def look(now: EngineState, before: EngineState) -> None:
        if now.activity is Activity.STOPPING is not before.activity:
            button = named(desk.page.prompt, "Stop", IconButton)
            told.append(("Stopping" in words_in(desk.page.prompt), button.isEnabled()))

    desk.session.changed.connect(look)
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    assert told == [(True, False)]
    assert named(desk.page.prompt, "Send", IconButton).isEnabled()
    assert desk.header.regenerate.isVisible() and desk.header.regenerate.isEnabled()


@pytest.mark.parametrize("place", ["header", "prompt"])
def test_a_late_click_on_stop_asks_nothing(windows: Windows, place: str) -> None:
    desk = windows.open()

    def click() -> None:
        in_header = place == "header"
        button = desk.header.regenerate if in_header else named(desk.page.prompt, "Send", IconButton)
        desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def late(now: EngineState, before: EngineState) -> None:
        if now.activity is Activity.READY:
            desk.session.changed.disconnect(late)
            click()

    desk.type("go")
    desk.page.prompt.set_text("next")
    desk.session.changed.connect(late)
    desk.until_ready()
    assert stays(lambda: desk.session.activity)
    assert desk.page.prompt.text() == "next" and len(desk.texts()) == 2

    def asks() -> bool:
        click()
        return desk.busy()

    desk.until(asks)
    desk.until_ready()


def test_the_legend_explains_the_settings_in_use(windows: Windows) -> None:
    desk = windows.open(sampling=Sampling())
    sample = desk.page.legend.samples["resampled"]
    assert "target's choice" in sample.toolTip(), "before any answer"
    desk.ask("one")
    desk.window.settings.change(sampling=Sampling(temperature=0.7))
    assert "residual" in sample.toolTip()
    desk.window.settings.change(sampling=Sampling())
    assert "target's choice" in sample.toolTip()


def test_regenerate_and_edit(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("one")
    desk.ask("two")
    before = desk.fates()
    desk.header.regenerate.click()
    desk.answered()
    assert desk.fates() == before, "greedy repeats itself"
    assert [desk.texts()[at] for at in (0, 2)] == ["one", "two"]
    # The button of an earlier answer: the turns after it go.
    desk.page.transcript.regenerate_requested.emit(desk.items()[1].turn)
    desk.answered()
    assert desk.texts() == ["one", desk.texts()[1]] and desk.fates() == before[:1]
    desk.ask("two")
    desk.page.transcript.edit(desk.items()[0].turn)
    editor = open_editor(desk.page.transcript)
    assert editor is not None
    editor.submitted.emit(Question("other"))
    desk.answered()
    assert desk.texts()[0] == "other" and len(desk.items()) == 2
    assert desk.fates() != before[:1]
    prompt = desk.trace.header.prompt if desk.trace else ""
    assert "other" in prompt and "one" not in prompt and "two" not in prompt
    chat = ChatStore(desk.paths.chats).load(desk.controller.shown.id)
    assert [turn.text for turn in chat.turns] == desk.texts()


def test_a_message_that_is_being_edited_keeps_its_new_text(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("one")
    transcript = desk.page.transcript
    for leave in (
        lambda: transcript.set_rendered(True),
        lambda: (desk.header.regenerate.click(), desk.answered()),
        lambda: desk.ask("two"),
    ):
        transcript.edit(desk.items()[0].turn)
        editor = open_editor(transcript)
        assert editor is not None
        editor.field.setPlainText("one and a half")
        leave()
        transcript.edit(desk.items()[0].turn)
        editor = open_editor(transcript)
        assert editor is not None and editor.field.toPlainText() == "one and a half"
        desk.press(Qt.Key.Key_Escape, editor.field)
        transcript.edit(desk.items()[0].turn)
        editor = open_editor(transcript)
        assert editor is not None and editor.field.toPlainText() == "one", "Esc is a way back"
        desk.press(Qt.Key.Key_Escape, editor.field)


def test_esc_stops_from_the_answer_too(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("go")
    desk.until_streaming()
    desk.page.transcript.setFocus()
    desk.press(Qt.Key.Key_Escape, desk.page.transcript)
    desk.until_ready()
    assert desk.notes() == ["Stopped."]


def test_leaving_the_chat_before_its_answer_begins_loses_nothing(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("here")
    here = desk.controller.shown.id
    desk.controller.new_chat()
    desk.ask("there")
    there = desk.controller.shown.id
    # The engine answers only once events are processed: these two come before.
    desk.type("one more")
    desk.page.chats.chat_chosen.emit(here)
    assert desk.texts()[0] == "here"
    desk.page.chats.chat_chosen.emit(there)
    assert desk.texts()[2] == "one more" and desk.page.transcript.live
    desk.until_ready()
    assert desk.tokens() == 24 and len(desk.items()) == 4
    desk.type("x" * 4000)  # longer than the context
    desk.page.chats.chat_chosen.emit(here)
    desk.until(desk.error)
    assert desk.page.prompt.text() == "x" * 4000 and desk.texts()[0] == "here"


def test_a_chat_that_another_window_changed_is_opened_again(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("one")
    chat_id = desk.controller.shown.id
    store = ChatStore(desk.paths.chats)
    store.ask(store.load(chat_id), "from elsewhere")
    desk.page.chats.chat_chosen.emit(chat_id)
    assert desk.texts()[-1] == "from elsewhere"
    store.ask(store.load(chat_id), "and again")
    desk.page.prompt.mode_changed.emit("completion")
    assert desk.texts()[-1] == "and again"


def test_a_system_prompt_that_is_just_typed_counts(windows: Windows) -> None:
    """It is reported after a pause in typing; keys that send, or leave the chat, do not wait for that."""
    desk = windows.open()
    desk.ask("hello")
    chat = desk.controller.shown.id
    desk.system_prompt().set_text("In verse.")
    desk.controller.regenerate()
    desk.answered()
    trace = desk.trace
    assert trace is not None and "In verse." in trace.header.prompt
    desk.system_prompt().set_text("In prose.")
    desk.controller.new_chat()
    assert desk.system_prompt().text() == ""
    desk.page.chats.chat_chosen.emit(chat)
    assert desk.system_prompt().text() == "In prose."


def test_a_system_prompt_does_not_hide_what_another_window_added(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("one")
    store = ChatStore(desk.paths.chats)
    store.ask(store.load(desk.controller.shown.id), "from elsewhere")
    desk.system_prompt().set_text("In verse.")
    desk.controller.regenerate()
    assert "changed in another window" in desk.error() and not desk.busy()
    assert desk.texts()[-1] == "from elsewhere"


def test_a_chat_whose_file_went_back_takes_the_next_question(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("one")
    file = desk.paths.chats / desk.controller.shown.id / "chat.jsonl"
    older = file.read_bytes()
    desk.ask("two")
    shown = desk.texts()
    file.write_bytes(older)
    desk.ask("three")
    assert not desk.error() and desk.texts()[:-2] == shown
    chat = ChatStore(desk.paths.chats).load(desk.controller.shown.id)
    assert [turn.text for turn in chat.turns[::2]] == ["one", "two", "three"]


def test_a_system_prompt_typed_while_its_answer_comes_stays(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("one")
    desk.until_streaming()
    chat = desk.controller.shown.id
    desk.system_prompt().set_text("In verse.")
    desk.controller.new_chat()
    desk.page.chats.chat_chosen.emit(chat)
    assert desk.system_prompt().text() == "In verse."
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    assert desk.controller.shown.chat.system_prompt == "In verse."


def test_completion_mode_and_system_prompt(windows: Windows) -> None:
    desk = windows.open()
    desk.system_prompt().set_text("Answer in verse.")
    desk.ask("hello")
    trace = desk.trace
    assert trace is not None
    assert "Answer in verse." in trace.header.prompt and "<|im_start|>user\nhello" in trace.header.prompt
    assert desk.texts()[0] == "Answer in verse."
    desk.controller.new_chat()
    assert desk.system_prompt().text() == ""
    desk.press(Qt.Key.Key_Right, named(desk.page.prompt, "Mode: chat", Segmented))
    assert "nothing else is sent" in desk.prompt.placeholderText()
    desk.ask("Once upon")
    trace = desk.trace
    assert trace is not None and trace.header.prompt == "Once upon"
    for act in (lambda: desk.type(" and"), desk.controller.regenerate):
        act()
        desk.answered()
        trace = desk.trace
        assert trace is not None and trace.header.prompt == " and", "earlier texts are not joined to it"
    assert desk.saved()["mode"] == "completion"


def test_a_prompt_longer_than_the_context(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("fits")
    shown, kept = desk.fates(), desk.texts()
    long = "x" * 2000
    desk.type(long)
    desk.until(desk.error)
    assert "tokens, but the context has room for 1,024" in desk.error() and "Shorten it" in desk.error()
    assert desk.page.prompt.text() == long
    assert desk.texts() == kept and desk.fates() == shown
    assert len(ChatStore(desk.paths.chats).load(desk.controller.shown.id).turns) == 2
    desk.ask("short again")
    assert desk.error() == "" and len(desk.items()) == 4
    desk.controller.new_chat()
    desk.type(long)
    desk.until(desk.error)
    assert desk.items() == [] and len(desk.chats()) == 1, "a refused first question leaves no chat"


def test_a_strategy_that_needs_a_draft_where_there_is_none(windows: Windows) -> None:
    desk = windows.open(draft=None, strategy="draft-simple:n_max=4")
    assert doubted(desk.header.strategy)
    assert "needs a draft model" in desk.panel_error(desk.header.strategy_panel)
    desk.type("hello")
    desk.until(desk.error)
    assert "needs a draft model, but none is loaded" in desk.error()
    assert desk.page.prompt.text() == "hello" and desk.chats() == []
    desk.type_strategy("prompt-lookup")
    assert not doubted(desk.header.strategy)
    desk.press(Qt.Key.Key_Return)
    desk.answered()
    assert desk.tokens() == 24 and desk.error() == ""


def test_no_engine_process_is_left_behind(windows: Windows) -> None:
    before = started()
    desk = windows.open("process", draft=None, strategy="none")
    engine = psutil.Process(desk.engine_pid)
    assert engine in started() - before
    windows.close(desk)
    assert engine not in started()
