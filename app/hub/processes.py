"""Child processes that talk over a pipe."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import TypeVar

_LONGEST = 2**26  # bytes of a message
T = TypeVar("T")


def start_child(
    name: str, target: Callable[..., None], *arguments: object
) -> tuple[SpawnProcess, Connection]:
    """Start a process that runs `target(connection, *arguments)`; returns it and our end of the pipe."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), name=name, daemon=True)
    with _deaf_to_ctrl_c():
        process.start()
    theirs.close()
    return process, ours


def hear(connection: Connection, decode: Callable[[bytes], T]) -> T:
    """The next message; raises EOFError or OSError where the process is gone or its message cannot be
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
