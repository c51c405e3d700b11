"""The thread of passes, and how rounds leave it: it hands them over, or holds them back for a viewer."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import ClassVar, Generic, TypeVar

from app.base.processes import join, start
from app.engine.native import end_helpers

_LOOK = 0.02  # seconds between two checks whether the wait is over for another reason


class Pace:
    """Lets rounds begin one at a time, or without waiting. `set` is safe from any thread.

    The loop waits between two rounds, never within one, so no recorded time includes a wait.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._steps = 0
        self.holds = False
        """Whether rounds have to wait."""

    def set(self, holds: bool, steps: int = 0) -> None:
        """Hold rounds back after `steps` more, or let them run."""
        with self._changed:
            self._steps = self._steps + steps if holds else 0
            self.holds = holds
            self._changed.notify_all()

    def wait(self, over: Callable[[], bool]) -> None:
        """Wait until the next round may begin, or until `over` says that the wait is over."""
        with self._changed:
            while self.holds and not over():
                if self._steps:
                    self._steps -= 1
                    break
                self._changed.wait(_LOOK)


T = TypeVar("T")


class PassThread:
    """The thread that computes the passes of an engine: prompts, rounds, trials. It starts with the first.
    (A draft model may read its prompt at the same time, on a thread that then ends.)

    llama.cpp's helper threads belong to the thread that asks for a pass. New ones begin on the core of that
    thread, which slows some 10 ms of passes; so the thread outlasts an answer. A second thread with helpers
    would slow every pass, see `native.library.end_helpers`: only the engine that was used last has any.
    """

    _last: ClassVar[weakref.ref[PassThread] | None] = None  # the one that may have helpers

    def __init__(self) -> None:
        self._works: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._works.put, None)  # for an engine that nobody closed

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Do the work after all earlier work. Raises MemoryError, UserError if no thread can start."""
        if self._thread is None:
            thread = threading.Thread(target=_work, args=(self._works,), name="passes", daemon=True)
            start(thread)
            self._thread = thread
        last, PassThread._last = PassThread._last, weakref.ref(self)
        if last is not None and (other := last()) not in (self, None):
            other.rest()
        future: Future[T] = Future()
        self._works.put(partial(_fulfil, future, work))
        return future

    def call(self, work: Callable[[], T], stop: Callable[[], None]) -> T:
        """The result of the work, or its error. An interrupt calls `stop`, and waits for the work's end."""
        future = self.begin(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            stop()
            wait_for(future)
            raise

    def items(self, items: Iterator[T]) -> Generator[T, None, None]:
        """Yield the items of an iterator that runs on this thread; closing waits for its end."""

        def work(handover: Handover[T]) -> None:
            for item in items:
                handover.wait_taken()
                handover.put(item)

        with Handover(self, work) as handed_over:
            yield from handed_over

    def rest(self) -> None:
        """End the helpers after all work: another engine is used now."""
        self._works.put(end_helpers)

    def close(self) -> None:
        """End the thread after all work; its helpers end with it."""
        if self._thread is not None:
            self._works.put(None)
            join(self._thread)
            self._thread = None


def _work(works: SimpleQueue[Callable[[], object] | None]) -> None:
    for work in iter(works.get, None):
        work()
        del work  # it may hold the rows of an answer


def _fulfil(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)


def wait_for(future: Future[T]) -> None:
    """Wait for the end of work, despite interrupts: the caller may then free what the work used."""
    interrupt: KeyboardInterrupt | None = None
    while not future.done():
        try:
            future.exception()  # waits
        except KeyboardInterrupt as again:
            interrupt = again
    if interrupt is not None:
        raise interrupt


class ConsumerLeft(Exception):  # noqa: N818 - not an error
    """The consumer has left: the work ends."""


class Handover(Generic[T]):
    """Work on a thread that continues while its last item is consumed, and chooses when to wait.

    `put` only releases a lock: the work does not wait for the other thread to wake up, which would take
    longer than many steps. Use as a context manager and iterate once: entering starts the work; leaving waits
    for its end, despite interrupts.
    """

    def __init__(self, thread: PassThread, work: Callable[[Handover[T]], None]) -> None:
        """`work` gets the handover, and calls its `put` and `wait_taken`."""
        self._thread, self._work = thread, work
        self._item: T
        self._error: BaseException | None = None
        self._on_the_way = False  # put, not yet known to be taken
        self._over = self.left = False
        # Each side releases one lock to wake the other.
        self._given, self._taken = threading.Lock(), threading.Lock()
        self._given.acquire()
        self._taken.acquire()

    def put(self, item: T) -> None:
        """Called by the work: hand over an item. Call `wait_taken` before the next."""
        self._item = item
        self._on_the_way = True
        self._given.release()

    def wait_taken(self) -> None:
        """Called by the work: wait until the last item has been consumed. Raises ConsumerLeft if no further
        item will be taken."""
        if self._on_the_way:
            self._taken.acquire()
            self._on_the_way = False
        if self.left:
            raise ConsumerLeft

    def __enter__(self) -> Handover[T]:
        self._ended = self._thread.begin(self._run)
        return self

    def __iter__(self) -> Iterator[T]:
        """Yield the items in order; at the end raise the work's error, if any."""
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
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.left = True  # whether the consumer has left; `wait_taken` then ends the work
        if self._taken.locked():
            self._taken.release()
        try:
            wait_for(self._ended)
        finally:
            self._error = None  # its frames hold this object, and whole vocabulary rows

    def _run(self) -> None:
        self._taken.acquire()
        try:
            if not self.left:
                self._work(self)
            self.wait_taken()
        except ConsumerLeft:
            pass  # `wait_taken` ended the work: no consumer is left
        except BaseException as error:
            self._error = error
            if self._on_the_way:
                self._taken.acquire()
        self._over = True
        if not self.left:
            self._given.release()
