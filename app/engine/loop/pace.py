"""The pace of an answer: whether a round may follow the one before, for people who watch."""

from __future__ import annotations

import threading
from collections.abc import Callable

_LOOK = 0.02  # seconds between two checks whether the wait is over for another reason


class Pace:
    """Lets rounds begin one at a time, or as soon as they can. `set` is safe from any thread.

    The loop waits between two rounds, never within one, so that no recorded time holds a wait.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._steps = 0
        self.holds = False
        """Whether rounds have to wait."""

    def set(self, holds: bool, steps: int = 0) -> None:
        """Hold rounds back, but for `steps` more, or let them begin."""
        with self._changed:
            self._steps = self._steps + steps if holds else 0
            self.holds = holds
            self._changed.notify_all()

    def wait(self, over: Callable[[], bool]) -> None:
        """Wait until the next round may begin, or until the wait is `over` for another reason."""
        with self._changed:
            while self.holds and not over():
                if self._steps:
                    self._steps -= 1
                    break
                self._changed.wait(_LOOK)
