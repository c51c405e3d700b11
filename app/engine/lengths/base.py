"""What a draft length is: the seam between the loop and the rules that say how far to look ahead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

RIDE_ALONG = 8
"""A draft model reads so many tokens together with its first step; more are read, and timed, apart."""


@dataclass(frozen=True, slots=True)
class StrategyLimits:
    """What is known of a strategy before it has drafted."""

    name: str
    shortest: int  # asked for fewer tokens, it has nothing to propose
    longest: int  # no proposal of it has more tokens
    relative_size: float = 0.0  # its draft model's size over the target's; 0 where no model drafts


@dataclass(frozen=True, slots=True)
class Outset:
    """What is known when the rounds of an answer begin."""

    strategies: Sequence[StrategyLimits]  # in order of precedence
    max_tokens: int
    prompt_tokens: int = 0  # that the target has read just now, in one pass or several
    prompt_seconds: float = 0.0  # and how long that took


class Attempt(msgspec.Struct, frozen=True):
    """A strategy was asked for a draft."""

    name: str
    asked: int  # for at most this many tokens
    ids: Sequence[int]  # what it proposed
    unread: int = 0  # tokens that its draft model read first
    read_seconds: float = 0.0
    seconds: float = 0.0  # of the drafting alone
    looked: bool = False  # only to learn: not verified


class RoundCost(msgspec.Struct, frozen=True):
    """What a round took and what it brought. Only the last of its attempts can have been verified."""

    attempts: Sequence[Attempt]
    accepted: int
    emitted: Sequence[int]  # token ids
    draft_seconds: float  # of all that was asked, thinking about the length included
    target_seconds: float  # of all behind it


class DraftLength(ABC):
    """Says before every round how many tokens to draft, and learns from what became of them.

    What it chooses may depend on the past only: a choice that looked at the tokens drawn in its own round
    would bend the target's distribution.
    """

    lazy = False
    """Whether a draft model reads the prompt when it is first asked for a draft, instead of at the start."""

    reason = ""
    """Why a draft ended at the chosen length, in a few words."""

    rest_reason = "not worth its cost"
    """Why the last `choose` said 0."""

    def begin(self, outset: Outset) -> None:
        """An answer starts."""
        return

    def sit_out(self) -> bool:
        """Sit out the coming round, where there is no need to think of it; asked once a round, for it counts.
        True: no strategy is asked, nor is `observe` told. Where drafting does not pay, it costs nothing."""
        return False

    @abstractmethod
    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        """How many tokens this strategy is to draft, at most `room` (1 or more).

        `room` means as many as its own settings allow, 0 that it is not to draft now. `unread` tells how many
        tokens its draft model would have to read first.
        """

    def look(self, name: str, room: int) -> int:
        """Where `choose` said 0: how many tokens it is to propose all the same, only to be compared with what
        the target writes; 0 for none."""
        return 0

    def observe(self, cost: RoundCost) -> None:
        """A round is over."""
        return

    def reset(self) -> None:
        """Forget everything: the next generation is a cold one."""
        return


class FixedLength(DraftLength):
    """As many as there is room for: the strategy's own settings decide."""

    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        return room
