"""Threads that begin, or an error: where memory is short, Python's own start can wait for ever."""

from __future__ import annotations

import mmap
import threading

from app.engine.errors import UserError

_ROOM = 2**24  # bytes; a thread's stack usually takes 8 MiB of addresses


def join(thread: threading.Thread) -> None:
    """Wait until a thread has ended, whatever interrupts: the caller may free what it uses next."""
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

    A thread that finds no memory for its first call ends before it has started, and `Thread.start` waits for
    it for ever: so there must be room first.
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
