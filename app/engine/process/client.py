"""The caller's side of an engine home: one command at a time, answered by its events."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import msgspec

from app.engine.errors import UserError
from app.engine.process import messages
from app.engine.process.host import EngineHome
from app.engine.types import GenerationRequest, ModelOptions

_LOOK = 0.05  # seconds between two checks of `stopping`
_STOP_SECONDS = 5.0  # that a stopped command may take before its engine is ended: nobody can be asked


class EngineError(UserError):
    """A command failed; `gone`: its engine has ended too."""

    gone = False

    @classmethod
    def of(cls, failed: messages.Failed) -> EngineError:
        """Make the error in one line. For a bug of a living engine, whose details are a traceback, it names
        the place in the code."""
        places = [] if failed.gone else re.findall(r'File "(.+)", line (\d+)', failed.details)
        error = cls(failed.message, f"({':'.join(places[-1])})" if places else failed.hint)
        error.gone = failed.gone
        return error


class EngineClient:
    """An engine home for use by one thread: loads pairs and generates answers."""

    def __init__(self, home: EngineHome, stopping: Callable[[], bool]) -> None:
        """The current command is stopped as soon as `stopping` returns True."""
        self._home = home
        self._stopping = stopping
        self._run = 0
        self.stopped = False
        """Whether the current or last command was asked to stop."""

    def load(self, target: ModelOptions, draft: ModelOptions | None) -> Iterator[messages.Event]:
        """Yield the events of loading a pair, Loaded last. Raises EngineError."""
        return self.ask(messages.Load(0, target, draft))

    def generate(
        self,
        request: GenerationRequest,
        drafters: tuple[str, ...] = (),
        held: bool = False,
        passes: messages.PassSeconds | None = None,
    ) -> Iterator[messages.Event]:
        """Yield the events of one answer, Finished last. If `held`, its first round waits for `set_pace`;
        `passes` are measured times of the pair's passes. Raises EngineError."""
        return self.ask(messages.Generate(0, request, drafters, held, passes))

    def judge(self, asked: messages.Judge) -> messages.JudgedRows:
        """Let the target judge places of an answer again. Raises EngineError."""
        *_, found = self.ask(asked)
        assert isinstance(found, messages.JudgedRows)
        return found

    def set_pace(self, held: bool, steps: int = 0) -> None:
        """Hold the rounds of the current answer back after `steps` more, or let them run. Safe from any
        thread."""
        self._home.send(messages.SetPace(self._run, held, steps))

    def close(self) -> None:
        """End the engine, whatever it is doing."""
        self._home.close()

    def ask(self, command: messages.AnyCommand) -> Iterator[messages.Event]:
        """Send a command, setting its run id, and yield its events. An engine that does not stop is ended.
        Raises EngineError."""
        self._run += 1
        command = msgspec.structs.replace(command, run=self._run)
        self._home.send(command)
        self.stopped, deadline = False, 0.0
        while True:
            if not self.stopped and self._stopping():
                self._home.send(messages.Stop(command.run))
                self.stopped, deadline = True, time.monotonic() + _STOP_SECONDS
            elif self.stopped and time.monotonic() > deadline:
                self._home.end()
            event = self._home.receive(_LOOK)
            if isinstance(event, messages.Failed) and (event.gone or event.run == command.run):
                raise EngineError.of(event)
            if event is not None and event.run == command.run:
                yield event
                if isinstance(event, messages.ENDS):
                    return
