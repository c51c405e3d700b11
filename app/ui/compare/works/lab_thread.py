"""The worker thread on which something is measured."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator

from PySide6.QtCore import QThread, Signal

from app.engine.errors import UserError
from app.lab.runs.control import Control
from app.lab.runs.events import LabEvent

log = logging.getLogger("draftscope")


class Broken(LabEvent, frozen=True):
    """It cannot go on: why, and what to do."""

    message: str
    hint: str = ""


class LabThread(QThread):
    """Collects a worker's events; `arrived` is emitted once until they are taken."""

    arrived = Signal()

    def __init__(self, make: Callable[[Control], Iterator[LabEvent]]) -> None:
        """`make` is called on this thread, with the switch of the work that it begins."""
        super().__init__()
        self._make = make
        self._events: deque[LabEvent] = deque()
        self._announced = False
        self.control = Control()

    def take(self) -> list[LabEvent]:
        """All events since the last call, in order."""
        self._announced = False  # before the deque is emptied: a late event announces itself again
        taken = []
        while self._events:
            taken.append(self._events.popleft())
        return taken

    def run(self) -> None:
        try:
            for event in self._make(self.control):
                self._post(event)
        except UserError as error:
            self._post(Broken(error.message, error.hint))
        except Exception:  # a bug: it is logged, and the page says that it is over
            log.exception("The measurement broke")
            self._post(
                Broken("The measurement broke.", "What was measured is kept; the log has the details.")
            )

    def _post(self, event: LabEvent) -> None:
        self._events.append(event)
        if not self._announced:
            self._announced = True
            self.arrived.emit()
