"""The recording of an answer, and the ways in which it ends."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

from app.engine.errors import UserError
from app.engine.record.trace import TraceWriter, read_trace
from app.engine.types import FinishReason
from app.saved.chats.conversation import Answer, ChatHead, Conversation
from app.saved.chats.recorder import AnswerRecorder
from tests.saved.chats.samples import TEXT, header, rounds, totals


class Chat:
    """A fake store that remembers the answer it was given."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def settle(self, answer: Answer) -> Conversation:
        self.answers.append(answer)
        return Conversation(ChatHead("00000000", "t", "", ""), "", (answer,))


@pytest.fixture
def chat() -> Chat:
    return Chat()


def test_every_round_is_on_disk_before_the_next(tmp_path: Path, chat: Chat) -> None:
    path = tmp_path / "a.jsonl"
    recorder = AnswerRecorder(path, header(), chat.settle)
    for number, round in enumerate(rounds(), start=1):
        recorder.add(round)
        assert len(read_trace(path).rounds) == number
    recorder.finish(totals())
    assert read_trace(path).totals == totals()


@pytest.mark.parametrize(
    ("reason", "note"),
    [
        (FinishReason.END, ""),
        (FinishReason.STOP, ""),
        (FinishReason.LENGTH, "The answer reached its length limit."),
        (FinishReason.CONTEXT, "The context is full."),
        (FinishReason.CANCELLED, "Stopped."),
    ],
)
def test_the_note_says_how_it_ended(tmp_path: Path, chat: Chat, reason: FinishReason, note: str) -> None:
    recorder = AnswerRecorder(tmp_path / "a.jsonl", header(), chat.settle)
    recorder.finish(totals(reason))
    assert chat.answers == [Answer("a.jsonl", "One two three", note)]


def test_a_broken_answer_has_the_text_of_its_trace(tmp_path: Path, chat: Chat) -> None:
    """Bytes that are no characters, text that might have been a stop's beginning, half a character."""
    pieces = b"\x80", b"One", b" ST", b"\xe2\x82"
    first = rounds()[0]
    (token,) = first.emitted[:1]
    recorder = AnswerRecorder(tmp_path / "a.jsonl", replace(header(), stop=("STOP",)), chat.settle)
    recorder.add(replace(first, emitted=tuple(replace(token, piece=piece) for piece in pieces)))
    recorder.fail("The engine stopped.")
    (answer,) = chat.answers
    assert answer.text == "\ufffdOne ST\ufffd" == read_trace(tmp_path / "a.jsonl").text


def test_an_engine_that_is_gone_leaves_what_came(tmp_path: Path, chat: Chat) -> None:
    recorder = AnswerRecorder(tmp_path / "a.jsonl", header(), chat.settle)
    recorder.add(rounds()[0])
    recorder.fail("The engine stopped.", "Try again.")
    (answer,) = chat.answers
    assert (answer.text, answer.error, answer.hint) == ("One", "The engine stopped.", "Try again.")
    trace = read_trace(tmp_path / "a.jsonl")
    assert len(trace.rounds) == 1
    assert trace.totals is None  # times that nobody measured are not written


def test_a_full_disk_is_told_once_and_the_text_is_kept(
    tmp_path: Path, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = AnswerRecorder(tmp_path / "a.jsonl", header(), chat.settle)
    first, second, third = rounds()
    recorder.add(first)

    def full(writer: TraceWriter, item: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(TraceWriter, "add", full)
        with pytest.raises(UserError, match="no space left"):
            recorder.add(second)
        recorder.add(third)
        recorder.finish(totals())
    assert chat.answers[0].text == "One two three"
    # Nothing follows a gap: the trace ends where the disk refused.
    assert len(read_trace(tmp_path / "a.jsonl").rounds) == 1


def test_a_folder_that_is_gone_is_a_clear_error(tmp_path: Path, chat: Chat) -> None:
    with pytest.raises(UserError, match="cannot be saved"):
        AnswerRecorder(tmp_path / "none" / "a.jsonl", header(), chat.settle)


def test_words_get_the_room_of_their_trace_on_a_full_disk(tmp_path: Path, chat: Chat) -> None:
    path = tmp_path / "a.jsonl"
    many = [  # more than the header
        replace(round, index=index, position=index, offset=0.1 * index)
        for index, round in enumerate(rounds() * 3)
    ]

    def settle(answer: Answer) -> Conversation:
        if len(read_trace(path).rounds) == len(many):
            try:
                raise OSError(errno.ENOSPC, "No space left on device")
            except OSError as error:
                raise UserError("The chat was not saved: no space left on device.") from error
        return chat.settle(answer)

    recorder = AnswerRecorder(path, header(), settle)
    for round in many:
        recorder.add(round)
    assert recorder.finish(totals()).turns == (Answer("a.jsonl", TEXT),)
    assert read_trace(path).header == header()


def test_a_chat_that_is_not_saved_for_another_reason_keeps_its_trace(tmp_path: Path) -> None:
    def settle(_: Answer) -> NoReturn:
        raise UserError("The folder of the chats is gone.")

    recorder = AnswerRecorder(tmp_path / "a.jsonl", header(), settle)
    recorder.add(rounds()[0])
    with pytest.raises(UserError, match="gone"):
        recorder.finish(totals())
    assert read_trace(tmp_path / "a.jsonl").totals == totals()
