"""Chats are saved as they happen and come back; nothing is lost on the way."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path

import filelock
import msgspec
import pytest

from app.engine.errors import TraceError, UserError
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.templates.options import TemplateOptions
from app.engine.types import FinishReason
from app.saved.chats import chat_file
from app.saved.chats.chat_file import NAME, write_chat
from app.saved.chats.conversation import Answer, ChatHead, Conversation, Question
from app.saved.chats.store import CUT_OFF, ChatStore
from app.saved.measured import Measurement
from tests.saved.chats.samples import TEXT, Clock, header, rounds, totals


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> ChatStore:
    return ChatStore(tmp_path, clock)


def answered(store: ChatStore, prompt: str = "Count to three", text: str = TEXT) -> Conversation:
    """A chat with one question and one finished answer."""
    chat = store.ask(store.new(system_prompt="Be short."), prompt)
    _, recorder = store.begin_answer(chat, header())
    for round in rounds():
        recorder.add(round)
    return recorder.finish(totals(text=text))


def whole_trace(store: ChatStore, chat: Conversation) -> Trace:
    """The trace of a chat's first answer, undamaged."""
    answer = chat.turns[1]
    assert isinstance(answer, Answer)
    found = store.load_trace(chat.id, answer)
    assert found.trace is not None and found.damage is None
    return found.trace


def days_pass(store: ChatStore, clock: Clock, days: int) -> None:
    """Draftscope is started every day."""
    for _ in range(days):
        clock.advance(days=1)
        store.purge()


def titles(store: ChatStore) -> list[str]:
    return [head.title for head in store.heads()]


def test_a_chat_comes_back_with_its_colours(store: ChatStore) -> None:
    chat = answered(store)
    again = ChatStore(store.folder).load(chat.id)
    assert again == chat
    assert again.system_prompt == "Be short."
    assert again.head.title == "Count to three"
    answer = again.turns[1]
    assert isinstance(answer, Answer)
    assert answer.text == TEXT
    assert whole_trace(store, chat).rounds == rounds()
    assert whole_trace(store, chat).totals == totals()


def test_an_empty_chat_is_not_saved(store: ChatStore) -> None:
    chat = store.new()
    chat = store.set_mode(store.set_system_prompt(chat, "S"), "completion")
    assert store.heads() == []
    saved = store.ask(chat, "Hello")
    assert store.load(saved.id).system_prompt == "S"
    assert store.load(saved.id).head.mode == "completion"


def test_both_texts_around_a_gap_come_back(store: ChatStore) -> None:
    chat = store.ask(store.new("infill"), "", suffix="\nprint(add(1, 2))")
    chat = store.ask(chat, "def add(a, b):", suffix="")
    chat = store.ask(chat, "plain")
    assert store.load(chat.id).turns == (
        Question("", "\nprint(add(1, 2))"),
        Question("def add(a, b):", ""),
        Question("plain"),
    )
    assert titles(store) == ["print(add(1, 2))"]
    assert [head.id for head in store.search("print(add")] == [chat.id]


def test_what_the_template_is_told_stays_with_its_chat(store: ChatStore) -> None:
    told: TemplateOptions = {"enable_thinking": False, "reasoning_effort": "low"}
    chat = store.set_template_options(store.new(), told)
    assert store.heads() == []
    saved = store.ask(chat, "Hello")
    assert ChatStore(store.folder).load(saved.id).template_options == told
    store.set_template_options(saved, {})
    assert store.load(saved.id).template_options == {}
    assert store.new().template_options == {}


def test_a_chat_from_before_template_options_is_read(store: ChatStore) -> None:
    chat = answered(store)
    file = store.folder / chat.id / NAME
    whole = file.read_bytes()
    older = whole.replace(b',"template_options":{}', b"")
    assert older != whole
    file.write_bytes(older)
    assert store.load(chat.id) == chat


@pytest.mark.parametrize("system", ["", "Be short."])
def test_damaged_template_options_cost_only_themselves(store: ChatStore, system: str) -> None:
    chat = store.ask(store.new(system_prompt=system), "Hello")
    chat = store.set_template_options(chat, {"enable_thinking": False})
    file = store.folder / chat.id / NAME
    file.write_bytes(file.read_bytes().replace(b":false}", b":falXe}"))
    read = store.load(chat.id)
    assert (read.system_prompt, read.template_options, read.turns) == (system, {}, chat.turns)
    assert "damaged" in read.head.damaged


def test_the_chat_changed_last_is_first(store: ChatStore) -> None:
    first, second = answered(store, "first"), answered(store, "second")
    assert titles(store) == ["second", "first"]
    store.ask(first, "again")
    assert titles(store) == ["first", "second"]
    store.rename(second.id, "renamed")  # a new name is no news
    assert titles(store) == ["first", "renamed"]


def test_a_crash_in_mid_answer_keeps_what_came(store: ChatStore) -> None:
    chat = store.ask(store.new(), "Count")
    chat, recorder = store.begin_answer(chat, header())
    for round in rounds()[:2]:
        recorder.add(round)
    # The process dies here: neither finish nor close. Another process starts.
    after = ChatStore(store.folder).load(chat.id)
    answer = after.turns[1]
    assert isinstance(answer, Answer)
    assert answer.text == "One two"
    assert answer.note == CUT_OFF
    assert whole_trace(store, after).rounds == rounds()[:2]
    assert [head.id for head in store.search("two")] == [chat.id]
    recorder.discard()


def test_what_a_crash_cut_off_stays_part_of_the_chat(store: ChatStore) -> None:
    chat = store.ask(store.new(), "Count")
    chat, recorder = store.begin_answer(chat, header())
    for round in rounds()[:2]:
        recorder.add(round)
    recorder.close()
    seen = ChatStore(store.folder).load(chat.id)
    for change in (
        lambda: store.set_system_prompt(seen, "Be brief."),
        lambda: store.set_mode(seen, "completion"),
        lambda: store.ask(seen, "Go on"),
    ):
        assert [turn.text for turn in change().turns[:2]] == ["Count", "One two"]


def test_a_chat_that_the_disk_never_took_can_be_changed(store: ChatStore) -> None:
    chat = msgspec.structs.replace(store.new(), turns=(Question("Count"),))
    changed = store.set_mode(chat, "completion")
    assert (changed.head.mode, changed.turns) == ("completion", chat.turns)


def test_a_crash_within_a_line_keeps_the_lines_before(store: ChatStore) -> None:
    chat = store.ask(store.new(), "Count")
    chat, recorder = store.begin_answer(chat, header())
    for round in rounds():
        recorder.add(round)
    path = store.folder / chat.id / recorder.trace
    path.write_bytes(path.read_bytes()[:-20])
    answer = store.load(chat.id).turns[1]
    assert isinstance(answer, Answer)
    assert answer.text == "One two"
    recorder.discard()


def test_a_crash_before_the_first_round_says_so(store: ChatStore) -> None:
    chat = store.ask(store.new(), "Count")
    chat, recorder = store.begin_answer(chat, header())
    recorder.discard()
    answer = store.load(chat.id).turns[1]
    assert isinstance(answer, Answer)
    assert answer.text == ""
    assert "cannot be read" in str(store.load_trace(chat.id, answer).damage)


def test_an_edited_question_replaces_what_followed_in_one_step(store: ChatStore) -> None:
    chat = answered(store)
    chat = store.ask(chat, "And then?")
    edited = store.ask(chat, "Count to two", at=0)
    assert edited.turns == (Question("Count to two"),)
    assert store.load(chat.id) == edited
    assert edited.head.title == "Count to three"


def test_a_replaced_trace_is_kept_for_a_while(store: ChatStore, clock: Clock) -> None:
    chat = answered(store)
    answer = chat.turns[1]
    assert isinstance(answer, Answer)
    kept = store.folder / chat.id / "superseded" / answer.trace
    store.truncate(chat, 1)
    assert kept.is_file()
    days_pass(store, clock, 6)
    assert kept.is_file()
    days_pass(store, clock, 2)
    assert not kept.exists()


def measured() -> Measurement:
    """A measurement whose runs both have the answer's rounds."""
    run = Trace(header(), rounds(), totals())
    return Measurement(run, run)


def test_a_measured_baseline_is_kept_beside_its_answer(store: ChatStore) -> None:
    chat = answered(store)
    answer = chat.turns[1]
    assert isinstance(answer, Answer)
    assert store.load_measurement(chat.id, answer) is None
    store.keep_measurement(chat.id, answer, measured())
    kept = store.load_measurement(chat.id, answer)
    assert kept is not None
    assert (kept.baseline, kept.strategy) == (measured().baseline, measured().strategy)
    other = answered(store)
    later = other.turns[1]
    assert isinstance(later, Answer)
    store.delete(other.id)
    store.keep_measurement(other.id, later, measured())  # ended after the chat was deleted
    store.restore(other.id)
    assert store.load_measurement(other.id, later) is not None
    store.truncate(chat, 1)
    store.keep_measurement(chat.id, answer, measured())  # ended after the answer was replaced
    assert store.load_measurement(chat.id, answer) is not None, "beside the trace that was put away"


def test_a_measured_speed_is_over_the_whole_wall_time() -> None:
    slow, fast = (msgspec.structs.replace(totals(), seconds=seconds) for seconds in (4.0, 2.0))
    measurement = Measurement(Trace(header(), rounds(), slow), Trace(header(), rounds(), fast))
    assert measurement.factor == 2.0
    assert measurement.strategy_speed == Statistics.of(rounds()).emitted / 2.0


def test_all_pairs_of_a_measurement_and_its_doubts_are_kept(store: ChatStore) -> None:
    chat = answered(store)
    answer = chat.turns[1]
    assert isinstance(answer, Answer)
    runs = [
        Trace(header(), rounds(), msgspec.structs.replace(totals(), seconds=float(seconds)))
        for seconds in range(1, 9)
    ]
    for count in (8, 4, 2):  # a later measurement takes the place of a longer one
        doubts = ["The machine was busy."] * (count > 2)
        store.keep_measurement(chat.id, answer, Measurement(*runs[:count], doubts=doubts))
        kept = store.load_measurement(chat.id, answer)
        assert kept is not None and list(kept.runs) == runs[:count] and kept.doubts == tuple(doubts)
    doubts_file = (store.folder / chat.id / answer.trace).with_suffix(".doubts.json")
    doubts_file.write_bytes(b"{")
    with pytest.raises(TraceError, match=r"doubts\.json cannot be read"):
        store.load_measurement(chat.id, answer)
    store.truncate(chat, 1)
    assert [path.name for path in (store.folder / chat.id).iterdir() if path.is_file()] == ["chat.jsonl"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.timeout(30)
def test_a_named_pipe_in_place_of_a_file_is_not_waited_for(store: ChatStore) -> None:
    chat = answered(store)
    store.unsent.keep(chat.id, Question("typed"))
    file = store.folder / chat.id / "unsent.json"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UserError, match="cannot be read: it is not a regular file"):
        store.unsent.read(chat.id)


def test_a_damaged_measurement_is_refused(store: ChatStore) -> None:
    chat = answered(store)
    answer = chat.turns[1]
    assert isinstance(answer, Answer)
    store.keep_measurement(chat.id, answer, measured())
    file = (store.folder / chat.id / answer.trace).with_suffix(".baseline.jsonl")
    file.write_bytes(file.read_bytes().replace(b'"index":1', b'"index":9'))
    with pytest.raises(TraceError, match="line 3, is damaged"):
        store.load_measurement(chat.id, answer)


def test_a_crash_while_replacing_loses_nothing(store: ChatStore, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = answered(store)

    def full(folder: Path, changed: Conversation) -> None:
        raise UserError("The chat was not saved: no space left on device.")

    with monkeypatch.context() as patched:
        patched.setattr(chat_file, "write_chat", full)
        with pytest.raises(UserError, match="not saved"):
            store.ask(chat, "Other", at=0)
        with pytest.raises(UserError, match="not saved"):
            store.begin_answer(chat, header(), at=1)
    assert store.load(chat.id) == chat
    answer = chat.turns[1]
    assert isinstance(answer, Answer)
    assert whole_trace(store, chat).rounds == rounds()
    left = {file.name for file in (store.folder / chat.id).iterdir()}
    assert left == {NAME, answer.trace}  # the answer that did not begin left no file


def test_regenerating_keeps_the_old_answer_until_the_new_one_begins(store: ChatStore) -> None:
    chat = answered(store)
    again, recorder = store.begin_answer(chat, header(), at=1)
    assert len(again.turns) == 2
    finished = recorder.finish(totals(text="Else"))
    answer = finished.turns[1]
    assert isinstance(answer, Answer)
    assert answer.text == "Else"
    assert answer.trace != chat.turns[1].trace  # type: ignore[union-attr]


def test_clear_keeps_the_chat(store: ChatStore) -> None:
    chat = store.truncate(answered(store), 0)
    assert store.load(chat.id).turns == ()
    assert titles(store) == ["Count to three"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("COUNT", True),  # the title
        ("three one", True),  # the answer, in any order
        ("three four", False),
        ("strasse", True),  # ß folds
        ("  ", True),
        ("no", False),  # a rejected token is not part of the text
    ],
)
def test_search(store: ChatStore, words: str, found: bool) -> None:
    chat = answered(store, text="One two three, Straße")
    assert [head.id for head in store.search(words)] == ([chat.id] if found else [])


def test_search_sees_what_changed_since(store: ChatStore) -> None:
    chat = answered(store)
    assert store.search("lighthouse") == []
    store.ask(chat, "Describe a lighthouse")
    assert len(store.search("lighthouse")) == 1
    store.delete(chat.id)
    assert store.search("lighthouse") == []


def test_a_deleted_chat_comes_back_whole(store: ChatStore) -> None:
    chat = answered(store)
    store.delete(chat.id)
    assert store.heads() == []
    with pytest.raises(UserError):
        store.load(chat.id)
    assert store.restore(chat.id) == chat.head
    assert store.load(chat.id) == chat
    answer = chat.turns[1]
    assert isinstance(answer, Answer)
    assert whole_trace(store, chat).rounds == rounds()


def test_a_deleted_chat_goes_for_good_after_a_week(store: ChatStore, clock: Clock) -> None:
    chat = answered(store)
    store.delete(chat.id)
    days_pass(store, clock, 6)
    store.restore(chat.id)
    store.delete(chat.id)
    days_pass(store, clock, 8)
    with pytest.raises(UserError, match="gone"):
        store.restore(chat.id)


def test_emptying_the_trash_leaves_the_other_chats(store: ChatStore) -> None:
    kept, gone = answered(store), answered(store)
    store.delete(gone.id)
    store.empty_trash()
    with pytest.raises(UserError, match="gone"):
        store.restore(gone.id)
    assert [head.id for head in store.heads()] == [kept.id]


def test_an_answer_that_ends_after_its_chat_was_deleted_is_kept(store: ChatStore) -> None:
    chat = store.ask(store.new(), "Count")
    chat, recorder = store.begin_answer(chat, header())
    recorder.add(rounds()[0])
    store.delete(chat.id)
    recorder.finish(totals(FinishReason.CANCELLED, "One"))
    store.restore(chat.id)
    answer = store.load(chat.id).turns[1]
    assert isinstance(answer, Answer)
    assert (answer.text, answer.note) == ("One", "Stopped.")


@pytest.mark.parametrize(
    "contents", [b"", b"{", b'{"id":1}\n', b"\xff\xfe", b'{"format":"9.0","id":"a","title":"t"}']
)
def test_a_damaged_chat_is_listed_and_harms_no_other(store: ChatStore, contents: bytes) -> None:
    whole, damaged = answered(store, "whole"), answered(store, "damaged")
    (store.folder / damaged.id / NAME).write_bytes(contents)
    by_id = {head.id: head for head in store.heads()}
    assert by_id[whole.id].title == "whole"
    assert by_id[damaged.id].damaged
    assert [head.id for head in store.search("whole")] == [whole.id]
    with pytest.raises(UserError):
        store.load(damaged.id)
    store.delete(damaged.id)  # it can be put away
    assert [head.id for head in store.heads()] == [whole.id]


def test_a_newer_chat_is_named_as_such(store: ChatStore) -> None:
    chat = answered(store)
    file = store.folder / chat.id / NAME
    file.write_bytes(file.read_bytes().replace(b'"format":"1.1"', b'"format":"2.0"'))
    assert "newer format 2.0" in store.heads()[0].damaged


def test_a_newer_chat_can_be_read_and_not_changed(store: ChatStore) -> None:
    chat = answered(store)
    file = store.folder / chat.id / NAME
    newer = file.read_bytes().replace(b'"format":"1.1"', b'"format":"2.0","mode":"of tomorrow"')
    file.write_bytes(newer)
    read = store.load(chat.id)
    assert read.turns == chat.turns
    with pytest.raises(UserError, match=r"newer format 2\.0"):
        store.ask(read, "More")
    with pytest.raises(UserError, match=r"newer format 2\.0"):
        store.rename(chat.id, "Other")
    assert file.read_bytes() == newer


def test_damage_behind_the_head_is_found_on_opening(store: ChatStore) -> None:
    chat = answered(store)
    file = store.folder / chat.id / NAME
    whole = file.read_bytes()
    for damaged in (whole[:-5], whole.replace(b"Be short.", b"Be sh\xe8rt."), whole.splitlines()[0]):
        assert damaged != whole
        file.write_bytes(damaged)
        assert not store.heads()[0].damaged
        assert "damaged" in store.load(chat.id).head.damaged


def test_no_flipped_bit_makes_words_of_a_chat_invisible(store: ChatStore) -> None:
    words = 'Zebras "quote" C:\\new\ttabs,\nlines; größer 象 and 🦓 end'
    chat = store.ask(store.new(system_prompt="Answer briefly."), "Describe some striped animals")
    chat = store.set_template_options(chat, {"enable_thinking": False, "effort": "low"})
    chat, recorder = store.begin_answer(chat, header())
    for round in rounds():
        recorder.add(round)
    chat = recorder.finish(totals(text=words))
    chat, recorder = store.begin_answer(store.ask(chat, "Go on"), header())
    recorder.close()
    file = store.folder / chat.id / NAME
    whole = file.read_bytes()
    expected = sorted(" ".join(("Answer briefly. Describe some striped animals", words, "Go on")).split())
    for place in range(len(whole)):
        for bit in {place % 8, 1, 7}:
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            file.write_bytes(damaged)
            read = store.load(chat.id)
            shown = " ".join((read.system_prompt, *(turn.text or "" for turn in read.turns)))
            lost = [word for word in expected if word not in shown]
            assert len(lost) <= 2, (place, bit, lost)  # a space that became a letter joins two


def test_words_whose_line_and_trace_are_damaged_are_shown(store: ChatStore) -> None:
    chat = answered(store, text="zebras and lions")
    file = store.folder / chat.id / NAME
    answer = chat.turns[1]
    assert isinstance(answer, Answer)
    damaged = file.read_bytes().replace(b'"text":"zebras', b'"text": zebras')
    file.write_bytes(damaged.replace(answer.trace.encode(), b"0" * 32 + b".jsonl"))
    assert "zebras and lions" in (store.load(chat.id).turns[1].text or "")


@pytest.mark.parametrize("damage", [b'"text":nulm', b'"tezt":null'])
def test_a_cut_off_answer_with_a_damaged_line_has_the_words_of_its_trace(
    store: ChatStore, damage: bytes
) -> None:
    chat, recorder = store.begin_answer(store.ask(store.new(), "Count"), header())
    for round in rounds():
        recorder.add(round)
    recorder.close()
    file = store.folder / chat.id / NAME
    file.write_bytes(file.read_bytes().replace(b'"text":null', damage))
    assert store.load(chat.id).turns[1].text == TEXT


def test_words_of_a_damaged_chat_are_found(store: ChatStore) -> None:
    chat = answered(store, text="zebras and lions")
    file = store.folder / chat.id / NAME
    file.write_bytes(file.read_bytes().replace(b'"text":"zebras', b'"text"#"zebras'))
    assert [head.id for head in store.search("lions")] == [chat.id]


def test_a_damaged_chat_goes_on_and_keeps_its_file(store: ChatStore) -> None:
    chat = answered(store)
    file = store.folder / chat.id / NAME
    damaged = file.read_bytes().replace(b"three", b"thr\xe5e", 1)
    file.write_bytes(damaged)
    changed = store.ask(store.load(chat.id), "And then?")
    assert changed.turns[-1] == Question("And then?")
    assert not changed.head.damaged and not store.load(chat.id).head.damaged
    (kept,) = file.parent.glob(f"{NAME}.damaged-*")
    assert kept.read_bytes() == damaged
    store.ask(changed, "And more?")
    assert len(list(file.parent.glob(f"{NAME}.damaged-*"))) == 1


def test_values_that_cannot_be_are_damage(store: ChatStore) -> None:
    chat = answered(store)
    file = store.folder / chat.id / NAME
    whole = file.read_bytes()
    head = json.loads(whole.splitlines()[0])
    for changed in (
        {"updated": "yesterday"},
        {"updated": "2030-01-01T00:00:00"},
        {"created": "9999-12-31T23:59:59+00:00"},
        {"mode": "bhat"},
        {"revision": 10**30},
        {"extra": [[]]},
    ):
        file.write_bytes(json.dumps(head | changed).encode() + whole[whole.index(b"\n") :])
        assert bool(store.heads()[0].damaged) == ("extra" not in changed), changed
        assert store.load(chat.id).turns == chat.turns


def test_what_is_no_text_is_refused_and_leaves_nothing(store: ChatStore) -> None:
    with pytest.raises(UserError, match="not valid text"):
        store.ask(store.new(system_prompt="half a \ud83d"), "Hello")
    assert store.heads() == [] and list(store.folder.glob("*/*.jsonl")) == []


def test_a_folder_without_a_chat_is_listed_as_such(store: ChatStore) -> None:
    (store.folder / "0123456789abcdef").mkdir()
    assert store.heads()[0].damaged


@pytest.mark.parametrize("chat_id", ["..", "../x", "", "a/../../b", ".trash", "00000000/.."])
def test_no_id_leads_out_of_the_folder(store: ChatStore, chat_id: str) -> None:
    for use in (store.load, store.delete, store.restore):
        with pytest.raises(UserError, match="no such chat"):
            use(chat_id)


def test_no_trace_name_leads_out_of_the_folder(store: ChatStore) -> None:
    chat = answered(store)
    outside = store.folder / "outside.jsonl"
    outside.write_bytes(b"")
    assert "cannot be read" in str(store.load_trace(chat.id, Answer("../outside.jsonl")).damage)
    assert "cannot be read" in str(store.load_trace(chat.id, Answer("zero\0byte")).damage)
    stolen = msgspec.structs.replace(chat, turns=(Question("a"), Answer("../outside.jsonl", "")))
    write_chat(store.folder / chat.id, stolen)
    store.truncate(stolen, 0)
    assert outside.exists()


def test_a_second_window_cannot_overwrite_what_the_first_one_said(store: ChatStore) -> None:
    chat = answered(store)
    second = ChatStore(store.folder)
    seen_there = second.load(chat.id)
    store.ask(chat, "From the first window")
    with pytest.raises(UserError, match="another window"):
        second.ask(seen_there, "From the second window")
    assert store.load(chat.id).turns[-1] == Question("From the first window")
    second.ask(second.load(chat.id), "Now it has seen it")


def test_a_chat_goes_on_where_its_file_went_back(store: ChatStore) -> None:
    chat = answered(store)
    file = store.folder / chat.id / NAME
    older = file.read_bytes()
    later = store.ask(chat, "And four?")
    changes: tuple[Callable[[], Conversation], ...] = (
        lambda: store.ask(later, "And five?"),
        lambda: store.set_system_prompt(later, "Be long."),
        lambda: store.take_back(later, chat),
    )
    for kept, change in enumerate(changes, start=1):
        file.write_bytes(older)
        changed = change()
        assert store.load(chat.id) == changed
        assert [aside.read_bytes() for aside in file.parent.glob(f"{NAME}.older-*")] == [older] * kept
        file.unlink()
        write_chat(file.parent, later)
    assert store.ask(later, "And five?").turns == (*later.turns, Question("And five?"))


def test_an_answer_is_whole_where_its_file_went_back_meanwhile(store: ChatStore) -> None:
    chat = answered(store)
    file = store.folder / chat.id / NAME
    older = file.read_bytes()
    asked, recorder = store.begin_answer(store.ask(chat, "And four?"), header())
    file.write_bytes(older)
    finished = recorder.finish(totals())
    assert finished.turns[:-1] == asked.turns[:-1]
    assert finished.turns[-1].text == TEXT
    assert store.load(chat.id) == finished


def test_a_chat_that_is_not_saved_says_what_to_do(store: ChatStore, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = answered(store)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UserError, match=r"no space left on device\. .* Free some disk space\."):
        store.ask(chat, "And four?")


def test_a_chat_deleted_in_another_window_takes_no_message(store: ChatStore) -> None:
    chat = answered(store)
    ChatStore(store.folder).delete(chat.id)
    with pytest.raises(UserError, match="deleted in another window"):
        store.ask(chat, "Still there?")


def test_renaming_in_another_window_does_not_disturb_an_answer(store: ChatStore) -> None:
    chat = store.ask(store.new(), "Count")
    chat, recorder = store.begin_answer(chat, header())
    second = ChatStore(store.folder)
    second.rename(chat.id, "Counting")
    second.set_system_prompt(second.load(chat.id), "Be brief.")
    finished = recorder.finish(totals())
    assert finished.head.title == "Counting"
    assert finished.system_prompt == "Be brief."
    assert finished.turns[1].text == TEXT


def test_a_disk_that_turns_read_only_as_an_answer_begins_is_told(
    store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace is there already then, and cannot be removed."""
    chat = store.ask(store.new("chat"), "Hello")

    def refuse(*_args: object, **_more: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(UserError, match="read-only"):
        store.begin_answer(chat, header())


def test_a_locked_store_says_so(store: ChatStore, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = answered(store)
    monkeypatch.setattr("app.base.locks.PATIENCE", 0.05)
    second = ChatStore(store.folder)
    with filelock.FileLock(store.folder / ".lock"), pytest.raises(UserError, match="locked"):
        second.rename(chat.id, "Other")
    second.rename(chat.id, "Other")


def test_an_empty_name_changes_nothing(store: ChatStore) -> None:
    chat = answered(store)
    assert store.rename(chat.id, " \n").title == "Count to three"
    assert store.rename(chat.id, " Two\nlines ").title == "Two lines"


def test_a_thousand_long_chats_are_listed_fast(store: ChatStore) -> None:
    """The list must not read whole chats: 200 MB would take too long. Not a benchmark."""
    text = "x" * 100_000
    for number in range(1000):
        chat_id = f"{number:08x}"
        stamp = f"2030-01-01T00:00:{number / 100:06.3f}"
        head = ChatHead(chat_id, f"Chat {number}", stamp, stamp)
        folder = store.folder / chat_id
        folder.mkdir()
        lines = [
            msgspec.json.encode(msgspec.structs.asdict(head) | {"format": "1.0"}),
            b"{}",
            msgspec.json.encode(Question(text)),
        ]
        (folder / NAME).write_bytes(b"\n".join(lines) + b"\n")
    before = time.process_time()
    heads = store.heads()
    assert time.process_time() - before < 0.5
    assert [head.title for head in heads[:2]] == ["Chat 999", "Chat 998"]
    assert len(heads) == 1000


@pytest.mark.parametrize("jump", [8, 365, -400])
def test_a_clock_that_jumps_does_not_empty_the_trash(store: ChatStore, clock: Clock, jump: int) -> None:
    store.purge()
    chat = answered(store)
    store.delete(chat.id)
    for _ in range(3):  # and stays wrong
        clock.advance(days=jump)
        store.purge()
    store.restore(chat.id)
    assert [head.id for head in store.heads()] == [chat.id]


def test_the_first_start_at_a_wrong_clock_keeps_the_trash(store: ChatStore, clock: Clock) -> None:
    chat = answered(store)
    store.delete(chat.id)
    clock.advance(days=365)
    store.purge()
    (store.folder / ".clock").write_bytes(b"[" * 1000)
    store.purge()
    store.restore(chat.id)
    assert [head.id for head in store.heads()] == [chat.id]


def test_nobody_else_can_read_chats(store: ChatStore) -> None:
    chat = answered(store)
    store.truncate(chat, 1)
    store.delete(answered(store).id)
    store.purge()
    for path in store.folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_question_is_taken_back(store: ChatStore) -> None:
    before = answered(store)
    for at in (None, 0):
        asked = store.ask(before, "Refused", at)
        assert store.load(before.id).turns[-1] == Question("Refused")
        again = store.take_back(asked, before)
        assert again.turns == before.turns == store.load(before.id).turns
        assert whole_trace(store, again).rounds == rounds()
        before = again
    store.ask(before, "Goes on from there")


def test_the_first_question_is_taken_back_with_its_chat(store: ChatStore) -> None:
    new = store.new()
    assert store.take_back(store.ask(new, "Refused"), new) == new
    assert store.heads() == []


def test_a_question_that_another_window_went_on_from_is_not_taken_back(store: ChatStore) -> None:
    before = answered(store)
    asked = store.ask(before, "Refused")
    ChatStore(store.folder).ask(asked, "From the other window")
    with pytest.raises(UserError, match="another window"):
        store.take_back(asked, before)


def test_every_change_is_noticed_by_other_windows(store: ChatStore) -> None:
    second = ChatStore(store.folder)
    seen = [second.version()]

    def noticed() -> bool:
        seen.append(second.version())
        return seen[-1] != seen[-2]

    chat = store.ask(store.new(), "Count")
    assert noticed()
    assert not noticed()
    _, recorder = store.begin_answer(chat, header())
    assert noticed()
    recorder.finish(totals())
    assert noticed()
    store.rename(chat.id, "Counting")
    assert noticed()
    store.delete(chat.id)
    assert noticed()
    store.restore(chat.id)
    assert noticed()


def test_a_chat_folder_that_is_gone_is_named(store: ChatStore) -> None:
    chat = answered(store)
    shutil.rmtree(store.folder / chat.id)
    with pytest.raises(UserError, match="folder of this chat is gone"):
        store.ask(chat, "Still there?")


def test_a_data_folder_that_is_gone_is_named(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "chats").mkdir()
    store = ChatStore(tmp_path / "chats", clock)
    chat = answered(store)
    shutil.rmtree(store.folder)
    with pytest.raises(UserError, match="folder of the chats is gone") as raised:
        store.ask(chat, "Still there?")
    assert str(store.folder) in str(raised.value) and not store.folder.exists()
    with pytest.raises(UserError, match="folder of the chats is gone"):
        store.heads()
