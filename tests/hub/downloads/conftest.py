"""One file on the Hub, fetched here or by a queue."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.hub.cache import Cache
from app.hub.downloads.fetch import Fetcher
from app.hub.downloads.item import DownloadJob, FileDone, ItemFile, Patience, Report
from app.hub.hub import Hub
from tests.hub.downloads import fetching, watching
from tests.hub.downloads.fetching import FILE, REPO, Fetch, Fetched
from tests.hub.downloads.watching import Open, Watched
from tests.hub.server import FakeHub, FakeRepo
from tests.processes import started


@pytest.fixture
def data(server: FakeHub, request: pytest.FixtureRequest) -> bytes:
    """The file's bytes; more for a queue, whose progress is watched."""
    size = watching.SIZE if "open_queue" in request.fixturenames else fetching.SIZE
    made = random.Random(1).randbytes(size)
    server.repos[REPO] = FakeRepo({FILE: made})
    return made


@pytest.fixture
def fetch(server: FakeHub, cache: Cache) -> Fetch:
    """Fetches files into the cache, in this process."""

    def run(
        *names: str,
        patience: Patience = fetching.QUICK,
        commit: str = "",
        sha256: str = "",
        size: int = 0,
        reports: list[Report] | None = None,
        free: Callable[[], int] | None = None,
        checked: Path | str = "",
    ) -> Fetched:
        files = tuple(ItemFile(name, size, sha256, commit=commit) for name in names or (FILE,))
        seen: list[Report] = [] if reports is None else reports
        job = DownloadJob(REPO, "main", files, str(cache.folder), server.address, patience, str(checked))
        Fetcher(job, seen.append, free, lambda _seconds: None).run()
        done = next(report for report in seen if isinstance(report, FileDone))
        return Fetched(seen, Path(done.path))

    return run


@pytest.fixture
def open_queue(hub: Hub, cache: Cache, tmp_path: Path) -> Iterator[Open]:
    opened: list[Watched] = []
    before = started()

    def make(
        remember: bool = False, patience: Patience = watching.QUICK, hub: Hub = hub, cache: Cache = cache
    ) -> Watched:
        made = Watched(tmp_path / "downloads.json" if remember else None, hub, cache, patience)
        opened.append(made)
        return made

    yield make
    for watched in opened:
        watched.queue.close()
    assert not any(thread.name == "downloads" for thread in threading.enumerate())
    assert started() <= before
