"""Child processes that talk over a pipe, threads whose start cannot hang, and bugs in words.

On Linux, children are forked from a server process that has already loaded what an engine needs. They start
in a thirtieth of the time and share that memory. The server has no threads and none of this process's open
files; it ends after this process and all children. Elsewhere each child is a fresh process. If memory is
short, Python's own start of a thread can wait for ever; `start` does not. `bug_words` says where in the
program a bug is, never what the program was working on.
"""

from __future__ import annotations

import contextlib
import importlib
import mmap
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from app.engine.errors import UserError

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext  # Windows has no server of processes


_ROOM = 2**24  # bytes; a thread's stack usually takes 8 MiB of addresses


def join(thread: threading.Thread) -> None:
    """Wait until a thread has ended, despite interrupts: the caller may then free what the thread used."""
    interrupt: KeyboardInterrupt | None = None
    while thread.is_alive():
        try:
            thread.join()
        except KeyboardInterrupt as again:
            interrupt = again
    if interrupt is not None:
        raise interrupt


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises MemoryError if memory is too short for one, UserError if the system allows
    no more threads.

    Room is checked first: a thread without memory for its first call ends before it has started, and
    `Thread.start` would wait for ever.
    """
    try:
        mmap.mmap(-1, _ROOM, access=mmap.ACCESS_COPY).close()
    except OSError as error:
        raise MemoryError("no room for another thread") from error
    try:
        thread.start()
    except RuntimeError as error:
        raise UserError(
            "The system allows no more threads here.", "Close other programs, and try again."
        ) from error


_LONGEST = 2**26  # bytes of a message
_FORKS = True  # where it can
PRELOADED = "app.engine.process.preloaded"
T = TypeVar("T")


class Child:
    """A child process, and our end of the pipe to it."""

    def __init__(
        self, name: str, target: Callable[..., None], *arguments: object, fresh: bool = False
    ) -> None:
        """Start a process that runs `target(connection, *arguments)`, a function at the top of its module.

        A `fresh` process is not forked from the server, which foreign code could end."""
        context = multiprocessing.get_context("spawn") if fresh else _context()
        self.connection, theirs = context.Pipe()
        words = (dict(os.environ), target.__module__, target.__name__, theirs, *arguments)
        self._process = context.Process(target=_run, args=words, name=name, daemon=True)
        with _deaf_to_ctrl_c():
            try:
                self._process.start()
            except (EOFError, ConnectionError):  # the server had just ended: a new one starts
                self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def hear(self, decode: Callable[[bytes], T]) -> T:
        """The next message; raises EOFError or OSError if the process is gone or its message cannot be
        read."""
        try:
            return decode(self.connection.recv_bytes(_LONGEST))
        except ValueError:  # msgspec's errors, and that of a text that is not UTF-8
            raise EOFError from None

    def ask(self, question: bytes, decode: Callable[[bytes], T], patience: float) -> T:
        """Send a question and wait for the answer. Raises TimeoutError after `patience` seconds, EOFError or
        OSError if the process is gone."""
        self.connection.send_bytes(question)
        if not self.connection.poll(patience):
            raise TimeoutError
        return self.hear(decode)

    def kill(self) -> None:
        """Kill the process without waiting for its end. Safe from any thread before `close`."""
        self._process.kill()

    def end(self, seconds: float = 0.0) -> int | None:
        """Wait up to `seconds` for the process to end, then kill it; returns its exit code."""
        self._process.join(seconds)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self._process.exitcode

    def close(self, seconds: float = 0.0) -> None:
        """Close the pipe, so that a serving process ends by itself; kill it after `seconds`."""
        self.connection.close()
        self.end(seconds)
        self._process.close()


def exit_words(code: int | None) -> str:
    """How a process ended."""
    if code is not None and code < 0:
        try:
            return f"signal {-code}, {signal.strsignal(-code) or signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"


def _context() -> SpawnContext | ForkServerContext:
    if sys.platform == "linux" and _FORKS:
        from multiprocessing import forkserver

        forking = multiprocessing.get_context("forkserver")
        forking.set_forkserver_preload([PRELOADED])
        with contextlib.suppress(OSError):  # a long TMPDIR is no path of a socket
            forkserver.ensure_running()
            return forking
    return multiprocessing.get_context("spawn")


def _run(environment: Mapping[str, str], module: str, function: str, *arguments: object) -> None:
    """Run the target in the child; the parent handles Ctrl+C. The environment is set anew: the server's may
    be older, and some modules read it when imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)
    getattr(importlib.import_module(module), function)(*arguments)


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Block Ctrl+C while a child starts, because the parent handles it. A process inherits the signals that
    its parent's thread blocks."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_TELLING = (AttributeError, NameError, TypeError, ImportError, IndexError, ZeroDivisionError, AssertionError)
"""Errors whose own text names parts of the program. That of others may quote a prompt, an answer or a key."""
_CAUSES = 10


def bug_words(error: BaseException) -> str:
    """A traceback of `error` and its causes. Their messages are included only if they quote no data."""
    parts: list[str] = []
    found: BaseException | None = error
    while found is not None and len(parts) < _CAUSES:
        parts.insert(0, "".join(traceback.format_tb(found.__traceback__)) + _named(found))
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return "\nThis led to:\n".join(parts)


def bug_line(error: BaseException) -> str:
    """An error's type and place, for the middle of a sentence: "KeyError at store.py:12"."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return type(error).__name__ + place


def _named(error: BaseException) -> str:
    name = type(error).__name__
    if type(error) in _TELLING and str(error):
        return f"{name}: {error}"
    if isinstance(error, OSError) and error.strerror:
        return f"{name}: {error.strerror}"
    return name
