"""The Chat place over a real engine: asking, stopping, editing, choosing among chats, and what goes wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.chats.conversation import Answer
from app.chats.store import ChatStore
from app.engine.host import ProcessHome
from app.engine.trace import TraceWriter, read_trace, write_trace
from app.engine.types import FinishReason, ModelOptions, Round, Totals
from app.ui.engine_session import Activity
from app.ui.transcript.spans import spans_of, text_of
from tests.tiny import Tiny
from tests.ui.traces import simulate
from tests.ui.windows import Desk, Windows, seconds_until

STOPS_WITHIN = 0.1  # seconds
ATTEMPTS = 6  # a busy machine may spoil some

on_posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


@pytest.fixture(scope="session")
def slow_target(tiny_file: Callable[[Tiny], Path]) -> ModelOptions:
    """Writes its whole context in seconds."""
    return ModelOptions(str(tiny_file(Tiny(name="slow", n_layers=6, n_embd=128, n_ff=512, n_ctx=8192))))


@pytest.fixture
def slow(windows: Windows, slow_target: ModelOptions) -> Callable[..., Desk]:
    """Opens a window whose answers take seconds."""

    def make(engine: str = "thread", ready: bool = True) -> Desk:
        return windows.open(engine, ready, target=slow_target, draft=None, strategy="none", max_tokens=8000)

    return make


def kill_engine(desk: Desk) -> None:
    home = desk.session._thread._home
    assert isinstance(home, ProcessHome) and home.pid
    os.kill(home.pid, signal.SIGKILL)


# ------------------------------------------------------------------------------------------- asking


def test_enter_on_the_empty_prompt_sends_the_demo_prompt(windows: Windows) -> None:
    desk = windows.open()
    assert desk.items() == []
    desk.press(Qt.Key.Key_Return)
    item = desk.answered()
    assert desk.texts()[0].startswith("Write a small Python function")
    assert desk.tokens() == 24 and item.text
    assert {"accepted", "resampled"} <= {fate for _text, fate, _round, _place in desk.fates()[0]}
    assert desk.page.instruments.statistics.emitted == 24
    assert desk.chats() == ["Write a small Python function that returns the median of a…"]
    assert desk.notes() == ["The answer reached its length limit."]
    assert desk.error() == ""


def test_a_prompt_sent_while_the_models_load_waits_for_them(windows: Windows) -> None:
    desk = windows.open(ready=False)
    assert desk.session.activity is Activity.EMPTY
    seen: list[str] = []

    def send_early(activity: Activity) -> None:
        if activity is Activity.LOADING:
            desk.type("early")
            seen.append(desk.controller.chat_id)
            desk.press(Qt.Key.Key_Escape)
            seen.append(desk.page.prompt.text())
            desk.press(Qt.Key.Key_Return)
            seen.append(desk.page.prompt.text())

    desk.session.activity_changed.connect(send_early)
    desk.answered()
    assert seen == ["", "early", ""], "no chat yet; stopping the waiting gives the text back; sent again"
    assert desk.texts()[0] == "early" and desk.tokens() == 24
    assert desk.window.status.state.text() == "Ready"


def test_what_waits_for_the_models_does_not_end_up_in_another_chat(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("first")
    desk.header.target_panel.applied.emit(ModelOptions(windows._pair[0].as_posix(), ctx_size=512))
    assert desk.session.activity is Activity.LOADING
    desk.type("for the first chat")
    desk.controller.new_chat()
    desk.until_ready()
    assert desk.items() == [] and desk.page.prompt.text() == "for the first chat"


@on_posix
def test_stop_acts_within_a_tenth_of_a_second(slow: Callable[..., Desk]) -> None:
    desk = slow("process")
    seconds = []
    for _ in range(ATTEMPTS):
        desk.type("go")
        desk.until_streaming(20)
        desk.press(Qt.Key.Key_Escape)
        seconds.append(seconds_until(lambda: desk.session.activity is Activity.READY, 5))
        assert desk.session.activity is Activity.READY
        assert desk.notes()[-1] == "Stopped."
        assert 20 <= desk.tokens() < 8000
        if seconds[-1] < STOPS_WITHIN:
            return
    raise AssertionError(f"stopping took {seconds} s")


def test_the_stop_button_says_that_it_is_stopping(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("go")
    desk.until_streaming()
    assert desk.header.stop.isVisible() and not desk.header.regenerate.isVisible()
    desk.press(Qt.Key.Key_Escape)
    if desk.session.activity is Activity.STOPPING:
        assert desk.page.prompt._hint.text() == "Stopping"
        assert not desk.page.prompt._button.isEnabled()
    desk.until_ready()
    assert desk.page.prompt._button.isEnabled()
    assert desk.header.regenerate.isVisible() and desk.header.regenerate.isEnabled()


def test_regenerate_and_edit(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("one")
    desk.ask("two")
    before = desk.fates()
    desk.header.regenerate.click()
    desk.answered()
    assert desk.fates() == before, "greedy repeats itself"
    assert [desk.texts()[at] for at in (0, 2)] == ["one", "two"]
    # The button of an answer further up: what stands behind it goes.
    desk.page.transcript.regenerate_requested.emit("1")
    desk.answered()
    assert desk.texts() == ["one", desk.texts()[1]] and desk.fates() == before[:1]
    desk.ask("two")
    desk.page.transcript.edit("0")
    editor = desk.page.transcript._furniture.editor
    assert editor is not None
    editor.submitted.emit("other")
    desk.answered()
    assert desk.texts()[0] == "other" and len(desk.items()) == 2
    assert desk.fates() != before[:1]
    prompt = desk.controller.trace.header.prompt if desk.controller.trace else ""
    assert "other" in prompt and "one" not in prompt and "two" not in prompt
    chat = ChatStore(desk.paths.chats).load(desk.controller.chat_id)
    assert [turn.text for turn in chat.turns] == desk.texts()


def test_clear_and_undo(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("keep me")
    shown = desk.fates()
    desk.header.clear.click()
    assert desk.items() == [] and desk.chats() == []
    assert desk.page.instruments.statistics.emitted == 0
    desk.page.chats._undo()
    assert desk.chats() == ["keep me"]
    assert desk.texts()[0] == "keep me" and desk.fates() == shown
    desk.ask("and on")
    assert len(desk.items()) == 4


def test_switching_chats_while_one_is_answering(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("short")
    desk.until_streaming()
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    other = desk.controller.chat_id
    desk.controller.new_chat()
    desk.type("long")
    desk.until_streaming(10)
    answering = desk.controller.chat_id
    desk.page.chats.chat_chosen.emit(other)
    assert desk.texts()[0] == "short" and not desk.page.transcript.live
    kept = desk.texts()
    desk.qtbot.wait(120)
    assert desk.texts() == kept, "the other chat's tokens stay out of this one"
    assert desk.busy()
    desk.type("not now")
    assert "still at work" in desk.error() or desk.page.prompt.text() == "not now"
    desk.page.chats.chat_chosen.emit(answering)
    assert desk.page.transcript.live and desk.texts()[0] == "long"
    before = desk.tokens()
    desk.until_streaming(before + 5)
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    trace = desk.controller.trace
    assert trace is not None and trace.totals is not None
    assert trace.totals.finish_reason is FinishReason.CANCELLED
    assert desk.answers()[-1].text == trace.totals.text == trace.text
    assert [one.index for one in desk.answers()[-1].rounds] == list(range(len(trace.rounds)))


def test_an_answer_finishes_while_another_chat_is_shown(windows: Windows) -> None:
    desk = windows.open(max_tokens=200)
    desk.type("behind")
    desk.until(desk.busy)
    desk.until(lambda: desk.controller.chat_id)
    behind = desk.controller.chat_id
    desk.controller.new_chat()
    desk.until_ready()
    assert desk.items() == [] and desk.notes() == []
    desk.page.chats.chat_chosen.emit(behind)
    assert desk.tokens() == 200 and desk.notes() == ["The answer reached its length limit."]


def test_deleting_the_chat_that_is_answering(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("long")
    desk.until_streaming(5)
    chat_id = desk.controller.chat_id
    desk.page.chats.delete_requested.emit(chat_id)
    assert desk.items() == []
    desk.until_ready()
    assert desk.chats() == [] and desk.error() == ""
    desk.page.chats._undo()
    assert desk.controller.chat_id == chat_id
    assert desk.tokens() >= 5 and desk.notes() == ["Stopped."]


def test_rename_and_search(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("about lanterns")
    desk.controller.new_chat()
    desk.ask("about foxes")
    chat_id = desk.controller.chat_id
    desk.page.chats.renamed.emit(chat_id, "Vulpes")
    assert desk.chats() == ["Vulpes", "about lanterns"]
    desk.ask("more of them")
    assert desk.chats()[0] == "Vulpes", "a new turn keeps the title"
    for words, found in (("LANTERN", ["about lanterns"]), ("foxes", ["Vulpes"]), ("nowhere", [])):
        desk.page.chats._field.setText(words)
        desk.until(lambda found=found: desk.chats() == found)
    desk.page.chats._field.clear()
    desk.until(lambda: len(desk.chats()) == 2)


def test_completion_mode_and_system_prompt(windows: Windows) -> None:
    desk = windows.open()
    desk.page.prompt._system.edit.set_text("Answer in verse.")
    desk.ask("hello")
    trace = desk.controller.trace
    assert trace is not None
    assert "Answer in verse." in trace.header.prompt and "<|im_start|>user\nhello" in trace.header.prompt
    assert desk.texts()[0] == "Answer in verse."
    desk.controller.new_chat()
    assert desk.page.prompt._system.edit.text() == ""
    desk.page.prompt._mode.picked.emit("completion")
    desk.page.prompt.set_mode("completion")
    first = desk.ask("Once upon")
    trace = desk.controller.trace
    assert trace is not None and trace.header.prompt == "Once upon"
    desk.ask(" and")
    trace = desk.controller.trace
    assert trace is not None and trace.header.prompt == f"Once upon{first.text} and"
    assert desk.saved()["mode"] == "completion"


def test_what_is_copied_never_holds_rejected_tokens(windows: Windows) -> None:
    desk = windows.open(max_tokens=60)
    item = desk.ask("abcabcabd abc")
    trace = desk.controller.trace
    assert trace is not None
    struck = [span for span in spans_of(trace) if span.struck]
    assert struck, "there is something that must not be copied"
    emitted = b"".join(token.piece for one in trace.rounds for token in one.emitted)
    desk.page.transcript.copy_turn(item.id)
    assert QGuiApplication.clipboard().text() == text_of(spans_of(trace)) == trace.text
    assert trace.text == emitted.decode("utf-8", errors="ignore") or "\ufffd" in trace.text
    desk.page.transcript.select_all()
    assert desk.page.transcript.selected_text.endswith(trace.text.rstrip("\n")) or (
        trace.text in desk.page.transcript.selected_text
    )


def test_choosing_a_round_in_a_plot_shows_its_tokens_and_back(windows: Windows) -> None:
    desk = windows.open()
    item = desk.ask("hello")
    desk.page.instruments.acceptance.canvas.clicked.emit(2)
    token = desk.page.transcript.hover.token
    assert token is not None and token.span.round == 2
    desk.page.transcript.token_clicked.emit(item.id, 1)
    assert desk.page.instruments._pinned == 1
    desk.page.transcript.round_hovered.emit(item.id, 3)
    assert desk.page.instruments._hovered == 3


def test_the_numbers_follow_the_answer_that_was_clicked(windows: Windows) -> None:
    desk = windows.open()
    first = desk.ask("one")
    rounds = len(first.rounds)
    desk.ask("two, and more than one")
    desk.page.transcript.token_clicked.emit(first.id, 0)
    assert desk.page.instruments.statistics.rounds == rounds
    assert desk.controller.trace is not None and len(desk.controller.trace.rounds) == rounds


# ----------------------------------------------------------------------------------- what goes wrong


def test_a_prompt_longer_than_the_context(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("fits")
    shown, kept = desk.fates(), desk.texts()
    long = "x" * 2000
    desk.type(long)
    desk.until(desk.error)
    assert "tokens and the context holds 1,024" in desk.error() and "Shorten it" in desk.error()
    assert desk.page.prompt.text() == long
    assert desk.texts() == kept and desk.fates() == shown
    assert len(ChatStore(desk.paths.chats).load(desk.controller.chat_id).turns) == 2
    desk.ask("short again")
    assert desk.error() == "" and len(desk.items()) == 4
    desk.controller.new_chat()
    desk.type(long)
    desk.until(desk.error)
    assert desk.items() == [] and len(desk.chats()) == 1, "a chat that did not begin is no chat"


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


def test_a_strategy_that_needs_a_draft_where_there_is_none(windows: Windows) -> None:
    desk = windows.open(draft=None, strategy="draft-simple:n_max=4")
    assert desk.header.strategy._alert
    assert "needs a draft model" in desk.panel_error(desk.header.strategy_panel)
    desk.type("hello")
    desk.until(desk.error)
    assert "needs a draft model and none is loaded" in desk.error()
    assert desk.page.prompt.text() == "hello" and desk.chats() == []
    desk.header.strategy_panel.text.line.setText("prompt-lookup")
    desk.header.strategy_panel.text.line.textEdited.emit("prompt-lookup")
    assert not desk.header.strategy._alert
    desk.press(Qt.Key.Key_Return)
    desk.answered()
    assert desk.tokens() == 24 and desk.error() == ""


@on_posix
def test_the_engine_is_killed_in_mid_answer(windows: Windows, slow: Callable[..., Desk]) -> None:
    desk = slow("process")
    desk.type("go")
    desk.until_streaming(30)
    kill_engine(desk)
    desk.until(desk.notes)
    assert desk.notes()[0].startswith("The engine stopped unexpectedly (signal 9")
    assert not desk.page.transcript.live
    shown, text = desk.fates(), desk.answers()[0].text.replace("\ufffd", "")
    assert desk.tokens() >= 30
    chat = ChatStore(desk.paths.chats).load(desk.controller.chat_id)
    answer = chat.turns[-1]
    assert (
        isinstance(answer, Answer) and answer.text == text and answer.error.startswith("The engine stopped")
    )
    trace = read_trace(desk.paths.chats / chat.id / answer.trace)
    assert trace.totals is None and len(trace.rounds) == len(desk.answers()[0].rounds)
    desk.until_ready()
    assert desk.window.status.state.text() == "Ready" and desk.header.regenerate.isEnabled()
    desk.page.transcript.note_action.emit("1")
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
    chat = ChatStore(desk.paths.chats).load(desk.controller.chat_id)
    assert chat.turns[-1].text == item.text, "the text is saved at the end"
    desk.ask("and on")
    trace = desk.controller.trace
    assert trace is not None and item.text.strip("\ufffd")[:3] in trace.header.prompt
    assert desk.error() == ""


def test_a_disk_that_refuses_everything(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = windows.open()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("app.chats.chat_file.write_atomic", refuse)
        desk.ask("one")
        assert "The chat was not saved: no space left on device" in desk.error()
        desk.ask("two")
        assert [desk.texts()[at] for at in (0, 2)] == ["one", "two"]
        trace = desk.controller.trace
        assert trace is not None and "one" in trace.header.prompt
    desk.ask("three")
    chat = ChatStore(desk.paths.chats).load(desk.controller.chat_id)
    assert [turn.text for turn in chat.turns] == desk.texts(), (
        "what was refused is saved as soon as it can be"
    )


def test_an_answer_whose_trace_cannot_be_made(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = windows.open()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("app.chats.recorder.TraceWriter", refuse)
        desk.ask("one")
        assert "The answer cannot be saved: permission denied" in desk.error()
        assert desk.tokens() == 24
    desk.ask("two")
    texts = desk.texts()
    assert len(texts) == 4
    chat = ChatStore(desk.paths.chats).load(desk.controller.chat_id)
    assert [turn.text for turn in chat.turns] == texts
    chat_id = chat.id
    desk.controller.new_chat()
    desk.controller.open_chat(chat_id)
    assert desk.notes()[0] == "The tokens of this answer were not saved."
    assert desk.answers()[-1].text == texts[-1]


# ------------------------------------------------------------------------------------- opened traces


def test_an_opened_trace_is_shown_and_is_no_chat(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    trace = simulate("def mean(values):\n    return sum(values) / len(values)\n", seed=3)
    write_trace(tmp_path / "a.jsonl", trace)
    read = read_trace(tmp_path / "a.jsonl")
    desk.window.show_trace(read)
    assert desk.answers()[0].text == trace.text
    assert desk.page.instruments.statistics.rounds == len(trace.rounds)
    assert desk.chats() == []
    desk.page.instruments.acceptance.canvas.clicked.emit(1)
    token = desk.page.transcript.hover.token
    assert token is not None and token.span.round == 1
    desk.page.transcript.regenerate_requested.emit("-1")
    assert "read from a trace file" in desk.error()
    desk.window.status.measure_baseline_requested.emit()
    assert "Only an answer of this chat" in desk.error()
    desk.ask("a chat of its own")
    assert len(desk.items()) == 2 and desk.texts()[0] == "a chat of its own"
    desk.window.show_trace(read)
    desk.page.transcript.edit_submitted.emit("-2", "changed")
    desk.answered()
    assert len(desk.items()) == 2 and desk.texts()[0] == "changed"
    assert len(desk.chats()) == 2


def test_no_engine_process_is_left_behind(windows: Windows) -> None:
    before = {child.pid for child in psutil.Process().children()}
    desk = windows.open("process", draft=None, strategy="none")
    home = desk.session._thread._home
    assert isinstance(home, ProcessHome)
    engine = home.pid
    assert engine in {child.pid for child in psutil.Process().children()} - before
    windows.close(desk)
    assert engine not in {child.pid for child in psutil.Process().children()}
