"""How many tokens a round drafts: controllers that the loop asks before every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from app.engine.types import LengthRule


@dataclass(frozen=True, slots=True)
class RoundCost:
    """What a round took and what it brought."""

    drafted: int
    accepted: int
    emitted: int
    draft_seconds: float  # also where no draft came of it
    verify_seconds: float


class DraftLength(Protocol):
    """Chooses the longest draft of the next round and learns from what became of it."""

    def choose(self, room: int) -> int:
        """At most `room` tokens; 0 means that this round is not to draft."""

    def observe(self, cost: RoundCost) -> None:
        """A round is over."""

    def reset(self) -> None:
        """Forget everything: the next generation is a cold one."""


class FixedLength:
    """As many as there is room for: the strategy's own settings decide."""

    def choose(self, room: int) -> int:
        return room

    def observe(self, cost: RoundCost) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to forget."""


def make_length(rule: LengthRule) -> DraftLength:
    """The controller of a rule."""
    match rule:
        case LengthRule.FIXED:
            return FixedLength()
