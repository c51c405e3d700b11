"""Child processes that talk over a pipe.

On Linux they are forked from a server that has loaded what an engine needs: it starts in a thirtieth of the
time, and shares that memory. The server is a fresh process without threads. It holds nothing that this
process has open, and it ends after this process and all children. Elsewhere each child is a fresh process.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext  # Windows has no server of processes

_LONGEST = 2**26  # bytes of a message
_FORKS = True  # where it can
PRELOADED = "app.engine.process.preloaded"
T = TypeVar("T")


def start_child(
    name: str, target: Callable[..., None], *arguments: object, fresh: bool = False
) -> tuple[BaseProcess, Connection]:
    """Start a process that runs `target(connection, *arguments)`; returns it and our end of the pipe.

    `target` is a function at the top of its module. A `fresh` process shares nothing with the server of the
    others, which strangers' code could end."""
    context = multiprocessing.get_context("spawn") if fresh else _context()
    ours, theirs = context.Pipe()
    words = (dict(os.environ), target.__module__, target.__name__, theirs, *arguments)
    process = context.Process(target=_run, args=words, name=name, daemon=True)
    with _deaf_to_ctrl_c():
        try:
            process.start()
        except (EOFError, ConnectionError):  # the server had just ended, and another one starts
            process.start()
    theirs.close()
    return process, ours


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
    """In the child. The server's environment may be older than the parent's, and some modules read it when
    they are imported."""
    os.environ.clear()
    os.environ.update(environment)
    getattr(importlib.import_module(module), function)(*arguments)


def hear(connection: Connection, decode: Callable[[bytes], T]) -> T:
    """The next message; raises EOFError or OSError if the process is gone or its message cannot be
    read."""
    try:
        return decode(connection.recv_bytes(_LONGEST))
    except ValueError:  # msgspec's errors, and that of a text that is not UTF-8
        raise EOFError from None


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Block Ctrl+C while a child starts: it is for the parent to handle, and a process begins with the
    signals blocked that its parent's thread blocks."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
