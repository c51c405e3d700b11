"""Deleted chats, kept for a week so that a deletion can be undone."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from app.base.files import DamagedError, decode, make_own_folder, read_file, write_atomic

KEPT = timedelta(days=7)
_STAMP = "%Y%m%dT%H%M%SZ"
_DAY = timedelta(days=1)


class Trash:
    """A folder of deleted chat folders, each named `id@time of deletion`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, chat: Path, now: datetime) -> None:
        """Move a chat folder here in one rename, so that a crash loses nothing. Raises OSError."""
        make_own_folder(self.folder)
        os.rename(chat, self.folder / f"{chat.name}@{now.astimezone(UTC).strftime(_STAMP)}")

    def put_other(self, path: Path, now: datetime) -> None:
        """Move a file, or a folder that is no chat, here from anywhere. Raises OSError."""
        make_own_folder(self.folder)
        stamp = now.astimezone(UTC).strftime(_STAMP)
        shutil.move(path, self.folder / f"{path.name}-{uuid.uuid4().hex[:8]}@{stamp}")

    def find(self, chat_id: str) -> Path | None:
        """The folder of a deleted chat, the latest if it was deleted more than once."""
        found = [entry for entry in self._entries() if entry.name.split("@")[0] == chat_id]
        return max(found, key=lambda entry: entry.name, default=None)

    def latest(self) -> datetime | None:
        """The time of the last deletion; None where the trash is empty."""
        return max(map(_deleted, self._entries()), default=None)

    def purge(self, now: datetime, kept: timedelta = KEPT) -> None:
        """Remove for good the chats deleted longer ago than `kept`."""
        for entry in self._entries():
            if now - _deleted(entry) > kept:
                _remove(entry)

    def empty(self) -> None:
        """Remove for good everything that was deleted."""
        for entry in self._entries():
            _remove(entry)

    def _entries(self) -> list[Path]:
        return list(self.folder.iterdir()) if self.folder.is_dir() else []


def _remove(entry: Path) -> None:
    """Remove a folder or a file; what is in use is removed next time."""
    if entry.is_dir():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            entry.unlink()


class _Wound(msgspec.Struct, frozen=True):
    """Two clocks at the last start, ISO 8601."""

    computer: datetime
    steady: datetime


_wound = msgspec.json.Decoder(_Wound)


class SteadyClock:
    """The trash's clock: from start to start it advances by a day at most, and never goes back. If the
    computer's clock jumps a week, a chat deleted a minute ago is still there."""

    def __init__(self, file: Path, computer: Callable[[], datetime]) -> None:
        self._file = file
        self._computer = computer

    def now(self, begin: datetime | None = None) -> datetime:
        """The steady time; the clock begins at `begin` where it was never wound."""
        computer = self._computer()
        try:
            last = decode(_wound, read_file(self._file))
            return last.steady + min(max(computer - last.computer, timedelta(0)), _DAY)
        except (OSError, DamagedError, TypeError, OverflowError):  # a time without a zone, or at its end
            return min(begin or computer, computer)

    def wind(self, begin: datetime | None) -> datetime:
        """At start: save and return the steady time. Raises OSError."""
        now = self.now(begin)
        write_atomic(self._file, msgspec.json.encode(_Wound(self._computer(), now)))
        return now


def _deleted(entry: Path) -> datetime:
    try:
        return datetime.strptime(entry.name.rpartition("@")[2], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        # The name has no time stamp of ours: the entry's own time is the best estimate.
        return datetime.fromtimestamp(entry.stat().st_mtime, UTC)
