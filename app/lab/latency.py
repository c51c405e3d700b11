"""Latency as percentiles: the time to the first token, and the time between tokens.

The tokens of one round arrive together when the round ends. So the time between two of them is 0, and the
first of them has waited since the end of the round before. A percentile lies on a line between two times, as
in numpy and in vLLM's benchmark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from app.base import numbers
from app.engine.types import Round

FIRST_TOKEN_TITLE = "first token p50/95/99"
FIRST_TOKEN = "p50, p95 and p99 of the time from the request to the first emitted token."
INTER_TOKEN_TITLE = "between tokens p50/95/99"
INTER_TOKEN = (
    "p50, p95 and p99 of the time between one token and the next. The tokens of a round arrive together, "
    "with 0 ms between them."
)


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles in seconds; None where nothing is known."""

    first_token_p50: float | None = None
    first_token_p95: float | None = None
    first_token_p99: float | None = None
    inter_token_p50: float | None = None
    inter_token_p95: float | None = None
    inter_token_p99: float | None = None

    @property
    def first_token_words(self) -> str:
        return _words(self.first_token_p50, self.first_token_p95, self.first_token_p99)

    @property
    def inter_token_words(self) -> str:
        return _words(self.inter_token_p50, self.inter_token_p95, self.inter_token_p99)


def arrival_gaps(rounds: Sequence[Round]) -> tuple[float, ...]:
    """Seconds between the ends of rounds that emitted tokens, in whole microseconds."""
    ends = [round.offset + round.seconds for round in rounds if round.emitted]
    return tuple(round(max(0.0, later - earlier), 6) for earlier, later in pairwise(ends))


def percentiles(
    first_tokens: Iterable[float | None], gaps: Iterable[tuple[int, Sequence[float] | None]]
) -> dict[str, Any]:
    """The fields of a Latency, over all tokens of several answers. `gaps` are (tokens of an answer, the times
    between its rounds), None where an early record does not hold them."""
    known = [(tokens, each) for tokens, each in gaps if each is not None]
    together = sum(max(0, tokens - 1 - len(each)) for tokens, each in known)  # with the token before
    between = [0.0] * together + [gap for _, each in known for gap in each]
    return _named("first_token", [each for each in first_tokens if each is not None]) | _named(
        "inter_token", between
    )


def _named(name: str, values: Sequence[float]) -> dict[str, float | None]:
    found = np.percentile(values, (50, 95, 99)).tolist() if values else (None, None, None)
    return {f"{name}_p{at}": value for at, value in zip((50, 95, 99), found, strict=True)}


def _words(*seconds: float | None) -> str:
    """ "12.0 · 45.1 · 60.2 ms"."""
    if None in seconds:
        return numbers.NONE
    parts = ("0" if not each else numbers.digits(each * 1000) for each in seconds if each is not None)
    return f"{' · '.join(parts)} ms"
