"""The draft length interface: the seam between the loop and the rules that choose how many tokens to
draft."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from app.engine.types import TokenIds

RIDE_ALONG = 8
"""A draft model reads up to this many tokens together with its first step; more are read and timed
separately."""


@dataclass(frozen=True, slots=True)
class StrategyLimits:
    """Facts about a strategy before it has drafted."""

    name: str
    shortest: int  # asked for fewer tokens, it proposes nothing
    longest: int  # most tokens of a proposal
    relative_size: float = 0.0  # the draft model's size relative to the target's; 0 without a draft model


@dataclass(frozen=True, slots=True)
class Outset:
    """Facts at the beginning of an answer's rounds."""

    strategies: Sequence[StrategyLimits]  # in order of precedence
    max_tokens: int
    prompt_tokens: int = 0  # tokens that the target just read, in one or more passes
    prompt_seconds: float = 0.0  # time of that reading


class Attempt(msgspec.Struct, frozen=True):
    """One request to a strategy for a draft."""

    name: str
    asked: int  # most tokens asked for
    ids: Sequence[int]  # proposed tokens
    unread: int = 0  # tokens that the draft model read first
    read_seconds: float = 0.0
    seconds: float = 0.0  # of drafting only
    looked: bool = False  # proposed only for comparison, not verified


class RoundCost(msgspec.Struct, frozen=True):
    """The times and results of a round. Only the last of its attempts can have been verified."""

    attempts: Sequence[Attempt]
    accepted: int
    emitted: Sequence[int]  # token ids
    draft_seconds: float  # of all attempts, and of choosing lengths
    target_seconds: float  # of the rest of the round


class DraftLength(ABC):
    """A rule that chooses before every round how many tokens to draft, and learns from the results.

    The choice may depend on the past only: a choice that depended on tokens drawn in its own round would bend
    the target's distribution.
    """

    lazy = False
    """Whether a draft model reads the prompt when it is first asked for a draft, instead of at the start."""

    reason = ""
    """Why a draft ended at the chosen length, in a few words."""

    rest_reason = "not worth its cost"
    """Why the last `choose` said 0."""

    def begin(self, outset: Outset) -> None:
        """Start an answer."""
        return

    def sit_out(self, truth: TokenIds) -> bool:
        """Whether the round after `truth` (shape [n]) is skipped: no strategy is asked, and `observe` is not
        called. Called once per round, because it counts rounds. So drafting costs nothing while it does not
        pay."""
        return False

    @abstractmethod
    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        """Choose how many tokens this strategy drafts, at most `room` (1 or more).

        `room` means as many as its own settings allow, 0 means no draft now. `unread` returns the number of
        tokens that its draft model would have to read first.
        """

    def look(self, name: str, room: int) -> int:
        """After `choose` returned 0: the number of tokens to propose only for comparison with the target's
        text; 0 for none."""
        return 0

    def observe(self, cost: RoundCost) -> None:
        """Learn from a finished round."""
        return

    def k(self, name: str) -> int | None:
        """The most tokens that the strategy drafts next, of a rule that goes by a smoothed acceptance."""
        return None

    def acceptance(self, name: str) -> float | None:
        """The strategy's smoothed acceptance, of such a rule."""
        return None

    def reset(self) -> None:
        """Forget everything: the next generation is cold."""
        return


class FixedLength(DraftLength):
    """A rule that always drafts as many tokens as there is room for: the strategy's own settings decide."""

    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        return room
