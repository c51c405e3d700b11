"""Versions of an answer: each keeps what followed it, on disk too."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from app.saved.chats.chat_file import NAME
from app.saved.chats.conversation import Answer, ChatHead, Conversation
from app.saved.chats.store import ChatStore
from tests.saved.chats.samples import Clock, header, rounds, totals


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> ChatStore:
    return ChatStore(tmp_path, clock)


def answer(
    store: ChatStore, chat: Conversation, text: str, at: int | None = None, goes_on: bool = False
) -> Conversation:
    """The chat with a finished answer as turn `at`."""
    _, recorder = store.begin_answer(chat, header(), at, goes_on)
    for round in rounds():
        recorder.add(round)
    return recorder.finish(totals(text=text))


def texts(chat: Conversation) -> list[str | None]:
    return [turn.text for turn in chat.turns]


def shown(chat: Conversation, at: int = 1) -> Answer:
    turn = chat.turns[at]
    assert isinstance(turn, Answer)
    return turn


def asked(store: ChatStore) -> Conversation:
    """A chat whose first answer has three versions; the first was talked on."""
    chat = answer(store, store.ask(store.new(), "Q"), "one")
    chat = answer(store, store.ask(chat, "More"), "one more")
    chat = answer(store, chat, "two", at=1)
    return answer(store, chat, "three", at=1)


def test_a_version_comes_back_with_what_followed_it(store: ChatStore) -> None:
    chat = asked(store)
    assert texts(chat) == ["Q", "three"] and shown(chat).version == 2
    assert [version.text for version in shown(chat).versions] == ["one", "two", "three"]
    chat = store.show_version(chat, 1, 0)
    assert texts(chat) == ["Q", "one", "More", "one more"] and shown(chat).version == 0
    chat = answer(store, store.ask(chat, "And"), "last")
    chat = store.show_version(chat, 1, 1)
    assert texts(chat) == ["Q", "two"]
    chat = store.load(store.show_version(chat, 1, 0).id)
    assert texts(chat) == ["Q", "one", "More", "one more", "And", "last"]
    assert [version.text for version in shown(chat).versions] == ["one", "two", "three"]
    for turn in (*shown(chat).versions, shown(chat, 3), shown(chat, 5)):
        found = store.load_trace(chat.id, turn)
        assert found.trace is not None and found.damage is None


def test_an_answer_that_goes_on_is_the_same_version(store: ChatStore) -> None:
    chat = answer(store, asked(store), "three and on", at=1, goes_on=True)
    assert [version.text for version in shown(chat).versions] == ["one", "two", "three and on"]
    assert shown(chat).version == 2


def test_another_question_has_no_versions(store: ChatStore) -> None:
    chat = asked(store)
    chat = answer(store, store.ask(chat, "Q2", at=0), "four")
    assert shown(chat).versions == (shown(chat),)


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"damaged", lambda whole: whole.replace(b'"others":[[', b'"others":[[[')],
    ids=["all", "one answer"],
)
def test_traces_of_versions_outlive_the_days_of_replaced_ones(
    store: ChatStore, clock: Clock, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    chat = asked(store)
    gone = answer(store, store.ask(store.new(), "Q"), "gone")
    store.truncate(gone, 1)
    for _ in range(12):  # the trash's clock advances by a day at most
        clock.now += timedelta(days=1)
        ChatStore(tmp_path, clock).purge()
    for version in shown(chat).versions:
        assert store.load_trace(chat.id, version).trace is not None
    assert not list((tmp_path / gone.id / "superseded").iterdir())
    chat_file = tmp_path / chat.id / NAME
    chat_file.write_bytes(damage(chat_file.read_bytes()))
    for _ in range(12):
        clock.now += timedelta(days=1)
        ChatStore(tmp_path, clock).purge()
    assert len(list((tmp_path / chat.id / "superseded").iterdir())) == 3, "it may name any of them"


IMPOSSIBLE = {
    "no answer": (b'"others":[[', b'"others":[[],['),
    "a question": (b'"others":[[', b'"others":[[{"type":"question","text":"?"}],['),
    "no such place": (b'"version":2}', b'"version":3}'),
    "before the first": (b'"version":2}', b'"version":-1}'),
    "in a version": (b'"others":[],"version":0}', b'"others":[],"version":1}'),
}


@pytest.mark.parametrize(("now", "then"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible_versions_are_damage_and_the_shown_one_stays(
    store: ChatStore, tmp_path: Path, now: bytes, then: bytes
) -> None:
    chat = asked(store)
    file = tmp_path / chat.id / NAME
    assert now in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(now, then, 1))
    read = store.load(chat.id)
    assert read.head.damaged and texts(read) == ["Q", "three"]
    assert shown(read).versions == (shown(read),) and shown(read).trace == shown(chat).trace


def test_an_earlier_program_reads_the_shown_version(store: ChatStore, tmp_path: Path) -> None:
    class Before(msgspec.Struct, tag="answer"):
        """An answer as format 1.0 had it."""

        trace: str
        text: str | None = None

    chat = store.show_version(asked(store), 1, 1)
    first, _body, _question, line = (tmp_path / chat.id / NAME).read_bytes().splitlines()
    assert msgspec.json.decode(first, type=ChatHead).title == "Q"
    read = msgspec.json.decode(line, type=Before)
    assert read.text == "two" and (tmp_path / chat.id / read.trace).exists()


def test_versions_whose_traces_were_not_moved_are_found(store: ChatStore, tmp_path: Path) -> None:
    chat = asked(store)
    folder = tmp_path / chat.id
    for version in shown(chat).versions[:2]:
        (folder / "superseded" / version.trace).rename(folder / version.trace)
    (folder / shown(chat).trace).rename(folder / "superseded" / shown(chat).trace)
    chat = store.load(chat.id)
    assert all(store.load_trace(chat.id, version).trace for version in shown(chat).versions)
