"""Pause, go on, cancel: what a person says to a long run, from any thread."""

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
        """The work at hand is to stop, for now or for good."""
        return self._paused or self._cancelled

    def pause(self) -> None:
        """Stop the run at hand; it begins anew after `resume`."""
        with self._condition:
            self._paused = True
            self._condition.notify_all()

    def resume(self) -> None:
        with self._condition:
            self._paused = False
            self._condition.notify_all()

    def cancel(self) -> None:
        """Stop for good; what was measured stays."""
        with self._condition:
            self._cancelled = True
            self._condition.notify_all()

    def wait(self) -> None:
        """Return when the run goes on or is cancelled."""
        with self._condition:
            self._condition.wait_for(lambda: self._cancelled or not self._paused)
