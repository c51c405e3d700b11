"""Deleted chats, kept for a week so that a deletion can be undone."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

KEPT = timedelta(days=7)
_STAMP = "%Y%m%dT%H%M%SZ"


class Trash:
    """A folder of deleted chat folders, each named `id@time of deletion`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, chat: Path, now: datetime) -> None:
        """Move a chat folder here; one rename, so that a crash loses nothing. Raises OSError."""
        self.folder.mkdir(exist_ok=True)
        os.rename(chat, self.folder / f"{chat.name}@{now.astimezone(UTC).strftime(_STAMP)}")

    def find(self, chat_id: str) -> Path | None:
        """Where the deleted chat lies, the latest if it was deleted more than once."""
        found = [one for one in self._entries() if one.name.split("@")[0] == chat_id]
        return max(found, key=lambda one: one.name, default=None)

    def purge(self, now: datetime, kept: timedelta = KEPT) -> None:
        """Remove for good what was deleted longer ago than `kept`."""
        for entry in self._entries():
            if now - _deleted(entry) > kept:
                shutil.rmtree(entry, ignore_errors=True)  # what is in use goes next time

    def empty(self) -> None:
        """Remove for good everything that was deleted."""
        for entry in self._entries():
            shutil.rmtree(entry, ignore_errors=True)

    def _entries(self) -> list[Path]:
        return list(self.folder.iterdir()) if self.folder.is_dir() else []


def _deleted(entry: Path) -> datetime:
    try:
        return datetime.strptime(entry.name.rpartition("@")[2], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        # Not named by us: its own time is the best there is.
        return datetime.fromtimestamp(entry.stat().st_mtime, UTC)
