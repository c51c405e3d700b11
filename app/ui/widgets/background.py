"""Work beside painting: on other threads, not too often, and Python's garbage collection."""

from __future__ import annotations

import gc
import logging
import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Generic, TypeVar

from PySide6.QtCore import QElapsedTimer, QObject, QTimer

from app.engine.errors import UserError
from app.ui.state.mailbox import Mailbox, call_each

log = logging.getLogger("draftscope.models")
T = TypeVar("T")

THREADS = 4


class Askers:
    """A few threads that run blocking work. The first work starts them. They never keep the program from
    ending."""

    def __init__(self) -> None:
        self.mailbox = Mailbox(call_each)
        self.closed = self._started = False
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def do(self, work: Callable[[], None]) -> None:
        """Run `work` as soon as a thread is free; it must not raise."""
        if not self._started:
            self._started = True
            for number in range(THREADS):
                threading.Thread(target=self._run, name=f"asking {number}", daemon=True).start()
        self._work.put(work)

    def close(self) -> None:
        """End the threads, each after its current work, without waiting for them; nothing is delivered
        afterwards."""
        self.closed = True
        self.mailbox.close()
        for _ in range(THREADS):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


class Query(Generic[T]):
    """A question that is asked repeatedly; only answers to the latest one are delivered."""

    def __init__(
        self,
        askers: Askers,
        answered: Callable[[T], None],
        failed: Callable[[UserError], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """`ended` is called after the last answer, or after the failure."""
        self._askers = askers
        self._answered = answered
        self._failed = failed
        self._ended = ended
        self._number = 0
        self.pending = False

    def ask(self, work: Callable[[], T]) -> None:
        """Run `work` for its one answer; an earlier question is dropped."""
        self._begin(lambda: iter((work(),)), self._take_last)

    def ask_each(self, work: Callable[[], Iterable[T]]) -> None:
        """Run `work`, each item of which is an answer; it ends early when it is dropped."""
        self._begin(work, self._take)

    def drop(self) -> None:
        """Drop the question: its answer is no longer wanted."""
        self._number += 1
        self.pending = False

    def _begin(self, work: Callable[[], Iterable[T]], take: Callable[[int, T], None]) -> None:
        self._number += 1
        self.pending = True
        self._askers.do(partial(self._work, self._number, work, take))

    def _work(self, number: int, work: Callable[[], Iterable[T]], take: Callable[[int, T], None]) -> None:
        post = self._askers.mailbox.post
        try:
            for answer in self._while_wanted(number, work):
                post(partial(take, number, answer))
            error = None
        except UserError as problem:
            error = problem
        except Exception as bug:
            # Without its text, which could hold an address with a signature.
            frames = "".join(traceback.format_tb(bug.__traceback__))
            log.error("Unexpected error in a question: %s\n%s", type(bug).__name__, frames)
            error = UserError("An unexpected error occurred.", "The log has the details.")
        post(partial(self._end, number, error))

    def _while_wanted(self, number: int, work: Callable[[], Iterable[T]]) -> Iterator[T]:
        for answer in work():
            if number != self._number or self._askers.closed:
                return
            yield answer

    def _take(self, number: int, answer: T) -> None:
        if number == self._number:
            self._answered(answer)

    def _take_last(self, number: int, answer: T) -> None:
        if number == self._number:
            self.pending = False
            self._answered(answer)

    def _end(self, number: int, error: UserError | None) -> None:
        if number != self._number:
            return
        self.pending = False
        if error is not None:
            self._failed(error)
        self._ended()


INTERVAL_MS = 100


class Throttle(QObject):
    """Calls `act` at once, then at most once per interval; a call in between is delayed, never lost."""

    def __init__(self, act: Callable[[], None], parent: QObject, interval_ms: int = INTERVAL_MS) -> None:
        super().__init__(parent)
        self._act = act
        self._interval = interval_ms
        self._since = QElapsedTimer()
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.now)

    def request(self) -> None:
        """Act soon."""
        if self._timer.isActive():
            return
        elapsed = self._since.elapsed() if self._since.isValid() else self._interval
        if elapsed >= self._interval:
            self.now()
        else:
            self._timer.start(self._interval - int(elapsed))

    def now(self) -> None:
        """Act at once, for instance at the end of something, when the last state must be shown."""
        self._timer.stop()
        self._since.start()
        self._act()


_INTERVAL = 500  # milliseconds between two looks
_GROWTH = 1.25
"""A full collection visits every object, which takes some hundred milliseconds with a long answer on the
screen. Like Python, it waits until a quarter more of them are old."""


class Collector(QObject):
    """Collects garbage only on the thread that it belongs to.

    By default Python collects on whichever thread makes the next object. Qt objects in the garbage would be
    destroyed there. The process would crash if the window's thread had an event or a timer for one of them.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        self._old = 0  # objects that were old after the last full collection
        self._looked = 0  # Python's count of collections of the middle generation, at the last look at them
        timer = QTimer(self, interval=_INTERVAL)
        timer.timeout.connect(self.collect_due)
        timer.start()

    def collect_due(self) -> None:
        """Collect the oldest generation that is due by Python's own counts."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        if counts[2] - self._looked > thresholds[2]:
            self._looked = counts[2]
            if len(gc.get_objects(2)) > self._old * _GROWTH:
                gc.collect(2)
                self._old, self._looked = len(gc.get_objects(2)), 0
                return
        for generation in (1, 0):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return
