"""Fetching one item with the real client from a server that misbehaves."""

from __future__ import annotations

import hashlib
import os
import random
import time
from pathlib import Path

import pytest
from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache

from app.hub.cache import Cache
from app.hub.downloads.fetch import Fetcher
from app.hub.downloads.item import (
    DownloadBegun,
    DownloadJob,
    DownloadProgress,
    FileDone,
    ItemFile,
    Patience,
    Report,
    Waiting,
)
from app.hub.errors import Trouble, asked_wait
from tests.hub.downloads.fetching import FILE, QUICK, REPO, SIZE, Fetch, partials, random_bytes, trouble
from tests.hub.server import FakeHub, FakeRepo, Fault
from tests.hub.stock import in_cache

# ------------------------------------------------------------------------------------ the plain way


def test_a_file_lands_where_huggingface_hub_looks(
    fetch: Fetch, data: bytes, cache: Cache, server: FakeHub
) -> None:
    fetched = fetch()
    assert fetched.path.read_bytes() == data
    assert try_to_load_from_cache(REPO, FILE, cache_dir=cache.folder) == str(fetched.path)
    assert fetched.path.resolve().name == hashlib.sha256(data).hexdigest()
    assert partials(cache) == []
    assert in_cache(cache, REPO, FILE) == fetched.path
    assert fetched.reports[1] == DownloadBegun(
        0, hashlib.sha256(data).hexdigest(), server.repos[REPO].commit, SIZE, False
    )
    assert fetched.reports[-1] == DownloadProgress(SIZE)


def test_what_is_here_is_found_and_not_fetched_again(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    first = fetch()
    server.asked.clear()
    again = fetch()
    assert again.path == first.path
    assert again.reports[0].found  # type: ignore[union-attr]
    assert server.requests("cdn") == []


def test_a_file_is_on_the_disk_before_it_has_its_name(
    fetch: Fetch, data: bytes, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power loss leaves a complete blob, or none."""
    steps: list[tuple[str, str]] = []
    sync, rename = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        steps.append(("sync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        sync(descriptor)

    def renamed(old: Path, new: Path) -> None:
        steps.append(("rename", Path(new).name))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    fetched = fetch()
    blob = fetched.path.resolve().name
    at = steps.index(("rename", blob))
    assert steps[at - 1][0] == "sync" and steps[at - 1][1].endswith(".incomplete")
    assert steps[at + 1 : at + 3] == [("sync", "blobs"), ("sync", fetched.path.parent.name)]


def test_other_bytes_of_the_right_size_are_replaced(
    fetch: Fetch, data: bytes, server: FakeHub, tmp_path: Path
) -> None:
    fetched = fetch()
    fetched.path.resolve().write_bytes(b"\0" * SIZE)
    server.asked.clear()
    again = fetch(checked=tmp_path / "checked.json")
    assert again.path.read_bytes() == data
    assert len(server.requests("cdn")) == 1


def test_what_huggingface_hub_brought_is_read_once(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache, tmp_path: Path
) -> None:
    hf_hub_download(REPO, FILE, cache_dir=cache.folder, endpoint=server.address)
    server.asked.clear()
    checked = tmp_path / "data" / "checked.json"
    assert any(report.checking for report in fetch(checked=checked).of(DownloadProgress))
    assert not any(report.checking for report in fetch(checked=checked).of(DownloadProgress))
    assert server.requests("cdn") == []


def test_what_was_downloaded_here_is_not_read_again_until_it_changes(
    fetch: Fetch, data: bytes, tmp_path: Path
) -> None:
    checked = tmp_path / "checked.json"
    fetched = fetch(checked=checked)
    assert not any(report.checking for report in fetch(checked=checked).of(DownloadProgress))
    os.utime(fetched.path.resolve(), ns=(1, 1))
    assert any(report.checking for report in fetch(checked=checked).of(DownloadProgress))


@pytest.mark.parametrize("contents", ["{", '{"version": 99}', '{"sound": 3}', None])
def test_a_list_of_checked_files_that_cannot_be_read_costs_only_time(
    fetch: Fetch, data: bytes, tmp_path: Path, contents: str | None
) -> None:
    checked = tmp_path / "checked.json"
    if contents is None:
        checked.mkdir()
    else:
        checked.write_text(contents)
    assert fetch(checked=checked).path.read_bytes() == data
    assert fetch(checked=checked).path.read_bytes() == data


def test_without_links_a_damaged_copy_is_replaced(
    fetch: Fetch, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_SYMLINKS", True)
    fetched = fetch()
    assert not fetched.path.is_symlink()
    fetched.path.write_bytes(b"\0" * SIZE)
    assert fetch().path.read_bytes() == data


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


def test_going_on_leaves_a_revision_where_it_is(
    fetch: Fetch, data: bytes, server: FakeHub, cache: Cache
) -> None:
    """Another program may have downloaded a newer commit since."""
    newer, commit = "f" * 40, server.repos[REPO].commit
    ref = cache.folder / "models--owner--model-GGUF" / "refs" / "main"
    ref.parent.mkdir(parents=True)
    ref.write_text(newer)
    (ref.parents[1] / "snapshots" / newer).mkdir(parents=True)
    fetch(commit=commit)
    assert ref.read_text() == newer
    (ref.parents[1] / "snapshots" / newer).rmdir()
    fetch(commit=commit)
    assert ref.read_text() == commit


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
    assert in_cache(cache, REPO, FILE, SIZE, hashlib.sha256(data).hexdigest()) == fetched.path
    server.asked.clear()
    fetch()
    assert server.requests("cdn") == []


def test_shards_come_as_one(fetch: Fetch, server: FakeHub) -> None:
    names = [f"big-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    server.repos[REPO] = FakeRepo({name: random_bytes(i, 1000 + i) for i, name in enumerate(names)})
    fetched = fetch(*names)
    assert [report.index for report in fetched.reports if isinstance(report, FileDone)] == [0, 1, 2]
    assert fetched.reports[-1] == DownloadProgress(3003)
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
        server.faults["cdn"].extend(Fault(cut=at, reset=at % 2 == 0) for at in several)
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
    assert [wait.trouble for wait in fetched.waits] == [Trouble.UNREACHABLE]
    first, second = server.requests("cdn")
    assert "range" not in first.headers
    assert second.headers["range"] == "bytes=120000-"


def test_a_stall_is_noticed(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.faults["cdn"].append(Fault(cut=50_000, stall=60))
    began = time.monotonic()
    fetched = fetch(patience=Patience(stall=0.4, first_wait=0, longest_wait=0, attempts=3))
    assert fetched.path.read_bytes() == data
    assert time.monotonic() - began < 30
    assert "does not answer" in fetched.waits[0].message


@pytest.mark.parametrize("kind", ["head", "cdn"])
def test_a_server_with_trouble_is_asked_again(fetch: Fetch, data: bytes, server: FakeHub, kind: str) -> None:
    server.faults[kind].extend([Fault(status=503), Fault(status=500)])
    fetched = fetch(patience=Patience(first_wait=1.0, longest_wait=60, attempts=3))
    assert fetched.path.read_bytes() == data
    assert [(wait.trouble, wait.seconds) for wait in fetched.waits] == [
        (Trouble.SERVER, 1),
        (Trouble.SERVER, 2),
    ]


def test_waits_grow_to_a_limit_and_end(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    server.always["head"] = Fault(status=502)
    reports: list[Report] = []
    patience = Patience(first_wait=1, longest_wait=5, attempts=5)
    error = trouble(lambda: fetch(patience=patience, reports=reports))
    assert error.trouble is Trouble.SERVER
    assert [report.seconds for report in reports if isinstance(report, Waiting)] == [1, 2, 4, 5, 5]


def test_bytes_that_come_renew_the_patience(fetch: Fetch, data: bytes, server: FakeHub) -> None:
    cuts, refusals = [Fault(cut=20_000)] * 4, [Fault(status=503)] * 2
    server.faults["cdn"].extend([*cuts, *refusals, Fault(cut=20_000), Fault(status=503)])
    fetched = fetch(patience=Patience(first_wait=1, longest_wait=60, attempts=3))
    assert fetched.path.read_bytes() == data
    assert [wait.seconds for wait in fetched.waits] == [1, 1, 1, 1, 2, 4, 1, 2]


@pytest.mark.parametrize("kind", ["head", "cdn"])
@pytest.mark.parametrize("header", [("Retry-After", "7"), ("RateLimit", '"resolvers";r=0;t=7')])
def test_a_busy_hub_says_how_long_to_wait(
    fetch: Fetch, data: bytes, server: FakeHub, kind: str, header: tuple[str, str]
) -> None:
    server.faults[kind].append(Fault(status=429, headers=(header,)))
    fetched = fetch()
    assert fetched.path.read_bytes() == data
    assert [(wait.trouble, wait.seconds) for wait in fetched.waits] == [(Trouble.BUSY, 7)]


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
    job = DownloadJob(REPO, "main", files, str(cache.folder), "http://127.0.0.1:9", QUICK)
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
    assert [path.name for path in cache.folder.rglob("blobs/*")] == [hashlib.sha256(new).hexdigest()]


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
    assert [path.name for path in cache.folder.rglob("blobs/*")] == [hashlib.sha256(new).hexdigest()]


def test_all_files_of_an_item_are_of_one_commit(fetch: Fetch, server: FakeHub) -> None:
    names = [f"big-0000{i}-of-00002.gguf" for i in (1, 2)]
    server.repos[REPO] = FakeRepo({name: random_bytes(i, 999) for i, name in enumerate(names)})
    fetch(*names)
    revisions = {
        request.path.split("/resolve/")[1].split("/")[0] for request in server.requests("resolve", "HEAD")
    }
    assert revisions == {"main", server.repos[REPO].commit}
    assert [
        request.path.split("/resolve/")[1].split("/")[0] for request in server.requests("resolve", "HEAD")
    ][1:] == [server.repos[REPO].commit]
