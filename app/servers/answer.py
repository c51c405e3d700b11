"""Requests to and answers of both kinds of servers, and an answer's rounds, derived from its tokens and
counters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from app.base import numbers
from app.engine.fates import Origin, Verdict
from app.engine.process.messages import Judge
from app.engine.rules.base import Rule
from app.engine.strategy import SERVER
from app.engine.types import (
    UNTOLD,
    Alternatives,
    DraftedToken,
    EmittedToken,
    FinishReason,
    GenerationRequest,
    ModelInfo,
    PairInfo,
    Round,
    ServerInfo,
    WholeServer,
)
from app.servers.http import ServerError, strange

_UNKNOWN_TEXT = "?"  # how a drafted token that was never told is shown
LONGEST_DRAFT = 1024  # tokens; the most that any strategy of llama.cpp can be set to
_DRAFTED_FOR_EACH = 256  # token of an answer, beyond one longest draft


@dataclass(frozen=True, slots=True)
class Told:
    """A token of the answer as the server sent it. Its text may include earlier tokens': a server holds back
    incomplete characters, and possible beginnings of stop strings."""

    id: int = UNTOLD
    text: str = ""


@dataclass(slots=True)
class _Open:
    """A round whose tokens are still coming."""

    drafted: int
    accepted: int
    tokens: list[Told] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether all tokens of the round are there: the accepted ones, and the target's own."""
        return len(self.tokens) > self.accepted


class RoundFold:
    """Folds tokens and counters into rounds.

    Counters change before the tokens of a round are sent. So the first tokens with new counters are the
    accepted ones and then the target's own. Further tokens with the same counters come from rounds without a
    draft, one each. (If a target rewinds by checkpoints, the pass that repeats an accepted draft is such a
    round.)
    """

    def __init__(self, rule: Rule, *, untold: bool = False) -> None:
        """`untold`: the server drafts without reporting counters; every token counts as a round."""
        self._rule = rule
        self._untold = untold
        self._drafted = self._accepted = 0  # the counters
        self._open: _Open | None = None
        self._rounds = self._position = 0
        self._end = 0.0

    def add(self, tokens: list[Told], drafted: int, accepted: int, at: float) -> Iterator[Round]:
        """Add tokens that came with these counters, `at` seconds after the first token; yields the rounds
        that are complete. Raises ServerError for counters that contradict each other or the tokens."""
        self._check(drafted, accepted)
        for token in tokens:
            if self._open is None:
                self._open = _Open(drafted - self._drafted, accepted - self._accepted)
                self._drafted, self._accepted = drafted, accepted
            self._open.tokens.append(token)
            if self._open.full:
                yield self._close(self._open, at)
        if self._open is not None and (drafted, accepted) != (self._drafted, self._accepted):
            raise ServerError(
                f"The server counts {self._open.accepted} accepted tokens in a round and sent "
                f"{len(self._open.tokens)}: its numbers cannot be used."
            )

    def finish(self, at: float) -> Iterator[Round]:
        """Yield the round that the end of the answer cut, if any; drafts after that were not judged."""
        if self._open is not None and self._open.tokens:
            yield self._close(self._open, at)

    def _check(self, drafted: int, accepted: int) -> None:
        more, taken = drafted - self._drafted, accepted - self._accepted
        if more < 0 or taken < 0 or taken > more:
            raise ServerError(
                f"The server's counters contradict each other: {drafted} drafted and {accepted} accepted "
                f"after {self._drafted} and {self._accepted}.",
                "Its numbers cannot be used.",
            )
        here = self._position + (len(self._open.tokens) if self._open is not None else 0)
        if more > LONGEST_DRAFT or drafted > LONGEST_DRAFT + _DRAFTED_FOR_EACH * (here + 1):
            raise ServerError(
                f"The server counts {drafted:,} drafted tokens after {numbers.count(here, 'token')} of its "
                "answer: its numbers cannot be used."
            )

    def _close(self, open: _Open, at: float) -> Round:
        start, self._end = self._end, max(at, self._end)
        emitted = len(open.tokens)
        accepted = min(open.accepted, emitted)
        round = Round(
            index=self._rounds,
            position=self._position,
            offset=start,
            seconds=self._end - start,
            draft_seconds=0.0,
            verify_seconds=0.0,
            sample_seconds=0.0,
            native_seconds=0.0,
            drafted=tuple(self._judged(open, accepted)),
            emitted=tuple(_emitted(open, accepted)),
            strategy=SERVER if open.drafted or self._untold else None,
        )
        self._rounds += 1
        self._position += emitted
        self._open = None
        return round

    def _judged(self, round: _Open, accepted: int) -> Iterator[DraftedToken]:
        greedy = not self._rule.draws  # the target's most probable token is the emitted one
        for token in round.tokens[:accepted]:
            yield DraftedToken(
                token.id, token.text.encode(), Verdict.ACCEPTED, target_id=token.id if greedy else None
            )
        for place in range(accepted, round.drafted):
            if place == accepted and round.full:
                best = round.tokens[-1].id if greedy else None
                yield DraftedToken(UNTOLD, b"", Verdict.REJECTED, target_id=best, label=_UNKNOWN_TEXT)
            else:
                yield _IGNORED


_IGNORED = DraftedToken(UNTOLD, b"", Verdict.IGNORED, label=_UNKNOWN_TEXT)


def _emitted(round: _Open, accepted: int) -> Iterator[EmittedToken]:
    for token in round.tokens[:accepted]:
        yield EmittedToken(token.id, token.text.encode(), Origin.ACCEPTED)
    if not round.drafted:
        own = Origin.PLAIN
    else:
        own = Origin.BONUS if accepted == round.drafted else Origin.RESAMPLED
    for token in round.tokens[accepted:]:
        yield EmittedToken(token.id, token.text.encode(), own)


T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""Tokens that a server counts."""
Id = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]
"""A token of a server's vocabulary."""
Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Bytes or parameters of a model."""
Name = Annotated[str, msgspec.Meta(max_length=4096)]
"""A name or path from a server."""
_LONGEST_TOKEN = 1024  # characters; real ones have a hundred or two


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it is sent."""

    body: dict[str, Any]
    prompt: str  # its text, template applied where that is known
    prompt_tokens: int  # 0 if the server reports it only with its answer
    seed: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a stream: tokens and their counters."""

    at: float  # time.perf_counter
    tokens: list[Told]
    drafted: int = 0
    accepted: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    finish: FinishReason | None = None  # of the last piece


class TokensHeard:
    """The tokens of an answer, in a server's chunks. Every count and text is first checked against the
    request."""

    def __init__(self, address: str, max_tokens: int) -> None:
        self._address = address
        self._max_tokens = max_tokens
        self._count = self._characters = 0

    def up_to(self, counted: int, ids: list[int], text: str) -> list[Told]:
        """The tokens of a chunk that ends with token `counted` of the answer. Some may have no id; the text
        belongs to the last. Raises ServerError."""
        new = counted - self._count
        if new < len(ids):
            raise strange(self._address, f"counts {counted} tokens but sent more")
        if counted > self._max_tokens:
            raise strange(self._address, f"sends more than the {self._max_tokens} tokens asked for")
        self._count = counted
        self._characters += len(text)
        if self._characters > self._max_tokens * _LONGEST_TOKEN:
            raise strange(self._address, f"sends more text than {self._max_tokens} tokens have")
        tokens = [Told()] * (new - len(ids)) + [Told(token) for token in ids]
        if text and tokens:
            tokens[-1] = Told(tokens[-1].id, text)
        return tokens

    def more(self, counted: int, ids: list[int], text: str) -> list[Told]:
        """The same for a server that counts late or never: it counts ids, or a text as one token."""
        new = len(ids) or max(counted - self._count, int(bool(text)))
        return self.up_to(self._count + new, ids, text)


class ServerProtocol(Protocol):
    """A kind of server."""

    def describe(self) -> PairInfo:
        """The server's description. Raises ServerError, Stopped."""

    def prepare(self, request: GenerationRequest, seed: int) -> Asked:
        """The request as it is sent. Raises UserError, Stopped."""

    def pieces(self, asked: Asked) -> Iterator[Piece]:
        """Yield the answer's pieces, up to one with `finish`. Raises ServerError, Stopped."""

    def judge(self, asked: Judge) -> Alternatives:
        """The most probable tokens after an answer so far, before penalties and filters; empty if not
        reported. Raises UserError, Stopped."""

    def rule(self, temperature: float) -> Rule:
        """The rule by which the server judges drafts."""

    def whole(self) -> WholeServer | None:
        """Its counts for all users so far, if it reports no others. Raises Stopped."""


def alternatives(told: list[tuple[int, str, float]]) -> Alternatives:
    """Tokens from a server: id, text and log p."""
    rows = [(id, text.encode(), math.exp(min(p, 0.0))) for id, text, p in told]
    return Alternatives(*map(tuple, zip(*rows, strict=True))) if rows else Alternatives((), (), ())


def shaped(answer: object, shape: type[T], address: str, kind: str) -> T:
    """Decode an answer of this kind of server. Raises ServerError."""
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError as error:
        raise strange(address, f"does not answer as {kind}: {error}") from None


_UNTOLD: dict[str, Any] = {
    "architecture": "", "quantisation": "", "size": 0, "n_params": 0, "n_layers": 0, "n_vocab": 0,
    "n_ctx_train": 0, "n_ctx": 0, "threads": 0,
}  # fmt: skip


def served(server: ServerInfo, **known: Any) -> PairInfo:
    """The model behind a server as a pair, with what is `known` of it."""
    target = ModelInfo(path=server.address, name=server.model, **_UNTOLD | known)
    return PairInfo(target, devices="the server's", server=server)
