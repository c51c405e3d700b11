"""The worker thread that owns the engine's home and hands on what it says."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QThread

from app.engine.process.host import EngineHome
from app.engine.process.messages import AnyCommand, Event, Failed

_WAIT = 0.1  # seconds; how late an idle thread notices that it is to end


class EngineThread(QThread):
    """Receives the engine's events, and makes a new home where one is gone."""

    def __init__(self, make_home: Callable[[], EngineHome], post: Callable[[Event], None]) -> None:
        """Both are called on this thread: `make_home` at the start and whenever a home is gone, `post` with
        every event."""
        super().__init__()
        self._make_home = make_home
        self._post = post
        self._home: EngineHome | None = None
        self._waiting: deque[AnyCommand] = deque()  # until the first home is there
        self._handing = threading.Lock()  # no command is left behind while the first home comes
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
        """End the engine, also one that hangs; that it is gone is told as always. Safe from any thread."""
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
        """Let the engine and this thread end; `finished` says when they have."""
        self._ending = True

    def end(self) -> None:
        """End the engine and this thread."""
        self.leave()
        self.wait()
