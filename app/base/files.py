"""Draftscope's own files: private to the user, never half written, never lost silently."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, BinaryIO, Generic, TypeVar

import msgspec

from app.engine.errors import UserError

T = TypeVar("T")

OWN = 0o600
"""Permissions of files that only this user may read: chats, traces, settings, lists."""
SHARED = 0o666
"""Permissions of exported files, reduced by the umask."""

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The errors if the disk or the user's quota is full."""
_OF_THE_SHELL = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
DEEPEST = 100  # levels of JSON that a file of ours may have, far more than any needs
MOST_VALUES = 2**20  # of JSON that strangers say: the ids of a long prompt are some hundred thousand
_LONGEST_ERROR = 200  # characters
_PARTIAL = re.compile(r".+\.(\d+)\.partial")
_DAY = 24 * 3600


class NotAFileError(OSError):
    """A path does not lead to a regular file."""


class DamagedError(ValueError):
    """A file's contents are not what they should be."""


def decode(decoder: msgspec.json.Decoder[T], data: bytes | str) -> T:
    """Decode the JSON in `data`. Raises DamagedError for any fault in it."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise DamagedError("it is nested too deep") from None
    except UnicodeDecodeError:
        raise DamagedError("it is not UTF-8 text") from None
    except ValueError as error:  # msgspec's errors are ValueErrors
        raise DamagedError(_short(str(error))) from error


def _short(words: str) -> str:
    """An error, cut to a readable length: it may quote a value of any length from the file."""
    return words if len(words) <= _LONGEST_ERROR else f"{words[:_LONGEST_ERROR]}…"


def decode_object(data: bytes | str) -> dict[str, Any]:
    """Decode a JSON object of any shape, nested at most DEEPEST deep. Raises DamagedError."""
    found = decode(_object, data)
    _check_depth(found)
    return found


def check_count(data: bytes) -> None:
    """Raise DamagedError if JSON from outside may have more values than memory can hold."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_VALUES:
        raise DamagedError("it has too many values")


def decode_shallow(data: bytes) -> Any:
    """Decode JSON from outside, at most DEEPEST deep. It may take a few hundred MB: beyond that, DamagedError
    is raised before the memory is used."""
    check_count(data)
    found = decode(_any, data)
    _check_depth(found)
    return found


def _check_depth(found: Any) -> None:
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise DamagedError("it is nested too deep")


_any = msgspec.json.Decoder()
_object = msgspec.json.Decoder(dict[str, Any])


def _inside(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def open_file(path: Path | str, buffering: int = -1) -> BinaryIO:
    """Open a file for reading. Raises OSError, also if it is not a regular file: a read from a named pipe may
    never end. The shell's pipes, `/dev/fd/…`, are allowed."""
    return open(path, "rb", buffering, opener=_only_files)


def read_file(path: Path | str) -> bytes:
    """The bytes of a file, opened with `open_file`. Raises OSError."""
    with open_file(path) as file:
        return file.read()


def _only_files(name: str, flags: int) -> int:
    if str(name).startswith(_OF_THE_SHELL):
        return os.open(name, flags)
    descriptor = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # which a named pipe heeds
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # Python itself refuses a folder
        os.close(descriptor)
        raise NotAFileError(errno.EINVAL, "It is not a regular file", name)
    return descriptor


def open_own(path: Path, mode: str) -> IO[bytes]:
    """Open a file in binary `mode`; a new file is private to the user. Raises OSError."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, OWN))


def make_own_folder(folder: Path) -> None:
    """Make a folder private to the user, and its missing parents. A folder that exists is made private if it
    belongs to the user. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if os.name == "posix" and status.st_uid == os.getuid() and status.st_mode & 0o077:
        folder.chmod(stat.S_IMODE(status.st_mode) & 0o700)


def write_atomic(path: Path, data: bytes, mode: int = OWN) -> None:
    """Write `path` so that readers and crashes find the old contents or the new, never a part. After the
    call, the new contents also survive a power loss.

    Raises OSError; the old contents then remain.
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
    sync_names(path.parent)


def sync_names(folder: Path) -> None:
    """Sync the names in a folder to the disk, if the system can. Otherwise a power loss may undo a rename."""
    with contextlib.suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def partial_of(path: Path) -> Path:
    """The name of a file while it is written. It contains the process id, so two instances do not collide."""
    return path.with_name(f"{path.name}.{os.getpid()}.partial")


def remove_partials(folder: Path) -> None:
    """Remove the partial files of dead processes in `folder` and below."""
    for partial in folder.rglob("*.partial"):
        if is_left(partial):
            partial.unlink(missing_ok=True)


def is_left(partial: Path) -> bool:
    """Whether the process that wrote a partial file of ours has ended."""
    named = _PARTIAL.fullmatch(partial.name)
    if named is None:
        return False
    if not is_running(int(named[1])):
        return True
    # Ids are reused, but no write takes a day.
    try:
        return time.time() - partial.stat().st_mtime > _DAY
    except FileNotFoundError:
        return False


def is_running(process: int) -> bool:
    """Whether a process of this user has this id. (A later process may have the same id.) On Windows always
    True, because asking there could do harm."""
    if os.name != "posix":  # there os.kill ends a process whatever it is sent
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError, PermissionError):  # the last: another user's process
        return False
    return True


def set_aside(path: Path, word: str) -> Path:
    """Rename `path` to a free name, `name.word-time`, and return the new path."""
    free = _free_name(path, word)
    path.rename(free)
    return free


def copy_aside(path: Path, word: str) -> Path:
    """Copy `path` to a free name, as in `set_aside`. Raises OSError."""
    free = _free_name(path, word)
    write_atomic(free, read_file(path))
    return free


def keep_as(path: Path, word: str) -> Path:
    """Copy `path` to `name.word`, in place of an earlier copy. Raises OSError."""
    kept = path.with_name(f"{path.name}.{word}")
    write_atomic(kept, read_file(path))
    return kept


def _free_name(path: Path, word: str) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    free = path.with_name(f"{path.name}.{word}-{stamp}")
    count = 2
    while free.exists():
        free = path.with_name(f"{path.name}.{word}-{stamp}-{count}")
        count += 1
    return free


def reason(error: OSError | ValueError) -> str:
    """The error's message, or the system's, for the middle of a sentence."""
    if not isinstance(error, OSError):
        return str(error)
    words = error.strerror or type(error).__name__
    return words[:1].lower() + words[1:]


def write_hint(error: OSError, folder: Path | str) -> str:
    """The hint for a file that could not be written to a folder; `folder` is a path or words for it."""
    if error.errno in FULL:
        return "Free some disk space."
    if error.errno == errno.EROFS:
        return f"The disk of the folder {folder} is read-only: make it writable."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"Permit Draftscope to write to the folder {folder}."
    return f"Check the folder {folder}."


@contextlib.contextmanager
def explained(what: str, hint: str = "", *, folder: Path | str | None = None) -> Iterator[None]:
    """Raise an OSError as a UserError: `what` was not done, and why. Its hint is `hint`, and what helps with
    the `folder` that was written to (a path or words for it)."""
    try:
        yield
    except OSError as error:
        hints = [write_hint(error, folder) if folder is not None else "", hint]
        raise UserError(f"{what}: {reason(error)}.", " ".join(filter(None, hints))) from error


def write_json(path: Path, value: object, what: str, rename: str = "Rename the model file.") -> None:
    """Write a JSON file, whole or not at all. Raises UserError: `what` was not saved, and why. `rename` is
    the hint if a name in it is not valid text."""
    try:
        encoded = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
    except UnicodeEncodeError as error:
        raise UserError(f"{what}: a file name in it is not valid text.", rename) from error
    with explained(what, folder=path.parent):
        make_own_folder(path.parent)
        write_atomic(path, encoded)


class NewerError(ValueError):
    """A newer version of Draftscope wrote the file."""


class _Version(msgspec.Struct, frozen=True):
    version: int = 1


_version = msgspec.json.Decoder(_Version)


def decode_kept(data: bytes, kind: type[T], newest: int) -> T:
    """The contents of a file. Raises NewerError if its version is above `newest`, and DamagedError if it is
    damaged."""
    if decode(_version, data).version > newest:
        raise NewerError
    return decode(msgspec.json.Decoder(kind), data)


def put_aside(path: Path, subject: str, error: OSError | ValueError) -> str:
    """Rename a file that could not be read, so that nothing overwrites it. Returns a sentence about it that
    begins with `subject`. Never raises."""
    if isinstance(error, NewerError):
        word, why = "newer", "a newer version of Draftscope wrote it"
    else:
        word, why = "damaged", reason(error) if isinstance(error, OSError) else "it is damaged"
    try:
        kept = f"; it is kept as {set_aside(path, word).name}"
    except OSError:
        kept = ""
    return f"{subject} could not be read ({why}){kept}."


class SpareFile(Generic[T]):
    """A file that can be made again: if it cannot be read, it counts as empty; if it cannot be written, that
    costs only time. A file of a newer version is left unchanged."""

    def __init__(self, path: Path | None, kind: type[T], version: int) -> None:
        """Without a `path` nothing is saved; `kind()` makes the empty contents."""
        self._path, self._kind, self._version = path, kind, version

    def read(self) -> T:
        try:
            if self._path is not None:
                return decode_kept(read_file(self._path), self._kind, self._version)
        except NewerError:
            self._path = None
        except (OSError, ValueError):
            pass
        return self._kind()

    def write(self, value: T) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError, UnicodeEncodeError):
                make_own_folder(self._path.parent)
                write_atomic(self._path, msgspec.json.encode(value))
