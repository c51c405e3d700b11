"""Saves the queue between two starts, as one JSON file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from app.base.files import OWN, make_own_folder, read_file, reason, write_atomic, write_hint
from app.engine.errors import UserError
from app.hub.downloads.item import Download
from app.hub.kept_file import decode_kept, put_aside

VERSION = 1


class _DownloadsFile(msgspec.Struct, frozen=True):
    downloads: tuple[Download, ...]
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Remembered:
    """The items that were read, and a sentence where something was lost."""

    downloads: tuple[Download, ...]
    notice: str = ""


def hold_queue(path: Path) -> FileLock:
    """Keep other windows from this list; raises UserError where one uses it, or where the list cannot be
    saved."""
    lock = FileLock(path.with_name(path.name + ".lock"), timeout=0, mode=OWN)
    try:
        make_own_folder(path.parent)
        lock.acquire()
    except Timeout:
        if not os.access(path.parent, os.W_OK):  # on some systems this too looks like a timeout
            raise _cannot_keep(path, "the folder cannot be written") from None
        raise UserError(
            "Another Draftscope is managing the downloads.", "Close it, or download from there."
        ) from None
    except OSError as error:
        raise _cannot_keep(path, reason(error)) from error
    return lock


def _cannot_keep(path: Path, why: str) -> UserError:
    return UserError(
        f"The list of downloads cannot be kept: {why}.", f"Look at the folder {path.parent}, then try again."
    )


def read_queue(path: Path) -> Remembered:
    """The items of the last session. Never raises: a file that cannot be used is set aside and named."""
    try:
        return Remembered(decode_kept(read_file(path), _DownloadsFile, VERSION).downloads)
    except FileNotFoundError:
        return Remembered(())
    except (OSError, ValueError) as error:
        return Remembered((), put_aside(path, "The list of downloads", error))


def write_queue(path: Path, downloads: tuple[Download, ...]) -> None:
    """Write the items, whole or not at all; raises UserError."""
    try:
        make_own_folder(path.parent)
        write_atomic(path, msgspec.json.format(msgspec.json.encode(_DownloadsFile(downloads))))
    except OSError as error:
        raise UserError(
            f"The list of downloads was not saved: {reason(error)}.", write_hint(error, path.parent)
        ) from error
