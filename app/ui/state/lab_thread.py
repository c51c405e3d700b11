"""The worker thread on which something is measured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from PySide6.QtCore import QThread

from app.engine.errors import UserError
from app.lab.runs.control import Control
from app.lab.runs.events import LabEvent

log = logging.getLogger("draftscope")


class Broken(LabEvent, frozen=True):
    """The work cannot continue: the reason, and what to do."""

    message: str
    hint: str = ""


class LabThread(QThread):
    """Runs a worker."""

    def __init__(
        self, make: Callable[[Control], Iterator[LabEvent]], post: Callable[[LabEvent], None]
    ) -> None:
        """Both are called on this thread: `make` with the control of the work that it starts, `post` with
        each event."""
        super().__init__()
        self._make = make
        self._post = post
        self.control = Control()

    def run(self) -> None:
        try:
            for event in self._make(self.control):
                self._post(event)
        except UserError as error:
            self._post(Broken(error.message, error.hint))
        except Exception:  # a bug: it is logged, and the page says that the measurement broke
            log.exception("The measurement broke")
            self._post(
                Broken("The measurement broke.", "What was measured is kept; the log has the details.")
            )
