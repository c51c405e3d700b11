"""The chat on the screen: switching while one is answering, what is copied, opened traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.engine.record.trace import read_trace, write_trace
from app.engine.types import FinishReason
from app.saved.chats.conversation import Question
from app.ui.transcript.text.spans import UNKNOWN, spans_of, text_of
from tests.ui.traces import simulate
from tests.ui.windows import Desk, Windows


def test_switching_chats_while_one_is_answering(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("short")
    desk.until_streaming()
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    short = desk.controller.shown.id
    desk.controller.new_chat()
    desk.type("long")
    desk.until_streaming(10)
    answering = desk.controller.shown.id
    long = desk.answers()[-1].answer
    desk.page.chats.chat_chosen.emit(short)
    assert desk.texts()[0] == "short" and not desk.page.transcript.live
    kept = desk.texts()
    came = len(long.rounds)
    desk.until(lambda: len(long.rounds) > came + 10)
    assert desk.texts() == kept, "the other chat's tokens stay out of this one"
    assert desk.busy()
    desk.type("not now")
    assert "busy" in desk.error() or desk.page.prompt.text() == "not now"
    desk.page.chats.chat_chosen.emit(answering)
    assert desk.page.transcript.live and desk.texts()[0] == "long"
    before = desk.tokens()
    desk.until_streaming(before + 5)
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    trace = desk.trace
    assert trace is not None and trace.totals is not None
    assert trace.totals.finish_reason is FinishReason.CANCELLED
    assert desk.answers()[-1].text == trace.totals.text == trace.text
    assert [round.index for round in desk.answers()[-1].answer.rounds] == list(range(len(trace.rounds)))


def test_an_answer_finishes_while_another_chat_is_shown(windows: Windows) -> None:
    desk = windows.open(max_tokens=200)
    desk.type("behind")
    desk.until(desk.busy)
    desk.until(lambda: desk.controller.shown.id)
    behind = desk.controller.shown.id
    desk.controller.new_chat()
    desk.until_ready()
    assert desk.items() == [] and desk.notes() == []
    desk.page.chats.chat_chosen.emit(behind)
    assert desk.tokens() == 200 and desk.notes() == ["The answer reached its length limit."]


def test_what_is_copied_never_holds_rejected_tokens(windows: Windows) -> None:
    desk = windows.open(max_tokens=60)
    item = desk.ask("abcabcabd abc")
    trace = desk.trace
    assert trace is not None
    struck = [span for span in spans_of(trace) if span.struck]
    assert struck, "there is something that must not be copied"
    emitted = b"".join(token.piece for round in trace.rounds for token in round.emitted)
    desk.page.transcript.copy_turn(item.turn)
    assert QGuiApplication.clipboard().text() == text_of(spans_of(trace)) == trace.text
    assert trace.text == emitted.decode("utf-8", errors="ignore") or "\ufffd" in trace.text
    desk.page.transcript.select_all()
    assert desk.page.transcript.selection.text().endswith(trace.text.rstrip("\n")) or (
        trace.text in desk.page.transcript.selection.text()
    )


def test_screen_readers_say_that_an_answer_begins_and_how_it_ended(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("app.ui.chat.shown_chat.announce", lambda _widget, text: told.append(text))
    desk = windows.open(max_tokens=20)
    item = desk.ask("say it")
    rounds, accepted = item.answer.statistics.rounds, item.answer.statistics.accepted
    begun, ended = told
    assert begun == "The answer begins."
    assert ended.startswith(f"Answered: {rounds} rounds, {accepted} accepted, ")
    assert "The answer reached its length limit." in ended


def test_an_opened_trace_is_shown_and_is_no_chat(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    trace = simulate("def mean(values):\n    return sum(values) / len(values)\n", seed=3)
    write_trace(tmp_path / "a.jsonl", trace)
    read = read_trace(tmp_path / "a.jsonl")
    desk.window.show_trace(read, tmp_path / "a.jsonl")
    assert desk.answers()[0].text == trace.text
    assert desk.page.instruments.answer.statistics.rounds == len(trace.rounds)
    assert desk.chats() == []
    desk.page.instruments.acceptance.canvas.clicked.emit(1)
    token = desk.page.transcript.hover.token
    assert token is not None and token.span.round == 1
    desk.page.transcript.regenerate_requested.emit(desk.items()[-1].turn)
    assert "read from a trace file" in desk.error()
    desk.window.status.measure_baseline_requested.emit()
    assert "Only answers in this chat" in desk.error()
    desk.ask("a chat of its own")
    assert len(desk.items()) == 2 and desk.texts()[0] == "a chat of its own"
    desk.window.show_trace(read, tmp_path / "a.jsonl")
    desk.page.transcript.edit_submitted.emit(desk.items()[0].turn, Question("changed"))
    desk.answered()
    assert len(desk.items()) == 2 and desk.texts()[0] == "changed"
    assert len(desk.chats()) == 2


def test_the_context_is_that_of_the_chat_on_the_screen(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open(max_tokens=20)
    context = desk.window.status.context.value
    desk.ask("hello")
    trace = desk.trace
    assert trace is not None
    size = trace.header.pair.target.n_ctx
    first = f"{trace.header.prompt_tokens + len(trace.token_ids):,} / {size:,}"
    assert context.text() == first
    chat_id = desk.controller.shown.id
    desk.controller.new_chat()
    assert context.text() == f"0 / {size:,}"
    desk.ask("a longer question, so that it takes more of the context than the other one")
    assert context.text() not in (first, f"0 / {size:,}")
    desk.controller.open_chat(chat_id)
    assert context.text() == first
    write_trace(tmp_path / "a.jsonl", trace)
    desk.controller.new_chat()
    desk.window.show_trace(read_trace(tmp_path / "a.jsonl"), tmp_path / "a.jsonl")
    assert context.text() == first
    answer = desk.controller.shown.answer
    assert answer is not None
    answer.move(1)
    first_round = f"{trace.header.prompt_tokens + len(trace.rounds[0].emitted):,} / {size:,}"
    assert context.text() == first_round, "up to the cursor, as the other numbers"
    windows.close(desk)
    assert windows.open().window.status.context.value.text() == f"0 / {size:,}"


def cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def flip(place: float) -> Callable[[bytes], bytes]:
    def flipped(data: bytes) -> bytes:
        at = int(len(data) * place)
        return data[:at] + bytes([data[at] ^ 128]) + data[at + 1 :]

    return flipped


@pytest.mark.parametrize(
    ("damage", "some_colours"),
    [
        (None, False),
        (lambda _: b"", False),
        (flip(0), False),
        (flip(0.5), True),
        (flip(0.99), True),
        (cut, True),
        (lambda data: b"[" * 2000 + b"\n" + data, False),
    ],
    ids=["missing", "empty", "header", "middle", "end", "cut", "nested"],
)
def test_the_words_of_a_chat_are_shown_whatever_became_of_the_trace(
    windows: Windows, damage: Callable[[bytes], bytes] | None, some_colours: bool
) -> None:
    desk = windows.open(max_tokens=40)
    words = desk.ask("abcabc").text
    assert len(words) > 20
    chat_id = desk.controller.shown.id
    (trace,) = (path for path in (desk.paths.chats / chat_id).glob("*.jsonl") if path.name != "chat.jsonl")
    if damage is None:
        trace.unlink()
    else:
        trace.write_bytes(damage(trace.read_bytes()))
    desk.controller.new_chat()
    desk.controller.open_chat(chat_id)
    (answer,) = desk.answers()
    assert answer.text == words
    assert (desk.page.instruments.answer.statistics.rounds > 0) == some_colours
    assert "tokens of this answer are" in desk.notes()[0] or desk.notes()[0].startswith("The answer reached")
    transcript = desk.page.transcript
    transcript.copy_turn(answer.turn)
    assert QGuiApplication.clipboard().text() == words
    assert transcript.find(words.split("\n")[0][-3:])[1]
    transcript.select_all()
    assert words in transcript.selection.text()
    transcript.set_rendered(True)
    desk.ask("and on")
    assert desk.answers()[0].text == words


def test_words_without_tokens_are_no_tokens(windows: Windows) -> None:
    desk = windows.open(max_tokens=40)
    desk.ask("abcabc")
    chat_id = desk.controller.shown.id
    (trace,) = (path for path in (desk.paths.chats / chat_id).glob("*.jsonl") if path.name != "chat.jsonl")
    trace.write_bytes(cut(trace.read_bytes()))
    desk.controller.new_chat()
    desk.controller.open_chat(chat_id)
    (fates,) = desk.fates()
    assert [fate for _, fate, _, _ in fates].count(UNKNOWN) == 1 and fates[-1][1] == UNKNOWN
    keys = 0
    while desk.page.transcript.hover.token is None or keys < len(fates) + 5:
        desk.press(Qt.Key.Key_Right, desk.page.transcript, modifier=Qt.KeyboardModifier.AltModifier)
        keys += 1
    token = desk.page.transcript.hover.token
    assert token is not None and token.span.fate != UNKNOWN


def test_an_opened_trace_says_what_was_asked_and_that_it_is_a_recording(
    windows: Windows, tmp_path: Path
) -> None:
    desk = windows.open(max_tokens=20)
    desk.page.prompt.system_changed.emit("Be short.")
    first = desk.ask("hello").text
    desk.ask("and then?")
    trace = desk.trace
    assert trace is not None and "<|im_start|>" in trace.header.prompt
    file = tmp_path / "answer.jsonl"
    write_trace(file, trace)
    texts = desk.texts()
    live = (*desk.header.chips, desk.header.regenerate, desk.header.clear, desk.window.status.measure)
    desk.controller.new_chat()
    assert not desk.page.recording.isVisible() and all(part.isVisible() for part in live)

    desk.window.show_trace(read_trace(file), file)
    assert desk.texts() == texts == ["Be short.", "hello", first, "and then?", trace.text]
    said = f"{desk.page.recording.name.text()} {desk.page.recording.facts.text()}"
    header = trace.header
    for fact in (
        "Recording · answer.jsonl",
        "202",
        header.machine,
        "CPU",
        header.pair.target.name,
        header.strategy,
    ):
        assert fact in said
    assert not any(part.isVisible() for part in live)

    desk.page.recording.close_it.click()
    assert desk.texts() == [] and not desk.page.recording.isVisible()
    assert all(part.isVisible() for part in live)
    desk.window.show_trace(read_trace(file), file)
    desk.ask("what is asked begins a chat")
    assert not desk.page.recording.isVisible() and all(part.isVisible() for part in live)
    assert desk.texts()[0] == "what is asked begins a chat"


def test_a_closed_recording_gives_way_to_the_chat_before_it(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open(max_tokens=400)
    trace = desk.ask("hello").answer.trace
    assert trace is not None
    file = tmp_path / "answer.jsonl"
    write_trace(file, trace)
    desk.type("and then?")
    desk.until_streaming()
    answer = desk.controller.shown.answer
    for _again in range(2):  # the second takes the place of the first
        desk.window.show_trace(read_trace(file), file)
    assert desk.texts() == ["hello", trace.text]
    desk.page.recording.close_it.click()
    assert desk.texts()[:3] == ["hello", trace.text, "and then?"]
    assert desk.controller.shown.answer is answer, "which is still being written, or has ended"
    desk.until_ready()
