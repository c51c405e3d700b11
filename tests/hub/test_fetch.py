"""Fetching one item with the real client from a server that misbehaves."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from huggingface_hub import try_to_load_from_cache
from hypothesis import given
from hypothesis import strategies as st

from app.hub.cache import Cache, Place
from app.hub.downloads.fetch import Fetcher
from app.hub.downloads.item import ItemFile
from app.hub.downloads.messages import Begun, FileDone, Job, Patience, Progress, Report, Waiting
from app.hub.errors import HubError, Trouble, asked_wait
from tests.hub.server import SECRET, TOKEN, FakeHub, FakeRepo, Fault

REPO = "owner/model-GGUF"
FILE = "model-Q4_K_M.gguf"
QUICK = Patience(stall=0.4, first_wait=0.0, longest_wait=0.0, attempts=3)
SIZE = 200_000


def random_bytes(seed: int, size: int = SIZE) -> bytes:
    return random.Random(seed).randbytes(size)


@dataclass
class Fetched:
    reports: list[Report]
    path: Path

    def of(self, kind: type[Report]) -> list[Report]:  # type: ignore[valid-type] # a union of classes
        return [one for one in self.reports if isinstance(one, kind)]

    @property
    def waits(self) -> list[Waiting]:
        return [one for one in self.reports if isinstance(one, Waiting)]


Fetch = Callable[..., Fetched]


@pytest.fixture
def data(server: FakeHub) -> bytes:
    made = random_bytes(1)
    server.repos[REPO] = FakeRepo({FILE: made})
    return made


@pytest.fixture
def fetch(server: FakeHub, cache: Cache) -> Fetch:
    """Fetches files into the cache, in this process."""

    def run(
        *names: str,
        patience: Patience = QUICK,
        commit: str = "",
        sha256: str = "",
        size: int = 0,
        reports: list[Report] | None = None,
        free: Callable[[], int] | None = None,
    ) -> Fetched:
        files = tuple(ItemFile(name, size, sha256, commit=commit) for name in names or (FILE,))
        seen: list[Report] = [] if reports is None else reports
        job = Job(REPO, "main", files, str(cache.folder), server.address, patience)
        Fetcher(job, seen.append, free, lambda _seconds: None).run()
        done = next(one for one in seen if isinstance(one, FileDone))
        return Fetched(seen, Path(done.path))

    return run


def partials(cache: Cache) -> list[Path]:
    return list(cache.folder.rglob("*.incomplete"))


def trouble(fetch: Callable[[], object]) -> HubError:
    with pytest.raises(HubError) as raised:
        fetch()
    return raised.value


# ------------------------------------------------------------------------------------ the plain way


def test_a_file_lands_where_huggingface_hub_looks(
    fetch: Fetch, data: bytes, cache: Cache, server: FakeHub
) -> None:
    fetched = fetch()
    assert fetched.path.read_bytes() == data
    assert try_to_load_from_cache(REPO, FILE, cache_dir=cache.folder) == str(fetched.path)
    assert fetched.path.resolve().name == hashlib.sha256(data).hexdigest()
    assert partials(cache) == []
    assert cache.find(REPO, FILE) == fetched.path
    assert fetched.reports[1] == Begun(
        0, hashlib.sha256(data).hexdigest(), server.repos[REPO].commit, SIZE, False
    )
    assert fetched.reports[-1] == Progress(SIZE)


def test_what_is_here_is_found_and_not_fetched_again(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    first = fetch()
    server.asked.clear()
    again = fetch()
    assert again.path == first.path
    assert again.reports[0].found  # type: ignore[union-attr]
    assert server.requests("cdn") == []


def test_the_same_bytes_of_another_commit_are_stored_once(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache
) -> None:
    first = fetch()
    server.repos[REPO].history = 1
    server.asked.clear()
    second = fetch()
    assert second.path != first.path
    assert second.path.resolve() == first.path.resolve()
    assert server.requests("cdn") == []
    assert len(list(cache.folder.rglob("blobs/*"))) == 1


def test_what_lies_in_the_store_of_all_repositories_is_found(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache
) -> None:
    """huggingface_hub keeps the bytes of Xet files beside the repositories, and a link in their place."""
    fetched = fetch()
    blob = fetched.path.resolve()
    store = cache.folder / "blobs" / "ab" / ("c" * 64)
    store.parent.mkdir(parents=True)
    blob.rename(store)
    blob.symlink_to(os.path.relpath(store, blob.parent))
    assert cache.find(REPO, FILE, SIZE, hashlib.sha256(data).hexdigest()) == fetched.path
    server.asked.clear()
    fetch()
    assert server.requests("cdn") == []


def test_shards_come_as_one(fetch: Fetch, server: FakeHub) -> None:
    names = [f"big-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    server.repos[REPO] = FakeRepo({name: random_bytes(i, 1000 + i) for i, name in enumerate(names)})
    fetched = fetch(*names)
    assert [one.index for one in fetched.reports if isinstance(one, FileDone)] == [0, 1, 2]
    assert fetched.reports[-1] == Progress(3003)
    for name, data in server.repos[REPO].files.items():
        assert (fetched.path.parent / name).read_bytes() == data


def test_a_hub_without_redirects(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.redirects = False
    server.faults["resolve"].append(Fault(cut=70_000))
    assert fetch().path.read_bytes() == data
    assert server.requests("resolve")[-1].headers["range"] == "bytes=70000-"


def test_an_empty_file(fetch: Fetch, server: FakeHub) -> None:
    server.repos[REPO] = FakeRepo({FILE: b""})
    assert fetch().path.read_bytes() == b""


# -------------------------------------------------------------------------------- going on by itself


def test_one_hundred_random_cuts_end_in_the_right_bytes(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache
) -> None:
    chance = random.Random(100)
    cuts = 0
    while cuts < 100:
        several = [chance.randrange(SIZE // 3) for _ in range(chance.randint(1, 6))]
        server.faults["cdn"].extend(Fault(cut=at) for at in several)
        fetched = fetch(patience=Patience(stall=5, first_wait=0, longest_wait=0, attempts=8))
        assert fetched.path.read_bytes() == data
        assert not server.faults["cdn"] or sum(several) >= SIZE
        cuts += len(several) - len(server.faults["cdn"])
        server.faults.clear()
        assert partials(cache) == []
        cache.delete([fetched.path])
        assert not fetched.path.exists()


def test_a_cut_download_goes_on_where_it_stood(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.faults["cdn"].append(Fault(cut=120_000))
    fetched = fetch()
    assert fetched.path.read_bytes() == data
    assert [one.trouble for one in fetched.waits] == [Trouble.UNREACHABLE]
    first, second = server.requests("cdn")
    assert "range" not in first.headers
    assert second.headers["range"] == "bytes=120000-"


def test_a_stall_is_noticed(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.faults["cdn"].append(Fault(cut=50_000, stall=1.5))
    began = time.monotonic()
    fetched = fetch()
    assert fetched.path.read_bytes() == data
    assert time.monotonic() - began < 1.5
    assert "does not answer" in fetched.waits[0].message


@pytest.mark.parametrize("kind", ["head", "cdn"])
def test_a_server_with_trouble_is_asked_again(fetch: Fetch, data: bytes, server: FakeHub, kind: str) -> None:
    server.faults[kind].extend([Fault(status=503), Fault(status=500)])
    fetched = fetch(patience=Patience(first_wait=1.0, longest_wait=60, attempts=3))
    assert fetched.path.read_bytes() == data
    assert [(one.trouble, one.seconds) for one in fetched.waits] == [(Trouble.SERVER, 1), (Trouble.SERVER, 2)]


def test_waits_grow_to_a_limit_and_end(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.always["head"] = Fault(status=502)
    reports: list[Report] = []
    patience = Patience(first_wait=1, longest_wait=5, attempts=5)
    error = trouble(lambda: fetch(patience=patience, reports=reports))
    assert error.trouble is Trouble.SERVER
    assert [one.seconds for one in reports if isinstance(one, Waiting)] == [1, 2, 4, 5, 5]


@pytest.mark.parametrize("kind", ["head", "cdn"])
@pytest.mark.parametrize("header", [("Retry-After", "7"), ("RateLimit", '"resolvers";r=0;t=7')])
def test_a_busy_hub_says_how_long_to_wait(
    fetch: Fetch, data: bytes, server: FakeHub, kind: str, header: tuple[str, str]
) -> None:
    server.faults[kind].append(Fault(status=429, headers=(header,)))
    fetched = fetch()
    assert fetched.path.read_bytes() == data
    assert [(one.trouble, one.seconds) for one in fetched.waits] == [(Trouble.BUSY, 7)]


def test_retry_after_as_a_date() -> None:
    from email.utils import formatdate

    wait = asked_wait({"retry-after": formatdate(time.time() + 90, usegmt=True)})
    assert wait is not None and 80 < wait <= 91
    assert asked_wait({"retry-after": formatdate(time.time() - 90, usegmt=True)}) == 0
    assert asked_wait({"retry-after": "99999999"}) == 3600
    assert asked_wait({"retry-after": "soon"}) is None
    assert asked_wait({}) is None


def test_a_server_without_ranges_starts_anew(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.faults["cdn"].extend([Fault(cut=90_000), Fault(no_ranges=True)])
    assert fetch().path.read_bytes() == data


def test_an_address_that_ran_out_is_asked_for_again(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.faults["cdn"].extend([Fault(cut=90_000), Fault(status=403)])
    fetched = fetch()
    assert fetched.path.read_bytes() == data
    assert len(server.requests("resolve", "HEAD")) == 3


def test_a_hub_that_is_not_there(fetch: Fetch, data: bytes, server: FakeHub, cache: Cache) -> None:
    files = (ItemFile(FILE, 0),)
    job = Job(REPO, "main", files, str(cache.folder), "http://127.0.0.1:9", QUICK)
    reports: list[Report] = []
    error = trouble(Fetcher(job, reports.append, sleep=lambda _seconds: None).run)
    assert error.trouble is Trouble.UNREACHABLE
    assert len(reports) == QUICK.attempts


# ------------------------------------------------------------------------------- files that change


@pytest.mark.parametrize("size", [SIZE, SIZE - 50_000, SIZE + 50_000, 60_000])
@pytest.mark.parametrize("redirects", [True, False])
def test_a_file_that_changes_after_a_cut_is_fetched_anew(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache, size: int, redirects: bool
) -> None:
    server.redirects = redirects
    new = random_bytes(2, size)

    def change() -> None:
        server.repos[REPO].files[FILE] = new

    kind = "cdn" if redirects else "resolve"
    server.faults[kind].append(Fault(cut=100_000))
    server.faults["head"].extend([Fault(), Fault(before=change)])
    assert fetch().path.read_bytes() == new
    assert partials(cache) == []
    assert [one.name for one in cache.folder.rglob("blobs/*")] == [hashlib.sha256(new).hexdigest()]


@pytest.mark.parametrize("size", [SIZE, SIZE - 50_000, SIZE + 50_000, 60_000])
@pytest.mark.parametrize("redirects", [True, False])
@pytest.mark.parametrize("cut", [0, 100_000])
def test_a_file_that_changes_between_head_and_get(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache, size: int, redirects: bool, cut: int
) -> None:
    server.redirects = redirects
    new = random_bytes(2, size)

    def change() -> None:
        server.repos[REPO].files[FILE] = new

    kind = "cdn" if redirects else "resolve"
    if cut:
        server.faults[kind].append(Fault(cut=cut))
    server.faults[kind].append(Fault(before=change))
    assert fetch().path.read_bytes() == new
    assert [one.name for one in cache.folder.rglob("blobs/*")] == [hashlib.sha256(new).hexdigest()]


def test_all_files_of_an_item_are_of_one_commit(fetch: Fetch, server: FakeHub) -> None:
    names = [f"big-0000{i}-of-00002.gguf" for i in (1, 2)]
    server.repos[REPO] = FakeRepo({name: random_bytes(i, 999) for i, name in enumerate(names)})
    fetch(*names)
    revisions = {one.path.split("/resolve/")[1].split("/")[0] for one in server.requests("resolve", "HEAD")}
    assert revisions == {"main", server.repos[REPO].commit}
    assert [one.path.split("/resolve/")[1].split("/")[0] for one in server.requests("resolve", "HEAD")][
        1:
    ] == [server.repos[REPO].commit]


# ------------------------------------------------------------------------------------ what is refused


def test_a_wrong_checksum_is_deleted_and_said(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache
) -> None:
    server.faults["cdn"].append(Fault(wrong=True))
    error = trouble(fetch)
    assert error.trouble is Trouble.CHECKSUM
    assert "deleted" in error.message
    assert partials(cache) == []
    assert cache.find(REPO, FILE) is None
    assert fetch().path.read_bytes() == data  # resumed


def test_the_hubs_own_checksum_counts_where_a_mirror_tells_none(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache
) -> None:
    server.etag = "no-checksum"
    sha256 = hashlib.sha256(data).hexdigest()
    server.faults["cdn"].append(Fault(wrong=True))
    assert trouble(lambda: fetch(sha256=sha256, size=SIZE)).trouble is Trouble.CHECKSUM
    assert partials(cache) == [] and cache.find(REPO, FILE) is None
    # Of another size it is another file than the Hub listed.
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
    assert cache.find(REPO, FILE) is None


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
    # The token belongs to the Hub: where the bytes lie it must not show up.
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


# ---------------------------------------------------------------------------------------- the disk


def test_no_room_is_said_before_it_starts(fetch: Fetch, data: bytes, server: FakeHub, cache: Cache) -> None:
    error = trouble(lambda: fetch(free=lambda: SIZE))
    assert error.trouble is Trouble.NO_SPACE
    assert "200 kB are missing" in error.message
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
    place = cache.place(REPO, FILE, hashlib.sha256(data).hexdigest(), server.repos[REPO].commit)
    reports: list[Report] = []
    with place.locked():
        assert trouble(lambda: fetch(reports=reports)).trouble is Trouble.LOCKED
        assert all(one.found for one in reports if isinstance(one, Begun))  # it is not this one's file
    assert fetch().path.read_bytes() == data


def test_what_another_program_brought_meanwhile_is_found(
    fetch: Fetch, data: bytes, cache: Cache, server: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = Place.locked

    def brought(place: Place) -> AbstractContextManager[None]:
        place.begin()
        place.blob.write_bytes(data)  # between the first look and the lock
        return locked(place)

    monkeypatch.setattr(Place, "locked", brought)
    begun = [one.found for one in fetch().reports if isinstance(one, Begun)]
    assert begun == [True]
    assert server.requests("cdn") == []


def test_what_another_program_writes_is_left_alone(data: bytes, cache: Cache, server: FakeHub) -> None:
    at = (hashlib.sha256(data).hexdigest(), server.repos[REPO].commit)
    older = cache.place(REPO, FILE, "0" * 64, at[1])
    place = cache.place(REPO, FILE, *at)
    with place.locked():
        place.begin()
        place.partial.write_bytes(data[:9])
        cache.forget(REPO, FILE)
        older.begin()
        assert place.partial.exists()
        place.settle()
        place.link("main")
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
        told += str([one for one in reports if isinstance(one, Waiting)])
        assert SECRET not in told + str(reports)
        assert not server.faults["cdn"]  # it was met
        shutil.rmtree(cache.folder)  # the next one is met too
    assert all(words in told for words in ("500", "cut", "damaged"))


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_keys_of_partial_files_are_of_their_names(one: bytes, other: bytes) -> None:
    from app.hub.cache import _key

    assert (_key(one.hex()) == _key(other.hex())) == (one == other)
