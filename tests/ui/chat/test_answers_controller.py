"""Answers of a real engine, cut off by the context, the engine or the disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from app.engine.record.recheck import recheck
from app.engine.record.trace import TraceWriter, read_trace
from app.engine.types import Round, Totals
from app.saved.chats.conversation import Answer, Question
from app.saved.chats.store import ChatStore
from app.ui.transcript.controls import NoteCard
from app.ui.widgets.notice import Notice
from tests.ui.windows import Desk, Windows

on_posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


def kill_engine(desk: Desk, by: signal.Signals = signal.SIGKILL) -> None:
    os.kill(desk.engine_pid, by)


def test_the_context_is_full_in_mid_answer(windows: Windows) -> None:
    desk = windows.open(max_tokens=5000)
    desk.ask("x" * 900)
    assert desk.notes() == ["The context is full."]
    assert 0 < desk.tokens() < 124
    assert desk.window.status.context.value.text().endswith("/ 1,024")
    desk.controller.new_chat()
    desk.window.settings.change(max_tokens=5)
    desk.ask("short")
    assert desk.tokens() == 5


@on_posix
def test_the_engine_is_killed_in_mid_answer(windows: Windows, slow: Callable[..., Desk]) -> None:
    desk = slow("process")
    desk.type("go")
    desk.until_streaming(30)
    kill_engine(desk)
    desk.until(desk.notes)
    assert desk.notes()[0].startswith("The engine was ended (signal 9")
    assert not desk.page.transcript.live
    shown, text = desk.fates(), desk.answers()[0].text
    assert desk.tokens() >= 30
    chat = ChatStore(desk.paths.chats).load(desk.controller.shown.id)
    answer = chat.turns[-1]
    assert (
        isinstance(answer, Answer) and answer.text == text and answer.error.startswith("The engine was ended")
    )
    trace = read_trace(desk.paths.chats / chat.id / answer.trace)
    assert trace.totals is None and len(trace.rounds) == len(desk.answers()[0].answer.rounds)
    desk.until_ready()
    assert desk.window.status.state.text() == "Ready" and desk.header.regenerate.isEnabled()
    desk.page.transcript.note_action.emit(desk.items()[1].turn)
    desk.until_streaming(5)
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    assert desk.notes() == ["Stopped."] and desk.fates()[0][:5] == shown[0][:5]


def test_a_disk_that_refuses_traces(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = windows.open()

    def refuse(self: TraceWriter, item: Round | Totals) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(TraceWriter, "add", refuse)
        item = desk.ask("hello")
        assert "no longer saved: no space left on device" in desk.error()
        assert desk.tokens() == 24 and item.text
    chat = ChatStore(desk.paths.chats).load(desk.controller.shown.id)
    assert chat.turns[-1].text == item.text, "the text is saved at the end"
    desk.ask("and on")
    trace = desk.trace
    assert trace is not None and item.text.strip("\ufffd")[:3] in trace.header.prompt
    assert desk.error() == ""


def test_a_disk_that_refuses_everything(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = windows.open()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("app.saved.chats.chat_file.write_atomic", refuse)
        desk.ask("one")
        assert "The chat was not saved: no space left on device" in desk.error()
        desk.ask("two")
        assert [desk.texts()[at] for at in (0, 2)] == ["one", "two"]
        trace = desk.trace
        assert trace is not None and "one" in trace.header.prompt
    desk.ask("three")
    chat = ChatStore(desk.paths.chats).load(desk.controller.shown.id)
    assert [turn.text for turn in chat.turns] == desk.texts(), (
        "what was refused is saved as soon as it can be"
    )


def refusing(*_: object) -> None:
    raise OSError(28, "No space left on device")


def check_kept(desk: Desk) -> None:
    """Everything on the screen is on the disk, with the tokens of every answer."""
    store = ChatStore(desk.paths.chats)
    chat = store.load(desk.controller.shown.id)
    assert [turn.text for turn in chat.turns] == desk.texts()
    for turn in chat.turns:
        if isinstance(turn, Answer):
            found = store.load_trace(chat.id, turn)
            assert found.damage is None and found.trace is not None and found.trace.totals is not None
            assert found.trace.text == turn.text


@pytest.mark.parametrize("what", ["everything", "traces"])
def test_what_could_not_be_written_is_written_as_soon_as_it_can_be(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    desk = windows.open()
    with monkeypatch.context() as patch:
        if what == "everything":
            patch.setattr("app.saved.chats.chat_file.write_atomic", refusing)
        patch.setattr(TraceWriter, "add", refusing)
        patch.setattr("app.engine.record.trace.write_atomic", refusing)
        desk.ask("one")
        desk.ask("two")
        assert "no space left on device" in desk.error()
        desk.controller.answers.save_unsaved()
        assert "no space left on device" in desk.error()
    desk.until(lambda: not desk.error())
    check_kept(desk)
    desk.ask("three")
    check_kept(desk)


def test_what_could_not_be_written_is_written_at_the_end(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = windows.open()
    desk.ask("before")
    monkeypatch.setattr("app.ui.chat.answers._AGAIN", 10**6)
    with monkeypatch.context() as patch:
        patch.setattr("app.saved.chats.chat_file.write_atomic", refusing)
        patch.setattr("app.saved.chats.recorder.TraceWriter", refusing)
        desk.ask("meanwhile")
        desk.controller.new_chat()
        desk.ask("in another chat")
    shown = desk.texts()
    desk.window.close()
    store = ChatStore(desk.paths.chats)
    chats = [store.load(head.id) for head in store.heads()]
    said = {tuple(turn.text for turn in chat.turns if isinstance(turn, Question)) for chat in chats}
    assert said == {("before", "meanwhile"), ("in another chat",)}
    assert shown in [[turn.text for turn in chat.turns] for chat in chats]


def test_an_unsaved_chat_is_shown_again_as_it_was(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = windows.open()
    desk.ask("before")
    chat_id = desk.controller.shown.id
    with monkeypatch.context() as patch:
        patch.setattr("app.saved.chats.chat_file.write_atomic", refusing)
        desk.ask("meanwhile")
        shown = desk.texts()
        desk.controller.new_chat()
        desk.controller.open_chat(chat_id)
        assert desk.texts() == shown
    desk.until(lambda: not desk.error())
    check_kept(desk)


def test_an_answer_whose_trace_cannot_be_made(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = windows.open()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("app.saved.chats.recorder.TraceWriter", refuse)
        desk.ask("one")
        assert "The answer cannot be saved: permission denied" in desk.error()
        assert desk.tokens() == 24
    desk.ask("two")
    texts = desk.texts()
    assert len(texts) == 4
    chat = ChatStore(desk.paths.chats).load(desk.controller.shown.id)
    assert [turn.text for turn in chat.turns] == texts
    chat_id = chat.id
    desk.controller.new_chat()
    desk.controller.open_chat(chat_id)
    assert "not saved" not in desk.notes()[0]
    check_kept(desk)
    assert desk.answers()[-1].text == texts[-1]


@on_posix
def test_an_engine_that_hangs_can_be_ended_and_every_word_is_kept(
    windows: Windows, slow: Callable[..., Desk]
) -> None:
    desk = slow("process")
    desk.type("go")
    desk.until_streaming(30)
    pair = desk.session.pair
    kill_engine(desk, signal.SIGSTOP)
    desk.page.prompt.stop()
    desk.until(lambda: "End the engine now" in desk.offers())
    assert "keeps the answer so far" in desk.error()
    came = desk.answers()[0].text
    (notice,) = desk.page.prompt.notices.strips
    desk.qtbot.mouseClick(button(notice, "End the engine now"), Qt.MouseButton.LeftButton)
    desk.until(desk.notes)
    assert desk.notes() == ["The engine was ended."]
    assert desk.offers() == [], "the offer to end the engine is gone"
    assert desk.answers()[0].text.startswith(came.rstrip("\ufffd")) and desk.tokens() >= 30
    answer = ChatStore(desk.paths.chats).load(desk.controller.shown.id).turns[-1]
    assert isinstance(answer, Answer) and answer.text == desk.answers()[0].text
    desk.until_ready()
    assert desk.session.pair is not None and pair is not None
    assert desk.session.pair.target.path == pair.target.path
    desk.controller.new_chat()
    desk.window.settings.change(max_tokens=5)
    desk.ask("short")
    assert desk.tokens() == 5


def button(notice: Notice, words: str) -> QPushButton:
    return next(button for button in notice.findChildren(QPushButton) if button.text() == words)


def test_a_question_is_on_disk_before_the_engine_is_asked(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = windows.open()
    found: list[list[str | None]] = []
    generate = desk.session.generate

    def look(*arguments: Any) -> None:
        store = ChatStore(desk.paths.chats)
        found.append([turn.text for head in store.heads() for turn in store.load(head.id).turns])
        generate(*arguments)

    monkeypatch.setattr(desk.session, "generate", look)
    first = desk.ask("first").text
    desk.ask("second")
    desk.page.transcript.edit_submitted.emit(desk.items()[2].turn, Question("changed"))
    desk.answered()
    assert found == [["first"], ["first", first, "second"], ["first", first, "changed"]]
    chat = ChatStore(desk.paths.chats).load(desk.controller.shown.id)
    assert [turn.text for turn in chat.turns] == desk.texts()


def test_a_question_that_is_refused_leaves_the_chat_as_it_was(windows: Windows) -> None:
    desk = windows.open()
    too_long = "x" * 5000
    desk.ask_refused(too_long)
    assert desk.chats() == [] and desk.items() == [] and desk.page.prompt.text() == too_long
    desk.ask("hello")
    before, words = ChatStore(desk.paths.chats).load(desk.controller.shown.id), desk.texts()
    desk.ask_refused(too_long)
    assert desk.texts() == words and desk.page.prompt.text() == too_long
    desk.page.transcript.edit_submitted.emit(desk.items()[0].turn, Question(too_long))
    desk.until(lambda: "context" in desk.error() and not desk.busy())
    assert desk.texts() == words
    assert ChatStore(desk.paths.chats).load(before.id).turns == before.turns
    assert desk.page.instruments.answer.statistics.rounds > 0, "the answer has its trace again"
    desk.ask("and on")
    assert desk.texts()[:2] == words and len(desk.texts()) == 4


def test_an_answer_at_its_length_limit_goes_on(windows: Windows) -> None:
    desk = windows.open(max_tokens=24)
    first = desk.ask("hello")
    begun, fates = first.text, desk.fates()[0]
    assert len(desk.trace.token_ids) == 24
    for whole in (48, 72):
        (note,) = [note for note in desk.page.transcript.findChildren(NoteCard) if note.isVisible()]
        assert note.action.text() == "Continue"
        note.action.setFocus()
        note.action.click()
        assert desk.prompt.hasFocus()
        item = desk.answered()
        trace = desk.trace
        assert len(trace.token_ids) == whole and trace.header.max_tokens == whole
        assert item.text.startswith(begun) and desk.texts() == ["hello", trace.text]
        assert desk.fates()[0][: len(fates)] == fates, "the tokens before keep their colours"
        assert recheck(trace) == [] and desk.error() == ""
        assert desk.page.instruments.answer.statistics.emitted == whole
        begun, fates = item.text, desk.fates()[0]
    chat = desk.controller.shown.id
    windows.close(desk)
    again = windows.open(max_tokens=24)
    again.controller.open_chat(chat)
    assert again.fates()[0] == fates
    again.ask("more")
    assert len([note for note in again.page.transcript.findChildren(NoteCard) if note.isVisible()]) == 2
    again.page.transcript.note_action.emit(again.items()[1].turn)
    assert "Only the last answer" in again.error()
