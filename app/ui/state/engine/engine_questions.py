"""Questions about devices, memory and texts that the engine answers beside its work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.engine.process.messages import (
    AnyCommand,
    CountTexts,
    DevicesListed,
    Event,
    Failed,
    Force,
    Forced,
    ForceProgress,
    Lighten,
    Lightened,
    ListDevices,
    Measure,
    Measured,
    Stop,
    TextsCounted,
)
from app.engine.types import ModelOptions

Reply = DevicesListed | Measured | Lightened | TextsCounted | Forced | Failed
TakeReply = Callable[[Reply], None]
"""Called once with the answer to a question, on the window's thread."""


class EngineQuestions:
    """The open questions. They are asked only while the engine is idle, and give way to a user's commands."""

    def __init__(self, send: Callable[[AnyCommand], None], next_id: Callable[[], int]) -> None:
        self._send = send
        self._next_id = next_id
        self._open: dict[int, TakeReply] = {}  # by run id

    def list_devices(self, rpc: str, take: TakeReply) -> None:
        """Ask for the devices, those of the workers in `rpc` included."""
        self._ask(ListDevices(self._next_id(), rpc), take)

    def measure(self, target: ModelOptions, draft: ModelOptions | None, take: TakeReply) -> None:
        """Ask how much memory a pair would take."""
        self._ask(Measure(self._next_id(), target, draft), take)

    def fit(self, target: ModelOptions, draft: ModelOptions | None, take: TakeReply) -> None:
        """Ask how many layers of a pair fit on the devices."""
        self._ask(Measure(self._next_id(), target, draft, fit=True), take)

    def lighten(
        self,
        target: ModelOptions,
        draft: ModelOptions | None,
        take: TakeReply,
        smaller: tuple[ModelOptions, ...] = (),
    ) -> None:
        """Ask how a pair would need less memory, also with one of the `smaller` drafts."""
        self._ask(Lighten(self._next_id(), target, draft, smaller), take)

    def count_texts(self, texts: Sequence[str], output: str, take: TakeReply) -> None:
        """Ask for a static lookup cache of text files."""
        self._ask(CountTexts(self._next_id(), tuple(texts), output), take)

    def time_passes(self, take: TakeReply) -> None:
        """Ask what passes of the loaded pair take."""
        self._ask(Force(self._next_id(), ()), take)

    def _ask(self, command: ListDevices | Measure | Lighten | CountTexts | Force, take: TakeReply) -> None:
        self._open[command.run] = take
        self._send(command)

    def stop(self) -> None:
        """Stop the questions in progress; their answers say so."""
        for run in self._open:
            self._send(Stop(run))

    def answer(self, event: Event) -> bool:
        """Pass on the answer to a question; False where the event is none."""
        if event.run not in self._open:
            return False
        if isinstance(event, Reply):
            self._open.pop(event.run)(event)
        return isinstance(event, Reply | ForceProgress)

    def withdraw(self) -> dict[int, TakeReply]:
        """The open questions by run id, which the caller answers: the engine no longer will."""
        withdrawn, self._open = self._open, {}
        return withdrawn
