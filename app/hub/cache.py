"""The standard Hugging Face cache: where a file lies, how it gets there, and how it leaves without a trace.

The layout is the documented one: `blobs/<etag>` hold the bytes, `snapshots/<commit>/<name>` point to them,
`refs/<revision>` name a commit. huggingface_hub cannot go on with a file that another process began; here
what came of one is `blobs/<etag>.<key>.incomplete`, which its own tools know how to clean.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from huggingface_hub import constants, scan_cache_dir
from huggingface_hub.errors import CacheNotFound
from huggingface_hub.file_download import repo_folder_name

from app.files import write_atomic
from app.hub.errors import HubError, Trouble
from app.hub.names import is_safe

_ETAG = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class Cache:
    """The cache in one folder, by default where HF_HOME and HF_HUB_CACHE put it. Safe from any thread."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(folder or constants.HF_HUB_CACHE)

    def free_bytes(self) -> int:
        """Bytes free on the disk of the cache, which need not be there yet."""
        folder = self.folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def find(self, repo: str, name: str, size: int = 0, sha256: str = "") -> Path | None:
        """Where a file lies that is here already, whichever commit brought it; None where it is not.

        With `sha256` (and with `size`, where it is known) only that very file counts.
        """
        if sha256 and not _ETAG.fullmatch(sha256):
            return None
        for pointer in self._pointers(repo, name):
            # The blob itself may be a link, into a store that all repositories share.
            known = not sha256 or not pointer.is_symlink() or Path(os.readlink(pointer)).name == sha256
            if pointer.is_file() and known and (not size or pointer.stat().st_size == size):
                return pointer
        return None

    def files(self) -> Iterator[tuple[str, Path, Path]]:
        """Every file that is here whole, as (repository, folder of its commit, path); the newest commit
        of a repository first."""
        for folder in _folders(self.folder):
            kind, _, repo = folder.name.partition("--")
            if kind != "models" or not repo:
                continue
            commits = sorted(_folders(folder / "snapshots"), key=_age)
            for commit in commits:
                yield from (
                    (repo.replace("--", "/"), commit, one) for one in commit.rglob("*") if one.is_file()
                )

    def place(self, repo: str, name: str, etag: str, commit: str) -> Place:
        """Where a file of the Hub belongs. Raises HubError for names that would leave the folder."""
        if not (is_safe(name) and _ETAG.fullmatch(etag) and _COMMIT.fullmatch(commit)):
            raise HubError(
                Trouble.NAME,
                "The file is refused: its name would leave the folder of the cache.",
                "Choose another repository.",
            )
        return Place(self.folder, self._repo(repo), name, etag, commit)

    def forget(self, repo: str, name: str) -> None:
        """Remove what came so far of a file that is not whole."""
        blobs = self._repo(repo) / "blobs"
        for partial in blobs.glob(f"*.{_key(name)}.incomplete"):
            partial.unlink(missing_ok=True)
            self._remove_lock(repo, partial.name.split(".")[0])
        self.tidy(repo)

    def unlink(self, repo: str, name: str, etag: str, commit: str) -> None:
        """Remove a file's name in one commit; its bytes stay."""
        self.place(repo, name, etag, commit).pointer.unlink(missing_ok=True)
        self.tidy(repo)

    def remove(self, repo: str, name: str, etag: str, commit: str) -> None:
        """Remove one file that a download brought, unless another commit or name needs its bytes too."""
        place = self.place(repo, name, etag, commit)
        place.pointer.unlink(missing_ok=True)
        used = {pointer.resolve() for pointer in self._all_pointers(repo)}
        if place.blob.resolve() not in used:
            place.blob.unlink(missing_ok=True)
        self._remove_lock(repo, etag)
        self.tidy(repo)

    def delete(self, pointers: Iterable[Path]) -> int:
        """Delete files of the cache, in every commit that has them, through huggingface_hub; returns the
        bytes freed. Raises OSError."""
        wanted = {pointer.resolve() for pointer in pointers}
        try:
            scanned = scan_cache_dir(self.folder)
        except (CacheNotFound, ValueError):
            return 0
        found = [
            (repo.repo_id, file)
            for repo in scanned.repos
            for revision in repo.revisions
            for file in revision.files
            if file.file_path.resolve() in wanted
        ]
        strategy = scanned.delete_files(*(file for _, file in found))
        strategy.execute()
        for repo, blob in {(repo, file.blob_path.name) for repo, file in found}:
            self._remove_lock(repo, blob)
        for repo in {repo for repo, _ in found}:
            self.tidy(repo)
        return strategy.expected_freed_size

    def tidy(self, repo: str) -> None:
        """Remove what is empty of a repository's folder, and references to commits that are gone."""
        folder = self._repo(repo)
        if not folder.is_dir():
            return
        for commit in _folders(folder / "snapshots"):
            _remove_empty(commit)
        left = {commit.name for commit in _folders(folder / "snapshots")}
        for ref in [one for one in (folder / "refs").rglob("*") if one.is_file()]:
            if ref.read_text(encoding="utf-8", errors="replace") not in left:
                ref.unlink()
        _remove_empty(folder)
        _remove_empty(self.folder / ".locks" / folder.name)
        with contextlib.suppress(OSError):
            (self.folder / ".locks").rmdir()  # of other repositories there are none

    def _repo(self, repo: str) -> Path:
        folder: str = repo_folder_name(repo_id=repo, repo_type="model")
        return self.folder / folder

    def _pointers(self, repo: str, name: str) -> Iterator[Path]:
        if is_safe(name):
            yield from (
                commit.joinpath(*name.split("/")) for commit in _folders(self._repo(repo) / "snapshots")
            )

    def _all_pointers(self, repo: str) -> Iterator[Path]:
        return (self._repo(repo) / "snapshots").rglob("*")

    def _remove_lock(self, repo: str, etag: str) -> None:
        path = self.folder / ".locks" / self._repo(repo).name / f"{etag}.lock"
        if not path.exists():
            return
        with contextlib.suppress(Timeout, OSError), FileLock(path, timeout=0):
            path.unlink(missing_ok=True)  # held: nobody else is at this file


class Place:
    """Where one file of one commit belongs."""

    def __init__(self, cache: Path, repo: Path, name: str, etag: str, commit: str) -> None:
        self._repo = repo
        self._commit = commit
        self._key = _key(name)
        self.blob = repo / "blobs" / etag
        self.partial = repo / "blobs" / f"{etag}.{self._key}.incomplete"
        self.pointer = repo.joinpath("snapshots", commit, *name.split("/"))
        self._lock = cache / ".locks" / repo.name / f"{etag}.lock"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other programs, huggingface_hub's own downloads among them, from this file; raises HubError
        where one is at it."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._lock, timeout=0, mode=0o664):
                yield
        except Timeout:
            raise HubError(
                Trouble.LOCKED,
                "Another program is downloading this file.",
                "Its file is used when it is there.",
            ) from None

    def begin(self) -> int:
        """Make ready for writing, and remove what came of an older file; returns how many bytes came."""
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        for other in self.partial.parent.glob(f"*.{self._key}.incomplete"):
            if other != self.partial:
                other.unlink(missing_ok=True)
        return self.partial.stat().st_size if self.partial.exists() else 0

    def settle(self) -> None:
        """The partial file is whole: make it the blob."""
        os.replace(self.partial, self.blob)

    def link(self, revision: str) -> Path:
        """Let the commit's name point to the blob, and the revision to the commit; returns the path."""
        if not self.pointer.exists():
            self.pointer.unlink(missing_ok=True)  # a link to a blob that is gone
            self.pointer.parent.mkdir(parents=True, exist_ok=True)
            try:
                if constants.HF_HUB_DISABLE_SYMLINKS:
                    raise OSError
                self.pointer.symlink_to(os.path.relpath(self.blob, self.pointer.parent))
            except OSError:  # no links here: the file itself, as huggingface_hub does
                shutil.move(self.blob, self.pointer)
        if revision != self._commit and is_safe(revision):
            ref = self._repo.joinpath("refs", *revision.split("/"))
            ref.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(ref, self._commit.encode())
        return self.pointer


def _key(name: str) -> str:
    """Short, and the same for the same file of a repository whatever its contents are by now."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def _age(folder: Path) -> float:
    return -folder.stat().st_mtime


def _folders(folder: Path) -> list[Path]:
    return [one for one in folder.iterdir() if one.is_dir()] if folder.is_dir() else []


def _remove_empty(folder: Path) -> None:
    """Remove a folder and those in it, as far as they hold nothing."""
    for inner in _folders(folder):
        if not inner.is_symlink():
            _remove_empty(inner)
    with contextlib.suppress(OSError):
        folder.rmdir()
