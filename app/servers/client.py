"""The caller's side of a running server, like `EngineClient` for an engine process."""

from __future__ import annotations

import copy
import datetime
import secrets
import time
from collections.abc import Callable, Iterator

from app import __version__
from app.base import numbers
from app.engine.drafters.registry import KINDS
from app.engine.errors import PromptError
from app.engine.process import messages
from app.engine.record.trace import FORMAT
from app.engine.rules.base import Rule
from app.engine.strategy import NONE, SERVER
from app.engine.templates.chat import filled
from app.engine.types import (
    FinishReason,
    GenerationRequest,
    PairInfo,
    Round,
    Totals,
    TraceHeader,
    WholeServer,
)
from app.servers.answer import Asked, Piece, RoundFold, ServerProtocol
from app.servers.http import PATIENCE, Asker, ServerError, Stopped
from app.servers.llama_server import LlamaServer
from app.servers.vllm import Vllm

_CHARACTERS = 4  # of a token, roughly: how long a document is cut
KEEPS = tuple(kind.name for kind in KINDS.values() if kind.remembers)
"""The strategies with which a server also drafts from earlier answers, which it cannot forget."""


class ServerClient:
    """A running server, for use by one thread at a time."""

    def __init__(
        self, address: str, key: str, stopping: Callable[[], bool], patience: float = PATIENCE
    ) -> None:
        """`address` comes from `server_address`; `key` may be empty. The current request is stopped as soon
        as `stopping` returns True. A server that sends nothing for `patience` seconds has failed."""
        self.address = address
        self._asker = Asker(address, key, stopping, patience)
        self._server: ServerProtocol | None = None
        self._info: PairInfo | None = None
        self.stopped = False
        """Whether the last request was stopped."""

    def describe(self) -> PairInfo:
        """The server's description, with `server` set; asks it for one token. Raises ServerError, Stopped."""
        self._server = _recognised(self._asker)
        self._info = self._server.describe()
        return self._info

    def another(self) -> ServerClient:
        """A client of the same, already described server for a different thread."""
        client = copy.copy(self)
        client.stopped = False
        return client

    def whole(self) -> WholeServer | None:
        """The server's drafts for all users so far, if it reports only those. Raises ServerError, Stopped."""
        if self._server is None or self._info is None or _tells_fates(self._info):
            return None
        return self._server.whole()

    def since(self, before: WholeServer | None) -> WholeServer | None:
        """Its drafts for all users since `whole` returned `before`. Raises ServerError, Stopped."""
        return _between(before, self.whole()) if before is not None else None

    def generate(self, request: GenerationRequest) -> Iterator[messages.Event]:
        """Yield the events of one answer: Started with its first token, Finished last. A request stopped
        before its first token has no events. Strategy `none` asks the server not to draft; any other lets it
        draft by its own settings. Raises UserError."""
        self.stopped = False
        if request.depth:  # only the engine here knows its tokens; the answer's header says how many it read
            request = filled(request, request.filler[: request.depth * _CHARACTERS])
        answer = _ServerAnswer(request)
        try:
            info = self._info or self.describe()
            assert self._server is not None
            yield from answer.events(self._server, info)
        except Stopped:
            self.stopped = True
            if answer.began is not None:  # what has come stays
                yield messages.Finished(0, answer.totals(FinishReason.CANCELLED, time.perf_counter()))

    def judge(self, asked: messages.Judge) -> messages.JudgedRows:
        """Ask for the most probable tokens after an answer so far; no row if the server does not report them.
        Raises UserError, Stopped."""
        if self._server is None:
            self.describe()
        assert self._server is not None
        top = self._server.judge(asked)
        return messages.JudgedRows(asked.run, (messages.JudgedRow(top, top),) if top.ids else ())

    def close(self) -> None:
        """End its use. (A connection lasts as long as its request.)"""


def _recognised(asker: Asker) -> ServerProtocol:
    """The server by its kind. Raises ServerError, Stopped."""
    try:
        props = asker.ask("/props")
    except ServerError as error:
        if error.status not in (404, 405):
            raise
    else:
        return LlamaServer(asker, props)
    return Vllm(asker)


class _ServerAnswer:
    def __init__(self, request: GenerationRequest) -> None:
        if request.suffix is not None:
            raise PromptError("A server lane cannot fill in the middle.", "Use the engine here for it.")
        if request.continues:
            raise PromptError("A server's answer cannot be continued.", "Ask again.")
        self._request = request
        self._asked = 0.0  # time.perf_counter
        self.began: float | None = None  # the same, of the first token
        self._text: list[str] = []
        self._emitted = 0

    def events(self, server: ServerProtocol, info: PairInfo) -> Iterator[messages.Event]:
        """Yield its events. Raises UserError, Stopped."""
        request = self._request
        seed = request.sampling.seed if request.sampling.seed >= 0 else secrets.randbits(31)
        asked = server.prepare(request, seed)
        rule = server.rule(request.sampling.temperature)
        fold = RoundFold(rule, untold=not _tells_fates(info))
        before = None if _tells_fates(info) else server.whole()
        self._asked = time.perf_counter()
        for piece in server.pieces(asked):
            if self.began is None:
                self.began = piece.at
                yield messages.Started(0, self._header(rule, info, asked, piece))
            self._emitted += len(piece.tokens)
            at = piece.at - self.began
            yield from self._heard(fold.add(piece.tokens, piece.drafted, piece.accepted, at))
            if piece.finish is not None:
                yield from self._heard(fold.finish(at))
                after = None if before is None else server.whole()
                yield messages.Finished(0, self.totals(piece.finish, piece.at, _between(before, after)))
                return
        raise ServerError(
            f"The server at {info.target.path} stopped in the middle of its answer, after "
            f"{numbers.count(self._emitted, 'token')}.",
            "Check its log: it may have ended.",
        )

    def _heard(self, rounds: Iterator[Round]) -> Iterator[messages.RoundFinished]:
        for round in rounds:
            text = b"".join(token.piece for token in round.emitted).decode()
            self._text.append(text)
            yield messages.RoundFinished(0, round, text)

    def totals(self, finish: FinishReason, at: float, whole: WholeServer | None = None) -> Totals:
        """The totals so far."""
        assert self.began is not None
        waited = self.began - self._asked
        return Totals(
            finish_reason=finish,
            text="".join(self._text),
            seconds=max(at - self.began, 0.0),
            prompt_seconds=waited,
            draft_prompt_seconds=0.0,
            first_token_seconds=waited,
            whole_server=whole,
        )

    def _header(self, rule: Rule, info: PairInfo, asked: Asked, piece: Piece) -> TraceHeader:
        request = self._request
        speculation = info.server.speculation if info.server is not None else ()
        drafts = bool(speculation) and request.strategy != NONE
        keeps = drafts and any(name in KEEPS for name in speculation)
        return TraceHeader(
            format=FORMAT,
            app_version=__version__,
            strategy=SERVER if drafts else NONE,
            verification=rule.name,
            sampling=request.sampling,
            seed=asked.seed,
            max_tokens=request.max_tokens,
            pair=info,
            prompt=asked.prompt,
            prompt_tokens=piece.prompt_tokens or asked.prompt_tokens,
            cached_tokens=piece.cached_tokens,
            cold=request.cold and not piece.cached_tokens and not keeps,
            started_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            stop=request.stop,
            messages=request.messages,
            template_options=request.template_options,
            prompt_ids=request.prompt_ids,
        )


def _tells_fates(info: PairInfo) -> bool:
    return info.server is not None and info.server.tells_fates


def _between(before: WholeServer | None, after: WholeServer | None) -> WholeServer | None:
    """What was drafted between two counts; None if unknown, or if the server restarted."""
    if before is None or after is None or after.drafted < before.drafted:
        return None
    return WholeServer(after.drafted - before.drafted, after.accepted - before.accepted)
