"""Prints set-up's messages, and runs other programs quietly, with a log in case they fail."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_OFFLINE = re.compile(
    r"NewConnectionError|NameResolutionError|name resolution|Network is unreachable"
    r"|Failed to establish a new connection|nodename nor servname|Connection refused"
    r"|ConnectTimeout|Connection to .* timed out|ProxyError",
    re.IGNORECASE,
)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_NOT_WRITABLE = re.compile(r"\[Errno \d+\] (?:Permission denied|Read-only file system): '([^'\n]+)'")


class SetupError(Exception):
    """An error that the user can correct: what is wrong, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CommandError(Exception):
    """A program failed for an unknown reason; `output` is its last lines."""

    def __init__(self, command: Sequence[str], code: int, output: str) -> None:
        super().__init__(f"{command[0]} ended with {code}")
        self.command = command
        self.code = code
        self.output = output


def say(text: str) -> None:
    """Report a step on standard error. Standard output is for results, such as the peer's path."""
    print(f"set-up: {text}", file=sys.stderr, flush=True)


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: Path | None = None,
    on_line: Callable[[str], None] | None = None,
) -> str:
    """Run a command to its end; return the last 2,000 lines of both output streams as one text.

    Raises SetupError if the failure has a well-known cause, else CommandError.
    """
    tail: deque[str] = deque(maxlen=2000)
    try:
        process = subprocess.Popen(
            list(command),
            env=None if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except FileNotFoundError:
        raise CommandError(command, 127, f"{command[0]} was not found") from None
    with open(log or os.devnull, "w", encoding="utf-8") as sink, process:
        assert process.stdout is not None
        for line in process.stdout:
            tail.append(line)
            sink.write(line)
            if on_line is not None:
                on_line(line)
    output = "".join(tail)
    if process.returncode != 0:
        if _NO_SPACE.search(output):
            raise disk_full()
        if denied := _NOT_WRITABLE.search(output):
            raise not_writable(denied[1])
        if _OFFLINE.search(output):
            raise SetupError(
                "The package index cannot be reached.",
                "Connect to the network (or set HTTPS_PROXY) and run make again; finished steps are kept.",
            )
        raise CommandError(command, process.returncode, output)
    return output


def disk_error(error: OSError) -> SetupError | None:
    """An error of the disk in words; None if the user cannot correct it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full()
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return not_writable(str(error.filename))
    return None


def not_writable(path: str) -> SetupError:
    return SetupError(
        f"{path} cannot be written.",
        "If it belongs to root, for instance after a call with sudo, change its owner with chown. Or copy"
        " this project to a folder of yours, and set DRAFTSCOPE_WHEELS to a folder for what is built.",
    )


def disk_full() -> SetupError:
    return SetupError("The disk is full.", "Free about 3 GB and run make again.")


def answer(command: Sequence[str]) -> str | None:
    """Return the output of a short program; None if the program is missing or fails."""
    try:
        done = subprocess.run(
            list(command),
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or done.stderr).strip() if done.returncode == 0 else None


@dataclass
class Progress:
    """Shows progress from ninja's `[42/144]` lines: one moving line on a terminal, a line for each quarter
    elsewhere."""

    what: str
    shown: int = -1
    began: float = 0.0

    def __call__(self, line: str) -> None:
        match = re.match(r"\s*\[(\d+)/(\d+)\] ", line)
        if match is None:
            return
        done, total = int(match[1]), int(match[2])
        if done == 1:
            self.began = time.monotonic()
        text = f"{self.what}, {done} of {total}{self._time_left(done, total)}"
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            print(f"\rset-up: {text:<70}", end=end, file=sys.stderr, flush=True)
        elif total >= 8 and done * 4 // total > self.shown:
            self.shown = done * 4 // total
            say(text)

    def _time_left(self, done: int, total: int) -> str:
        """The time left, from the files that are done; empty until a tenth of them are."""
        if done < max(3, total / 10) or done == total:
            return ""
        left = (time.monotonic() - self.began) / (done - 1) * (total - done)
        return (
            f", about {left / 60:.0f} min left"
            if left >= 90
            else f", about {max(10, round(left, -1)):.0f} s left"
        )
