"""The models on this machine: found, remembered, added and deleted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import scan_cache_dir

from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.downloads.fetch import Fetcher
from app.hub.downloads.item import DownloadJob, ItemFile
from app.hub.library.model import FileOrigin
from app.hub.library.probe import Reader
from app.hub.library.shelf import Shelf, find_model
from tests.files.tiny import Tiny
from tests.hub.server import FakeHub, FakeRepo

PATIENCE = 40.0
TARGET = Tiny(name="target", n_embd=128, n_ff=256, n_layers=4)
DRAFT = Tiny(name="draft")
Put = Callable[..., Path]


# ------------------------------------------------------------------------------------------- finding


def test_everything_is_found_once(
    shelf: Shelf, put: Put, folder: Path, server: FakeHub, cache: Cache, tmp_path: Path
) -> None:
    target, draft = put(TARGET), put(DRAFT, "deep/er/draft.gguf")
    put(DRAFT, ".hidden/draft.gguf")
    put(DRAFT, "mmproj-F16.gguf")
    (folder / "notes.txt").write_text("no model")
    server.repos["owner/name-GGUF"] = FakeRepo({"Sub/hub-Q8_0.gguf": target.read_bytes()})
    job = DownloadJob(
        "owner/name-GGUF", "main", (ItemFile("Sub/hub-Q8_0.gguf", 0),), str(cache.folder), server.address
    )
    Fetcher(job, lambda _report: None).run()
    shelf.add([folder, target, cache.folder])
    found = shelf.scan()
    assert [(model.path.name, model.origin, model.repo) for model in found] == [
        ("draft.gguf", FileOrigin.ADDED, ""),
        ("hub-Q8_0.gguf", FileOrigin.HUB, "owner/name-GGUF"),
        ("target.gguf", FileOrigin.ADDED, ""),
    ]
    assert found[0].path == draft
    assert found[1].size == target.stat().st_size and found[1].quantisation == "Q8_0"
    assert not any(model.is_read for model in found)
    read = shelf.read(found[2])
    assert (read.name, read.is_read, read.problem) == ("target", True, "")

    # Another commit of the same bytes is not another model.
    server.repos["owner/name-GGUF"].history += 1
    Fetcher(job, lambda _report: None).run()
    assert len(shelf.scan()) == 3


def test_parts_are_one_model(shelf: Shelf, folder: Path, put: Put) -> None:
    put(DRAFT, "big-00002-of-00002.gguf")
    first = put(TARGET, "big-00001-of-00002.gguf")
    put(TARGET, "half-00001-of-00003.gguf")
    shelf.add([folder])
    big, half = shelf.scan()
    assert big.path == first and len(big.files) == 2
    assert big.size == sum(file.stat().st_size for file in big.files)
    assert half.problem == "1 of its 3 parts are here." and half.hint and half.is_read
    assert shelf.read(half) is half
    assert find_model([big, half], big.files[1]) is big


def test_what_was_read_is_remembered_until_the_file_changes(
    tmp_path: Path, cache: Cache, reader: Reader, put: Put, folder: Path
) -> None:
    path = put(TARGET)
    first = Shelf(tmp_path / "data", cache, {}, reader)
    first.add([folder])
    found = [first.read(model) for model in first.scan()]
    first.save(found)

    second = Shelf(tmp_path / "data", cache, {}, reader)
    assert second.scan() == tuple(found)
    put(DRAFT, "target.gguf")
    os.utime(path, (1, 1))
    (changed,) = second.scan()
    assert not changed.is_read
    assert second.read(changed).name == "draft"


def test_what_cannot_be_read_is_not_tried_again(shelf: Shelf, folder: Path, put: Put) -> None:
    bad = folder / "bad.gguf"
    bad.write_bytes(b"nothing")
    shelf.add([folder])
    (model,) = shelf.scan()
    assert shelf.read(model).problem == "bad.gguf is not a GGUF file."
    (again,) = shelf.scan()
    assert again.problem and again.is_read
    put(TARGET, "bad.gguf")
    os.utime(bad, (2, 2))
    (mended,) = shelf.scan()
    assert shelf.read(mended).problem == ""


def test_a_part_that_was_mended_is_tried_again(shelf: Shelf, folder: Path) -> None:
    for index in (1, 2):
        (folder / f"m-0000{index}-of-00002.gguf").write_bytes(b"nothing")
    shelf.add([folder])
    (model,) = shelf.scan()
    assert shelf.read(model).problem
    (folder / "m-00002-of-00002.gguf").write_bytes(b"something else")
    (mended,) = shelf.scan()
    assert mended.problem == ""


def test_adding_what_is_none(shelf: Shelf, folder: Path) -> None:
    (folder / "x.txt").write_text("")
    for path, words in [
        (folder / "gone.gguf", "does not exist"),
        (folder / "x.txt", "is not a GGUF file"),
        (folder, r"no \.gguf file"),
    ]:
        with pytest.raises(UserError, match=words):
            shelf.add([path])
    assert shelf.places.added == ()


def test_added_places_are_remembered_and_removed(
    shelf: Shelf, put: Put, folder: Path, tmp_path: Path
) -> None:
    path = put(TARGET)
    shelf.add([path])
    other = Shelf(tmp_path / "data", Cache(tmp_path / "none"))
    assert other.places.added == (path,)
    other.places.remove(path)
    assert shelf.places.added == () and path.exists()


def test_a_damaged_list_costs_only_itself(tmp_path: Path, cache: Cache) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "library.json").write_text("{")
    (data / "library-cache.json").write_text("[]")
    shelf = Shelf(data, cache)
    assert shelf.scan() == ()
    assert "damaged" in shelf.places.notice


def test_what_a_newer_version_remembers_is_kept_as_it_is(
    tmp_path: Path, cache: Cache, reader: Reader, put: Put
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    newer = b'{"version": 3, "added": {"folders": []}, "facts": []}'
    (data / "library.json").write_bytes(newer)
    (data / "library-cache.json").write_bytes(newer)
    shelf = Shelf(data, cache, reader=reader)
    assert shelf.scan() == () and "newer version" in shelf.places.notice
    path = put(Tiny(name="a"))
    shelf.add([path])
    shelf.save([shelf.read(model) for model in shelf.scan()])
    (kept,) = data.glob("library.json.newer-*")
    assert kept.read_bytes() == newer and kept.name in shelf.places.notice
    assert Shelf(data, cache).places.added == (path,)
    assert (data / "library-cache.json").read_bytes() == newer  # it costs only time


def test_a_list_that_cannot_be_read_now_is_not_written_over(
    tmp_path: Path, cache: Cache, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(tmp_path / "data", cache)
    shelf.add([put(Tiny(name="a"))])
    before = (tmp_path / "data" / "library.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("app.hub.library.shelf.read_file", _refuse)
        assert shelf.places.added == (put(Tiny(name="a")),)
        with pytest.raises(UserError, match="permission denied"):
            shelf.add([put(Tiny(name="b"))])
    assert (tmp_path / "data" / "library.json").read_bytes() == before
    shelf.add([put(Tiny(name="b"))])
    assert len(shelf.places.added) == 2


def _refuse(path: Path) -> bytes:
    raise PermissionError(13, "Permission denied", str(path))


# ------------------------------------------------------------------------------------------ deleting


def test_deleting_frees_the_disk(
    shelf: Shelf, put: Put, folder: Path, server: FakeHub, cache: Cache, left: Callable[[], list[str]]
) -> None:
    data = put(TARGET).read_bytes()
    names = [f"m-0000{i}-of-00002.gguf" for i in (1, 2)]
    server.repos["a/b"] = FakeRepo({names[0]: data, names[1]: data[:-1]})
    job = DownloadJob(
        "a/b", "main", tuple(ItemFile(name, 0) for name in names), str(cache.folder), server.address
    )
    for _ in range(2):  # in two commits
        Fetcher(job, lambda _report: None).run()
        server.repos["a/b"].history += 1
    (model,) = shelf.scan()
    assert shelf.delete(model) == model.size == 2 * len(data) - 1
    assert left() == []

    shelf.add([folder, folder / "target.gguf"])
    (model,) = shelf.scan()
    assert shelf.delete(model) == len(data)
    assert not model.path.exists()
    assert shelf.places.added == (folder,)
    assert shelf.scan() == ()


@pytest.mark.parametrize("fault", ["a broken link", "a branch that leads nowhere"])
def test_deleting_from_a_repository_with_something_unexpected(
    shelf: Shelf, server: FakeHub, cache: Cache, fault: str
) -> None:
    server.repos["a/b"] = FakeRepo({"m.gguf": b"GGUF"})
    job = DownloadJob("a/b", "main", (ItemFile("m.gguf", 0),), str(cache.folder), server.address)
    Fetcher(job, lambda _report: None).run()
    (model,) = shelf.scan()
    blob = model.path.resolve()
    if fault == "a broken link":
        model.path.with_name("gone.json").symlink_to("../../blobs/gone")
    else:
        (cache.folder / "models--a--b" / "refs" / "old").write_text("0" * 40)
    assert scan_cache_dir(cache.folder).warnings
    assert shelf.delete(model) == 4
    assert not blob.exists() and shelf.scan() == ()


@pytest.mark.parametrize("origin", [FileOrigin.BUNDLED, FileOrigin.SET_UP])
def test_what_comes_along_stays(cache: Cache, put: Put, reader: Reader, origin: FileOrigin) -> None:
    path = put(TARGET)
    shelf = Shelf(None, cache, {path: origin}, reader)
    (model,) = shelf.scan()
    assert model.origin is origin and not model.can_delete
    with pytest.raises(UserError, match="part of Draftscope"):
        shelf.delete(model)
    assert path.exists()


def test_a_file_that_is_another_by_now_is_not_deleted(shelf: Shelf, put: Put) -> None:
    path = put(TARGET)
    shelf.add([path])
    (listed,) = shelf.scan()
    path.write_bytes(b"what somebody put in its place")
    with pytest.raises(UserError, match="has changed since it was listed"):
        shelf.delete(listed)
    assert path.exists()


def test_two_names_of_one_file_are_one_model(shelf: Shelf, put: Put, folder: Path) -> None:
    path = put(TARGET)
    (folder / "another.gguf").symlink_to(path)
    (folder / "third.gguf").hardlink_to(path)
    (folder / "broken.gguf").symlink_to(folder / "nothing")
    shelf.add([folder])
    assert len(shelf.scan()) == 1
