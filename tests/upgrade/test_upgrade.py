"""A home folder that an earlier version wrote opens in this one, whole and without a notice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from app.base.paths import Paths, find_paths
from app.care.check import check_data
from app.engine.record.recheck import recheck
from app.hub.downloads.store import read_queue
from app.hub.library.shelf import AddedPlaces
from app.lab.runs.journal import Journal
from app.saved.chats import chat_file
from app.saved.chats.chat_file import NAME
from app.saved.chats.conversation import Answer, Question
from app.saved.chats.store import ChatStore
from app.saved.presets import LoadedPresets, PresetStore
from app.saved.settings import LoadedSettings, SettingsStore
from tests.ui.windows import Windows
from tests.upgrade.write import DOWNLOAD, PLACES, PRESETS, SAMPLED, SETTINGS

HERE = Path(__file__).parent
VERSIONS = ("0_1_0",)


@pytest.fixture(params=VERSIONS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a version wrote."""
    return shutil.copytree(HERE / f"wrote_{request.param}", tmp_path / "old")


@pytest.fixture
def paths(home: Path) -> Paths:
    return find_paths({"DRAFTSCOPE_HOME": str(home)})


@pytest.fixture
def store(paths: Paths) -> ChatStore:
    return ChatStore(paths.chats)


def test_settings_and_presets_are_those_that_were_saved(paths: Paths) -> None:
    assert SettingsStore(paths.settings).load() == LoadedSettings(SETTINGS)
    assert PresetStore(paths.presets).load() == LoadedPresets(PRESETS)


def test_lists_of_models_are_those_that_were_saved(paths: Paths) -> None:
    assert read_queue(paths.data / "downloads.json").downloads == (DOWNLOAD,)
    places = AddedPlaces(paths.data / "library.json")
    assert (places.added, places.notice) == (PLACES, "")


def test_every_word_and_every_verdict_of_the_chats_is_there(store: ChatStore) -> None:
    heads = {head.title: head for head in store.heads()}
    assert {title: head.mode for title, head in heads.items()} == {
        "Count: Größe 😀": "chat",
        "abcabcab": "completion",
    }
    assert not any(head.damaged for head in heads.values())
    measured = []
    for head in heads.values():
        chat = store.load(head.id)
        questions = [turn.text for turn in chat.turns if isinstance(turn, Question)]
        assert questions == (["Count: Größe 😀", "abcabcabc"] if head.mode == "chat" else ["abcabcab"])
        assert chat.system_prompt == ("Be short." if head.mode == "chat" else "")
        for answer in chat.turns:
            if isinstance(answer, Answer):
                found = store.load_trace(chat.id, answer)
                assert found.damage is None and found.trace is not None
                assert found.trace.text == answer.text and found.trace.header.sampling == SAMPLED
                assert recheck(found.trace) == []
                measured.append(store.load_measurement(chat.id, answer))
    assert [measurement is not None for measurement in measured].count(True) == 1


def test_a_chat_goes_on_and_a_deleted_one_comes_back(store: ChatStore, paths: Paths) -> None:
    (deleted,) = (paths.chats / ".trash").iterdir()
    assert store.restore(deleted.name.split("@")[0]).title == "Forget this"
    for head in store.heads():
        before = store.load(head.id)
        after = store.ask(before, "And then?")
        assert store.load(head.id).turns == (*before.turns, Question("And then?")) == after.turns


def test_a_journal_can_go_on(paths: Paths) -> None:
    (path,) = (paths.data / "compare").glob("*.jsonl")
    journal = Journal.open(path)
    assert set(journal.records) == set(journal.experiment.jobs()) and len(journal.records) == 4
    assert journal.pairs


def test_nothing_of_it_is_damaged(paths: Paths) -> None:
    assert check_data(paths) == ()


def test_a_window_opens_on_it_without_a_notice(home: Path, windows: Windows, demo_pair: object) -> None:
    shutil.copytree(home, windows.paths.data.parent, dirs_exist_ok=True)
    desk = windows.open()
    assert desk.error() == ""
    assert sorted(desk.chats()) == ["Count: Größe 😀", "abcabcab"]
    assert desk.saved()["stop"] == ["END"]


# -------------------------------------------------------------------- before a format changes


@pytest.fixture
def newer_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A made-up later program, which writes newer formats."""
    monkeypatch.setattr(chat_file, "FORMAT", (1, 2))
    monkeypatch.setattr("app.saved.settings.VERSION", 2)
    monkeypatch.setattr("app.saved.presets.VERSION", 2)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.usefixtures("newer_program")
def test_a_chat_is_kept_before_its_format_changes(store: ChatStore, paths: Paths) -> None:
    head = next(head for head in store.heads() if head.mode == "chat")
    folder = paths.chats / head.id
    before = contents(folder)
    chat = store.load(head.id)
    assert contents(folder) == before, "reading changes nothing"
    chat = store.ask(chat, "And then?")
    store.ask(chat, "And now?")
    after = contents(folder)
    assert after.pop(f"{NAME}.version-1.0") == before[NAME]
    assert json.loads(after[NAME].split(b"\n")[0])["format"] == "1.2"
    assert after.keys() == before.keys(), "kept once"
    # The earlier program reads what was kept.
    (folder / f"{NAME}.version-1.0").replace(folder / NAME)
    assert contents(folder) == before


@pytest.mark.usefixtures("newer_program")
def test_a_chat_that_cannot_be_kept_is_not_changed(
    store: ChatStore, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = store.load(store.heads()[0].id)
    before = contents(paths.chats / chat.id)

    def refuse(_path: Path, _word: str) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(chat_file, "keep_as", refuse)
    with pytest.raises(Exception, match="The chat was not saved: no space left on device"):
        store.ask(chat, "And then?")
    assert contents(paths.chats / chat.id) == before


@pytest.mark.usefixtures("newer_program")
def test_settings_and_presets_are_kept_before_their_format_changes(paths: Paths) -> None:
    before = contents(paths.config)
    settings, presets = SettingsStore(paths.settings), PresetStore(paths.presets)
    assert settings.load() == LoadedSettings(SETTINGS) and presets.load() == LoadedPresets(PRESETS)
    settings.save(SETTINGS)
    presets.save(PRESETS)
    after = contents(paths.config)
    for name in ("settings.json", "presets.json"):
        assert after[f"{name}.version-1"] == before[name]
        assert json.loads(after[name])["version"] == 2


@pytest.mark.usefixtures("newer_program")
def test_what_cannot_be_kept_is_not_written_over(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(paths.config)

    def refuse(_path: Path, _word: str) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.base.files.keep_as", refuse)
    settings, presets = SettingsStore(paths.settings), PresetStore(paths.presets)
    (notice,) = settings.load().notices
    assert "no space left on device" in notice and "not saved" in notice
    assert "no space left on device" in presets.load().notices[0]
    with pytest.raises(Exception, match="The settings were not saved"):
        settings.save(SETTINGS)
    with pytest.raises(Exception, match="The presets were not saved"):
        presets.save(PRESETS)
    assert contents(paths.config) == before
