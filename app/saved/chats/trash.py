"""Deleted chats, kept for a week so that a deletion can be undone, and the traces of replaced answers."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from app.base.files import DamagedError, decode, make_own_folder, read_file, write_atomic
from app.saved.chats.conversation import Answer, Turn
from app.saved.measured import run_files

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
        """Move a file, or a folder that is not a chat, here. Raises OSError."""
        make_own_folder(self.folder)
        stamp = now.astimezone(UTC).strftime(_STAMP)
        shutil.move(path, self.folder / f"{path.name}-{uuid.uuid4().hex[:8]}@{stamp}")

    def find(self, chat_id: str) -> Path | None:
        """The folder of a deleted chat, the latest if it was deleted more than once."""
        found = [entry for entry in self._entries() if entry.name.split("@")[0] == chat_id]
        return max(found, key=lambda entry: entry.name, default=None)

    def latest(self) -> datetime | None:
        """The time of the last deletion; None if the trash is empty."""
        return max(map(_deleted, self._entries()), default=None)

    def purge(self, now: datetime, kept: timedelta = KEPT) -> None:
        """Permanently remove chats that were deleted longer ago than `kept`."""
        for entry in self._entries():
            if now - _deleted(entry) > kept:
                _remove(entry)

    def empty(self) -> None:
        """Permanently remove everything that was deleted."""
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
    """The trash's clock: it advances by at most a day from start to start, and never goes back. If the
    computer's clock jumps by a week, a chat deleted a minute ago is still there."""

    def __init__(self, file: Path, computer: Callable[[], datetime]) -> None:
        self._file = file
        self._computer = computer

    def now(self, begin: datetime | None = None) -> datetime:
        """The steady time; the clock begins at `begin` if it was never wound."""
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


_FOLDER = "superseded"


class Superseded:
    """Traces of one chat's replaced answers, with their measurements."""

    def __init__(self, chat: Path) -> None:
        """`chat` is the chat's folder."""
        self._chat = chat
        self._folder = chat / _FOLDER

    def put(self, turns: Iterable[Turn], now: datetime) -> None:
        """Move the traces of dropped answers here. One that cannot be moved stays unused."""
        for file in self._files_of(turns):
            try:
                make_own_folder(self._folder)
                moved = self._folder / file.name
                os.replace(file, moved)
                os.utime(moved, (now.timestamp(), now.timestamp()))  # for `purge`
            except OSError:
                continue

    def bring_back(self, turns: Iterable[Turn]) -> None:
        """Undo `put`; raises OSError."""
        for file in self._files_of(turns):
            moved = self._folder / file.name
            if moved.exists():
                os.replace(moved, file)

    def trace(self, answer: Answer) -> Path:
        """The path of an answer's trace; it is here if the answer is an earlier version."""
        path, moved = self._chat / answer.trace_name, self._folder / answer.trace_name
        return moved if moved.exists() and not path.exists() else path

    def purge(self, now: datetime, kept: timedelta, turns: Callable[[], Iterable[Turn]]) -> None:
        """Permanently remove what was put here longer ago than `kept`, except versions in the chat's `turns`;
        raises OSError."""
        files = [*self._folder.iterdir()] if self._folder.is_dir() else []
        named = {file.name for file in self._files_of(turns())} if files else set()
        for trace in files:
            if trace.name not in named and now - datetime.fromtimestamp(trace.stat().st_mtime, UTC) > kept:
                trace.unlink(missing_ok=True)

    def _files_of(self, turns: Iterable[Turn]) -> Iterator[Path]:
        for turn in turns:
            if isinstance(turn, Answer) and turn.trace:
                trace = self._chat / turn.trace_name
                yield from (trace, *run_files(trace))
