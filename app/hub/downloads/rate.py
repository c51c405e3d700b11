"""Speed and time left that do not jitter."""

from __future__ import annotations

import math

_MEMORY_SECONDS = 5.0  # how far back the smoothed speed looks
_SETTLED_SECONDS = 1.0  # before that, no speed is given


class Rate:
    """Smoothed speed of a growing number; times are of one monotonic clock, in seconds."""

    def __init__(self, done: int, now: float) -> None:
        self._began = now
        self._done = done
        self._at = now
        self._speed: float | None = None

    def update(self, done: int, now: float) -> None:
        elapsed = now - self._at
        if elapsed <= 0:
            return
        current = max(done - self._done, 0) / elapsed
        weight = 1 - math.exp(-elapsed / _MEMORY_SECONDS)
        # The first seconds are a plain mean: a smoothed start would creep up from nothing.
        weight = max(weight, elapsed / max(now - self._began, elapsed))
        self._speed = current if self._speed is None else self._speed + weight * (current - self._speed)
        self._done, self._at = done, now

    def speed(self) -> float | None:
        """Bytes a second; None while it is too early to tell."""
        return self._speed if self._at - self._began >= _SETTLED_SECONDS else None

    def seconds_left(self, total: int) -> float | None:
        """None while nothing moves, or it is too early to tell."""
        speed = self.speed()
        return (total - self._done) / speed if speed and speed > 1 else None
