"""A file in the cache: its place, its partial download, the lock against other programs, and whether its
checksum was verified."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout
from huggingface_hub import constants

from app.base import files
from app.hub.errors import HubError, Trouble
from app.hub.names import is_safe

_KEY = 12  # digits
_OURS = re.compile(rf"[^.]+\.[0-9a-f]{{{_KEY}}}\.incomplete")


class CacheEntry:
    """The place of a file of one commit."""

    def __init__(self, cache: Path, repo: Path, name: str, etag: str, commit: str) -> None:
        self._repo = repo
        self._commit = commit
        self._name = name
        self.blob = repo / "blobs" / etag
        self.partial = partial_of(repo, name, etag)
        self.pointer = repo.joinpath("snapshots", commit, *name.split("/"))
        self._lock = cache / ".locks" / repo.name / f"{etag}.lock"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other programs, including huggingface_hub's own downloads, from this file. Raises HubError if
        one is downloading it."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._lock, timeout=0, mode=0o664):
                yield
        except Timeout:
            raise HubError(
                Trouble.LOCKED,
                "A different program is downloading this file.",
                "Its copy is used once it is complete.",
            ) from None

    def begin(self) -> int:
        """Prepare for writing, and remove partial files of an older version; returns how many bytes are
        already here."""
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        remove_partials(self.blob.parent, self._lock.parent, self._name, keep=self.partial)
        return self.partial.stat().st_size if self.partial.exists() else 0

    def settle(self) -> None:
        """Make the complete partial file the blob, replacing a damaged one. It is synced to the disk before
        it is renamed: after a power loss, a blob is complete or missing."""
        with self.partial.open("r+b") as file:
            os.fsync(file.fileno())
        os.replace(self.partial, self.blob)
        files.sync_names(self.blob.parent)
        if self.pointer.is_file() and not self.pointer.is_symlink():
            self.pointer.unlink()  # the damaged file itself, where there are no links

    def link(self) -> Path:
        """Make the commit's name point to the blob; returns the path."""
        if not self.pointer.exists():
            self.pointer.unlink(missing_ok=True)  # a link to a blob that is gone
            self.pointer.parent.mkdir(parents=True, exist_ok=True)
            try:
                if constants.HF_HUB_DISABLE_SYMLINKS:
                    raise OSError
                self.pointer.symlink_to(os.path.relpath(self.blob, self.pointer.parent))
            except OSError:  # no links here: move the file itself, as huggingface_hub does
                shutil.move(self.blob, self.pointer)
            files.sync_names(self.pointer.parent)
        return self.pointer

    def refer(self, revision: str, *, unless_known: bool) -> None:
        """Make the revision point to this commit; with `unless_known`, not if it points to a different cached
        commit."""
        if revision == self._commit or not is_safe(revision):
            return
        ref = self._repo.joinpath("refs", *revision.split("/"))
        if unless_known and ref.is_file():
            known = files.read_file(ref).decode(errors="replace")
            if self._repo.joinpath("snapshots", known).is_dir():
                return
        ref.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(ref, self._commit.encode(), files.SHARED)


@contextlib.contextmanager
def held_alone(locks: Path, etag: str) -> Iterator[bool]:
    """Hold the lock of a blob and leave no lock file behind; yields False if a different program holds it."""
    locks.mkdir(parents=True, exist_ok=True)
    path = locks / f"{etag}.lock"
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        lock.release()


def remove_partials(blobs: Path, locks: Path, name: str, keep: Path | None = None) -> None:
    """Remove a file's partial files, of any version, unless a different program is downloading it."""
    for partial in blobs.glob(f"*.{_key(name)}.incomplete"):
        if partial != keep:
            with held_alone(locks, partial.name.split(".")[0]) as alone:
                if alone:
                    partial.unlink(missing_ok=True)


def others_at(blobs: Path) -> bool:
    """Whether a different program is downloading here, or was interrupted. (Its partial files have keys of
    other lengths.)"""
    return any(not _OURS.fullmatch(path.name) for path in blobs.glob("*.incomplete"))


def partial_of(repo: Path, name: str, etag: str) -> Path:
    return repo / "blobs" / f"{etag}.{_key(name)}.incomplete"


def _key(name: str) -> str:
    """A short key, the same for all versions of a repository's file."""
    return hashlib.sha256(name.encode()).hexdigest()[:_KEY]


VERSION = 1
MOST = 10_000
"""How many of the latest blobs are remembered."""


class _Stamp(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was when it was read."""

    size: int
    changed: int  # nanoseconds

    @classmethod
    def of(cls, blob: Path) -> _Stamp:
        status = blob.stat()
        return cls(status.st_size, status.st_mtime_ns)


class _ChecksFile(msgspec.Struct, frozen=True):
    sound: dict[str, _Stamp] = {}
    version: int = VERSION


class Checked:
    """The list of verified blobs, by checksum. A lost entry costs only the time to read a blob again. So
    simultaneous writes need no lock, and a list that cannot be saved is no error."""

    def __init__(self, file: Path | None) -> None:
        self._file = files.SpareFile(file, _ChecksFile, VERSION)

    def has(self, blob: Path, sha256: str) -> bool:
        """Whether this blob had this checksum, and is unchanged since. Raises OSError if it is gone."""
        return self._file.read().sound.get(sha256) == _Stamp.of(blob)

    def add(self, blob: Path, sha256: str) -> None:
        """Remember that this blob has this checksum. Raises OSError if it is gone."""
        stamp = _Stamp.of(blob)
        sound = {known: its for known, its in self._file.read().sound.items() if known != sha256}
        latest = [*sound.items(), (sha256, stamp)][-MOST:]
        self._file.write(_ChecksFile(dict(latest)))
