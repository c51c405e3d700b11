"""The worker thread that owns the engine's home, and the questions that it answers beside its work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import msgspec
from PySide6.QtCore import QThread

from app.engine.process.host import EngineHome
from app.engine.process.messages import (
    AnyCommand,
    DevicesListed,
    Event,
    Failed,
    Forced,
    ForceProgress,
    JudgedRows,
    Lightened,
    Measured,
    Stop,
    TextsCounted,
)

_WAIT = 0.1  # seconds until an idle thread notices that it should end


class EngineThread(QThread):
    """Receives the engine's events, and makes a new home when the engine is gone."""

    def __init__(self, make_home: Callable[[], EngineHome], post: Callable[[Event], None]) -> None:
        """Both are called on this thread: `make_home` at the start and after a home is gone, `post` with
        every event."""
        super().__init__()
        self._make_home = make_home
        self._post = post
        self._home: EngineHome | None = None
        self._waiting: deque[AnyCommand] = deque()  # until the first home exists
        self._handing = threading.Lock()  # commands wait here until the first home exists
        self._ending = False

    def send(self, command: AnyCommand) -> None:
        """Hand over a command; safe from any thread."""
        with self._handing:
            home = self._home
            if home is None:
                self._waiting.append(command)
                return
        home.send(command)

    def end_engine(self) -> None:
        """End the engine, even one that hangs; its end is reported as usual. Safe from any thread."""
        with self._handing:
            home = self._home
        if home is not None:
            home.end()

    def run(self) -> None:
        self._open()
        while not self._ending and self._home is not None:
            event = self._home.receive(_WAIT)
            if event is None:
                continue
            if isinstance(event, Failed) and event.gone:
                self._home.close()
                self._open()
            self._post(event)
        if self._home is not None:
            self._home.close()

    def _open(self) -> None:
        home = self._make_home()
        with self._handing:
            while self._waiting:
                home.send(self._waiting.popleft())
            self._home = home

    def leave(self) -> None:
        """Ask the engine and this thread to end; `finished` is emitted when they have."""
        self._ending = True

    def end(self) -> None:
        """End the engine and this thread, and wait for that."""
        self.leave()
        self.wait()


Reply = DevicesListed | Measured | Lightened | TextsCounted | Forced | JudgedRows | Failed
TakeReply = Callable[[Reply], None]
"""Called once with the answer to a question, on the window's thread."""


class EngineQuestions:
    """The open questions. They are asked only while the engine is idle, and give way to a user's commands."""

    def __init__(self, send: Callable[[AnyCommand], None], next_id: Callable[[], int]) -> None:
        self._send = send
        self._next_id = next_id
        self._open: dict[int, TakeReply] = {}  # by run id

    def ask(self, question: AnyCommand, take: TakeReply) -> None:
        """Ask a question, a command whose run id is set here; `take` gets its answer."""
        question = msgspec.structs.replace(question, run=self._next_id())
        self._open[question.run] = take
        self._send(question)

    def stop(self) -> None:
        """Stop the questions in progress; their answers say so."""
        for run in self._open:
            self._send(Stop(run))

    def answer(self, event: Event) -> bool:
        """Pass on the answer to a question; False if the event is none."""
        if event.run not in self._open:
            return False
        if isinstance(event, Reply):
            self._open.pop(event.run)(event)
        return isinstance(event, Reply | ForceProgress)

    def withdraw(self) -> dict[int, TakeReply]:
        """The open questions by run id, which the caller answers: the engine no longer will."""
        withdrawn, self._open = self._open, {}
        return withdrawn
