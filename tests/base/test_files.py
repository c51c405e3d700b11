"""Atomic writes, files set aside, private files, and what can be wrong with a file of ours."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from app.base.files import (
    SHARED,
    DamagedError,
    copy_aside,
    decode,
    decode_object,
    make_own_folder,
    open_own,
    remove_partials,
    set_aside,
    write_atomic,
    write_hint,
)
from app.base.locks import lock_at
from app.cli.models.here import make_hub
from app.demo import read_demo, read_real
from app.engine.errors import UserError
from app.engine.record.trace import read_trace, salvage_trace
from app.engine.types import ModelOptions
from app.hub.catalogue import load_catalogue
from app.hub.downloads.store import hold_queue, read_queue
from app.hub.library.shelf import AddedPlaces, RememberedFiles
from app.lab.experiment import Pair
from app.lab.lanes import read_lanes
from app.lab.runs.journal import Journal, is_free, lock_journal
from app.lab.suites import read_suite
from app.saved.chats.store import ChatStore
from app.saved.presets import PresetStore
from app.saved.settings import SettingsStore
from app.ui.compare.journals import Journals


def test_a_write_that_fails_keeps_the_old_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_atomic(file, b"old")

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        write_atomic(file, b"new")
    assert file.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="folders are synced on POSIX systems")
def test_what_was_written_survives_a_power_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, rename = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        steps.append("sync a folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync a file")
        sync(descriptor)

    def renamed(old: Path, new: Path) -> None:
        steps.append("rename")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    write_atomic(tmp_path / "ours.json", b"1")
    assert steps == ["sync a file", "rename", "sync a folder"]


def test_files_set_aside_in_the_same_second_do_not_collide(tmp_path: Path) -> None:
    file = tmp_path / "file"
    kept = set()
    for contents in ("one", "two", "three"):
        file.write_text(contents)
        kept.add(set_aside(file, "damaged"))
    assert len(kept) == 3
    assert {file.read_text() for file in kept} == {"one", "two", "three"}
    assert not file.exists()


DEEP = 1000
HOSTILE = {
    "nested": b"[" * DEEP + b"]" * DEEP,
    "nested in an unknown field": b'{"unknown":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested objects": b'{"version":' * DEEP + b"1" + b"}" * DEEP,
    "half": b'{"version":1,"pres',
    "empty": b"",
    "zeros": b"\x00" * 100,
    "not UTF-8": b'{"version":1,"\xff":"\xff"}',
    "surrogate": b'{"name":"\\ud800"}',
    "many digits": b'{"version":' + b"1" * 5000 + b"}",
    "infinite": b'{"version":1e99999}',
    "another shape": b'{"version":{"a":[1,2]}}',
}


def _chat(file: Path) -> object:
    store = ChatStore(file.parent.parent)
    store.heads()
    store.search("word")
    return store.load(file.parent.name)


def _settings(file: Path) -> object:
    return SettingsStore(file).load()


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "chat": ("0123456789abcdef/chat.jsonl", _chat),
    "clock of the chats": (".clock", lambda file: ChatStore(file.parent).purge()),
    "trace": ("a.jsonl", read_trace),
    "salvaged trace": ("a.jsonl", salvage_trace),
    "settings": ("settings.json", _settings),
    "presets": ("presets.json", lambda file: PresetStore(file).load()),
    "changed presets": ("presets.json", lambda file: PresetStore(file).change(lambda kept: kept, ())),
    "downloads": ("downloads.json", read_queue),
    "added files": ("library.json", lambda file: AddedPlaces(file).added),
    "known files": ("library-cache.json", RememberedFiles),
    "journal": ("20300101-000000-000000.jsonl", Journal.read),
    "journals": ("20300101-000000-000000.jsonl", lambda file: Journals(file.parent).latest()),
    "suite": ("suite.json", read_suite),
    "lanes": ("lanes.json", lambda file: read_lanes(file, Pair(ModelOptions("t.gguf")))),
    "demo": ("demo_pair/pair.json", lambda file: read_demo(file.parent.parent)),
    "real demo": ("smollm2.json", lambda file: read_real(file.parent)),
    "catalogue": ("catalogue.json", load_catalogue),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("contents", HOSTILE)
def test_no_contents_of_a_file_of_ours_end_its_reader(tmp_path: Path, reader: str, contents: str) -> None:
    name, read = READERS[reader]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(HOSTILE[contents])
    try:
        read(file)
    except (UserError, DamagedError) as error:
        assert str(error)


@pytest.mark.skipif(os.name != "posix", reason="named pipes in folders are POSIX's")
@pytest.mark.timeout(30)
@pytest.mark.parametrize("reader", READERS)
def test_a_named_pipe_is_refused_and_never_waited_for(tmp_path: Path, reader: str) -> None:
    name, read = READERS[reader]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    os.mkfifo(file)
    try:
        read(file)
    except (UserError, OSError) as error:
        assert "not a regular file" in str(error) or isinstance(error, UserError)


def test_every_file_is_opened_in_one_place() -> None:
    """What reads the program's own parts, and the kernel's files, is all that may open files otherwise."""
    own = (
        "base/files.py", "lessons/lesson.py", "theme/style.py", "widgets/icons.py", "sampling/kernel.py",
        "app/demo.py",
    )  # fmt: skip
    kernels = ("process/limits.py", "devices/memory.py", "lab/facts.py")
    reads = re.compile(r"""\.read_bytes\(|\.read_text\(|\bopen\([^)]*"rb?"|\.open\("rb?\"""")
    folder = Path(__file__).parents[2] / "app"
    found = [path for path in folder.rglob("*.py") if reads.search(path.read_text(encoding="utf-8"))]
    assert [str(path) for path in found if not str(path).endswith(own + kernels)] == []


@pytest.mark.parametrize("contents", HOSTILE)
def test_settings_that_a_command_looks_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contents: str
) -> None:
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.json").write_bytes(HOSTILE[contents])
    assert not make_hub().is_offline  # nothing in them says so


@pytest.mark.parametrize("depth", [90, 300, 900, 985])
def test_settings_nested_as_deep_as_can_be_read_can_be_saved(tmp_path: Path, depth: int) -> None:
    file = tmp_path / "settings.json"
    inner = "[" * depth + "]" * depth
    file.write_text(f'{{"unknown":{inner},"sampling":{{"temperature":{inner}}}}}')
    store = SettingsStore(file)
    loaded = store.load()
    assert loaded.notices
    store.save(loaded.settings)
    assert SettingsStore(file).load().settings == loaded.settings


def test_what_is_wrong_with_json_is_said() -> None:
    number = msgspec.json.Decoder(int)
    assert decode(number, b"3") == 3
    with pytest.raises(DamagedError, match="Expected `int`"):
        decode(number, b'"three"')
    with pytest.raises(DamagedError, match="not UTF-8"):
        decode(msgspec.json.Decoder(str), b'"\xff"')
    with pytest.raises(DamagedError, match="nested too deep"):
        decode(msgspec.json.Decoder(), b"[" * 1_000_000 + b"]" * 1_000_000)  # deeper than any stack
    with pytest.raises(DamagedError, match="Invalid enum value 'xxx") as quoted:
        decode(msgspec.json.Decoder(Literal["a"]), b'"' + b"x" * 100_000 + b'"')
    assert len(str(quoted.value)) < 300, "a value is quoted by its beginning"
    with pytest.raises(DamagedError, match="Expected `object`"):
        decode_object(b"[]")


on_posix = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@on_posix
def test_only_its_user_reads_a_file_of_ours(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        make_own_folder(tmp_path / "above" / "ours")
        write_atomic(tmp_path / "ours.json", b"1")
        write_atomic(tmp_path / "exported.csv", b"1", SHARED)
        with open_own(tmp_path / "trace.jsonl", "wb") as file:
            file.write(b"1")
        copied = copy_aside(tmp_path / "exported.csv", "damaged")
    finally:
        os.umask(umask)
    assert mode(tmp_path / "above" / "ours") == 0o700
    assert mode(tmp_path / "ours.json") == mode(tmp_path / "trace.jsonl") == mode(copied) == 0o600
    assert mode(tmp_path / "exported.csv") == 0o666


@on_posix
@pytest.mark.parametrize("take", [lambda path: lock_at(path).acquire(), hold_queue, lock_journal, is_free])
def test_only_its_user_opens_a_lock_of_ours(tmp_path: Path, take: Callable[[Path], object]) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    umask = os.umask(0)
    try:
        held = take(folder / "list.json")
    finally:
        os.umask(umask)
    assert held
    assert {mode(file) for file in folder.iterdir()} == {0o600}


@on_posix
def test_a_folder_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir(mode=0o755)
    make_own_folder(tmp_path / "ours")
    assert mode(tmp_path / "ours") == 0o700
    (tmp_path / "ours").chmod(0o555)
    make_own_folder(tmp_path / "ours")
    assert mode(tmp_path / "ours") == 0o500, "what was made read-only stays so"


@on_posix
def test_what_a_killed_process_was_writing_is_removed(tmp_path: Path) -> None:
    write = f"""
import os
from pathlib import Path
from app.base import files
os.fsync = lambda _: os.kill(os.getpid(), 9)
files.write_atomic(Path({str(tmp_path / "deep" / "presets.json")!r}), b"half")
"""
    (tmp_path / "deep").mkdir()
    assert subprocess.run([sys.executable, "-c", write], check=False).returncode == -9
    ours = tmp_path / f"settings.json.{os.getpid()}.partial"
    for kept in (ours, tmp_path / "a.partial", tmp_path / "notes.1.partial.txt"):
        kept.write_bytes(b"1")
    assert len(list(tmp_path.rglob("*.partial*"))) == 4
    remove_partials(tmp_path)
    assert sorted(file.name for file in tmp_path.rglob("*.partial*")) == sorted(
        (ours.name, "a.partial", "notes.1.partial.txt")
    )
    os.utime(ours, (1, 1))  # the process id was reused since
    remove_partials(tmp_path)
    assert not ours.exists()


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.ENOSPC, "Free some disk space."),
        (errno.EDQUOT, "Free some disk space."),
        (errno.EROFS, "The disk of the folder /there is read-only: make it writable."),
        (errno.EACCES, "Permit Draftscope to write to the folder /there."),
        (errno.EPERM, "Permit Draftscope to write to the folder /there."),
        (errno.EIO, "Check the folder /there."),
    ],
)
def test_what_to_do_fits_why_a_file_was_not_written(code: int, hint: str) -> None:
    assert write_hint(OSError(code, os.strerror(code)), "/there") == hint
