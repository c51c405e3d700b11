"""Reports applied to an item, and its speed."""

from __future__ import annotations

import pytest

from app.hub.downloads import Download, State
from app.hub.downloads.item import (
    DownloadBegun,
    DownloadFailed,
    DownloadFinished,
    DownloadProgress,
    FileDone,
    ItemFile,
    Rate,
    Waiting,
    after_restart,
    folded,
)
from app.hub.errors import Trouble


def test_speed_does_not_jitter() -> None:
    rate = Rate(1000, 0.0)
    assert rate.speed() is None
    for tick in range(1, 101):  # 100 kB/s, in lumps
        rate.update(1000 + 10_000 * tick + (5_000 if tick % 2 else 0), tick / 10)
    speed = rate.speed()
    assert speed is not None and 95_000 < speed < 105_000
    left = rate.seconds_left(2_000_000)
    assert left == pytest.approx((2_000_000 - 1_001_000) / speed)
    for tick in range(101, 700):  # nothing arrives
        rate.update(1_001_000, tick / 10)
    assert rate.seconds_left(2_000_000) is None


def test_every_report_is_folded() -> None:
    download = Download("id", "group", "a/b", "title", (ItemFile("x", 10), ItemFile("y", 20)))
    download = folded(download, DownloadBegun(0, "e", "c", 12, False), None)
    assert (download.total, download.files[0].etag, download.state) == (32, "e", State.RUNNING)
    download = folded(download, DownloadProgress(5), None)
    assert (download.state, download.done, download.speed) == (State.RUNNING, 5, None)
    download = folded(download, Waiting(Trouble.BUSY, "m", "h", 3.0), None)
    assert (download.state, download.retry_in, download.message) == (State.WAITING, 3.0, "m")
    download = folded(download, DownloadProgress(6, checking=True), None)
    assert (download.state, download.retry_in, download.message) == (State.CHECKING, None, "")
    download = folded(download, FileDone(0, "/x"), None)
    assert download.path == ""
    listed = Download("id", "group", "a/b", "title", (ItemFile("x", 10, "sum"),))
    assert folded(listed, DownloadBegun(0, "e", "c", 10, False), None).files[0].sha256 == "sum"
    assert folded(listed, DownloadBegun(0, "e", "c", 12, False), None).files[0].sha256 == ""
    # Brought by this download and found by a later try, the file is still its own.
    assert not folded(download, DownloadBegun(0, "e", "c", 12, True), None).files[0].found
    assert folded(download, DownloadBegun(0, "f", "c", 12, True), None).files[0].found
    here = folded(download, DownloadBegun(0, "f", "c", 12, True), None)
    assert folded(here, DownloadBegun(0, "f", "c", 12, True), None).files[0].found
    assert not folded(here, DownloadBegun(0, "f", "c", 12, False), None).files[0].found
    failed = folded(download, DownloadFailed(Trouble.DISK, "m", "h"), None)
    assert (failed.state, failed.done, failed.trouble) == (State.FAILED, 6, Trouble.DISK)
    done = folded(download, DownloadFinished(), None)
    assert (done.state, done.done, done.path) == (State.DONE, 32, "/x")
    assert after_restart(done) is done
    assert after_restart(folded(download, DownloadProgress(7), None)).state is State.PAUSED
