"""Files that Draftscope wrote itself, damaged since: traces, chats, settings, presets, journals, lists."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from app.base.paths import Paths, find_paths
from app.care.check import check_data, repair
from app.cli import main
from app.engine.errors import TraceError, UserError
from app.engine.record.recheck import recheck
from app.engine.record.stats import Statistics
from app.engine.record.trace import read_trace, salvage_trace
from app.hub.cache_entry import Checked
from app.hub.downloads.store import read_queue, write_queue
from app.hub.library.shelf import AddedPlaces, RememberedFiles
from app.lab.runs.journal import Journal
from app.saved.chats.chat_file import NAME
from app.saved.chats.conversation import Answer
from app.saved.chats.store import ChatStore
from app.saved.presets import Preset, PresetStore
from app.saved.settings import SettingsStore
from tests.faults.campaign import Fate, checked
from tests.faults.damage import damaged_text

WRITTEN = Path(__file__).parents[1] / "upgrade" / "wrote_0_1_0"
"""The home folder that is damaged."""


class SavedFile:
    """A kind of file in the home folder; each damaged file lies in a fresh copy of that folder."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._pattern, self._opened = KINDS[name]
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))

    def make(self, random: Random) -> bytes:
        """The first line names the file that is damaged."""
        sound = random.choice(sorted(WRITTEN.glob(self._pattern)))
        return f"{sound.relative_to(WRITTEN)}\n".encode() + damaged_text(sound.read_bytes(), random)

    def open(self, data: bytes) -> Fate:
        name, _, contents = data.partition(b"\n")
        home = self._folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(WRITTEN, home)
        path = home / name.decode()
        path.write_bytes(contents)
        return self._opened(path, find_paths({"DRAFTSCOPE_HOME": str(home)}))

    def close(self) -> None:
        shutil.rmtree(self._folder)


def _trace(path: Path, _paths: Paths) -> Fate:
    found = salvage_trace(path)
    if found.trace is not None:
        Statistics.of(found.trace.rounds)
        recheck(found.trace)
    if found.damage is not None:
        checked(found.damage)
    with contextlib.suppress(TraceError):
        read_trace(path)
    for words in (["replay", str(path)], ["replay", str(path), "--verify"]):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        assert code in (0, 1), (code, err.getvalue())
        if code:
            checked(err.getvalue().splitlines()[-1])
    if found.trace is None:
        return Fate.REFUSED
    return Fate.OPENED if found.damage is None else Fate.SAID


def _chat(path: Path, paths: Paths) -> Fate:
    """List, read, search, continue; then check, repair, and the same again."""
    fate = _use_chat(path, paths, go_on=False)
    for file in path.parent.iterdir():  # old enough to be no file of a running window
        os.utime(file, (time.time() - 3600,) * 2)
    findings = check_data(paths)
    for finding in findings:
        checked(finding.words)
    assert repair(findings) == ()
    again = check_data(paths)
    assert not [finding for finding in again if finding.mend is not None], again
    _use_chat(path, paths, go_on=True)
    return fate


def _use_chat(path: Path, paths: Paths, go_on: bool) -> Fate:
    store = ChatStore(paths.chats)
    head = next(head for head in store.heads() if head.id == path.parent.name)
    store.search("count")
    try:
        chat = store.load(head.id)
    except UserError as error:
        checked(error)
        return Fate.REFUSED
    for turn in chat.turns:
        if isinstance(turn, Answer):
            store.load_trace(chat.id, turn)
            with contextlib.suppress(TraceError):
                store.load_measurement(chat.id, turn)
    chat.messages()
    if chat.head.newer:
        return Fate.REFUSED
    if go_on:
        went_on = store.ask(chat, "And then?")
        assert store.load(chat.id).turns == went_on.turns
        assert went_on.turns[:-1] == chat.turns
    return Fate.SAID if chat.head.damaged else Fate.OPENED


def _settings(path: Path, paths: Paths) -> Fate:
    store = SettingsStore(path)
    loaded = store.load()
    for notice in loaded.notices:
        checked(notice)
    store.save(loaded.settings)
    again = SettingsStore(path).load()
    assert again.settings == loaded.settings, "what is saved comes back"
    assert not check_data(paths)
    return Fate.SAID if loaded.notices else Fate.OPENED


def _presets(path: Path, paths: Paths) -> Fate:
    store = PresetStore(path)
    loaded = store.load()
    for notice in loaded.notices:
        checked(notice)
    new = Preset.of("New", SettingsStore(paths.settings).load().settings)
    after = store.change(lambda presets: (*presets, new), loaded.presets)
    assert after == (*loaded.presets, new) == PresetStore(path).load().presets
    return Fate.SAID if loaded.notices else Fate.OPENED


def _journal(path: Path, paths: Paths) -> Fate:
    check_data(paths)
    try:
        read = Journal.read(path)
        assert Journal.open(path).records == read.records
        assert Journal.read(path).records == read.records, "what was opened is whole"
    except UserError as error:
        checked(error)
        return Fate.REFUSED
    return Fate.OPENED


def _list(path: Path, paths: Paths) -> Fate:
    """The lists of downloads and of added files; each also as those of what was verified and read."""
    notices = []
    remembered = read_queue(paths.data / "downloads.json")
    notices.append(remembered.notice)
    write_queue(paths.data / "downloads.json", remembered.downloads)
    assert read_queue(paths.data / "downloads.json").downloads == remembered.downloads
    places = AddedPlaces(paths.data / "library.json")
    places.add([Path("/models/more")])
    notices.append(places.notice)
    assert Path("/models/more") in AddedPlaces(paths.data / "library.json").added
    if path.exists():
        shutil.copy(path, paths.checked)
        shutil.copy(path, paths.data / "library-cache.json")
    Checked(paths.checked).has(path.parent / "library.json", "0" * 64)
    RememberedFiles(paths.data / "library-cache.json")
    for notice in filter(None, notices):
        checked(notice)
    return Fate.SAID if any(notices) else Fate.OPENED


KINDS: dict[str, tuple[str, Callable[[Path, Paths], Fate]]] = {
    "traces": ("data/chats/*/*[0-9a-f].jsonl", _trace),
    "chats": (f"data/chats/*/{NAME}", _chat),
    "settings": ("config/settings.json", _settings),
    "presets": ("config/presets.json", _presets),
    "journals": ("data/compare/*.jsonl", _journal),
    "lists": ("data/*.json", _list),
}
"""Which sound files are damaged, and what opens one."""
