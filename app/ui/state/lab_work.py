"""Work that needs the whole machine: it runs on a thread while the chat's engine is lent to it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum

from PySide6.QtCore import QObject, QThread, Signal

from app.engine.errors import UserError
from app.lab.runs.events import Control, Ended, EngineReplaced, LabEvent, Loading, Paused, Resumed, WarmingUp
from app.ui.state.engine_session import BUSY, Activity, EngineSession
from app.ui.state.mailbox import Mailbox

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
        """Both are called on this thread: `make` with the control of the work, `post` with each event."""
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
            log.exception("The measurement failed")
            self._post(
                Broken("The measurement failed.", "The finished runs are kept. The log has the details.")
            )


class Stage(StrEnum):
    """The stage of the work."""

    NONE = "none"  # nothing was measured yet
    FREEING = "freeing"  # the chat's models are being unloaded
    LOADING = "loading"
    WARMING = "warming"
    RUNNING = "running"
    PAUSED = "paused"
    ENDING = "ending"  # cancelled; the current run is stopping
    ENDED = "ended"
    FAILED = "failed"


AT_WORK = (Stage.FREEING, Stage.LOADING, Stage.WARMING, Stage.RUNNING, Stage.PAUSED, Stage.ENDING)


class LabWork(QObject):
    """Folds a worker's events into the state that views show, and notifies them in batches."""

    pausable = True
    stage_changed = Signal()
    progressed = Signal()  # rounds, runs or numbers changed
    replaced = Signal(str)  # the engine died and was replaced
    failed = Signal(object)  # UserError: the work cannot continue
    over = Signal()  # the work has ended, and the machine is free

    def __init__(self, engine: EngineSession) -> None:
        super().__init__()
        self._engine = engine
        self._thread: LabThread | None = None
        self._mailbox = Mailbox(self._deliver)
        self._closed = False
        self._lent = False
        self.stage = Stage.NONE
        self.words = ""  # about the stage: the file that is being read

    @property
    def at_work(self) -> bool:
        return self.stage in AT_WORK

    @property
    def may_start(self) -> bool:
        """Whether no work runs here, the engine is not lent, and the chat is not writing an answer."""
        return self._thread is None and self._engine.activity not in (*BUSY, Activity.LENT)

    def pause(self) -> None:
        if self._thread is not None:
            self._thread.control.pause()

    def resume(self) -> None:
        if self._thread is not None:
            self._thread.control.resume()

    def cancel(self) -> None:
        """Stop for good; finished runs stay."""
        if self._thread is not None and self.at_work:
            self._thread.control.cancel()
            self._set(Stage.ENDING)

    def close(self) -> None:
        """End the work before the window closes."""
        self._closed = True
        self._mailbox.close()
        if self._thread is not None:
            self._thread.control.cancel()
            self._thread.wait()

    # ------------------------------------------------------------------ for those that derive from it

    def _begin(self, make: Callable[[Control], Iterator[LabEvent]], *, needs_engine: bool = True) -> None:
        """Start a worker as soon as the machine is free."""
        self._thread = LabThread(make, self._mailbox.post)
        self._thread.finished.connect(self._thread_over)
        if needs_engine:
            self._lent = True
            self._set(Stage.FREEING)
            self._engine.lend(self._freed)
        else:
            self._thread.start()

    def _set(self, stage: Stage, words: str = "") -> None:
        self.stage, self.words = stage, words
        self.stage_changed.emit()

    def _run(self) -> None:
        """Begin to measure; what was measured before is over."""
        if self.stage not in (Stage.ENDING, Stage.RUNNING):
            self._set(Stage.RUNNING)

    def _fold(self, event: LabEvent) -> None:
        """Apply an event to the state; the events common to all workers are handled here."""
        if isinstance(event, EngineReplaced):
            self.replaced.emit(event.message)
        elif isinstance(event, Broken):
            self._set(Stage.FAILED)
            self.failed.emit(UserError(event.message, event.hint))
        elif isinstance(event, Ended):
            self._set(Stage.ENDED)
        elif self.stage is Stage.ENDING:
            return
        elif isinstance(event, Loading):
            self._set(Stage.LOADING, f"{event.file} {event.fraction * 100:.0f} %")
        elif isinstance(event, WarmingUp):
            self._set(Stage.WARMING)
        elif isinstance(event, Paused):
            self._set(Stage.PAUSED)
        elif isinstance(event, Resumed):
            self._set(Stage.RUNNING)

    def _folded(self, events: list[LabEvent]) -> None:
        """Notify the views after a batch was folded."""
        self.progressed.emit()

    def _over(self, thread: LabThread) -> None:
        """Called when the worker's thread has ended."""

    # ------------------------------------------------------------------ inside

    def _freed(self) -> None:
        if self._thread is not None and not self._closed:
            self._thread.start()

    def _deliver(self, letters: deque[LabEvent]) -> None:
        events = []
        while letters:
            events.append(letters.popleft())
            self._fold(events[-1])
        if events:
            self._folded(events)

    def _thread_over(self) -> None:
        """Return the engine to the chat, because the worker's engine is closed."""
        thread = self._thread
        if self._closed or thread is None:
            return
        self._mailbox.deliver()
        self._thread = None
        self._over(thread)
        if self._lent:
            self._lent = False
            self._engine.take_back()
        self.stage_changed.emit()
        self.over.emit()
