"""An engine home whose events a test chooses."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable

from app.engine.process.messages import AnyCommand, Event, Failed, Loaded
from app.engine.types import PairInfo
from tests.ui.traces import model


class ScriptedHome:
    """Keeps the commands it is sent; the test puts its events in."""

    def __init__(self) -> None:
        self.sent: list[AnyCommand] = []
        self.closed = False
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._said = self._received = self._passed_on = 0

    def say(self, *events: Event) -> None:
        for event in events:
            self._said += 1
            self._events.put(event)

    def wait_passed_on(self) -> None:
        """Wait until the thread of this home has passed on what was said, and asks for more."""
        until = time.monotonic() + 60
        while self._passed_on < self._said:
            assert time.monotonic() < until
            time.sleep(0.001)

    def send(self, command: AnyCommand) -> None:
        assert not self.closed
        self.sent.append(command)

    def receive(self, timeout: float) -> Event | None:
        self._passed_on = self._received
        try:
            event = self._events.get(timeout=timeout)
        except queue.Empty:
            return None
        self._received += 1
        return event

    def end(self) -> None:
        self.say(Failed(-1, "The engine was ended.", gone=True))

    def close(self) -> None:
        self.closed = True


class Homes:
    """Makes homes and remembers them; the latest one is in use."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.made: list[ScriptedHome] = []
        self._before = before

    def __call__(self) -> ScriptedHome:
        self._before()
        self.made.append(ScriptedHome())
        return self.made[-1]

    @property
    def last(self) -> ScriptedHome:
        return self.made[-1]


def loaded(run: int, name: str = "demo") -> Loaded:
    return Loaded(run, PairInfo(model(name)), 0.1)
