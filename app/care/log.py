"""The log file: limited in size, private to the user, without the user's texts."""

from __future__ import annotations

import faulthandler
import logging
import os
import re
from contextlib import suppress
from copy import copy
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from app.base.files import OWN, is_running, open_file, open_own, read_file
from app.base.processes import bug_words

log = logging.getLogger("draftscope")

NAME = "draftscope.log"
LONGEST = 20_000  # characters of one entry
SIZE, OLDER = 1_000_000, 2  # bytes of a file; how many older ones are kept
_CRASH = re.compile(r"crash-(\d+)\.txt")
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class _OwnFile(RotatingFileHandler):
    """A rotating file that only this user can read."""

    def _open(self):  # type: ignore[no-untyped-def] # as its base class
        open_own(Path(self.baseFilename), "ab").close()
        os.chmod(self.baseFilename, OWN)  # of an earlier version's file
        return super()._open()


class _EntryFormatter(logging.Formatter):
    """Formats one entry, limited in length; of an error only what quotes no data."""

    def formatException(self, ei: _ExcInfo) -> str:
        return bug_words(ei[1]) if ei[1] is not None else ""

    def format(self, record: logging.LogRecord) -> str:
        record = copy(record)
        record.exc_text = None  # another handler's words for the error
        text = super().format(record)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text):,} characters)"


def keep_log(folder: Path) -> logging.Handler:
    """Write the log into `folder`, as long as the disk has room; returns the handler."""
    logging.raiseExceptions = False  # on a full disk logging fails, and the window reports the disk itself
    path = folder / NAME
    handler = _OwnFile(path, maxBytes=SIZE, backupCount=OLDER, encoding="utf-8", delay=True)
    handler.setFormatter(_EntryFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    return handler


def last_lines(folder: Path, count: int) -> list[str]:
    """The end of the log, at most `count` lines; none if there is no log. Raises OSError."""
    path = folder / NAME
    if not path.exists():
        return []
    with open_file(path) as file:
        file.seek(max(0, path.stat().st_size - LONGEST * 4))
        return file.read().decode("utf-8", errors="replace").splitlines()[-count:]


class CrashFile:
    """The file that faulthandler writes if this process crashes in native code: file names, lines and
    functions."""

    def __init__(self, folder: Path) -> None:
        """Begin to watch. Raises OSError."""
        self._path = folder / f"crash-{os.getpid()}.txt"
        self._file = open_own(self._path, "wb")
        faulthandler.enable(self._file)

    def close(self) -> None:
        """Stop watching before a normal end. If the disk is gone, the file stays."""
        faulthandler.disable()
        with suppress(OSError):
            self._file.close()
            self._path.unlink(missing_ok=True)


def take_crashes(folder: Path) -> tuple[str, ...]:
    """How earlier processes died ("Segmentation fault"); their crash files go to the log. Raises OSError."""
    found = []
    for path in sorted(folder.glob("crash-*.txt")):
        named = _CRASH.fullmatch(path.name)
        if named is None or is_running(int(named[1])):
            continue
        text = read_file(path)[:LONGEST].decode("utf-8", errors="replace").strip()
        if text:  # empty: it was killed from outside, or the machine went down
            log.error("An earlier process died:\n%s", text)
            found.append(text.splitlines()[0].removeprefix("Fatal Python error: ").removesuffix("."))
        path.unlink(missing_ok=True)
    return tuple(found)
