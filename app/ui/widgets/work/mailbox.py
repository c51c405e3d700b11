"""Brings what other threads have to say to the window's thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

BATCH_MILLISECONDS = 50


class Mailbox(QObject):
    """Calls posted from any thread are made on the window's thread, in their order, in batches."""

    _arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._letters: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._announced = False
        self._closed = False
        self._timer = QTimer(self, singleShot=True, interval=BATCH_MILLISECONDS)
        self._timer.timeout.connect(self._deliver)
        self._arrived.connect(self._wake, Qt.ConnectionType.QueuedConnection)

    def post(self, call: Callable[[], None]) -> None:
        """Have a call made; after `close` it is dropped."""
        # The signal is emitted with the lock held: once `close` returns, nobody touches this object.
        with self._lock:
            if self._closed:
                return
            self._letters.append(call)
            if not self._announced:
                self._announced = True
                self._arrived.emit()

    def close(self) -> None:
        """Nothing more is delivered."""
        with self._lock:
            self._closed = True
            self._letters.clear()
        self._timer.stop()

    @Slot()
    def _wake(self) -> None:
        if not self._closed and not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _deliver(self) -> None:
        with self._lock:
            self._announced = False
            batch = self._letters
            self._letters = deque()
        try:
            while batch and not self._closed:
                batch.popleft()()
        finally:
            # Where a view broke, the others are still told.
            if batch and not self._closed:
                with self._lock:
                    self._letters.extendleft(reversed(batch))
                self._timer.start()
