"""The store of traces: an archive is there whole or not at all."""

from __future__ import annotations

import errno
import os
import zipfile
from pathlib import Path

import pytest

from app.engine.engine import Engine
from app.engine.errors import TraceError, UserError
from app.engine.record.trace import read_trace, write_trace
from app.lab.experiment import Job
from app.lab.runs.compare import TraceStore
from app.lab.runs.journal import Journal, trace_folder_of
from tests.answers import answer
from tests.lab.experiments import small


def test_an_archive_that_is_stopped_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "traces")
    trace = answer(engine, max_tokens=3)
    for prompt in range(3):
        store.put(Job(0, prompt, 0), trace)
    folder = tmp_path / "out"
    folder.mkdir()
    asked = iter([False, True])
    store.archive(folder / "traces.zip", lambda: next(asked))
    assert list(folder.iterdir()) == []
    store.archive(folder / "traces.zip")
    with zipfile.ZipFile(folder / "traces.zip") as archive:
        assert len(archive.namelist()) == 3
    assert [file.name for file in folder.iterdir()] == ["traces.zip"]


def test_a_trace_that_is_not_written_says_what_to_do(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TraceStore(tmp_path / "traces")
    trace = answer(engine, max_tokens=3)

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UserError, match=r"is read-only: make it writable\. Then resume from the journal\."):
        store.put(Job(0, 0, 0), trace)


def test_damage_is_told_in_a_sentence(engine: Engine, pair_files: tuple[Path, Path], tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "traces")
    trace = answer(engine, max_tokens=3)
    store.put(Job(0, 0, 0), trace)
    (file,) = store.folder.iterdir()
    whole = file.read_bytes()
    for broken in (whole[:-20], b"GGUF" + whole[4:], whole[:20] + b"\xff" * 20 + whole[40:]):
        file.write_bytes(broken)
        with pytest.raises(TraceError, match=r"gz is damaged"):
            store.get(Job(0, 0, 0))
        assert store.readable(Job(0, 0, 0)) is None
        with pytest.raises(TraceError, match=r"gz is damaged"):
            store.archive(tmp_path / "traces.zip")
    assert not (tmp_path / "traces.zip").exists()

    plain = tmp_path / "t.jsonl"
    write_trace(plain, trace)
    lines = plain.read_bytes().splitlines(keepends=True)
    for at in (0, 1):
        plain.write_bytes(b"".join([*lines[:at], lines[at].replace(b'":"', b'":"\xff'), *lines[at + 1 :]]))
        with pytest.raises(TraceError, match=rf"line {at + 1}, is damaged|is not a Draftscope trace"):
            read_trace(plain)

    path = tmp_path / "j.jsonl"
    Journal.create(path, small(pair_files))
    with path.open("ab") as journal:
        journal.write(b'{"type":"run","x":"\xff"}\n{"type":"run"}\n')
    with pytest.raises(UserError, match=r"line 2, is damaged"):
        Journal.read(path)


def test_every_journal_has_a_folder_of_its_own() -> None:
    names = [trace_folder_of(Path(name)).name for name in ("llama-3.1", "llama-3.2", "suite.jsonl")]
    assert names == ["llama-3.1-traces", "llama-3.2-traces", "suite-traces"]
