"""Where measurements are kept while they run, so that one that was broken off can go on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from app.engine.errors import UserError
from app.lab.journal import Journal
from app.paths import make_folder

KEPT = 5
"""Journals that stay; with their traces a long one takes some megabytes."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A measurement that was begun before."""

    path: Path
    journal: Journal
    done: int
    total: int

    @property
    def complete(self) -> bool:
        return self.done >= self.total

    @property
    def begun(self) -> datetime:
        return datetime.strptime(self.path.stem[:15], "%Y%m%d-%H%M%S")


class Journals:
    """The folder of them. The one that is being written is locked: a second window leaves it alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: FileLock | None = None

    def new(self) -> Path:
        """A name for the next one, locked for this window; the oldest go. Raises UserError."""
        make_folder(self.folder)
        path = self.folder / f"{datetime.now():%Y%m%d-%H%M%S-%f}.jsonl"  # names sort by time
        self.take(path)
        for old in self._paths()[KEPT - 1 :]:
            if _is_free(old):
                self.remove(old)
        return path

    def latest(self) -> Earlier | None:
        """The newest that can be read and that no window is writing."""
        for path in self._paths():
            if not _is_free(path):
                continue
            try:
                journal = Journal.open(path)
            except UserError:
                continue  # damaged: it is no offer
            return Earlier(path, journal, len(journal.records), len(journal.experiment.jobs()))
        return None

    def take(self, path: Path) -> None:
        """Lock one, to write it. Raises UserError where another window has it."""
        self.release()
        lock = FileLock(_lock_of(path))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise UserError("Another window is measuring this.", "Wait for it, or begin a new one.") from None
        self._lock = lock

    def remove(self, path: Path) -> None:
        """Remove a journal and its traces."""
        shutil.rmtree(path.with_name(f"{path.stem}-traces"), ignore_errors=True)
        for file in (path, _lock_of(path)):
            file.unlink(missing_ok=True)

    def release(self) -> None:
        """Nothing is being written any more."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _paths(self) -> list[Path]:
        """The newest first."""
        return sorted(self.folder.glob("*.jsonl"), reverse=True)


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".lock")


def _is_free(path: Path) -> bool:
    """No window is writing it."""
    try:
        with FileLock(_lock_of(path)).acquire(blocking=False):
            return True
    except (Timeout, OSError):
        return False
