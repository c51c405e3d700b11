"""What a child process reports, folded into the picture of its item."""

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


def folded(one: Download, report: Report, rate: Rate | None) -> Download:
    """The item after a report; `rate` is that of the bytes that are coming, None while none are."""
    match report:
        case DownloadBegun(index, etag, commit, size, found):
            known = one.files[index]
            # What this download brought earlier is its own, also where it now finds it.
            found = found and (known.found or known.etag != etag)
            begun = settled(one, State.RUNNING, one.done)
            # A file of another size is another one than the Hub listed: so is its checksum.
            sha256 = known.sha256 if known.size in (0, size) else ""
            return with_file(begun, index, etag=etag, commit=commit, size=size, sha256=sha256, found=found)
        case DownloadProgress(done, checking=True):
            return settled(one, State.CHECKING, done)
        case DownloadProgress(done):
            left = rate.seconds_left(one.total) if rate else None
            return settled(one, State.RUNNING, done, rate.speed() if rate else None, left)
        case Waiting(trouble, message, hint, seconds):
            waiting = settled(one, State.WAITING, one.done)
            return replace(waiting, trouble=trouble, message=message, hint=hint, retry_in=seconds)
        case FileDone(index, path):
            return with_file(one, index, path=path)
        case DownloadFailed(trouble, message, hint):
            return failed(one, HubError(trouble, message, hint))
        case DownloadFinished():
            return settled(one, State.DONE, one.total)


def settled(
    one: Download, state: State, done: int, speed: float | None = None, seconds_left: float | None = None
) -> Download:
    """The item in a new state; what the one before had to say is over."""
    return replace(
        one,
        state=state,
        done=done,
        speed=speed,
        seconds_left=seconds_left,
        retry_in=None,
        trouble=None,
        message="",
        hint="",
    )


def failed(one: Download, error: HubError) -> Download:
    stopped = settled(one, State.FAILED, one.done)
    return replace(stopped, trouble=error.trouble, message=error.message, hint=error.hint)


def lasting(one: Download) -> Download:
    """What of an item is worth writing down at once: not its progress."""
    return replace(one, done=0, speed=None, seconds_left=None, retry_in=None)


def after_restart(one: Download) -> Download:
    """An item of the last time: nothing of it is at work any more."""
    if one.state not in ACTIVE | {State.QUEUED}:
        return one
    return settled(one, State.PAUSED, one.done)


def with_file(one: Download, index: int, **changes: object) -> Download:
    files = list(one.files)
    files[index] = replace(files[index], **changes)
    return replace(one, files=tuple(files))
