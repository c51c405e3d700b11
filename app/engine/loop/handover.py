"""Work on a thread of its own that hands over what it made, one thing at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class ConsumerLeft(Exception):  # noqa: N818 - not an error
    """Who took what was handed over has left: the work ends here."""


class Handover(Generic[T]):
    """The work goes on while what it put down is looked at; it chooses when to wait for that.

    To put is to release a bare lock: the work does not wait until another thread has woken up, which takes
    longer than much of what it does. Use as a context manager and iterate over it, once: the work begins with
    that, and leaving waits until it has ended, whatever interrupts.
    """

    def __init__(self, name: str, work: Callable[[Handover[T]], None]) -> None:
        """`work` calls `put` and `wait_taken` of the handover that it is called with."""
        self._work = work
        self._item: T
        self._error: BaseException | None = None
        self._on_the_way = False  # put, and not known to be taken
        self._over = self._left = False
        # Each is released by one side, to wake the other.
        self._given, self._taken = threading.Lock(), threading.Lock()
        self._given.acquire()
        self._taken.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def put(self, item: T) -> None:
        """For the work: hand over. `wait_taken` before the next."""
        self._item = item
        self._on_the_way = True
        self._given.release()

    def wait_taken(self) -> None:
        """For the work: wait until what was put has been looked at. Raises ConsumerLeft where it was the
        last that anyone took."""
        if self._on_the_way:
            self._taken.acquire()
            self._on_the_way = False
        if self._left:
            raise ConsumerLeft

    def __enter__(self) -> Handover[T]:
        self._thread.start()
        return self

    def __iter__(self) -> Iterator[T]:
        """What was put, in order; at its end raises what the work raised."""
        self._taken.release()
        while True:
            self._given.acquire()
            if self._over:
                break
            yield self._item
            self._taken.release()
        if self._error is not None:
            raise self._error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._left = True
        if self._taken.locked():
            self._taken.release()
        interrupt: KeyboardInterrupt | None = None
        while self._thread.is_alive():
            try:
                self._thread.join()
            except KeyboardInterrupt as again:  # what the work uses may be freed next
                interrupt = again
        self._error = None  # its frames hold this, and rows of a whole vocabulary
        if interrupt is not None:
            raise interrupt

    def _run(self) -> None:
        self._taken.acquire()
        try:
            if not self._left:
                self._work(self)
            self.wait_taken()
        except ConsumerLeft:
            pass  # the way that `wait_taken` ends the work: there is nobody to tell
        except BaseException as error:
            self._error = error
            if self._on_the_way:
                self._taken.acquire()
        self._over = True
        if not self._left:
            self._given.release()
