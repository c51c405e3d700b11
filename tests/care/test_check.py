"""Check and repair: what is found, what is done about it, and that nothing is lost by it."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import msgspec
import pytest

from app.base.paths import Paths, find_paths
from app.care.check import check_data, repair
from app.saved.chats.chat_file import NAME
from app.saved.chats.conversation import Answer, Conversation, Question
from app.saved.chats.store import CUT_OFF, ChatStore
from app.saved.settings import Settings, SettingsStore
from tests.commands import Command
from tests.saved.chats.samples import header, rounds, totals

WROTE = Path(__file__).parents[1] / "upgrade" / "wrote_0_1_0"
DEAD = 2**22 + 1  # above every process id


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path))
    found = find_paths()
    found.prepare()
    return found


@pytest.fixture
def store(paths: Paths) -> ChatStore:
    return ChatStore(paths.chats)


def said(store: ChatStore, *questions: str) -> Conversation:
    """A chat in which these questions were answered, each answer with its number."""
    chat = store.new(system_prompt="Be short.")
    for number, question in enumerate(questions):
        chat = store.ask(chat, question)
        asked = msgspec.structs.replace(
            header(question), messages=chat.messages(), started_at=f"2030-01-01T00:00:0{number}+00:00"
        )
        chat, recorder = store.begin_answer(chat, asked)
        for round in rounds():
            recorder.add(round)
        chat = recorder.finish(msgspec.structs.replace(totals(), text=f"answer {number}"))
    return chat


def found(paths: Paths) -> list[str]:
    return [finding.words for finding in check_data(paths)]


def mended(paths: Paths) -> None:
    """Repair everything; then there is nothing left to repair."""
    findings = check_data(paths)
    assert repair(findings) == ()
    assert [finding.words for finding in check_data(paths) if finding.mend is not None] == []


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def in_trash(paths: Paths) -> list[str]:
    return sorted(entry.name for entry in (paths.chats / ".trash").iterdir())


def made_old(path: Path) -> None:
    long_ago = time.time() - 3600
    os.utime(path, (long_ago, long_ago))


def test_sound_data_has_no_findings(paths: Paths, store: ChatStore) -> None:
    said(store, "First", "Second")
    SettingsStore(paths.settings).save(Settings())
    assert found(paths) == []


def test_a_check_alone_changes_nothing(paths: Paths, store: ChatStore) -> None:
    chat = said(store, "First", "Second")
    (paths.chats / chat.id / NAME).write_bytes(b"\xff")
    paths.settings.write_bytes(b"{")
    before = contents(paths.data.parent)
    assert len(found(paths)) == 2
    assert contents(paths.data.parent) == before


@pytest.mark.parametrize("damage", [None, b"", b"\xff\x00", b"no chat at all\nnor this\n"])
def test_a_chat_is_made_again_from_its_answers(paths: Paths, store: ChatStore, damage: bytes | None) -> None:
    chat = said(store, "First", "Second", "Third")
    file = paths.chats / chat.id / NAME
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    mended(paths)
    again = store.load(chat.id)
    assert again.turns == chat.turns and again.system_prompt == "Be short."
    assert (again.head.title, again.head.damaged, again.head.mode) == ("First", "", "chat")
    answer = again.turns[1]
    assert isinstance(answer, Answer)
    assert store.load_trace(chat.id, answer).trace.text == "answer 0"
    kept = [path for path in file.parent.iterdir() if "damaged" in path.name]
    assert [path.read_bytes() for path in kept] == ([damage] if damage is not None else [])
    went_on = store.ask(again, "Fourth")
    assert went_on.turns[-1] == Question("Fourth")


def test_a_rebuilt_chat_leaves_no_answer_out(paths: Paths, store: ChatStore) -> None:
    chat = said(store, "First", "Second", "Third")
    traces = [turn.trace for turn in chat.turns if isinstance(turn, Answer)]
    (paths.chats / chat.id / traces[1]).unlink()
    other = said(store, "Elsewhere")
    elsewhere = next(turn.trace for turn in other.turns if isinstance(turn, Answer))
    (paths.chats / other.id / elsewhere).rename(paths.chats / chat.id / elsewhere)
    (paths.chats / chat.id / NAME).unlink()
    mended(paths)
    turns = store.load(chat.id).turns
    assert [turn.text for turn in turns] == [
        "First", "answer 0", "Second", "answer 1", "Third", "answer 2", "Elsewhere", "answer 0",
    ]  # fmt: skip
    assert [turn.trace for turn in turns if isinstance(turn, Answer)] == [traces[0], "", traces[2], elsewhere]


def test_a_completion_that_was_cut_off_is_made_again(paths: Paths, store: ChatStore) -> None:
    chat = store.ask(store.new("completion"), "Once upon")
    chat, recorder = store.begin_answer(chat, header("Once upon"))
    for round in rounds():
        recorder.add(round)  # the process dies here
    (paths.chats / chat.id / NAME).unlink()
    mended(paths)
    again = store.load(chat.id)
    assert again.head.mode == "completion"
    assert again.turns == (Question("Once upon"), Answer(recorder.trace, "One two three", CUT_OFF))
    recorder.discard()


def test_a_damaged_line_is_written_anew_and_kept_beside(paths: Paths, store: ChatStore) -> None:
    chat = said(store, "First", "Second")
    file = paths.chats / chat.id / NAME
    damaged = file.read_bytes().replace(b"Second", b"Sec\xffond")
    file.write_bytes(damaged)
    assert found(paths) == ["The chat “First” is damaged."]
    mended(paths)
    again = store.load(chat.id)
    assert [turn.text for turn in again.turns] == ["First", "answer 0", "Sec\ufffdond", "answer 1"]
    assert not again.head.damaged
    assert damaged in [path.read_bytes() for path in file.parent.iterdir()]


def test_a_trace_that_no_chat_names_goes_to_the_trash(paths: Paths, store: ChatStore) -> None:
    chat = said(store, "First")
    trace = next(turn.trace for turn in chat.turns if isinstance(turn, Answer))
    orphan = paths.chats / chat.id / "0123.jsonl"
    orphan.write_bytes((paths.chats / chat.id / trace).read_bytes())
    assert found(paths) == [], "it is young: its chat may be about to name it"
    made_old(orphan)
    assert found(paths) == ["“First”: the chat does not name the trace 0123.jsonl (3 tokens)."]
    held = orphan.read_bytes()
    mended(paths)
    assert not orphan.exists()
    (kept,) = (paths.chats / ".trash").iterdir()
    assert kept.name.startswith("0123.jsonl-") and kept.read_bytes() == held
    store.empty_trash()
    assert in_trash(paths) == []


def test_what_was_put_away_goes_for_good_after_a_week(paths: Paths, store: ChatStore) -> None:
    left = paths.config / f"settings.json.{DEAD}.partial"
    left.write_bytes(b"half")
    mended(paths)
    (kept,) = (paths.chats / ".trash").iterdir()
    store.purge()
    assert kept.exists()
    kept.rename(kept.with_name(kept.name.split("@")[0] + "@20200101T000000Z"))
    store.purge()
    assert in_trash(paths) == []


def test_missing_and_damaged_traces_are_said(paths: Paths, store: ChatStore) -> None:
    chat = said(store, "First", "Second")
    gone, damaged = (turn.trace for turn in chat.turns if isinstance(turn, Answer))
    (paths.chats / chat.id / gone).unlink()
    trace = paths.chats / chat.id / damaged
    trace.write_bytes(trace.read_bytes().replace(b'{"index":1', b'{"index":"x"'))
    first, second = found(paths)
    assert "is gone" in first and "line 3, is damaged" in second
    assert repair(check_data(paths)) == () and len(found(paths)) == 2, "nothing can be done about them"


def test_partial_files_of_dead_processes_go_to_the_trash(paths: Paths) -> None:
    for process in (DEAD, os.getpid()):
        (paths.data / f"a.json.{process}.partial").write_bytes(b"half")
    assert found(paths) == [f"a.json.{DEAD}.partial is half written, and the program that wrote it is gone."]
    mended(paths)
    assert (paths.data / f"a.json.{os.getpid()}.partial").exists()


@pytest.mark.parametrize(
    "name", ["config/settings.json", "config/presets.json", "data/downloads.json", "data/library.json"]
)
def test_damaged_lists_are_kept_under_another_name(paths: Paths, name: str) -> None:
    file = paths.data.parent / name
    file.write_bytes(b'{"half":')
    mended(paths)
    (kept,) = file.parent.glob("*.damaged-*")
    assert kept.read_bytes() == b'{"half":' and not file.exists()


def test_a_damaged_journal_is_kept_and_traces_without_one_go(paths: Paths) -> None:
    folder = paths.data / "compare"
    folder.mkdir()
    (folder / "20300101-000000-0.jsonl").write_bytes(b"no journal\n")
    traces = folder / "20300102-000000-0-traces"
    traces.mkdir()
    assert len(found(paths)) == 1, "the traces are young: their journal may be about to come"
    made_old(traces)
    assert len(found(paths)) == 2
    mended(paths)
    assert not traces.exists() and in_trash(paths)[0].startswith(traces.name)
    assert [file.read_bytes() for file in folder.glob("*.damaged-*")] == [b"no journal\n"]


@pytest.mark.parametrize(("version", "which"), [(b"1", "An earlier"), (b"3", "A later")])
def test_a_journal_of_another_version_is_named_and_stays(paths: Paths, version: bytes, which: str) -> None:
    folder = shutil.copytree(WROTE / "data" / "compare", paths.data / "compare")
    (journal,) = folder.glob("*.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b"journal-2", b"journal-" + version, 1))
    (finding,) = check_data(paths)
    assert finding.words.startswith(f"{which} version of Draftscope wrote {journal.name}")
    assert (finding.remedy, finding.mend) == ("It stays as it is.", None)


@pytest.mark.parametrize("damage", [b"{", b'{"target": 3}', b"\xff"])
def test_damaged_results_of_drafts_are_kept_under_another_name(paths: Paths, damage: bytes) -> None:
    file = paths.data / "drafts" / "0123456789abcdef.json"
    file.parent.mkdir()
    file.write_bytes(damage)
    (finding,) = check_data(paths)
    assert finding.words.startswith("The measured drafts 0123456789abcdef.json are damaged: ")
    mended(paths)
    (kept,) = file.parent.iterdir()
    assert kept.name.startswith(f"{file.name}.damaged-") and kept.read_bytes() == damage


def test_a_newer_chat_is_left_alone(paths: Paths, store: ChatStore) -> None:
    chat = said(store, "First")
    file = paths.chats / chat.id / NAME
    file.write_bytes(file.read_bytes().replace(b'"format":"1.0"', b'"format":"7.0"'))
    made_old(next(file.parent.glob("*[0-9a-f].jsonl")))
    assert found(paths) == []


def test_what_cannot_be_mended_is_said(
    paths: Paths, store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths.settings.write_bytes(b"{")
    findings = check_data(paths)

    def refuse(_self: Path, _to: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    (sentence,) = repair(findings)
    assert sentence.endswith("It could not be repaired: permission denied.")


def test_the_command_says_what_it_would_do_and_does_it_when_told(
    command: Command, paths: Paths, store: ChatStore
) -> None:
    assert command("check").out == "Nothing is damaged.\n"
    chat = said(store, "First")
    (paths.chats / chat.id / NAME).unlink()
    ended = command("check")
    assert ended.code == 0 and ended.err == ""
    assert f"The chat {chat.id} cannot be read.\n  It is rebuilt from the trace of 1 answer" in ended.out
    assert ended.out.endswith("draftscope check --repair does that.\n")
    assert not (paths.chats / chat.id / NAME).exists()
    assert command("check", "--repair").out.endswith("1 finding repaired.\n")
    assert store.load(chat.id).turns == chat.turns
    assert command("check").out == "Nothing is damaged.\n"


def test_the_command_report_lists_the_devices(command: Command, paths: Paths) -> None:
    SettingsStore(paths.settings).save(Settings(system_prompt="Be short."))
    ended = command("report")
    assert ended.code == 0 and ended.err == ""
    assert "  CPU: CPU, CPU" in ended.out and "Be short" not in ended.out
    assert "Be short." in command("report", "--with-texts").out


def test_where_no_window_has_been_nothing_is_missing(paths: Paths) -> None:
    shutil.rmtree(paths.chats, ignore_errors=True)
    paths.settings.unlink(missing_ok=True)
    assert found(paths) == []
    paths.settings.write_text("{}")
    assert "The folder of the chats is gone" in found(paths)[0]
