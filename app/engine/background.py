"""A thread that runs one call at a time beside the caller, handed over with as little ado as possible."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Runs calls that spend their time outside the interpreter; two bare locks instead of an executor.

    Use as a context manager: leaving it waits for a call that is still running.
    """

    def __init__(self, name: str) -> None:
        self._call: Callable[[], T] | None = None
        self._value: T
        self._error: BaseException | None = None
        self._running = False
        self._go, self._done = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._done.acquire()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def __enter__(self) -> Background[T]:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._running:
            self._done.acquire()
        self._call = None
        self._go.release()
        self._thread.join()

    def start(self, call: Callable[[], T]) -> None:
        """Begin a call; the one before must have been waited for."""
        self._call = call
        self._running = True
        self._go.release()

    def result(self) -> T:
        """Wait for the call; returns its value or raises its exception."""
        self._done.acquire()
        self._running = False
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self._value

    def _work(self) -> None:
        while True:
            self._go.acquire()
            if self._call is None:
                return
            try:
                self._value = self._call()
            except BaseException as error:
                self._error = error
            self._done.release()
