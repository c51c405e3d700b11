"""What both kinds of servers are asked and answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from app.engine.types import FinishReason, GenerationRequest, PairInfo, Verification, WholeServer
from app.servers.errors import strange
from app.servers.rounds import Told

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it is sent."""

    body: dict[str, Any]
    prompt: str  # its text, template applied where that is known
    prompt_tokens: int  # 0 if the server tells it only with its answer
    seed: int


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
