"""The engine of a long run: one engine home at a time, replaced if it dies and for a new target; or a
server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from app.engine.process import messages
from app.engine.process.client import EngineClient, EngineError
from app.engine.process.host import EngineHome
from app.engine.types import FinishReason, GenerationRequest, PairInfo
from app.lab.experiment import Pair
from app.lab.runs.events import Control
from app.servers.address import find_key

if TYPE_CHECKING:
    from app.servers.client import ServerClient  # its HTTP client takes a moment to import


class EngineGone(Exception):  # noqa: N818 - what happened, not a mistake
    """The engine died; the next `load` starts a new one."""


class Interrupted(Exception):  # noqa: N818
    """A pause or a cancel stopped the current work."""


class LabEngine:
    """Loads pairs and generates answers, one at a time, on one thread. `control` belongs to a different
    thread, and may be replaced for each task.

    If the target is an address, the pair is a server's: it describes itself once, and `key_of` gives its key.
    """

    def __init__(
        self, make_home: Callable[[], EngineHome], control: Control, key_of: Callable[[str], str] = find_key
    ) -> None:
        self._make_home = make_home
        self._key_of = key_of
        self.control = control
        self._servers: dict[Pair, tuple[ServerClient, PairInfo]] = {}
        self._client: EngineClient | ServerClient | None = None
        self._pair: Pair | None = None
        self.info: PairInfo | None = None  # the loaded pair; None without one
        self._passes: dict[Pair, messages.PassSeconds] = {}

    def holds(self, pair: Pair) -> bool:
        return self._client is not None and self._pair == pair

    def load(self, pair: Pair) -> Iterator[tuple[str, float]]:
        """Load `pair`, unless it is loaded; yields (file, fraction). An unchanged model is kept.

        Raises UserError if it cannot be loaded, EngineGone, Interrupted.
        """
        if self.holds(pair):
            return
        if pair.is_server:
            self._ask_server(pair)
            return
        if self._client is not None and not isinstance(self._client, EngineClient):
            self.close()
        if self._pair is not None and self._pair.target != pair.target:
            self.close()  # two targets at once might not fit, and would distort a lane's memory
        client = self._client
        if not isinstance(client, EngineClient):
            client = self._client = EngineClient(self._make_home(), lambda: self.control.interrupted)
        self._pair = None
        for event in self._followed(client, client.load(pair.target, pair.draft)):
            if isinstance(event, messages.LoadProgress):
                yield event.file, event.fraction
            elif isinstance(event, messages.Loaded):
                self.info = event.pair
        self._pair = pair

    @property
    def passes(self) -> messages.PassSeconds | None:
        """Times of the loaded pair's passes, which answers get; None before `time_passes`."""
        return self._passes.get(self._pair) if self._pair is not None else None

    def time_passes(self) -> None:
        """Time the loaded pair's passes, once a pair; not for a server. Raises UserError, EngineGone,
        Interrupted."""
        if self.passes is None and self._pair is not None and isinstance(self._client, EngineClient):
            *_, found = self.force(())
            assert isinstance(found, messages.Forced)
            self._passes[self._pair] = found.seconds

    def generate(
        self, request: GenerationRequest, drafters: tuple[str, ...] = ()
    ) -> Iterator[messages.Event]:
        """The events of one answer. Raises UserError, EngineGone, Interrupted."""
        assert self._client is not None, "load a pair first"
        if isinstance(self._client, EngineClient):
            answer = self._client.generate(request, drafters, passes=self.passes)
            return self._followed(self._client, answer)
        return self._followed(self._client, self._client.generate(request))

    def force(
        self, texts: tuple[messages.ForcedText, ...]
    ) -> Iterator[messages.ForceProgress | messages.Forced]:
        """Compare the loaded draft with its target by teacher forcing; Forced comes last. Raises UserError,
        EngineGone, Interrupted."""
        assert isinstance(self._client, EngineClient), "load a pair first"
        for event in self._followed(self._client, self._client.ask(messages.Force(0, texts))):
            assert isinstance(event, messages.ForceProgress | messages.Forced)
            yield event

    def _ask_server(self, pair: Pair) -> None:
        """Use a server and end the engine, whose threads would take cores that the server needs. Raises
        UserError, Interrupted."""
        from app.servers.client import ServerClient
        from app.servers.http import Stopped

        self.close()
        if pair not in self._servers:
            address = pair.target.path
            client = ServerClient(address, self._key_of(address), lambda: self.control.interrupted)
            try:
                self._servers[pair] = client, client.describe()
            except Stopped:
                raise Interrupted from None
        self._client, self.info = self._servers[pair]
        self._pair = pair

    def _followed(
        self, client: EngineClient | ServerClient, events: Iterator[messages.Event]
    ) -> Iterator[messages.Event]:
        """The events; raises Interrupted if stopped, EngineGone if the engine died."""
        over = None
        try:
            for event in events:
                over = event.totals.finish_reason if isinstance(event, messages.Finished) else None
                if client.stopped and over is FinishReason.CANCELLED:
                    raise Interrupted
                yield event
            if client.stopped and over is None and not isinstance(client, EngineClient):
                raise Interrupted  # before its first token
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
        self._client, self._pair, self.info = None, None, None
