"""The queue with real child processes: progress, pause, restart."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest
from filelock import FileLock

from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.downloads import DownloadChanged, State, Wanted
from app.hub.downloads.item import Patience, after_restart
from app.hub.downloads.store import hold_queue, read_queue
from app.hub.errors import Trouble
from app.hub.hub import Hub
from app.hub.repo import read_repo
from tests.hub.downloads.fetching import partials
from tests.hub.downloads.watching import FILE, REPO, SIZE, SLOW, Open, begun, wanted
from tests.hub.server import SECRET, FakeHub, FakeRepo, Fault
from tests.hub.stock import in_cache
from tests.quiet import stays

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
    assert (target.done, target.total, target.title) == (SIZE, SIZE, "owner/model-GGUF Q4_K_M")
    assert in_cache(cache, REPO, FILE) == Path(target.path)
    changed = [event.download for event in watched.events if isinstance(event, DownloadChanged)]
    states = list(dict.fromkeys(download.state for download in changed if download.id == target.id))
    assert states == [State.RUNNING, State.DONE]

    watched.queue.dismiss(target.id)
    watched.wait_gone(target.id)
    assert Path(target.path).read_bytes() == data


def test_progress_and_speed_are_told(open_queue: Open, hub: Hub, data: bytes, server: FakeHub) -> None:
    server.always["cdn"] = SLOW
    watched = open_queue()
    (id,) = watched.queue.add([wanted(hub)])
    seen = watched.wait(id, lambda download: download is not None and download.seconds_left is not None)
    assert seen is not None and seen.state is State.RUNNING
    assert 0 < seen.done < SIZE
    assert seen.speed is not None and 20_000 < seen.speed < 400_000
    assert seen.seconds_left == pytest.approx((SIZE - seen.done) / seen.speed, rel=0.05)
    watched.queue.pause(id)
    paused = watched.wait_for(id, State.PAUSED)
    watched.queue.resume(id)
    again = watched.wait(id, lambda download: download is not None and download.done > paused.done)
    told = [event.download for event in watched.events if isinstance(event, DownloadChanged)]
    first = next(download for download in told if download.done > paused.done)
    assert again is not None and first.speed is None, "the pause is not part of the speed"
    watched.wait_for(id, State.DONE)
    done = [event.download.done for event in watched.events if isinstance(event, DownloadChanged)]
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
    watched = open_queue(patience=Patience(first_wait=1.0, longest_wait=1.0))  # long enough to be seen
    (id,) = watched.queue.add([wanted(hub)])
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data
    waits = [
        event.download
        for event in watched.events
        if isinstance(event, DownloadChanged) and event.download.state is State.WAITING
    ]
    assert [download.trouble for download in waits] == [Trouble.UNREACHABLE, Trouble.BUSY]
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
    watched, id = begun(open_queue(), hub, server, 20_000)
    watched.queue.pause(id)
    paused = watched.wait_for(id, State.PAUSED)
    assert stays(lambda: len(server.asked))
    assert watched.now(id) == paused
    server.always.clear()
    watched.queue.resume(id)
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data
    begin = int(server.requests("cdn")[-1].headers["range"].removeprefix("bytes=").rstrip("-"))
    assert paused.done <= begin < SIZE


def test_after_a_restart_it_goes_on(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, tmp_path: Path
) -> None:
    first, id = begun(open_queue(remember=True), hub, server, 20_000)
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
    """The saved list is the one from the middle of the download."""
    first, id = begun(open_queue(remember=True), hub, server, 20_000)
    file = tmp_path / "downloads.json"
    (as_it_ran,) = read_queue(file).downloads
    assert as_it_ran.files[0].etag  # enough to clean up behind it
    first.queue.pause(id)
    first.wait_for(id, State.PAUSED)
    assert after_restart(as_it_ran).state is State.PAUSED


def test_two_windows_do_not_share_a_list(open_queue: Open) -> None:
    open_queue(remember=True)
    with pytest.raises(UserError, match="different Draftscope"):
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
    else:  # as on systems where filelock takes a refusal for a held lock
        blocked = FileLock(tmp_path / "data" / "downloads.json.lock")
        blocked.acquire()
        monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(UserError, match="list of downloads cannot be saved: ") as raised:
        hold_queue(file)
    assert str(file.parent) in raised.value.hint


def test_a_revision_is_followed(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, cache: Cache
) -> None:
    commit = server.repos[REPO].commit
    found = read_repo(hub, REPO, commit)
    assert f"/revision/{commit}" in server.requests("api")[-1].path
    item = Wanted.of(found, found.holding(FILE))
    watched = open_queue()
    ids = watched.queue.add([item, wanted(hub)])
    assert len(set(ids)) == 2  # the main branch may point to another commit
    done = watched.wait_for(ids[0], State.DONE)
    assert done.revision == commit
    asked = [request.path for request in server.requests("resolve", "HEAD")]  # both are fetched in parallel
    assert any(f"/resolve/{commit}/" in path for path in asked)


def test_what_came_of_a_file_that_changed_since_is_removed(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, cache: Cache
) -> None:
    watched, id = begun(open_queue(), hub, server)
    watched.queue.pause(id)
    watched.wait_for(id, State.PAUSED)
    assert len(partials(cache)) == 1
    changed = data[::-1]
    server.repos[REPO].files[FILE] = changed
    server.always.clear()
    watched.queue.resume(id)
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == changed
    assert partials(cache) == []


def test_a_damaged_list_is_set_aside(open_queue: Open, tmp_path: Path) -> None:
    (tmp_path / "downloads.json").write_text("{")
    watched = open_queue(remember=True)
    assert "damaged" in watched.queue.notice
    assert watched.queue.downloads == ()
    assert len(list(tmp_path.glob("downloads.json.damaged-*"))) == 1


def test_a_list_of_a_newer_version_is_kept_as_it_is(
    open_queue: Open, tmp_path: Path, data: bytes, hub: Hub
) -> None:
    newer = b'{"version": 2, "downloads": {"all": "other"}}'
    (tmp_path / "downloads.json").write_bytes(newer)
    watched = open_queue(remember=True)
    assert "newer version" in watched.queue.notice and watched.queue.downloads == ()
    (id,) = watched.queue.add([wanted(hub)])
    watched.wait_for(id, State.DONE)
    (kept,) = tmp_path.glob("downloads.json.newer-*")
    assert kept.read_bytes() == newer and kept.name in watched.queue.notice
    assert [download.id for download in read_queue(tmp_path / "downloads.json").downloads] == [id]


def test_a_download_process_that_is_killed_is_said(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub
) -> None:
    watched, id = begun(open_queue(), hub, server)
    (worker,) = [
        process for process in multiprocessing.active_children() if process.name == "draftscope download"
    ]
    worker.kill()
    failed = watched.wait_for(id, State.FAILED)
    assert failed.trouble is Trouble.CRASHED
    assert "signal 9" in failed.message
    watched.queue.pause(id)
    watched.queue.add([wanted(hub)])  # after the pause, and the same item
    assert watched.now(id) == failed
    server.always.clear()
    watched.queue.resume(id)
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data
