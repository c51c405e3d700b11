"""Files of ours: never half written or silently lost, read in one way, and nobody else's to read."""

from __future__ import annotations

import os
import re
import stat
import time
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

T = TypeVar("T")

OWN = 0o600
"""Permissions of what only this user is to read: chats, traces, settings, lists."""
SHARED = 0o666
"""Permissions of what was exported, as of everybody's files: less what the umask takes."""

_DEEPEST = 100  # levels of JSON that a file of ours may have: far more than any has
_PARTIAL = re.compile(r".+\.(\d+)\.partial")
_DAY = 24 * 3600


class DamagedError(ValueError):
    """A file does not hold what it should."""


def decode(decoder: msgspec.json.Decoder[T], data: bytes | str) -> T:
    """What the JSON in `data` says. Raises DamagedError, whatever is wrong with it."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise DamagedError("it is nested too deep") from None
    except UnicodeDecodeError:
        raise DamagedError("it is not UTF-8 text") from None
    except ValueError as error:  # msgspec's errors are ValueErrors
        raise DamagedError(str(error)) from error


def decode_object(data: bytes | str) -> dict[str, Any]:
    """A JSON object of any shape, of a depth that can be written and shown again. Raises DamagedError."""
    found = decode(_object, data)
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise DamagedError("it is nested too deep")
    return found


_object = msgspec.json.Decoder(dict[str, Any])


def _inside(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def open_own(path: Path, mode: str) -> IO[bytes]:
    """Open a file in binary `mode`; where it is made, nobody else can read it. Raises OSError."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, OWN))


def make_own_folder(folder: Path) -> None:
    """Make a folder that nobody else can look into, and what is missing above it. One that is there is closed
    to others, where it is this user's. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if os.name == "posix" and status.st_uid == os.getuid() and status.st_mode & 0o077:
        folder.chmod(stat.S_IMODE(status.st_mode) & 0o700)


def write_atomic(path: Path, data: bytes, mode: int = OWN) -> None:
    """Write `path` so that a reader, or a crash, sees the old contents or the new, never a part.

    Raises OSError as the system gives it; the old contents are then still there.
    """
    partial = partial_of(path)
    try:
        with open(partial, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def partial_of(path: Path) -> Path:
    """What a file is called while it is written. The process id keeps two instances from writing the same."""
    return path.with_name(f"{path.name}.{os.getpid()}.partial")


def remove_partials(folder: Path) -> None:
    """Remove what processes left here, and in the folders below, that died while they wrote a file."""
    for partial in folder.rglob("*.partial"):
        named = _PARTIAL.fullmatch(partial.name)
        if named and _is_left(partial, int(named[1])):
            partial.unlink(missing_ok=True)


def _is_left(partial: Path, process: int) -> bool:
    """Whether the process that was writing a file is gone."""
    if os.name == "posix":  # elsewhere os.kill ends a process whatever it is sent
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:
            return True  # another user's: the number was given out again
    # Numbers are given out again: nothing is written for a day.
    try:
        return time.time() - partial.stat().st_mtime > _DAY
    except FileNotFoundError:
        return False


def set_aside(path: Path, word: str) -> Path:
    """Rename `path` to `name.word-time`, a name that is still free, and return the new path."""
    free = _free_name(path, word)
    path.rename(free)
    return free


def copy_aside(path: Path, word: str) -> Path:
    """Copy `path` to a name as `set_aside` gives; the file itself stays. Raises OSError."""
    free = _free_name(path, word)
    write_atomic(free, path.read_bytes())
    return free


def _free_name(path: Path, word: str) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    free = path.with_name(f"{path.name}.{word}-{stamp}")
    count = 2
    while free.exists():
        free = path.with_name(f"{path.name}.{word}-{stamp}-{count}")
        count += 1
    return free


def reason(error: OSError) -> str:
    """What the system says went wrong, to stand in the middle of a sentence."""
    words = error.strerror or type(error).__name__
    return words[:1].lower() + words[1:]
