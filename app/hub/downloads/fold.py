"""Applies the reports of a child process to its item."""

from __future__ import annotations

from msgspec.structs import replace

from app.hub.downloads.item import ACTIVE, Download, State
from app.hub.downloads.messages import (
    DownloadBegun,
    DownloadFailed,
    DownloadFinished,
    DownloadProgress,
    FileDone,
    Report,
    Waiting,
)
from app.hub.downloads.rate import Rate
from app.hub.errors import HubError


def folded(download: Download, report: Report, rate: Rate | None) -> Download:
    """The item after a report; `rate` is that of the bytes being received, None while there are none."""
    match report:
        case DownloadBegun(index, etag, commit, size, found):
            known = download.files[index]
            # A file that this download brought earlier stays its own, also when it now finds it.
            found = found and (known.found or known.etag != etag)
            begun = settled(download, State.RUNNING, download.done)
            # A file of another size is not the one that the Hub listed: its checksum differs too.
            sha256 = known.sha256 if known.size in (0, size) else ""
            return with_file(begun, index, etag=etag, commit=commit, size=size, sha256=sha256, found=found)
        case DownloadProgress(done, checking=True):
            return settled(download, State.CHECKING, done)
        case DownloadProgress(done):
            left = rate.seconds_left(download.total) if rate else None
            return settled(download, State.RUNNING, done, rate.speed() if rate else None, left)
        case Waiting(trouble, message, hint, seconds):
            waiting = settled(download, State.WAITING, download.done)
            return replace(waiting, trouble=trouble, message=message, hint=hint, retry_in=seconds)
        case FileDone(index, path):
            return with_file(download, index, path=path)
        case DownloadFailed(trouble, message, hint):
            return failed(download, HubError(trouble, message, hint))
        case DownloadFinished():
            return settled(download, State.DONE, download.total)


def settled(
    download: Download, state: State, done: int, speed: float | None = None, seconds_left: float | None = None
) -> Download:
    """The item in a new state, without the messages of the previous one."""
    return replace(
        download,
        state=state,
        done=done,
        speed=speed,
        seconds_left=seconds_left,
        retry_in=None,
        trouble=None,
        message="",
        hint="",
    )


def failed(download: Download, error: HubError) -> Download:
    stopped = settled(download, State.FAILED, download.done)
    return replace(stopped, trouble=error.trouble, message=error.message, hint=error.hint)


def lasting(download: Download) -> Download:
    """The item without its progress, which is not worth saving at once."""
    return replace(download, done=0, speed=None, seconds_left=None, retry_in=None)


def after_restart(download: Download) -> Download:
    """The item of an earlier session: paused where it was running or queued."""
    if download.state not in ACTIVE | {State.QUEUED}:
        return download
    return settled(download, State.PAUSED, download.done)


def with_file(download: Download, index: int, **changes: object) -> Download:
    files = list(download.files)
    files[index] = replace(files[index], **changes)
    return replace(download, files=tuple(files))
