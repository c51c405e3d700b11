"""The engine of a long run: one engine home at a time, replaced when it dies and for another target."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.engine.process.client import EngineClient, EngineError
from app.engine.process.host import EngineHome
from app.engine.process.messages import (
    Event,
    Finished,
    Forced,
    ForcedText,
    ForceProgress,
    Loaded,
    LoadProgress,
)
from app.engine.types import FinishReason, GenerationRequest, PairInfo
from app.lab.experiment import Pair
from app.lab.runs.control import Control


class EngineGone(Exception):  # noqa: N818 - what happened, not a mistake
    """The engine died; the next `load` starts a new one."""


class Interrupted(Exception):  # noqa: N818
    """A pause or a cancel stopped the current work."""


class LabEngine:
    """Loads pairs and generates answers, one after another, on one thread. `control` belongs to another
    thread, and may be replaced for each piece of work."""

    def __init__(self, make_home: Callable[[], EngineHome], control: Control) -> None:
        self._make_home = make_home
        self.control = control
        self._client: EngineClient | None = None
        self._pair: Pair | None = None
        self._info: PairInfo | None = None

    @property
    def info(self) -> PairInfo | None:
        """The loaded pair; None without one."""
        return self._info

    def holds(self, pair: Pair) -> bool:
        return self._client is not None and self._pair == pair

    def load(self, pair: Pair) -> Iterator[tuple[str, float]]:
        """Load `pair`, unless it is loaded; yields (file, fraction). A model that stays the same is kept.

        Raises UserError where it cannot be loaded, EngineGone, Interrupted.
        """
        if self.holds(pair):
            return
        if self._pair is not None and self._pair.target != pair.target:
            self.close()  # two targets at once might not fit, and would distort a lane's memory
        if self._client is None:
            self._client = EngineClient(self._make_home(), lambda: self.control.interrupted)
        self._pair = None
        for event in self._followed(self._client, self._client.load(pair.target, pair.draft)):
            if isinstance(event, LoadProgress):
                yield event.file, event.fraction
            elif isinstance(event, Loaded):
                self._info = event.pair
        self._pair = pair

    def generate(self, request: GenerationRequest, drafters: tuple[str, ...] = ()) -> Iterator[Event]:
        """The events of one answer. Raises UserError, EngineGone, Interrupted."""
        assert self._client is not None, "load a pair first"
        return self._followed(self._client, self._client.generate(request, drafters))

    def force(self, texts: tuple[ForcedText, ...]) -> Iterator[ForceProgress | Forced]:
        """Compare the loaded draft with its target by teacher forcing; Forced comes last. Raises UserError,
        EngineGone, Interrupted."""
        assert self._client is not None, "load a pair first"
        for event in self._followed(self._client, self._client.force(texts)):
            assert isinstance(event, ForceProgress | Forced)
            yield event

    def _followed(self, client: EngineClient, events: Iterator[Event]) -> Iterator[Event]:
        """The events; raises Interrupted where they were stopped, and EngineGone where the engine died."""
        try:
            for event in events:
                over = event.totals.finish_reason if isinstance(event, Finished) else None
                if client.stopped and over is FinishReason.CANCELLED:
                    raise Interrupted
                yield event
        except EngineError as error:
            if error.gone:
                self.close()
            if client.stopped:
                raise Interrupted from error
            if error.gone:
                raise EngineGone(error.message) from error
            raise

    def close(self) -> None:
        """End the engine, if there is one."""
        if self._client is not None:
            self._client.close()
        self._client, self._pair, self._info = None, None, None
