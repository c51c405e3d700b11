"""The store of traces: an archive is there whole or not at all."""

from __future__ import annotations

import zipfile
from pathlib import Path

from app.engine.engine import Engine
from app.lab.experiment import Job
from app.lab.traces import TraceStore
from tests.answers import answer


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
    assert [one.name for one in folder.iterdir()] == ["traces.zip"]
