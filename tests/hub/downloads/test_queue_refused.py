"""What the queue refuses or waits for: gated repositories, no room, offline mode."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from typing_extensions import override

from app.hub.cache import Cache
from app.hub.downloads import Download, State, Wanted
from app.hub.downloads.store import check_space
from app.hub.errors import HubError, Trouble
from app.hub.hub import Hub
from app.hub.repo import HubFile
from tests.hub.downloads.fetching import partials
from tests.hub.downloads.watching import FILE, REPO, SIZE, SLOW, Open, wanted
from tests.hub.server import TOKEN, FakeHub, FakeRepo
from tests.quiet import stays


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


def test_a_listing_that_the_same_commit_contradicts_is_refused(
    open_queue: Open, hub: Hub, data: bytes, server: FakeHub, cache: Cache
) -> None:
    """What is sent would pass as the file that was listed, if its own header were all that is checked."""
    watched, asked = open_queue(), wanted(hub)
    lies = data[::-1]
    server.repos[REPO] = Swapped({FILE: lies}, of=server.repos[REPO].commit)
    (id,) = watched.queue.add([asked])
    failed = watched.wait_for(id, State.FAILED, State.DONE)
    assert failed.trouble is Trouble.CHECKSUM and "for the same commit" in failed.message
    assert server.requests("cdn") == [] and partials(cache) == []
    # Where the branch moved on, the listing is of another commit, and says nothing of this file.
    server.repos[REPO] = FakeRepo({FILE: lies})
    watched.queue.resume(id)
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == lies


@dataclass
class Swapped(FakeRepo):
    """Holds other files under the commit of the ones that were listed."""

    of: str = ""

    @property
    @override
    def commit(self) -> str:
        return self.of


def test_no_room_is_said_before_anything_is_queued(
    open_queue: Open, hub: Hub, data: bytes, home: Path
) -> None:
    class Full(Cache):
        @override
        def free_bytes(self) -> int:
            return SIZE * 2 - 1

    watched = open_queue(cache=Full(home / "hub"))
    with pytest.raises(HubError, match="There is no room") as raised:
        watched.queue.add([wanted(hub), Wanted("other/repo", (HubFile("b.gguf", SIZE),))])
    assert raised.value.trouble is Trouble.NO_SPACE
    assert "800 kB needed" in raised.value.message
    assert watched.queue.downloads == ()
    (id,) = watched.queue.add([wanted(hub)])
    watched.wait_for(id, State.DONE)
    watched.queue.dismiss(id)
    watched.wait_gone(id)
    # Files that are here already need no room.
    (other,) = watched.queue.add([wanted(hub), Wanted("other/repo", (HubFile("b.gguf", SIZE),))])[:1]
    watched.wait_for(other, State.DONE)


@pytest.mark.parametrize(
    ("state", "done", "free"),
    [(State.QUEUED, 0, 500), (State.RUNNING, 100, 400), (State.WAITING, 0, 500), (State.PAUSED, 0, 200)],
)
def test_there_must_be_room_beside_what_is_still_to_come(
    home: Path, state: State, done: int, free: int
) -> None:
    class Disk(Cache):
        room = free

        @override
        def free_bytes(self) -> int:
            return self.room

    cache = Disk(home / "hub")
    other = msgspec.structs.replace(
        Download.of(Wanted("other/repo", (HubFile("b.gguf", 300),)), "group"), state=state, done=done
    )
    new = [Wanted("new/repo", (HubFile("a.gguf", 200),))]
    check_space(cache, new, [other])
    cache.room -= 1
    with pytest.raises(HubError, match="There is no room on the disk"):
        check_space(cache, new, [other])
    cache.room = 0
    check_space(cache, [], [other])


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), ZeroDivisionError()])
def test_whoever_asks_is_answered_whatever_goes_wrong(
    open_queue: Open, home: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Cache):
        @override
        def find_first(self, repo: str, files: Sequence[HubFile]) -> Path | None:
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
        @override
        def free_bytes(self) -> int:
            return SIZE - 100

    cache = Full(home / "hub")
    place = cache.entry(REPO, FILE, hashlib.sha256(data).hexdigest(), server.repos[REPO].commit)
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
    item = wanted(hub)
    (id,) = watched.queue.add([item])
    watched.wait(id, lambda now: now is not None and now.done > 20_000)

    offline = True
    watched.queue.offline_changed()
    stopped = watched.wait_for(id, State.FAILED)
    assert stopped.trouble is Trouble.OFFLINE and "Offline mode is on" in stopped.message
    asked = len(server.asked)
    with pytest.raises(HubError, match="Offline mode is on"):
        watched.queue.add([item])
    watched.queue.resume(id)
    watched.wait_for(id, State.FAILED)
    assert stays(lambda: len(server.asked)) and len(server.asked) == asked

    offline = False
    server.always.clear()
    watched.queue.offline_changed()
    assert Path(watched.wait_for(id, State.DONE).path).read_bytes() == data
