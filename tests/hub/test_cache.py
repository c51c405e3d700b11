"""The cache, read while other programs change it or deny access."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from app.hub.cache import Cache
from app.hub.repo import HubFile
from tests.hub.stock import in_cache

COMMITS = ["a" * 40, "b" * 40]


@pytest.fixture
def filled(cache: Cache) -> Cache:
    """One file in each of two commits."""
    for commit in COMMITS:
        folder = cache.folder / "models--a--b" / "snapshots" / commit
        folder.mkdir(parents=True)
        (folder / f"{commit[0]}.gguf").write_bytes(b"GGUF")
    return cache


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Access to anything in the first commit is denied, as by a folder of another user (root, who may run the
    tests, is denied nothing), or the file is gone since it was listed."""
    stat, scandir = os.stat, os.scandir

    def refuse(path: object) -> None:
        if COMMITS[0] in str(path):
            raise PermissionError(13, "Permission denied", str(path))

    def stat_(path: Any, **rest: Any) -> os.stat_result:
        refuse(path)
        return stat(path, **rest)

    def scandir_(path: object) -> object:
        refuse(path)
        return scandir(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "stat", stat_)
    monkeypatch.setattr(os, "scandir", scandir_)


def test_a_commit_that_cannot_be_looked_at_is_not_here(filled: Cache, refused: None) -> None:
    assert [name for _, _, name in filled.files()] == ["b.gguf"]
    assert in_cache(filled, "a/b", "a.gguf") is None
    assert in_cache(filled, "a/b", "b.gguf") is not None


def test_a_commit_that_goes_while_it_is_listed(filled: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Path.iterdir

    def iterdir(folder: Path) -> object:
        found = list(listed(folder))
        for snapshot in found:
            if snapshot.name == COMMITS[0]:
                yield snapshot
                (snapshot / "a.gguf").unlink()
                snapshot.rmdir()
            else:
                yield snapshot

    monkeypatch.setattr("app.hub.cache.Path.iterdir", iterdir)
    assert [name for _, _, name in filled.files()] == ["b.gguf"]


def test_the_parts_of_a_model_are_of_one_commit(filled: Cache) -> None:
    parts = [HubFile("a.gguf", 4), HubFile("b.gguf", 4)]
    assert all(in_cache(filled, "a/b", part.name, part.size) for part in parts)
    assert filled.find_first("a/b", parts) is None  # the parts are looked for beside the first one
    second = filled.folder / "models--a--b" / "snapshots" / COMMITS[1]
    (second / "a.gguf").write_bytes(b"GGUF")
    assert filled.find_first("a/b", parts) == second / "a.gguf"
    assert filled.find_first("a/b", []) is None


def test_what_another_program_is_downloading_keeps_its_folders(cache: Cache) -> None:
    repo = cache.folder / "models--a--b"
    commit = repo / "snapshots" / COMMITS[0]
    for folder in (repo / "refs", repo / "blobs", commit):
        folder.mkdir(parents=True)
    (repo / "refs" / "main").write_text(COMMITS[0])
    theirs = repo / "blobs" / f"{'c' * 64}.0123abcd.incomplete"  # as huggingface_hub names it
    theirs.touch()
    cache.tidy("a/b")
    assert commit.is_dir() and (repo / "refs" / "main").is_file()
    theirs.unlink()
    cache.tidy("a/b")
    assert not repo.exists()


def test_many_models_are_looked_for_at_once(filled: Cache) -> None:
    (commit, names), *_ = filled.commits("a/b")
    there = [HubFile(names[0], 0)]
    assert filled.find_all("a/b", [there, [HubFile("none.gguf", 0)]]) == [commit / names[0], None]
    assert filled.find_all("a/b", [[*there, HubFile("none.gguf", 0)]]) == [None]
    assert filled.find_all("other/none", [there]) == [None]
