"""Pause, resume, cancel: the user's commands to a long run, from any thread."""

from __future__ import annotations

import threading


class Control:
    """The switch of one run. Every method is safe from any thread."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._paused = False
        self._cancelled = False

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @property
    def interrupted(self) -> bool:
        """Whether the current work is to stop, for now or for good."""
        return self._paused or self._cancelled

    def pause(self) -> None:
        """Stop the current run; it starts again after `resume`."""
        with self._condition:
            self._paused = True
            self._condition.notify_all()

    def resume(self) -> None:
        with self._condition:
            self._paused = False
            self._condition.notify_all()

    def cancel(self) -> None:
        """Stop for good; finished runs are kept."""
        with self._condition:
            self._cancelled = True
            self._condition.notify_all()

    def wait(self) -> None:
        """Wait until the run is resumed or cancelled."""
        with self._condition:
            self._condition.wait_for(lambda: self._cancelled or not self._paused)
