"""What an audit finds, and its evidence."""

from __future__ import annotations

from collections.abc import Generator
from enum import StrEnum
from typing import NamedTuple

from app.engine.process.messages import Judge, JudgedRows
from app.engine.record.trace import Trace
from app.engine.strategy import NONE
from app.engine.types import EmittedToken, GenerationRequest

Step = GenerationRequest | Judge
Steps = Generator[Step, Trace | JudgedRows, "Audit"]
"""Yields requests and judgements to run, receives their traces or rows, and returns the finding."""

WITH, WITHOUT, KEPT = "the answer with drafting", "the answer without drafting", "the cache after drafting"


class AuditFinding(StrEnum):
    SAME = "the same text"
    ROUNDING = "rounding"
    FAULT = "a fault"
    LAW = "the same distribution"  # the text may differ
    UNKNOWN = "another text, and the reason is not known"


class Cause(StrEnum):
    """What is at fault."""

    TEMPLATE = "the chat template"
    CACHE = "a cache"
    RULE = "a rule"
    SERVER = "the server"


class Shape(NamedTuple):
    """Two tokens' logits at the place where the texts diverge."""

    name: str
    p: tuple[float | None, float | None]  # of the token without drafting, and of the one with
    lead: float | None  # of the first over the second, in logits, with their luck; None where unknown


class Parting(NamedTuple):
    """Where the texts diverge: the token without drafting, and the one with; None if a text has ended."""

    place: int
    tokens: tuple[EmittedToken | None, EmittedToken | None]
    shapes: tuple[Shape, ...] = ()


class Readings(NamedTuple):
    """How the readings differ from both answers' rows, in logits."""

    rounding: float  # the most that passes of two widths differ by, over the whole answer
    allowed: float  # more is a fault
    apart: dict[str, dict[int, float]]  # each place's difference from the nearer of them

    @property
    def most(self) -> float:
        return max(map(largest, self.apart.values()), default=0.0)


class Audit(NamedTuple):
    """A finding in a sentence or two, with its evidence."""

    finding: AuditFinding
    words: str
    plain: Trace
    drafted: Trace
    cause: Cause | None = None
    parting: Parting | None = None
    rows: Readings | None = None  # None of a server
    problems: tuple[str, ...] = ()  # of the records
    tried: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The finding in a few words."""
        return str(self.finding) + (f" of {self.cause}" if self.cause else "")


def step_words(step: Step) -> str:
    """What a step does, shown while it runs."""
    if isinstance(step, Judge):
        return "Reading the text again" if step.fresh else "Looking into the cache"
    return f"Answering {'without' if step.strategy == NONE else 'with'} drafting"


def largest(places: dict[int, float]) -> float:
    return max(places.values(), default=0.0)


def token_text(token: EmittedToken | None) -> str:
    """A token for people."""
    if token is None:
        return "the answer has ended"
    return token.piece.decode("utf-8", errors="replace") or token.label or "no text"
