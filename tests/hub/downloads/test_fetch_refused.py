"""What makes fetching fail, and what the disk and other programs do to it."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.hub.cache import Cache
from app.hub.cache_entry import CacheEntry
from app.hub.downloads.item import DownloadBegun, DownloadProgress, Patience, Report, Waiting
from app.hub.errors import HubError, Trouble
from tests.hub.downloads.fetching import FILE, REPO, SIZE, Fetch, partials, trouble
from tests.hub.server import SECRET, TOKEN, FakeHub, Fault
from tests.hub.stock import in_cache

# ------------------------------------------------------------------------------------ what is refused


def test_a_wrong_checksum_is_deleted_and_said(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache
) -> None:
    server.faults["cdn"].append(Fault(wrong=True))
    reports: list[Report] = []
    error = trouble(lambda: fetch(reports=reports))
    assert error.trouble is Trouble.CHECKSUM
    assert "deleted" in error.message
    assert reports[-1] == DownloadProgress(0)  # no progress is shown for bytes that are gone
    assert partials(cache) == []
    assert in_cache(cache, REPO, FILE) is None
    assert fetch().path.read_bytes() == data  # resumed


def test_the_hubs_own_checksum_counts_where_a_mirror_tells_none(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache
) -> None:
    server.etag = "no-checksum"
    sha256 = hashlib.sha256(data).hexdigest()
    server.faults["cdn"].append(Fault(wrong=True))
    assert trouble(lambda: fetch(sha256=sha256, size=SIZE)).trouble is Trouble.CHECKSUM
    assert partials(cache) == [] and in_cache(cache, REPO, FILE) is None
    # A file of another size is not the one that the Hub listed.
    assert fetch(sha256="0" * 64, size=SIZE - 1).path.read_bytes() == data


def test_a_partial_file_that_rotted_is_noticed(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache
) -> None:
    server.faults["cdn"].append(Fault(cut=90_000))
    trouble(lambda: fetch(patience=Patience(attempts=0)))
    (partial,) = partials(cache)
    partial.write_bytes(bytes(90_000))
    assert trouble(fetch).trouble is Trouble.CHECKSUM
    assert fetch().path.read_bytes() == data


def test_a_server_that_sends_too_much(fetch: Fetch, data: bytes, server: FakeHub, cache: Cache) -> None:
    server.always["cdn"] = Fault(longer=5)
    assert trouble(fetch).trouble in (Trouble.CHANGED, Trouble.SERVER)
    assert in_cache(cache, REPO, FILE) is None


def test_a_file_larger_than_the_hub_has_is_refused(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.always["head"] = Fault(told=(("X-Linked-Size", "50000000001"),))
    assert "the Hub serves at most 50.0 GB" in trouble(fetch).message
    assert server.requests("cdn") == []


def test_gated_without_and_with_a_token(
    fetch: Fetch, data: bytes, server: FakeHub, home: Path, cache: Cache
) -> None:
    server.repos[REPO].gated = True
    error = trouble(fetch)
    assert (error.trouble, "gated" in error.message) == (Trouble.GATED, True)
    assert server.requests("resolve", "HEAD")[-1].headers.get("authorization") is None

    (home / "token").write_text(TOKEN)
    assert fetch().path.read_bytes() == data
    assert server.requests("resolve", "HEAD")[-1].headers["authorization"] == f"Bearer {TOKEN}"
    # The token is for the Hub: the server that has the bytes must not get it.
    assert "authorization" not in server.requests("cdn")[-1].headers


def test_gated_with_a_token_that_does_not_open_it(
    fetch: Fetch, data: bytes, server: FakeHub, home: Path
) -> None:
    server.repos[REPO].gated, server.repos[REPO].allowed = True, False
    (home / "token").write_text(TOKEN)
    error = trouble(fetch)
    assert error.trouble is Trouble.DENIED
    assert TOKEN not in str(error)


def test_what_is_not_there(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    assert trouble(lambda: fetch("other.gguf")).trouble is Trouble.NOT_FOUND
    server.repos.clear()
    assert trouble(fetch).trouble is Trouble.NOT_FOUND


@pytest.mark.parametrize("name", ["../up.gguf", "a/../../up.gguf", "/etc/x.gguf", "C:\\x.gguf", "..\\x.gguf"])
def test_names_that_leave_the_folder_are_refused(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache, name: str
) -> None:
    server.repos[REPO].files[name] = data
    assert trouble(lambda: fetch(name)).trouble in (Trouble.NAME, Trouble.NOT_FOUND)
    assert list(cache.folder.rglob("*.gguf")) == []


@pytest.mark.parametrize("etag", ["../../../escaped", "/tmp/escaped", "a/b", "..", "a" * 300])
def test_a_checksum_that_is_a_path_is_refused(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache, etag: str
) -> None:
    server.etag = etag
    assert trouble(fetch).trouble is Trouble.NAME
    assert not cache.folder.exists()


def test_a_server_that_is_no_hub(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.always["head"] = Fault(status=200, body=b"<html>")
    assert "cannot be used" in trouble(fetch).message


@pytest.mark.parametrize("address", ["http://[", "http://127.0.0.1:99999/x", "http://127.0.0.1:port/x"])
def test_an_address_that_is_none_is_the_servers_fault(
    fetch: Fetch, data: bytes, server: FakeHub, address: str
) -> None:
    server.faults["head"].append(Fault(told=(("Location", address),)))
    fetched = fetch()
    assert [wait.trouble for wait in fetched.waits] == [Trouble.SERVER]
    assert fetched.waits[0].message == "The Hub's answer cannot be used: it does not describe the file."
    assert fetched.path.read_bytes() == data


# ---------------------------------------------------------------------------------------- the disk


def test_no_room_is_said_before_it_starts(fetch: Fetch, data: bytes, server: FakeHub, cache: Cache) -> None:
    error = trouble(lambda: fetch(free=lambda: SIZE))
    assert error.trouble is Trouble.NO_SPACE
    assert "200 kB needed" in error.message
    assert server.requests("cdn") == []


def test_a_disk_that_fills_up_in_the_middle(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    room = 130_000

    def full(descriptor: int, block: memoryview) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = write(descriptor, block[:room])
        room -= taken
        return taken

    monkeypatch.setattr("app.hub.downloads.fetch.os.write", full)
    error = trouble(fetch)
    assert error.trouble is Trouble.NO_SPACE
    assert "The disk is full" in error.message
    monkeypatch.undo()
    os.environ["HF_HOME"] = str(cache.folder.parent)
    assert fetch().path.read_bytes() == data
    assert server.requests("cdn")[-1].headers["range"] == "bytes=130000-"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written(fetch: Fetch, data: bytes, cache: Cache) -> None:
    cache.folder.mkdir()
    cache.folder.chmod(0o500)
    assert trouble(fetch).trouble is Trouble.DISK


def test_another_program_at_the_same_file(fetch: Fetch, data: bytes, cache: Cache, server: FakeHub) -> None:
    place = cache.entry(REPO, FILE, hashlib.sha256(data).hexdigest(), server.repos[REPO].commit)
    reports: list[Report] = []
    with place.locked():
        assert trouble(lambda: fetch(reports=reports)).trouble is Trouble.LOCKED
        assert all(
            report.found for report in reports if isinstance(report, DownloadBegun)
        )  # the file belongs to another download
    assert fetch().path.read_bytes() == data


def test_what_another_program_brought_meanwhile_is_found(
    fetch: Fetch, data: bytes, cache: Cache, server: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = CacheEntry.locked

    def brought(place: CacheEntry) -> AbstractContextManager[None]:
        place.begin()
        place.blob.write_bytes(data)  # between the first look and the lock
        return locked(place)

    monkeypatch.setattr(CacheEntry, "locked", brought)
    begun = [report.found for report in fetch().reports if isinstance(report, DownloadBegun)]
    assert begun == [True]
    assert server.requests("cdn") == []


def test_removing_an_older_version_leaves_room_for_the_newer(cache: Cache) -> None:
    """Both at once: the queue removes what came of the older one, and its process begins the newer one."""
    older, newer = (cache.entry(REPO, FILE, etag * 64, etag * 40) for etag in "01")
    older.begin()
    older.partial.write_bytes(b"part")
    with older.locked():  # as the queue holds it, in that moment
        newer.begin()
    cache.remove(REPO, FILE, "0" * 64, "0" * 40)
    newer.partial.write_bytes(b"whole")
    newer.settle()
    assert newer.link().read_bytes() == b"whole" and partials(cache) == []


def test_what_another_program_writes_is_left_alone(data: bytes, cache: Cache, server: FakeHub) -> None:
    at = (hashlib.sha256(data).hexdigest(), server.repos[REPO].commit)
    older = cache.entry(REPO, FILE, "0" * 64, at[1])
    place = cache.entry(REPO, FILE, *at)
    with place.locked():
        place.begin()
        place.partial.write_bytes(data[:9])
        cache.forget(REPO, FILE)
        older.begin()
        assert place.partial.exists()
        place.settle()
        place.link()
        cache.remove(REPO, FILE, *at)
        assert place.pointer.read_bytes() == data[:9]
    cache.remove(REPO, FILE, *at)
    cache.tidy(REPO)
    assert list(cache.folder.iterdir()) == []


def test_no_message_holds_an_address(fetch: Fetch, data: bytes, server: FakeHub, cache: Cache) -> None:
    faults = [Fault(status=500), Fault(cut=10), Fault(wrong=True)]
    told = ""
    for fault in faults:
        server.faults["cdn"].append(fault)
        reports: list[Report] = []
        try:
            fetch(reports=reports)
        except HubError as error:
            told += str(error)
        told += str([report for report in reports if isinstance(report, Waiting)])
        assert SECRET not in told + str(reports)
        assert not server.faults["cdn"]  # the fault happened
        shutil.rmtree(cache.folder)  # so that the next fault happens too
    assert all(words in told for words in ("500", "cut", "damaged"))


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_keys_of_partial_files_are_of_their_names(first: bytes, other: bytes) -> None:
    from app.hub.cache_entry import _key

    assert (_key(first.hex()) == _key(other.hex())) == (first == other)
