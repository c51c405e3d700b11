"""Work that needs the machine for itself: on a thread, with the chat's engine lent to it meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum

from PySide6.QtCore import QObject, Signal, Slot

from app.engine.errors import UserError
from app.lab.runs.control import Control
from app.lab.runs.events import EngineReplaced, LabEvent, Loading, Paused, Resumed, WarmingUp
from app.ui.compare.works.lab_thread import Broken, LabThread
from app.ui.state.engine_session import BUSY, Activity, EngineSession
from app.ui.state.mailbox import Mailbox


class Stage(StrEnum):
    """What the experiment is doing."""

    NONE = "none"  # nothing was measured yet
    FREEING = "freeing"  # the chat's models make room
    LOADING = "loading"
    WARMING = "warming"
    RUNNING = "running"
    PAUSED = "paused"
    ENDING = "ending"  # cancelled, the run at hand stops
    ENDED = "ended"
    FAILED = "failed"


AT_WORK = (Stage.FREEING, Stage.LOADING, Stage.WARMING, Stage.RUNNING, Stage.PAUSED, Stage.ENDING)


class LabWork(QObject):
    """Folds a worker's events into what the views show; told in batches."""

    stage_changed = Signal()
    replaced = Signal(str)  # the engine died, and another one goes on
    failed = Signal(object)  # UserError: it cannot go on
    over = Signal()  # it has ended, and the machine is free

    def __init__(self, engine: EngineSession) -> None:
        super().__init__()
        self._engine = engine
        self._thread: LabThread | None = None
        self._mailbox = Mailbox(self._deliver)
        self._closed = False
        self._lent = False
        self.stage = Stage.NONE
        self.words = ""  # of the stage: the file that is being read

    @property
    def at_work(self) -> bool:
        return self.stage in AT_WORK

    @property
    def may_start(self) -> bool:
        """Nothing is measured here, the engine is nobody else's, and the chat is not writing an answer."""
        return self._thread is None and self._engine.activity not in (*BUSY, Activity.LENT)

    def pause(self) -> None:
        if self._thread is not None:
            self._thread.control.pause()

    def resume(self) -> None:
        if self._thread is not None:
            self._thread.control.resume()

    @Slot()
    def cancel(self) -> None:
        """Stop for good; what was measured stays."""
        if self._thread is not None and self.at_work:
            self._thread.control.cancel()
            self._set(Stage.ENDING)

    def close(self) -> None:
        """Before the window goes: end what runs."""
        self._closed = True
        self._mailbox.close()
        if self._thread is not None:
            self._thread.control.cancel()
            self._thread.wait()

    # ------------------------------------------------------------------ for those that derive from it

    def _begin(self, make: Callable[[Control], Iterator[LabEvent]], *, needs_engine: bool) -> None:
        """Start a worker, once the machine is free for it."""
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

    def _fold(self, event: LabEvent) -> None:
        """Take over what an event says; those that every worker has are dealt with here."""
        if isinstance(event, EngineReplaced):
            self.replaced.emit(event.message)
        elif isinstance(event, Broken):
            self._set(Stage.FAILED)
            self.failed.emit(UserError(event.message, event.hint))
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
        """A batch is folded: tell the views."""

    def _over(self, thread: LabThread) -> None:
        """The worker is done, and its thread has ended."""

    # ------------------------------------------------------------------ inside

    @Slot()
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

    @Slot()
    def _thread_over(self) -> None:
        """The worker's engine is closed by now: the chat may have its own back."""
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
