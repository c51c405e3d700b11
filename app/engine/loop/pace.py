"""The pace of an answer: how soon a round may follow the one before, for people who watch."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

_LOOK = 0.02  # seconds between two checks whether the wait is over for another reason

TRUE_SPEED = 1.0
PAUSED = 0.0


class Pace:
    """Lets rounds begin one at a time, slowly, or at true speed. `set` is safe from any thread.

    The loop waits between two rounds, never within one, so that no recorded time holds a wait.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._speed = TRUE_SPEED
        self._steps = 0

    def set(self, speed: float, steps: int = 0) -> None:
        """`speed` is relative to the true one and at most 1; 0 pauses. `steps` more rounds may begin in a
        pause."""
        with self._changed:
            self._steps = 0 if speed else self._steps + steps
            self._speed = min(max(speed, PAUSED), TRUE_SPEED)
            self._changed.notify_all()

    @property
    def holds(self) -> bool:
        """Whether rounds may have to wait."""
        return self._speed < TRUE_SPEED

    def wait(self, last: float, over: Callable[[], bool]) -> float:
        """Wait until the next round may begin, or until the wait is `over` for another reason.

        `last` are the seconds that the round before took. Returns the seconds waited.
        """
        began = time.perf_counter()
        with self._changed:
            while not over():
                waited = time.perf_counter() - began
                left = self._wanted(last) - waited
                if left <= 0:
                    break
                if self._steps:
                    self._steps -= 1
                    break
                self._changed.wait(min(left, _LOOK))
        return time.perf_counter() - began

    def _wanted(self, last: float) -> float:
        return last / self._speed - last if self._speed else math.inf
