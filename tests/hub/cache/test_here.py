"""Which models are here, from the cache alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.hub.cache import Cache
from app.hub.cache.here import find_entry, find_here
from app.hub.catalogue import Entry
from app.hub.errors import HubError

OLD, NEW = "a" * 40, "b" * 40
REPO = "owner/model-GGUF"


def put(cache: Cache, commit: str, *names: str) -> Path:
    folder = cache.folder / "models--owner--model-GGUF" / "snapshots" / commit
    for name in names:
        path = folder.joinpath(*name.split("/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"GGUF")
    os.utime(folder, (ord(commit[0]), ord(commit[0])))  # the later letter is the newer one
    return folder


def test_a_file_is_found_in_the_newest_commit_that_has_it(cache: Cache) -> None:
    old = put(cache, OLD, "m-Q8_0.gguf", "m-Q4_0.gguf", "mmproj-m-F16.gguf")
    new = put(cache, NEW, "m-Q8_0.gguf")
    assert find_here(cache, REPO, "m-Q8_0.gguf") == find_here(cache, REPO, "q8_0") == new / "m-Q8_0.gguf"
    assert find_here(cache, REPO, "Q4_0") == old / "m-Q4_0.gguf"
    assert find_here(cache, REPO, "F16") is None and find_here(cache, "owner/other", "Q8_0") is None


def test_a_model_in_parts_is_here_when_all_of_them_are(cache: Cache) -> None:
    put(cache, OLD, "Q8_0/m-00001-of-00002.gguf")
    new = put(cache, NEW, "Q8_0/m-00002-of-00002.gguf")
    for wanted in ("Q8_0", "Q8_0/m-00001-of-00002.gguf", "Q8_0/m-00002-of-00002.gguf"):
        assert find_here(cache, REPO, wanted) is None
    put(cache, NEW, "Q8_0/m-00001-of-00002.gguf")
    for wanted in ("Q8_0", "Q8_0/m-00001-of-00002.gguf", "Q8_0/m-00002-of-00002.gguf"):
        assert find_here(cache, REPO, wanted) == new / "Q8_0" / "m-00001-of-00002.gguf"


def test_of_a_revision_only_its_commit_counts(cache: Cache) -> None:
    old = put(cache, OLD, "m-Q8_0.gguf")
    put(cache, NEW, "m-Q4_0.gguf")
    assert find_here(cache, REPO, "Q8_0", "refs/pr/1") is None
    ref = cache.folder / "models--owner--model-GGUF" / "refs" / "refs" / "pr" / "1"
    ref.parent.mkdir(parents=True)
    ref.write_text(OLD)
    assert find_here(cache, REPO, "Q8_0", "refs/pr/1") == old / "m-Q8_0.gguf"
    assert find_here(cache, REPO, "Q8_0", OLD) == old / "m-Q8_0.gguf"
    assert find_here(cache, REPO, "Q8_0", NEW) is None


def test_of_several_files_none_is_chosen_by_chance(cache: Cache) -> None:
    folder = put(cache, OLD, "a-Q8_0.gguf", "b-Q8_0.gguf")
    with pytest.raises(HubError, match="2 files of Q8_0"):
        find_here(cache, REPO, "Q8_0")
    assert find_here(cache, REPO, "b-Q8_0.gguf") == folder / "b-Q8_0.gguf"
    assert find_entry(cache, Entry(REPO, "c-Q8_0.gguf", 4)) is None


def test_a_renamed_model_of_the_catalogue_is_found_by_its_quantisation(cache: Cache) -> None:
    folder = put(cache, OLD, "renamed-Q8_0.gguf", "renamed-Q4_0.gguf")
    assert find_entry(cache, Entry(REPO, "m-Q8_0.gguf", 4)) == folder / "renamed-Q8_0.gguf"
