"""Files that must never be half written or silently lost."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path


def write_atomic(path: Path, data: bytes) -> None:
    """Write `path` so that a reader, or a crash, sees the old contents or the new, never a part.

    Raises OSError as the system gives it; the old contents are then still there.
    """
    # The process id keeps two instances from writing into the same temporary file.
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def set_aside(path: Path, word: str) -> Path:
    """Rename `path` to `name.word-time`, a name that is still free, and return the new path."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    free = path.with_name(f"{path.name}.{word}-{stamp}")
    count = 2
    while free.exists():
        free = path.with_name(f"{path.name}.{word}-{stamp}-{count}")
        count += 1
    path.rename(free)
    return free


def reason(error: OSError) -> str:
    """What the system says went wrong, to stand in the middle of a sentence."""
    words = error.strerror or type(error).__name__
    return words[:1].lower() + words[1:]
