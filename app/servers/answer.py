"""What both kinds of servers are asked and answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from app.engine.types import FinishReason, GenerationRequest, PairInfo, Verification, WholeServer
from app.servers.errors import strange
from app.servers.rounds import Told

T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""Tokens that a server counts."""
Id = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]
"""A token of a server's vocabulary."""
Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Bytes or parameters of a model."""
Name = Annotated[str, msgspec.Meta(max_length=4096)]
"""A name or path that a server tells."""
_LONGEST_TOKEN = 1024  # characters; real ones have a hundred or two


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it is sent."""

    body: dict[str, Any]
    prompt: str  # its text, template applied where that is known
    prompt_tokens: int  # 0 if the server tells it only with its answer
    seed: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a stream: tokens, and the counters that hold for them."""

    at: float  # time.perf_counter
    tokens: list[Told]
    drafted: int = 0
    accepted: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    finish: FinishReason | None = None  # of the last piece


class TokensHeard:
    """The tokens of an answer as a server tells them, in chunks: nothing is made of a count or a text before
    it is checked against what was asked for."""

    def __init__(self, address: str, max_tokens: int) -> None:
        self._address = address
        self._max_tokens = max_tokens
        self._count = self._characters = 0

    def up_to(self, counted: int, ids: list[int], text: str) -> list[Told]:
        """The tokens of a chunk that ends with token `counted` of the answer. Some have no id; the text
        belongs to the last. Raises ServerError."""
        new = counted - self._count
        if new < len(ids):
            raise strange(self._address, f"counts {counted} tokens, and sent more of them")
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
        """The same for a server that counts late or never: the ids are counted, or a text as one token."""
        new = len(ids) or max(counted - self._count, int(bool(text)))
        return self.up_to(self._count + new, ids, text)


class ServerProtocol(Protocol):
    """A kind of server."""

    def describe(self) -> PairInfo:
        """What the server tells of itself. Raises ServerError, Stopped."""

    def prepare(self, request: GenerationRequest, seed: int) -> Asked:
        """The request as it is sent. Raises UserError, Stopped."""

    def pieces(self, asked: Asked) -> Iterator[Piece]:
        """The answer as it comes, up to a piece with `finish`. Raises ServerError, Stopped."""

    def rule(self, temperature: float) -> Verification:
        """The rule by which the server judges drafts."""

    def whole(self) -> WholeServer | None:
        """Its counts for all its users so far, where it tells no fates but those. Raises Stopped."""


def shaped(answer: object, shape: type[T], address: str, kind: str) -> T:
    """An answer in the shape that a kind of server gives it. Raises ServerError."""
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError as error:
        raise strange(address, f"does not answer as {kind}: {error}") from None
