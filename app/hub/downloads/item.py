"""What is downloaded: one model is one item, however many files it has."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from app.hub.errors import Trouble
from app.hub.repo import HubFile, Quantisation, Repo


class State(StrEnum):
    """What an item is doing."""

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
    """One file of an item. `etag` and `commit` are known once its download has begun."""

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
        """Whether it is done, or was cancelled and stays only because something could not be deleted: nothing
        more is downloaded by itself, and the same model may be requested anew."""
        return self.state is State.DONE or self.trouble is Trouble.LEFT

    @property
    def path(self) -> str:
        """The file to load (the first shard); empty before the item is done."""
        return self.files[0].path if self.state is State.DONE else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model to download. `revision` is the branch, tag or commit it is followed at, `commit` the one whose
    files were listed."""

    repo: str
    files: tuple[HubFile, ...]
    title: str = ""
    revision: str = "main"
    commit: str = ""

    @classmethod
    def of(cls, repo: Repo, quantisation: Quantisation) -> Wanted:
        """A quantisation as `read_repo` or `confirm` found it."""
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
