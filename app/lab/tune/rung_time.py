"""The time of one rung of a search: how it is measured, and how the rung ends."""

from __future__ import annotations

from collections.abc import Callable

from app.lab.runs.control import Control


class Stopwatch:
    """Adds up the time of measuring, without loading, pauses and the start of a new engine."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._before = 0.0
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        return self._before + (0.0 if self._since is None else self._clock() - self._since)

    def start(self) -> None:
        if self._since is None:
            self._since = self._clock()

    def stop(self) -> None:
        self._before, self._since = self.seconds, None


class Ending(Control):
    """The control of one rung: ends the rung when its time is up, and follows the search's control."""

    def __init__(self, whole: Control) -> None:
        super().__init__()
        self._whole = whole

    @property
    def paused(self) -> bool:
        return self._whole.paused

    @property
    def cancelled(self) -> bool:
        return self._cancelled or self._whole.cancelled

    @property
    def interrupted(self) -> bool:
        return self.paused or self.cancelled

    def end(self) -> None:
        super().cancel()

    def wait(self) -> None:
        self._whole.wait()
