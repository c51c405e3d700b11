"""The standard Hugging Face cache: where files are stored, and how they are added and cleanly removed.

The layout is the documented one: `blobs/<etag>` contain the bytes, `snapshots/<commit>/<name>` point to them,
`refs/<revision>` name a commit. huggingface_hub cannot resume a file that a different process began. So
partial files here are `blobs/<etag>.<key>.incomplete`, which its own tools can clean up.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub import constants
from huggingface_hub.file_download import repo_folder_name

from app.base.files import read_file
from app.hub.cache_entry import CacheEntry, held_alone, others_at, partial_of, remove_partials
from app.hub.errors import HubError, Trouble
from app.hub.names import is_safe

if TYPE_CHECKING:
    from app.hub.repo import HubFile  # which loads all of the client


_ETAG = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class Cache:
    """The cache in a folder, by default that of HF_HOME and HF_HUB_CACHE. Safe from any thread."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(folder or constants.HF_HUB_CACHE)

    def free_bytes(self) -> int:
        """Free bytes on the cache's disk; its folder need not exist."""
        folder = self.folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def find_first(self, repo: str, files: Sequence[HubFile]) -> Path | None:
        """The path of the first of these files, in any commit that has all of them. None if there is none, or
        it cannot be read. The parts of a model must be beside the first. A file must match its known size and
        checksum."""
        return self.find_all(repo, [files])[0]

    def came(self, repo: str, name: str, sha256: str) -> int:
        """Bytes downloaded so far of an incomplete file; 0 if the Hub does not give its checksum."""
        if not _ETAG.fullmatch(sha256):
            return 0
        try:
            return partial_of(self._repo(repo), name, sha256).stat().st_size
        except OSError:
            return 0

    def find_all(self, repo: str, models: Sequence[Sequence[HubFile]]) -> list[Path | None]:
        """`find_first` for many models; each commit's folder is listed once."""
        found: list[Path | None] = [None] * len(models)
        for commit in _folders(self._repo(repo) / "snapshots"):
            here = set(_files(commit))
            for index, files in enumerate(models):
                if (
                    files
                    and found[index] is None
                    and all(
                        file.name in here and _is(_pointer(commit, file.name), file.size, file.sha256)
                        for file in files
                    )
                ):
                    found[index] = _pointer(commit, files[0].name)
        return found

    def files(self) -> Iterator[tuple[str, Path, str]]:
        """Every complete file, as (repository, folder of its commit, name in it); a repository's newest
        commit first."""
        for folder in _folders(self.folder):
            kind, _, repo = folder.name.partition("--")
            if kind != "models" or not repo:
                continue
            for commit in sorted(_folders(folder / "snapshots"), key=_age):
                yield from ((repo.replace("--", "/"), commit, name) for name in _files(commit))

    def commits(self, repo: str, revision: str = "main") -> Iterator[tuple[Path, tuple[str, ...]]]:
        """Folder and file names of each cached commit, newest first. For a revision other than "main": only
        of the commit that it last pointed to."""
        known = None if revision == "main" else self._commit_of(repo, revision)
        for commit in sorted(_folders(self._repo(repo) / "snapshots"), key=_age):
            if known in (None, commit.name):
                yield commit, tuple(_files(commit))

    def _commit_of(self, repo: str, revision: str) -> str:
        """The commit to which a revision last pointed here; "" if it was never requested."""
        if _COMMIT.fullmatch(revision):
            return revision
        try:
            return read_file(self._repo(repo).joinpath("refs", *revision.split("/"))).decode()
        except (OSError, ValueError):
            return ""

    def entry(self, repo: str, name: str, etag: str, commit: str) -> CacheEntry:
        """Where a file of the Hub belongs. Raises HubError for names that would leave the folder."""
        if not (is_safe(name) and _ETAG.fullmatch(etag) and _COMMIT.fullmatch(commit)):
            raise HubError(
                Trouble.NAME,
                "The file is refused: its name points outside the cache folder.",
                "Choose a different repository.",
            )
        return CacheEntry(self.folder, self._repo(repo), name, etag, commit)

    def forget(self, repo: str, name: str) -> None:
        """Remove the partial files of an incomplete download, unless a different program is downloading
        it."""
        remove_partials(self._repo(repo) / "blobs", self._locks(repo), name)
        self.tidy(repo)

    def unlock(self, repo: str, etag: str) -> None:
        """Remove the lock of a download that was ended before it wrote anything."""
        with held_alone(self._locks(repo), etag):
            pass
        self.tidy(repo)

    def unlink(self, repo: str, name: str, etag: str, commit: str) -> None:
        """Remove a file's name in one commit; its bytes stay."""
        self.entry(repo, name, etag, commit).pointer.unlink(missing_ok=True)
        _remove_empty(self._repo(repo) / "snapshots" / commit)

    def remove(self, repo: str, name: str, etag: str, commit: str) -> None:
        """Remove a downloaded file, or its part, unless a different program is downloading it. Its bytes stay
        if a different commit or name needs them. Other folders stay: a new version may be arriving in
        them."""
        entry = self.entry(repo, name, etag, commit)
        with held_alone(self._locks(repo), etag) as alone:
            if alone:
                entry.partial.unlink(missing_ok=True)
                entry.pointer.unlink(missing_ok=True)
                used = {pointer.resolve() for pointer in self._all_pointers(repo)}
                if entry.blob.resolve() not in used:
                    entry.blob.unlink(missing_ok=True)
        _remove_empty(self._repo(repo) / "snapshots" / commit)

    def remains(self, repo: str, name: str, etag: str, commit: str) -> Path | None:
        """The path of what is left of a file that could not be removed: its name, else its bytes, else its
        partial file. None if nothing is left."""
        entry = self.entry(repo, name, etag, commit)
        return next(filter(os.path.lexists, (entry.pointer, entry.blob, entry.partial)), None)

    def delete(self, pointers: Iterable[Path]) -> int:
        """Delete files, in every commit that has them; returns the bytes freed. Raises OSError."""
        return sum(self._delete_one(pointer) for pointer in pointers if pointer.is_file())

    def _delete_one(self, pointer: Path) -> int:
        """Delete a file in every commit that has it, and its bytes."""
        repo = pointer.relative_to(self.folder).parts[0].partition("--")[2].replace("--", "/")
        size = pointer.stat().st_size
        bytes_at = pointer.resolve()
        # Only one link is followed: the blob may itself link into a store that all repositories share.
        blob = Path(os.path.normpath(pointer.parent / os.readlink(pointer))) if pointer.is_symlink() else None
        for same in list(self._all_pointers(repo)):
            if same.is_file() and same.resolve() == bytes_at:
                same.unlink()
        if blob is not None:
            blob.unlink(missing_ok=True)
            with contextlib.suppress(OSError), held_alone(self._locks(repo), blob.name):
                pass  # which removes the lock of its download
        self.tidy(repo)
        return size

    def tidy(self, repo: str) -> None:
        """Remove the empty folders of a repository, and references to commits that are gone."""
        folder = self._repo(repo)
        if others_at(folder / "blobs"):
            return  # another program needs the folders that it has made
        snapshots = folder / "snapshots"
        for commit in _folders(snapshots):
            _remove_empty(commit)
        left = os.listdir(snapshots) if snapshots.is_dir() else []
        for ref in [path for path in (folder / "refs").rglob("*") if path.is_file()]:
            if read_file(ref).decode(errors="replace") not in left:
                ref.unlink()
        _remove_empty(folder)
        _remove_empty(self.folder / ".locks" / folder.name)
        with contextlib.suppress(OSError):
            (self.folder / ".locks").rmdir()  # fails where other repositories have locks

    def _repo(self, repo: str) -> Path:
        folder: str = repo_folder_name(repo_id=repo, repo_type="model")
        return self.folder / folder

    def _all_pointers(self, repo: str) -> Iterator[Path]:
        return (self._repo(repo) / "snapshots").rglob("*")

    def _locks(self, repo: str) -> Path:
        return self.folder / ".locks" / self._repo(repo).name


def _pointer(commit: Path, name: str) -> Path:
    return commit.joinpath(*name.split("/"))


def _is(pointer: Path, size: int, sha256: str) -> bool:
    """Whether a file is in the cache, with its known size and checksum."""
    try:
        # The blob itself may be a link, into a store that all repositories share.
        if sha256 and pointer.is_symlink() and Path(os.readlink(pointer)).name != sha256:
            return False
        return pointer.is_file() and (not size or pointer.stat().st_size == size)
    except OSError:
        return False


def _age(folder: Path) -> float:
    try:
        return -folder.stat().st_mtime
    except OSError:  # gone meanwhile
        return 0.0


def _folders(folder: Path) -> list[Path]:
    """The folders in a folder; those that cannot be read are left out."""
    found = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                if path.is_dir():
                    found.append(path)
    return found


def _files(folder: Path) -> Iterator[str]:
    """The names, with slashes, of the files in a folder and those below it; folders that cannot be read are
    left out."""
    for inner, _, names in os.walk(folder):
        below = os.path.relpath(inner, folder).replace(os.sep, "/")
        prefix = "" if below == "." else f"{below}/"
        yield from (prefix + name for name in names if os.path.isfile(os.path.join(inner, name)))


def _remove_empty(folder: Path) -> None:
    """Remove a folder and those in it, if they are empty."""
    for inner in _folders(folder):
        if not inner.is_symlink():
            _remove_empty(inner)
    with contextlib.suppress(OSError):
        folder.rmdir()
