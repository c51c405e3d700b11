"""The draft length interface: the seam between the loop and the rules for how many tokens to draft."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import msgspec

if TYPE_CHECKING:
    from app.engine.process.messages import PassSeconds
    from app.engine.types import Round, TokenIds

RIDE_ALONG = 8
"""A draft model reads up to this many tokens with its first step; more are read and timed separately."""


@dataclass(frozen=True, slots=True)
class StrategyLimits:
    """Facts about a strategy before it has drafted."""

    name: str
    shortest: int  # asked for fewer tokens, it proposes nothing
    longest: int  # most tokens of a proposal
    relative_size: float = 0.0  # the draft model's size relative to the target's; 0 without a draft model
    is_head: bool = False  # it has read the prompt, and must read each token behind it before it drafts again


@dataclass(frozen=True, slots=True)
class Outset:
    """Facts before an answer's first round."""

    strategies: Sequence[StrategyLimits]  # in order of precedence
    max_tokens: int
    prompt_tokens: int = 0  # tokens that the target just read, in one or more passes
    prompt_seconds: float = 0.0  # time of that reading
    passes: PassSeconds | None = None  # what the pair's passes took earlier, of a calibrated machine
    head_token: float = 0.0  # seconds in which a head read a token of the prompt; 0 if it read none


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
    """The times and results of a round. Only its last attempt can have been verified."""

    attempts: Sequence[Attempt]
    accepted: int
    emitted: Sequence[int]  # token ids
    draft_seconds: float  # of all attempts, of choosing lengths, and of the last `observe`
    target_seconds: float  # of the pass, and of judging the draft
    upkeep_seconds: float = 0.0  # in which the strategies learned the text, since the last observed round


class DraftLength(ABC):
    """A rule that chooses before every round how many tokens to draft, and learns from the results.

    The choice may depend only on the past: if it depended on tokens drawn in its own round, it would bend the
    target's distribution.
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
        """Whether the round after `truth` (shape [n]) is skipped: no strategy is asked, `observe` is not
        called, and nothing is spent. Called once per round, because it counts rounds."""
        return False

    @abstractmethod
    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        """Choose how many tokens this strategy drafts, at most `room` (1 or more).

        Return `room` for as many as its own settings allow, 0 for no draft now. `unread` returns how many
        tokens its draft model would have to read first.
        """

    def look(self, name: str, room: int) -> int:
        """After `choose` returned 0: the number of tokens to propose only for comparison with the target's
        text; 0 for none."""
        return 0

    def observe(self, cost: RoundCost) -> None:
        """Learn from a finished round."""
        return

    def k(self, name: str) -> int | None:
        """The most tokens that the strategy drafts next, for a rule that depends on drafts and verdicts
        alone. A trace records it, and `ReplayedLength` recomputes it."""
        return None

    def know(self, name: str, k: int) -> None:
        """Set a known k, such as that of a recorded round."""
        return

    def acceptance(self, name: str) -> float | None:
        """The strategy's smoothed acceptance, for such a rule."""
        return None

    def reset(self) -> None:
        """Forget everything: the next generation is cold."""
        return


class FixedLength(DraftLength):
    """Always drafts as many tokens as there is room for: the strategy's own settings decide."""

    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        return room


# ------------------------------------------------------------------------- the rule, as a strategy names it


@dataclass(frozen=True, slots=True)
class LengthRule(ABC):
    """A named rule. Its fields are its settings, each a `param`, from which grammar, form and help are
    made."""

    name: ClassVar[str]
    summary: ClassVar[str]
    by_clock: ClassVar[bool] = False
    """Whether it decides by measured times, which a replay cannot reproduce."""

    @abstractmethod
    def make(self) -> DraftLength:
        """A draft length of this rule that has learned nothing."""

    def fold(self, strategies: Sequence[StrategyLimits]) -> LengthFold | None:
        """The rule's state in recorded rounds of these strategies; None if a record does not determine it."""
        length = self.make()
        length.begin(Outset(strategies, 0))
        return ReplayedLength(length, strategies) if length.k(strategies[0].name) is not None else None


class Fixed(LengthRule):
    """length=fixed, the default."""

    name = "fixed"
    summary = "As long as the strategy's own settings allow."

    def make(self) -> DraftLength:
        return FixedLength()


# ------------------------------------------------------------------------------- what a rule went by, again


@dataclass(frozen=True, slots=True)
class LengthAt:
    """The state of a rule at a round."""

    k: int  # most tokens that the round was allowed to draft
    at_least: bool  # the draft ended for another reason: k may be larger
    acceptance: float  # smoothed, of the strategy that drafted last, with this round counted


class LengthFold(ABC):
    """Computes a rule's state from recorded rounds."""

    def __init__(self, strategies: Sequence[StrategyLimits]) -> None:
        self._names = [limits.name for limits in strategies]
        self._name = self._names[0]  # of the strategy that drafted last

    def add(self, round: Round) -> LengthAt:
        """Add the next round: its recorded state, else the computed one."""
        at = self.computed(round)
        return at if round.k is None or round.smoothed is None else LengthAt(round.k, False, round.smoothed)

    @abstractmethod
    def computed(self, round: Round) -> LengthAt:
        """Add the next round, ignoring its recorded state."""

    def _follow(self, round: Round) -> None:
        if round.strategy in self._names:
            self._name = round.strategy


class ReplayedLength(LengthFold):
    """Folds with the rule's own code, for a rule that depends on drafts and verdicts alone.

    Exact for a cold answer. What a warm rule had learned is known only from recorded states (format 1.8 and
    later).
    """

    def __init__(self, length: DraftLength, strategies: Sequence[StrategyLimits]) -> None:
        super().__init__(strategies)
        self._length = length

    def computed(self, round: Round) -> LengthAt:
        self._follow(round)
        drafted, name, length = len(round.drafted), self._name, self._length
        if ended_by(round, length.reason):
            length.know(name, drafted)
        k = max(length.k(name) or 0, drafted)
        ids = [token.id for token in round.drafted]
        length.observe(RoundCost([Attempt(name, k, ids)], round.accepted, (), 0.0, 0.0))
        return LengthAt(k, False, length.acceptance(name) or 0.0)


def ended_by(round: Round, reason: str) -> bool:
    """Whether a draft ended for this reason, such as a rule's own."""
    return reason in round.draft_end.split("; ")
