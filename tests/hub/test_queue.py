"""The queue with real child processes: progress, pause, restart, cancel, gated, no room, offline."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.downloads import (
    Download,
    DownloadChanged,
    DownloadQueue,
    DownloadRemoved,
    QueueEvent,
    State,
    Wanted,
)
from app.hub.downloads.fold import after_restart, folded
from app.hub.downloads.item import ItemFile
from app.hub.downloads.messages import Begun, Failed, FileDone, Finished, Patience, Progress, Waiting
from app.hub.downloads.rate import Rate
from app.hub.downloads.store import hold_queue, read_queue
from app.hub.errors import HubError, Trouble
from app.hub.hub import Hub
from app.hub.repo import HubFile, read_repo
from tests.hub.server import SECRET, TOKEN, FakeHub, FakeRepo, Fault

REPO = "owner/model-GGUF"
FILE = "model-Q4_K_M.gguf"
SIZE = 400_000
PATIENCE = 40.0  # seconds; the machine may be busy
QUICK = Patience(stall=2.0, first_wait=0.05, longest_wait=0.1, attempts=3)
SLOW = Fault(pace=0.02)  # 4 kB each: about 2 s in all


@pytest.fixture
def data(server: FakeHub) -> bytes:
    made = random.Random(1).randbytes(SIZE)
    server.repos[REPO] = FakeRepo({FILE: made})
    return made


class Watched:
    """A queue and what it told."""

    def __init__(self, queue_file: Path | None, hub: Hub, cache: Cache, patience: Patience) -> None:
        self.events: list[QueueEvent] = []
        self.queue = DownloadQueue(queue_file, hub, self.events.append, cache, 2, patience)

    def now(self, id: str) -> Download | None:
        return next((one for one in self.queue.downloads if one.id == id), None)

    def wait(self, id: str, reached: Callable[[Download | None], bool]) -> Download | None:
        until = time.monotonic() + PATIENCE
        while not reached(self.now(id)):
            assert time.monotonic() < until, self.now(id)
            time.sleep(0.01)
        return self.now(id)

    def wait_gone(self, id: str) -> None:
        self.wait(id, lambda _one: DownloadRemoved(id) in self.events)
        assert self.now(id) is None

    def wait_for(self, id: str, *states: State) -> Download:
        found = self.wait(id, lambda one: one is not None and one.state in states)
        assert found is not None
        return found


Open = Callable[..., Watched]


@pytest.fixture
def open_queue(hub: Hub, cache: Cache, tmp_path: Path) -> Iterator[Open]:
    opened: list[Watched] = []

    def make(
        remember: bool = False, patience: Patience = QUICK, hub: Hub = hub, cache: Cache = cache
    ) -> Watched:
        made = Watched(tmp_path / "downloads.json" if remember else None, hub, cache, patience)
        opened.append(made)
        return made

    yield make
    for one in opened:
        one.queue.close()
    assert [one for one in psutil.Process().children() if one.is_running() and "spawn_main" in str(one)] == []


def wanted(hub: Hub, repo: str = REPO, file: str = FILE) -> Wanted:
    found = read_repo(hub, repo)
    return Wanted.of(found, found.holding(file))


# -------------------------------------------------------------------------------------- the plain way


def test_a_pair_is_fetched_by_one_click(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, cache: Cache
) -> None:
    server.repos["owner/draft-GGUF"] = FakeRepo({"draft-Q8_0.gguf": data[:5000]})
    watched = open_queue()
    ids = watched.queue.add([wanted(hub), wanted(hub, "owner/draft-GGUF", "Q8_0")])
    target, draft = (watched.wait_for(id, State.DONE) for id in ids)
    assert target.group == draft.group
    assert Path(target.path).read_bytes() == data
    assert Path(draft.path).read_bytes() == data[:5000]
    assert (target.done, target.total, target.title) == (SIZE, SIZE, "model-GGUF Q4_K_M")
    assert cache.find(REPO, FILE) == Path(target.path)
    changed = [one.download for one in watched.events if isinstance(one, DownloadChanged)]
    states = list(dict.fromkeys(one.state for one in changed if one.id == target.id))
    assert states == [State.RUNNING, State.DONE]

    watched.queue.dismiss(target.id)
    watched.wait_gone(target.id)
    assert Path(target.path).read_bytes() == data


def test_progress_and_speed_are_told(open_queue: Open, hub: Hub, data: bytes, server: FakeHub) -> None:
    server.always["cdn"] = SLOW
    watched = open_queue()
    (id,) = watched.queue.add([wanted(hub)])
    seen = watched.wait(id, lambda one: one is not None and one.seconds_left is not None)
    assert seen is not None and seen.state is State.RUNNING
    assert 0 < seen.done < SIZE
    assert seen.speed is not None and 20_000 < seen.speed < 400_000
    assert seen.seconds_left == pytest.approx((SIZE - seen.done) / seen.speed, rel=0.05)
    watched.wait_for(id, State.DONE)
    done = [one.download.done for one in watched.events if isinstance(one, DownloadChanged)]
    assert done == sorted(done)


def test_what_is_queued_is_not_queued_twice(open_queue: Open, hub: Hub, data: bytes, server: FakeHub) -> None:
    server.always["cdn"] = SLOW
    watched = open_queue()
    (first,) = watched.queue.add([wanted(hub)])
    assert watched.queue.add([wanted(hub)]) == (first,)
    watched.wait_for(first, State.DONE)
    assert len(server.requests("cdn")) == 1


def test_no_more_than_two_at_once(open_queue: Open, hub: Hub, data: bytes, server: FakeHub) -> None:
    server.repos[REPO].files |= {f"{name}.gguf": data for name in "abc"}
    server.always["cdn"] = SLOW
    watched = open_queue()
    ids = watched.queue.add([wanted(hub, file=f"{name}.gguf") for name in "abc"])
    watched.wait_for(ids[0], State.RUNNING)
    third = watched.now(ids[2])
    assert third is not None and third.state is State.QUEUED
    watched.queue.cancel(ids[0])
    watched.wait_for(ids[2], State.RUNNING)


def test_it_tries_again_by_itself_and_says_so(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub
) -> None:
    server.faults["cdn"].extend([Fault(cut=100_000), Fault(status=429, headers=(("Retry-After", "1"),))])
    watched = open_queue()
    (id,) = watched.queue.add([wanted(hub)])
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data
    waits = [
        one.download
        for one in watched.events
        if isinstance(one, DownloadChanged) and one.download.state is State.WAITING
    ]
    assert [one.trouble for one in waits] == [Trouble.UNREACHABLE, Trouble.BUSY]
    assert waits[1].retry_in == 1.0 and "429" in waits[1].message
    _, second, third = server.requests("cdn")
    assert third.headers["range"] == "bytes=100000-"
    assert third.at - second.at >= 1.0


def test_a_wrong_checksum_fails_and_resume_fetches_anew(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub
) -> None:
    server.faults["cdn"].append(Fault(wrong=True))
    watched = open_queue()
    (id,) = watched.queue.add([wanted(hub)])
    failed = watched.wait_for(id, State.FAILED)
    assert failed.trouble is Trouble.CHECKSUM and "damaged" in failed.message and failed.hint
    watched.queue.resume(id)
    done = watched.wait_for(id, State.DONE)
    assert Path(done.path).read_bytes() == data
    assert (done.trouble, done.message) == (None, "")


# --------------------------------------------------------------------------------- pause and restart


def test_pause_and_resume_go_on_where_it_stood(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub
) -> None:
    server.always["cdn"] = SLOW
    watched = open_queue()
    (id,) = watched.queue.add([wanted(hub)])
    watched.wait(id, lambda one: one is not None and one.done > 20_000)
    watched.queue.pause(id)
    paused = watched.wait_for(id, State.PAUSED)
    asked = len(server.asked)
    time.sleep(0.3)
    assert len(server.asked) == asked
    assert watched.now(id) == paused
    server.always.clear()
    watched.queue.resume(id)
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data
    begin = int(server.requests("cdn")[-1].headers["range"].removeprefix("bytes=").rstrip("-"))
    assert paused.done <= begin < SIZE


def test_after_a_restart_it_goes_on(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, tmp_path: Path
) -> None:
    server.always["cdn"] = SLOW
    first = open_queue(remember=True)
    (id,) = first.queue.add([wanted(hub)])
    first.wait(id, lambda one: one is not None and one.done > 20_000)
    first.queue.close()
    text = (tmp_path / "downloads.json").read_text()
    assert SECRET not in text and FILE in text

    server.always.clear()
    second = open_queue(remember=True)
    (there,) = second.queue.downloads
    assert (there.id, there.state) == (id, State.PAUSED) and there.done > 20_000
    second.queue.resume(id)
    assert Path(second.wait_for(id, State.DONE).path).read_bytes() == data
    assert "range" in server.requests("cdn")[-1].headers


def test_after_a_crash_of_the_app_it_goes_on(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, tmp_path: Path
) -> None:
    """The list as it was while the download ran."""
    server.always["cdn"] = SLOW
    first = open_queue(remember=True)
    (id,) = first.queue.add([wanted(hub)])
    first.wait(id, lambda one: one is not None and one.done > 20_000)
    file = tmp_path / "downloads.json"
    (as_it_ran,) = read_queue(file).downloads
    assert as_it_ran.files[0].etag  # enough to clean up behind it
    first.queue.pause(id)
    first.wait_for(id, State.PAUSED)
    assert after_restart(as_it_ran).state is State.PAUSED


def test_two_windows_do_not_share_a_list(open_queue: Open) -> None:
    open_queue(remember=True)
    with pytest.raises(UserError, match="Another Draftscope"):
        open_queue(remember=True)


@pytest.mark.parametrize("fault", ["no folder", "no lock", "not writable"])
def test_a_list_that_cannot_be_kept_is_said(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data" / "downloads.json"
    if fault == "no folder":
        file.parent.write_text("a file")
    elif fault == "no lock":
        file.with_name("downloads.json.lock").mkdir(parents=True)
    else:  # as where filelock takes a refusal for another holder
        blocked = FileLock(tmp_path / "data" / "downloads.json.lock")
        blocked.acquire()
        monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(UserError, match="list of downloads cannot be kept: ") as raised:
        hold_queue(file)
    assert str(file.parent) in raised.value.hint


def test_a_revision_is_followed(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, cache: Cache
) -> None:
    commit = server.repos[REPO].commit
    found = read_repo(hub, REPO, commit)
    assert f"/revision/{commit}" in server.requests("api")[-1].path
    one = Wanted.of(found, found.holding(FILE))
    watched = open_queue()
    ids = watched.queue.add([one, wanted(hub)])
    assert len(set(ids)) == 2  # the main branch may be elsewhere by now
    done = watched.wait_for(ids[0], State.DONE)
    assert done.revision == commit
    asked = [one.path for one in server.requests("resolve", "HEAD")]  # both are fetched side by side
    assert any(f"/resolve/{commit}/" in path for path in asked)


def test_a_damaged_list_is_set_aside(open_queue: Open, tmp_path: Path) -> None:
    (tmp_path / "downloads.json").write_text("{")
    watched = open_queue(remember=True)
    assert "damaged" in watched.queue.notice
    assert watched.queue.downloads == ()
    assert len(list(tmp_path.glob("downloads.json.damaged-*"))) == 1


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_a_download_process_that_is_killed_is_said(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub
) -> None:
    server.always["cdn"] = SLOW
    watched = open_queue()
    (id,) = watched.queue.add([wanted(hub)])
    watched.wait(id, lambda one: one is not None and one.done > 0)
    (worker,) = watched.queue._workers.values()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    failed = watched.wait_for(id, State.FAILED)
    assert failed.trouble is Trouble.CRASHED
    server.always.clear()
    watched.queue.resume(id)
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data


# ------------------------------------------------------------------------------------------- cancel


def test_cancel_at_any_moment_leaves_nothing_behind(
    open_queue: Open, hub: Hub, server: FakeHub, cache: Cache, left: Callable[[], list[str]]
) -> None:
    """From before the process has begun to after the last byte, by the clock and by the bytes."""
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
            watched.wait(id, lambda one, at=bytes_here[turn]: one is not None and one.done >= at)  # type: ignore[misc]
        else:
            time.sleep(chance.uniform(0, 1.2))
        watched.queue.cancel(id)
        watched.wait_gone(id)
        assert left() == [], turn


def test_cancel_of_paused_failed_and_queued_ones(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, left: Callable[[], list[str]]
) -> None:
    server.always["cdn"] = SLOW
    watched = open_queue()
    (id,) = watched.queue.add([wanted(hub)])
    watched.wait(id, lambda one: one is not None and one.done > 0)
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
    server.always["cdn"] = SLOW
    first = open_queue(remember=True)
    (id,) = first.queue.add([wanted(hub)])
    first.wait(id, lambda one: one is not None and one.done > 20_000)
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
    for one in (again, other):
        watched.wait_for(one, State.DONE)
        watched.queue.cancel(one)
        watched.wait_gone(one)
    assert cache.find(REPO, FILE) is not None
    assert path.read_bytes() == data  # of an earlier commit, and older than this download
    assert cache.find(REPO, "other.gguf") is None


# -------------------------------------------------------------------------------- what is refused


def test_gated_then_with_a_token(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, home: Path, tmp_path: Path
) -> None:
    server.repos[REPO].gated = True
    watched = open_queue(remember=True)
    (id,) = watched.queue.add([wanted(hub)])
    failed = watched.wait_for(id, State.FAILED)
    assert failed.trouble is Trouble.GATED and "gated" in failed.message
    (home / "token").write_text(TOKEN)
    watched.queue.resume(id)
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data
    watched.queue.close()
    assert TOKEN not in (tmp_path / "downloads.json").read_text() + str(watched.events)


def test_no_room_is_said_before_anything_is_queued(
    open_queue: Open, hub: Hub, data: bytes, home: Path
) -> None:
    class Full(Cache):
        def free_bytes(self) -> int:
            return SIZE * 2 - 1

    watched = open_queue(cache=Full(home / "hub"))
    with pytest.raises(HubError, match="There is no room") as raised:
        watched.queue.add([wanted(hub), Wanted("other/repo", (HubFile("b.gguf", SIZE),))])
    assert raised.value.trouble is Trouble.NO_SPACE
    assert "800 kB are needed" in raised.value.message
    assert watched.queue.downloads == ()
    (id,) = watched.queue.add([wanted(hub)])
    watched.wait_for(id, State.DONE)
    watched.queue.dismiss(id)
    watched.wait_gone(id)
    # What is here already needs no room.
    (other,) = watched.queue.add([wanted(hub), Wanted("other/repo", (HubFile("b.gguf", SIZE),))])[:1]
    watched.wait_for(other, State.DONE)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), ZeroDivisionError()])
def test_whoever_asks_is_answered_whatever_goes_wrong(
    open_queue: Open, home: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Cache):
        def find(self, repo: str, name: str, size: int = 0, sha256: str = "") -> Path | None:
            raise error

    monkeypatch.setattr("app.hub.downloads.queue._ANSWER_SECONDS", 2.0)
    watched = open_queue(cache=Failing(home / "hub"))
    kind = HubError if isinstance(error, OSError) else ZeroDivisionError
    with pytest.raises(kind):
        watched.queue.add([Wanted("other/repo", (HubFile("b.gguf", SIZE),))])


def test_what_came_earlier_needs_no_room(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, home: Path
) -> None:
    class Full(Cache):
        def free_bytes(self) -> int:
            return SIZE - 100

    cache = Full(home / "hub")
    place = cache.place(REPO, FILE, hashlib.sha256(data).hexdigest(), server.repos[REPO].commit)
    place.begin()
    place.partial.write_bytes(data[:99])
    watched = open_queue(cache=cache)
    with pytest.raises(HubError, match="There is no room"):
        watched.queue.add([wanted(hub)])
    place.partial.write_bytes(data[:100])
    assert len(watched.queue.add([wanted(hub)])) == 1


def test_offline_nothing_is_fetched_and_it_is_said(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub
) -> None:
    offline = False
    switched = Hub(lambda: offline, server.address)
    server.always["cdn"] = SLOW
    watched = open_queue(hub=switched)
    one = wanted(hub)
    (id,) = watched.queue.add([one])
    watched.wait(id, lambda now: now is not None and now.done > 20_000)

    offline = True
    watched.queue.offline_changed()
    stopped = watched.wait_for(id, State.FAILED)
    assert stopped.trouble is Trouble.OFFLINE and "Offline mode is on" in stopped.message
    asked = len(server.asked)
    with pytest.raises(HubError, match="Offline mode is on"):
        watched.queue.add([one])
    watched.queue.resume(id)
    watched.wait_for(id, State.FAILED)
    time.sleep(0.2)
    assert len(server.asked) == asked

    offline = False
    server.always.clear()
    watched.queue.offline_changed()
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data


# ------------------------------------------------------------------------------------- small parts


def test_speed_does_not_jitter() -> None:
    rate = Rate(1000, 0.0)
    assert rate.speed() is None
    for tick in range(1, 101):  # 100 kB/s, in lumps
        rate.update(1000 + 10_000 * tick + (5_000 if tick % 2 else 0), tick / 10)
    speed = rate.speed()
    assert speed is not None and 95_000 < speed < 105_000
    left = rate.seconds_left(2_000_000)
    assert left == pytest.approx((2_000_000 - 1_001_000) / speed)
    for tick in range(101, 700):  # nothing comes
        rate.update(1_001_000, tick / 10)
    assert rate.seconds_left(2_000_000) is None


def test_every_report_is_folded() -> None:
    one = Download("id", "group", "a/b", "title", (ItemFile("x", 10), ItemFile("y", 20)))
    one = folded(one, Begun(0, "e", "c", 12, False), None)
    assert (one.total, one.files[0].etag, one.state) == (32, "e", State.RUNNING)
    one = folded(one, Progress(5), None)
    assert (one.state, one.done, one.speed) == (State.RUNNING, 5, None)
    one = folded(one, Waiting(Trouble.BUSY, "m", "h", 3.0), None)
    assert (one.state, one.retry_in, one.message) == (State.WAITING, 3.0, "m")
    one = folded(one, Progress(6, checking=True), None)
    assert (one.state, one.retry_in, one.message) == (State.CHECKING, None, "")
    one = folded(one, FileDone(0, "/x"), None)
    assert one.path == ""
    listed = Download("id", "group", "a/b", "title", (ItemFile("x", 10, "sum"),))
    assert folded(listed, Begun(0, "e", "c", 10, False), None).files[0].sha256 == "sum"
    assert folded(listed, Begun(0, "e", "c", 12, False), None).files[0].sha256 == ""
    # Brought by this download, and found again by a later try: still its own.
    assert not folded(one, Begun(0, "e", "c", 12, True), None).files[0].found
    assert folded(one, Begun(0, "f", "c", 12, True), None).files[0].found
    held = folded(folded(one, Begun(0, "f", "c", 12, True), None), Begun(0, "f", "c", 12, False), None)
    assert not held.files[0].found
    failed = folded(one, Failed(Trouble.DISK, "m", "h"), None)
    assert (failed.state, failed.done, failed.trouble) == (State.FAILED, 6, Trouble.DISK)
    done = folded(one, Finished(), None)
    assert (done.state, done.done, done.path) == (State.DONE, 32, "/x")
    assert after_restart(done) is done
    assert after_restart(folded(one, Progress(7), None)).state is State.PAUSED
