"""Locks between processes, held briefly while a file of ours is read, changed and written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.base.files import OWN, reason, write_hint
from app.engine.errors import UserError

PATIENCE = 3.0  # seconds; a change takes milliseconds


def lock_at(path: Path) -> FileLock:
    """A lock at `path`, not yet held."""
    return FileLock(path, timeout=PATIENCE, mode=OWN)


def check_there(folder: Path, what: str) -> None:
    """Raise UserError if the folder of `what` ("chats") is gone."""
    if not folder.is_dir():
        raise UserError(
            f"The folder of the {what} is gone: {folder}.",
            "Restore it, or start Draftscope again to make a new one.",
        )


@contextmanager
def held(lock: FileLock, what: str) -> Iterator[None]:
    """Hold a lock. If it cannot be acquired, raises a UserError that names `what` it guards ("chats")."""
    folder = Path(lock.lock_file).parent
    check_there(folder, what)  # the lock would make the folder
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            f"The {what} are locked by another program.", "Close it, or try again in a moment."
        ) from None
    except OSError as error:
        raise UserError(
            f"The {what} cannot be changed: {reason(error)}.", write_hint(error, folder)
        ) from error
    try:
        yield
    finally:
        lock.release()
