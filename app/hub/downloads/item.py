"""Downloaded items: a model is one item, with any number of files. Each report of its child process makes the
item's next snapshot."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from app.hub.errors import HubError, Trouble
from app.hub.repo import HubFile, Quantisation, Repo


class State(StrEnum):
    """The state of an item."""

    QUEUED = "queued"
    RUNNING = "running"
    CHECKING = "checking"  # its bytes are read again, for the checksum
    WAITING = "waiting"  # it tries again by itself after `retry_in` seconds
    PAUSED = "paused"
    FAILED = "failed"  # `resume` tries again, from where it stood
    DONE = "done"


ACTIVE = frozenset({State.RUNNING, State.CHECKING, State.WAITING})
RESUMABLE = frozenset({State.PAUSED, State.FAILED})


class ItemFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file of an item. `etag` and `commit` are known once its download has started."""

    name: str
    size: int
    sha256: str = ""
    etag: str = ""
    commit: str = ""
    listed: str = ""  # the commit in which the Hub listed its size and checksum
    found: bool = False  # it was here before this download: cancelling leaves it alone
    path: str = ""  # where it is stored, once it is complete


class Download(msgspec.Struct, frozen=True, omit_defaults=True):
    """One item of the queue: an immutable snapshot, replaced at every change."""

    id: str
    group: str  # items that were requested together, such as a pair
    repo: str
    title: str
    files: tuple[ItemFile, ...]
    revision: str = "main"
    state: State = State.QUEUED
    done: int = 0  # bytes here
    speed: float | None = None  # bytes a second, smoothed; None while it is not known
    seconds_left: float | None = None
    retry_in: float | None = None  # seconds, as of this snapshot
    trouble: Trouble | None = None
    message: str = ""  # what is wrong, for people
    hint: str = ""

    @classmethod
    def of(cls, wanted: Wanted, group: str) -> Download:
        """A new item."""
        files = tuple(
            ItemFile(file.name, file.size, file.sha256, listed=wanted.commit) for file in wanted.files
        )
        title = wanted.title or wanted.files[0].name
        return cls(uuid.uuid4().hex, group, wanted.repo, title, files, wanted.revision)

    @property
    def total(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def is_over(self) -> bool:
        """Whether it is done, or was cancelled but could not be deleted completely. It downloads no more, and
        the same model may be requested again."""
        return self.state is State.DONE or self.trouble is Trouble.NOT_DELETED

    @property
    def path(self) -> str:
        """The file to load (the first shard); empty before the item is done."""
        return self.files[0].path if self.state is State.DONE else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model to download. `revision` is the requested branch, tag or commit; `commit` is the one whose files
    were listed."""

    repo: str
    files: tuple[HubFile, ...]
    title: str = ""
    revision: str = "main"
    commit: str = ""

    @classmethod
    def of(cls, repo: Repo, quantisation: Quantisation) -> Wanted:
        """Make it from a quantisation found by `read_repo` or `confirm`."""
        same = [candidate for candidate in repo.quantisations if candidate.name == quantisation.name]
        told = quantisation.name if quantisation.name != "?" and len(same) < 2 else quantisation.file
        title = f"{repo.repo} {told}"
        return cls(repo.repo, quantisation.files, title, repo.revision, repo.commit)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class DownloadChanged:
    """An item is new, or has changed."""

    download: Download


@dataclass(frozen=True, slots=True)
class DownloadRemoved:
    """An item is gone from the queue: cancelled (nothing of it is left on the disk), or dismissed."""

    id: str


QueueEvent = DownloadChanged | DownloadRemoved


class Patience(msgspec.Struct, frozen=True):
    """How long a download waits and how often it tries. Times are in seconds."""

    stall: float = 20.0  # without one byte: the connection is closed and opened again
    first_wait: float = 1.0  # after the first failure; doubled after each further one
    longest_wait: float = 60.0
    attempts: int = 10  # in a row that brought no bytes


class DownloadJob(msgspec.Struct, frozen=True):
    """Everything that a child process needs to know, except the token, which it reads itself."""

    repo: str
    revision: str
    files: tuple[ItemFile, ...]
    cache: str
    endpoint: str
    patience: Patience = Patience()
    checked: str = ""  # the file that lists the verified blobs; "" for none


class DownloadBegun(msgspec.Struct, frozen=True, tag=True):
    """A file was looked up. `found`: it was already here, and does not belong to this download. Reported
    again, without `found`, before any of it is written."""

    index: int
    etag: str
    commit: str
    size: int
    found: bool


class DownloadProgress(msgspec.Struct, frozen=True, tag=True):
    """How many bytes of the whole item are here; `checking`: they are being read for the checksum."""

    done: int
    checking: bool = False


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """Something failed that may work later; the next try is in `seconds`."""

    trouble: Trouble
    message: str
    hint: str
    seconds: float


class FileDone(msgspec.Struct, frozen=True, tag=True):
    """A file is complete, verified and in its place."""

    index: int
    path: str


class DownloadFailed(msgspec.Struct, frozen=True, tag=True):
    """The child has given up."""

    trouble: Trouble
    message: str
    hint: str


class DownloadFinished(msgspec.Struct, frozen=True, tag=True):
    """Every file is done."""


Report = DownloadBegun | DownloadProgress | Waiting | FileDone | DownloadFailed | DownloadFinished

encode = msgspec.msgpack.Encoder().encode
decode_report = msgspec.msgpack.Decoder(Report).decode
decode_job = msgspec.msgpack.Decoder(DownloadJob).decode


_MEMORY_SECONDS = 5.0  # how far back the smoothed speed looks
_SETTLED_SECONDS = 1.0  # before that, no speed is given


class Rate:
    """The smoothed speed of a growing number; times in seconds, of a monotonic clock."""

    def __init__(self, done: int, now: float) -> None:
        self._began = now
        self._done = done
        self._at = now
        self._speed: float | None = None

    def update(self, done: int, now: float) -> None:
        elapsed = now - self._at
        if elapsed <= 0:
            return
        current = max(done - self._done, 0) / elapsed
        weight = 1 - math.exp(-elapsed / _MEMORY_SECONDS)
        # The first seconds are a plain mean: a smoothed start would creep up from nothing.
        weight = max(weight, elapsed / max(now - self._began, elapsed))
        self._speed = current if self._speed is None else self._speed + weight * (current - self._speed)
        self._done, self._at = done, now

    def speed(self) -> float | None:
        """Bytes a second; None while it is too early to tell."""
        return self._speed if self._at - self._began >= _SETTLED_SECONDS else None

    def seconds_left(self, total: int) -> float | None:
        """None while nothing moves, or it is too early to tell."""
        speed = self.speed()
        return (total - self._done) / speed if speed and speed > 1 else None


def folded(download: Download, report: Report, rate: Rate | None) -> Download:
    """The item after a report; `rate` is that of received bytes, None while there are none."""
    match report:
        case DownloadBegun(index, etag, commit, size, found):
            known = download.files[index]
            # A file that this download brought earlier stays its own, also when it now finds it.
            found = found and (known.found or known.etag != etag)
            begun = settled(download, State.RUNNING, download.done)
            # A file of a different size is not the one that the Hub listed: its checksum differs too.
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
    told = {"retry_in": None, "trouble": None, "message": "", "hint": ""}
    return replace(download, state=state, done=done, speed=speed, seconds_left=seconds_left, **told)


def failed(download: Download, error: HubError) -> Download:
    stopped = settled(download, State.FAILED, download.done)
    return replace(stopped, trouble=error.trouble, message=error.message, hint=error.hint)


def lasting(download: Download) -> Download:
    """The item without its progress, which need not be saved at once."""
    return replace(download, done=0, speed=None, seconds_left=None, retry_in=None)


def after_restart(download: Download) -> Download:
    """The item of an earlier session: paused if it was running or queued."""
    if download.state not in ACTIVE | {State.QUEUED}:
        return download
    return settled(download, State.PAUSED, download.done)


def with_file(download: Download, index: int, **changes: object) -> Download:
    files = list(download.files)
    files[index] = replace(files[index], **changes)
    return replace(download, files=tuple(files))
