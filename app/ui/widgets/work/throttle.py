"""Limits how often numbers on the screen change: people read them at most ten times a second."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Slot

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

    @Slot()
    def now(self) -> None:
        """Act at once: at the end of something, where the last state must show."""
        self._timer.stop()
        self._since.start()
        self._act()
