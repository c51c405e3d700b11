"""A queue with real child processes, and what it reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from app.hub.cache import Cache
from app.hub.downloads import Download, DownloadQueue, DownloadRemoved, QueueEvent, State, Wanted
from app.hub.downloads.item import Patience
from app.hub.hub import Hub
from app.hub.repo import read_repo
from tests.hub.server import FakeHub, Fault

REPO = "owner/model-GGUF"
FILE = "model-Q4_K_M.gguf"
SIZE = 400_000
PATIENCE = 40.0  # seconds; the machine may be busy
QUICK = Patience(stall=10.0, first_wait=0.05, longest_wait=0.1, attempts=3)
SLOW = Fault(pace=0.02)  # 4 kB each: about 2 s in all


class Watched:
    """A queue and what it reported."""

    def __init__(self, queue_file: Path | None, hub: Hub, cache: Cache, patience: Patience) -> None:
        self.events: list[QueueEvent] = []
        self.queue = DownloadQueue(queue_file, hub, self.events.append, cache, 2, patience)

    def now(self, id: str) -> Download | None:
        return next((download for download in self.queue.downloads if download.id == id), None)

    def wait(self, id: str, reached: Callable[[Download | None], bool]) -> Download | None:
        until = time.monotonic() + PATIENCE
        while not reached(self.now(id)):
            assert time.monotonic() < until, self.now(id)
            time.sleep(0.01)
        return self.now(id)

    def wait_gone(self, id: str) -> None:
        self.wait(id, lambda _now: DownloadRemoved(id) in self.events)
        assert self.now(id) is None

    def wait_for(self, id: str, *states: State) -> Download:
        found = self.wait(id, lambda download: download is not None and download.state in states)
        assert found is not None
        return found


Open = Callable[..., Watched]


def wanted(hub: Hub, repo: str = REPO, file: str = FILE) -> Wanted:
    found = read_repo(hub, repo)
    return Wanted.of(found, found.holding(file))


def begun(watched: Watched, hub: Hub, server: FakeHub, bytes_here: int = 1) -> tuple[Watched, str]:
    """The queue, and the id of a slow download of which that much is here."""
    server.always["cdn"] = SLOW
    (id,) = watched.queue.add([wanted(hub)])
    watched.wait(id, lambda download: download is not None and download.done >= bytes_here)
    return watched, id
