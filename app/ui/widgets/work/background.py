"""Slow questions: worked out on other threads, answered on the window's thread."""

from __future__ import annotations

import logging
import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Generic, TypeVar

from app.engine.errors import UserError
from app.ui.state.mailbox import Mailbox

log = logging.getLogger("draftscope.models")
T = TypeVar("T")

THREADS = 4


class Askers:
    """A few threads that run blocking work. They never keep the program from ending."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.closed = False
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        for number in range(THREADS):
            threading.Thread(target=self._run, name=f"asking {number}", daemon=True).start()

    def do(self, work: Callable[[], None]) -> None:
        """Run `work`, which does not raise, when a thread is free."""
        self._work.put(work)

    def close(self) -> None:
        """End the threads, each after its current work, without waiting for them."""
        self.closed = True
        for _ in range(THREADS):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


class Query(Generic[T]):
    """A question that is asked again and again; only answers to the latest asking are delivered."""

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
