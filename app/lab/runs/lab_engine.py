"""The engine of a long run: one home at a time, replaced where it dies and where another target comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from app.engine.errors import UserError
from app.engine.process.host import STOP_SECONDS, EngineHome
from app.engine.process.messages import (
    AnyCommand,
    Event,
    Failed,
    Finished,
    Generate,
    Load,
    Loaded,
    LoadProgress,
    Stop,
)
from app.engine.types import FinishReason, GenerationRequest, PairInfo
from app.lab.experiment import Pair
from app.lab.runs.control import Control

_LOOK = 0.05  # seconds between two looks at the switch


class EngineGone(Exception):  # noqa: N818 - what happened, not a mistake
    """The engine died; the next `load` begins with a new one."""


class Interrupted(Exception):  # noqa: N818
    """A pause or a cancel stopped the work at hand."""


class LabEngine:
    """Loads pairs and generates answers, one after another. For one thread; `control` is the other's, and may
    be another one for each piece of work."""

    def __init__(self, make_home: Callable[[], EngineHome], control: Control) -> None:
        self._make_home = make_home
        self.control = control
        self._home: EngineHome | None = None
        self._pair: Pair | None = None
        self._info: PairInfo | None = None
        self._run = 0

    @property
    def info(self) -> PairInfo | None:
        """The loaded pair, None without one."""
        return self._info

    def holds(self, pair: Pair) -> bool:
        return self._home is not None and self._pair == pair

    def load(self, pair: Pair) -> Iterator[tuple[str, float]]:
        """Load `pair`, unless it is there; yields (file, fraction). What is loaded in the same way stays.

        Raises UserError where it cannot be loaded, EngineGone, Interrupted.
        """
        if self.holds(pair):
            return
        if self._pair is not None and self._pair.target != pair.target:
            self.close()  # two targets at once might not fit, and would not be one lane's memory
        if self._home is None:
            self._home = self._make_home()
        self._pair = None
        for event in self._ask(Load(self._next(), pair.target, pair.draft)):
            if isinstance(event, LoadProgress):
                yield event.file, event.fraction
            elif isinstance(event, Loaded):
                self._info = event.pair
        self._pair = pair

    def generate(self, request: GenerationRequest, drafters: tuple[str, ...] = ()) -> Iterator[Event]:
        """The events of one answer. Raises UserError, EngineGone, Interrupted."""
        return self._ask(Generate(self._next(), request, drafters))

    def _next(self) -> int:
        self._run += 1
        return self._run

    def _ask(self, command: AnyCommand) -> Iterator[Event]:
        """Everything that a command answers, to its end."""
        assert self._home is not None, "load a pair first"
        self._home.send(command)
        given_up: float | None = None
        while True:
            event = self._home.receive(_LOOK)
            if self.control.interrupted and given_up is None:
                self._home.send(Stop(command.run))
                given_up = time.monotonic() + STOP_SECONDS
            if given_up is not None and time.monotonic() > given_up:
                self._home.end()
                self.close()
                raise Interrupted
            if event is None or event.run != command.run:
                if isinstance(event, Failed) and event.gone:
                    self._lose(event)
                continue
            if isinstance(event, Failed):
                if event.gone:
                    self._lose(event)
                if given_up is not None:
                    raise Interrupted
                raise UserError(event.message, event.hint)
            stopped = isinstance(event, Finished) and event.totals.finish_reason is FinishReason.CANCELLED
            if given_up is not None and stopped:
                raise Interrupted
            yield event
            if isinstance(event, Finished | Loaded):
                return

    def _lose(self, event: Failed) -> None:
        self.close()
        if self.control.interrupted:
            raise Interrupted
        raise EngineGone(event.message)

    def close(self) -> None:
        """End the engine, if there is one."""
        if self._home is not None:
            self._home.close()
        self._home, self._pair, self._info = None, None, None
