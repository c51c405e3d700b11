"""The place of one file in the cache, its partial download, and the lock that keeps other programs from
it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from huggingface_hub import constants

from app.base.files import SHARED, read_file, sync_names, write_atomic
from app.hub.errors import HubError, Trouble
from app.hub.names import is_safe

_KEY = 12  # digits
_OURS = re.compile(rf"[^.]+\.[0-9a-f]{{{_KEY}}}\.incomplete")


class FilePlace:
    """Where one file of one commit belongs."""

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
        """Keep other programs, including huggingface_hub's own downloads, from this file; raises HubError
        where one is downloading it."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._lock, timeout=0, mode=0o664):
                yield
        except Timeout:
            raise HubError(
                Trouble.LOCKED,
                "Another program is downloading this file.",
                "Its copy is used once it is complete.",
            ) from None

    def begin(self) -> int:
        """Prepare for writing, and remove partial files of an older version; returns the bytes that are here
        already."""
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        remove_partials(self.blob.parent, self._lock.parent, self._name, keep=self.partial)
        return self.partial.stat().st_size if self.partial.exists() else 0

    def settle(self) -> None:
        """Make the complete partial file the blob, in place of a damaged one. It is synced to the disk before
        it is renamed: after a power loss a blob is complete, or missing."""
        with self.partial.open("r+b") as file:
            os.fsync(file.fileno())
        os.replace(self.partial, self.blob)
        sync_names(self.blob.parent)
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
            sync_names(self.pointer.parent)
        return self.pointer

    def refer(self, revision: str, *, unless_known: bool) -> None:
        """Make the revision point to this commit; with `unless_known`, not where it points to another commit
        that is here."""
        if revision == self._commit or not is_safe(revision):
            return
        ref = self._repo.joinpath("refs", *revision.split("/"))
        if unless_known and ref.is_file():
            known = read_file(ref).decode(errors="replace")
            if self._repo.joinpath("snapshots", known).is_dir():
                return
        ref.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(ref, self._commit.encode(), SHARED)


@contextlib.contextmanager
def held_alone(locks: Path, etag: str) -> Iterator[bool]:
    """Hold the lock of a blob and leave no lock file behind; yields False where another program holds it."""
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
    """Remove the partial files of a file, whatever its contents were then, unless another program is
    downloading it."""
    for partial in blobs.glob(f"*.{_key(name)}.incomplete"):
        if partial != keep:
            with held_alone(locks, partial.name.split(".")[0]) as alone:
                if alone:
                    partial.unlink(missing_ok=True)


def others_at(blobs: Path) -> bool:
    """Whether another program is downloading here, or was interrupted: its partial files have keys of other
    lengths."""
    return any(not _OURS.fullmatch(path.name) for path in blobs.glob("*.incomplete"))


def partial_of(repo: Path, name: str, etag: str) -> Path:
    return repo / "blobs" / f"{etag}.{_key(name)}.incomplete"


def _key(name: str) -> str:
    """A short key, the same for a file of a repository whatever its contents are."""
    return hashlib.sha256(name.encode()).hexdigest()[:_KEY]
