"""Atomic writes and files set aside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.files import set_aside, write_atomic


def test_a_write_that_fails_keeps_the_old_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_atomic(file, b"old")

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        write_atomic(file, b"new")
    assert file.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_files_set_aside_in_the_same_second_do_not_collide(tmp_path: Path) -> None:
    file = tmp_path / "file"
    kept = set()
    for contents in ("one", "two", "three"):
        file.write_text(contents)
        kept.add(set_aside(file, "damaged"))
    assert len(kept) == 3
    assert {one.read_text() for one in kept} == {"one", "two", "three"}
    assert not file.exists()
