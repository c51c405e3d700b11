"""Delivers messages from other threads on the window's thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal

BATCH_MILLISECONDS = 33


class Mailbox(QObject):
    """Letters posted from any thread are delivered on the window's thread, in order and in batches.

    The first one after a pause is delivered at once. A queued signal for each of a thousand letters a second
    would flood the window's event loop.
    """

    _arrived = Signal()

    def __init__(self, deliver: Callable[[deque[Any]], None]) -> None:
        """`deliver` takes letters out of the deque; letters left there, because a view raised an error, are
        delivered again."""
        super().__init__()
        self._deliver_to = deliver
        self._letters: deque[Any] = deque()
        self._batch: deque[Any] = deque()
        self._lock = threading.Lock()
        self._announced = False
        self._closed = False
        self._delivered = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.deliver)
        self._arrived.connect(self._wake, Qt.ConnectionType.QueuedConnection)

    def post(self, letter: object) -> None:
        """Post a letter; after `close` it is dropped. Safe from any thread."""
        # The signal is emitted with the lock held, so that nothing uses this object once `close` has
        # returned.
        with self._lock:
            if self._closed:
                return
            self._letters.append(letter)
            if not self._announced:
                self._announced = True
                self._arrived.emit()

    def close(self) -> None:
        """Stop delivering."""
        with self._lock:
            self._closed = True
            self._letters.clear()
        self._batch.clear()
        self._timer.stop()

    def _wake(self) -> None:
        if not self._closed and not self._timer.isActive():
            passed = (time.monotonic() - self._delivered) * 1000
            self._timer.start(max(0, round(BATCH_MILLISECONDS - passed)))

    def deliver(self) -> None:
        """Deliver the letters that have arrived."""
        self._timer.stop()
        self._delivered = time.monotonic()
        with self._lock:
            self._announced = False
            self._batch.extend(self._letters)
            self._letters.clear()
        try:
            self._deliver_to(self._batch)
        finally:
            if self._batch:
                self._timer.start(BATCH_MILLISECONDS)


def call_each(calls: deque[Callable[[], None]]) -> None:
    """Make the calls that were posted."""
    while calls:
        calls.popleft()()
