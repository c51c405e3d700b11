"""An engine home whose events a test chooses."""

from __future__ import annotations

from typing_extensions import override

from app.engine.process.host import EngineHome, Take
from app.engine.process.messages import AnyCommand, Event, Failed, Loaded
from app.engine.types import PairInfo
from tests.ui.traces import model


class ScriptedHome(EngineHome):
    """Keeps the commands it is sent; the test gives its events."""

    def __init__(self, take: Take) -> None:
        super().__init__(take)
        self.sent: list[AnyCommand] = []
        self.closed = False

    def say(self, *events: Event) -> None:
        for event in events:
            self._take(event)

    @override
    def send(self, command: AnyCommand) -> None:
        assert not self.closed
        self.sent.append(command)

    @override
    def end(self) -> None:
        self.say(Failed(-1, "The engine was ended.", gone=True))

    @override
    def close(self) -> None:
        self.closed = True


class Homes:
    """Makes homes and remembers them; the latest one is in use."""

    def __init__(self) -> None:
        self.made: list[ScriptedHome] = []

    def __call__(self, take: Take) -> ScriptedHome:
        self.made.append(ScriptedHome(take))
        return self.made[-1]

    @property
    def last(self) -> ScriptedHome:
        return self.made[-1]


def loaded(run: int, name: str = "demo") -> Loaded:
    return Loaded(run, PairInfo(model(name)), 0.1)
