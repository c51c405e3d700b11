"""The queue on disk: saving it as a JSON file, checking free space, deleting cancelled downloads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from app.base.files import OWN, decode_kept, make_own_folder, put_aside, read_file, reason, write_json
from app.base.numbers import file_size
from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.downloads.item import ACTIVE, Download, ItemFile, State, Wanted
from app.hub.errors import HubError, Trouble, disk_error, not_deleted_error

VERSION = 1


class _DownloadsFile(msgspec.Struct, frozen=True):
    downloads: tuple[Download, ...]
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Remembered:
    """The items that were read, and a sentence if something was lost."""

    downloads: tuple[Download, ...]
    notice: str = ""


def hold_queue(path: Path) -> FileLock:
    """Lock this list against other windows; raises UserError if one uses it, or if the list cannot be
    saved."""
    lock = FileLock(path.with_name(path.name + ".lock"), timeout=0, mode=OWN)
    try:
        make_own_folder(path.parent)
        lock.acquire()
    except Timeout:
        if not os.access(path.parent, os.W_OK):  # on some systems this too looks like a timeout
            raise _cannot_keep(path, "the folder cannot be written") from None
        raise UserError(
            "A different Draftscope is managing the downloads.", "Close it, or download from there."
        ) from None
    except OSError as error:
        raise _cannot_keep(path, reason(error)) from error
    return lock


def _cannot_keep(path: Path, why: str) -> UserError:
    return UserError(
        f"The list of downloads cannot be saved: {why}.", f"Check the folder {path.parent}, then try again."
    )


def read_queue(path: Path) -> Remembered:
    """The items of the last session. Never raises: an unusable file is set aside and named."""
    try:
        return Remembered(decode_kept(read_file(path), _DownloadsFile, VERSION).downloads)
    except FileNotFoundError:
        return Remembered(())
    except (OSError, ValueError) as error:
        return Remembered((), put_aside(path, "The list of downloads", error))


def write_queue(path: Path, downloads: tuple[Download, ...]) -> None:
    """Write the items, whole or not at all; raises UserError."""
    write_json(path, _DownloadsFile(downloads), "The list of downloads was not saved")


def check_space(cache: Cache, wanted: Sequence[Wanted], queued: Iterable[Download]) -> None:
    """Raise HubError if the disk has no room for the missing files besides the rest of the queue."""
    missing = sum(
        max(0, file.size - cache.came(item.repo, file.name, file.sha256))
        for item in wanted
        for file in item.files
        if cache.find_first(item.repo, [file]) is None
    )
    coming = sum(
        download.total - download.done for download in queued if download.state in ACTIVE | {State.QUEUED}
    )
    try:
        free = cache.free_bytes()
    except OSError as error:
        raise disk_error(error) from error
    if missing and missing + coming > free:
        others = f", {file_size(coming)} of them for other downloads" if coming else ""
        raise HubError(
            Trouble.NO_SPACE,
            f"There is no room on the disk: {file_size(missing + coming)} needed{others}; "
            f"{file_size(free)} free.",
            "Free some space, choose a smaller quantisation, or set HF_HOME to a folder on a different disk.",
        )


def remove_files(cache: Cache, download: Download, others: Iterable[Download]) -> HubError | None:
    """Delete files of `download` that none of the `others` needs; returns an error if something is left."""
    needed = {(other.repo, file.name) for other in others for file in other.files}
    left: dict[Path, OSError] = {}
    for file in download.files:
        # Never started: no part of it is ours.
        if not file.etag or (download.repo, file.name) in needed:
            continue
        error = _remove(cache, download.repo, file)
        if error and (place := cache.remains(download.repo, file.name, file.etag, file.commit)):
            left[place] = error
    return not_deleted_error(next(iter(left.values())), list(left)) if left else None


def _remove(cache: Cache, repo: str, file: ItemFile) -> OSError | None:
    """Returns why it failed."""
    if file.found:
        with contextlib.suppress(OSError):  # an empty lock
            cache.unlock(repo, file.etag)
        return None
    try:
        cache.remove(repo, file.name, file.etag, file.commit)
        cache.forget(repo, file.name)
    except OSError as error:
        return error
    return None
