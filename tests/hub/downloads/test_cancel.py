"""Cancelling at any moment: nothing stays, or what stays is reported."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.hub.cache import Cache
from app.hub.downloads import Download, State
from app.hub.downloads.item import DownloadFailed, DownloadJob
from app.hub.downloads.worker import Worker
from app.hub.errors import Trouble
from app.hub.hub import Hub
from tests.hub.downloads.watching import FILE, QUICK, REPO, SLOW, Open, begun, wanted
from tests.hub.server import FakeHub, FakeRepo, Fault
from tests.hub.stock import in_cache


@pytest.mark.verify
def test_cancel_at_any_moment_leaves_nothing_behind(
    open_queue: Open, hub: Hub, server: FakeHub, cache: Cache, left: Callable[[], list[str]]
) -> None:
    """From before the process starts to after the last byte, chosen by time and by bytes."""
    names = [f"big-0000{i}-of-00002.gguf" for i in (1, 2)]
    parts = {name: random.Random(name).randbytes(120_000) for name in names}
    server.repos[REPO] = FakeRepo(parts)
    server.always["cdn"] = Fault(pace=0.004)
    whole = wanted(hub, file=names[0])
    watched = open_queue()
    chance = random.Random(7)
    bytes_here = [0, 1, 60_000, 120_000, 121_000, 200_000, 240_000]
    for turn in range(16):
        (id,) = watched.queue.add([whole])
        if turn < len(bytes_here):
            watched.wait(id, lambda item, at=bytes_here[turn]: item is not None and item.done >= at)  # type: ignore[misc]
        else:
            time.sleep(chance.uniform(0, 1.2))
        watched.queue.cancel(id)
        watched.queue.delete(id)  # where it was done already
        watched.wait_gone(id)
        assert left() == [], turn


def test_cancel_of_paused_failed_and_queued_ones(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, left: Callable[[], list[str]]
) -> None:
    watched, id = begun(open_queue(), hub, server)
    watched.queue.pause(id)
    watched.wait_for(id, State.PAUSED)
    assert left() != []
    watched.queue.cancel(id)
    watched.wait_gone(id)
    assert left() == []
    server.always["cdn"] = Fault(cut=50_000)
    server.always["head"] = Fault()
    server.faults["head"].extend([Fault(), *[Fault(status=404)] * 9])
    (id,) = watched.queue.add([wanted(hub)])
    assert watched.wait_for(id, State.FAILED).trouble is Trouble.NOT_FOUND
    watched.queue.cancel(id)
    watched.wait_gone(id)
    assert left() == []


def test_cancel_after_a_restart_leaves_nothing_behind(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, left: Callable[[], list[str]]
) -> None:
    first, id = begun(open_queue(remember=True), hub, server, 20_000)
    first.queue.close()
    second = open_queue(remember=True)
    second.queue.cancel(id)
    second.wait_gone(id)
    assert left() == []


def test_cancel_leaves_what_was_here_before(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, cache: Cache
) -> None:
    watched = open_queue()
    (id,) = watched.queue.add([wanted(hub)])
    path = Path(watched.wait_for(id, State.DONE).path)
    watched.queue.dismiss(id)
    server.repos[REPO].files["other.gguf"] = data[:70_000]
    (again, other) = watched.queue.add([wanted(hub), wanted(hub, file="other.gguf")])
    for id in (again, other):
        watched.wait_for(id, State.DONE)
        watched.queue.delete(id)
        watched.wait_gone(id)
    assert in_cache(cache, REPO, FILE) is not None
    assert path.read_bytes() == data  # from an earlier commit, and older than this download
    assert in_cache(cache, REPO, "other.gguf") is None


@pytest.mark.parametrize("state", [State.DONE, State.PAUSED])
def test_cancel_says_what_stays_and_where(
    open_queue: Open,
    hub: Hub,
    data: bytes,
    server: FakeHub,
    left: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    state: State,
) -> None:
    watched = open_queue(remember=True)
    if state is State.PAUSED:
        server.always["cdn"] = SLOW
    (id,) = watched.queue.add([wanted(hub)])
    if state is State.PAUSED:
        watched.wait(id, lambda download: download is not None and download.done > 20_000)
        watched.queue.pause(id)
    watched.wait_for(id, state)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        (watched.queue.delete if state is State.DONE else watched.queue.cancel)(id)
        item = watched.wait_for(id, State.FAILED)
    assert item.trouble is Trouble.NOT_DELETED and "permission denied" in item.message
    where = re.search(r"Left on the disk: (.*)\. Delete again", item.hint)
    assert where is not None and Path(where[1]).exists()
    assert where[1].endswith(".incomplete" if state is State.PAUSED else FILE)
    server.always.clear()
    (again,) = watched.queue.add([wanted(hub)])  # it does not prevent the same download
    assert again != id and Path(watched.wait_for(again, State.DONE).path).read_bytes() == data
    watched.queue.delete(again)
    watched.wait_gone(again)
    # A file that was here already is found, and the item must not delete it.
    assert (left() == []) is (state is State.PAUSED)


def test_what_could_not_be_deleted_is_deleted_or_let_go(
    open_queue: Open, hub: Hub, data: bytes, left: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = open_queue(remember=True)
    for then in (watched.queue.delete, watched.queue.dismiss):
        (id,) = watched.queue.add([wanted(hub)])
        watched.wait_for(id, State.DONE)
        with monkeypatch.context() as patch:
            patch.setattr("app.hub.cache.Cache.remove", _refuse)
            watched.queue.delete(id)
            watched.wait_for(id, State.FAILED)
        then(id)
        watched.wait_gone(id)
        assert (left() == []) is (then == watched.queue.delete)


def _refuse(*_: object) -> None:
    raise OSError(26, "Text file busy")


def test_cancel_of_what_is_done_by_then_does_nothing(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub
) -> None:
    """The user saw a running download, which may be done when the queue gets the command."""
    watched, id = begun(open_queue(), hub, server)
    server.always.clear()
    watched.queue.pause(id)
    watched.queue.resume(id)
    path = Path(watched.wait_for(id, State.DONE).path)
    asked = len(server.requests("cdn"))
    watched.queue.cancel(id)
    watched.queue.pause(id)  # handled after `cancel`
    (other,) = watched.queue.add([wanted(hub)])
    watched.wait_for(other, State.DONE)
    assert path.read_bytes() == data
    assert len(server.requests("cdn")) == asked, "it was here all the time"


def test_delete_of_what_is_under_way_does_nothing(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub
) -> None:
    watched, id = begun(open_queue(), hub, server)
    watched.queue.delete(id)
    server.always.clear()
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data


def test_a_process_that_is_ended_leaves_its_reports_and_no_failure(
    hub: Hub, data: bytes, server: FakeHub, cache: Cache
) -> None:
    server.always["cdn"] = Fault(pace=0.05)
    files = Download.of(wanted(hub), "").files
    worker = Worker(DownloadJob(REPO, "main", files, str(cache.folder), server.address, QUICK))
    assert worker.connection.poll(60)
    reports = list(worker.kill())
    assert reports and not any(isinstance(report, DownloadFailed) for report in reports)
