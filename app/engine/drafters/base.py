"""What a drafter is: the seam between the loop and every strategy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.types import Alternatives, Draw

if TYPE_CHECKING:
    from app.engine.compat import VocabularyFit
    from app.engine.drafters.ngram.lookup_caches import LookupCaches
    from app.engine.native import Context, Vocabulary
    from app.engine.types import TokenIds

ENOUGH = "answer at its length limit"
"""Why a draft ended that could use no more tokens."""
TARGET_FULL = "the target's context is full"
DRAFT_FULL = "the draft's context is full"


@dataclass(frozen=True, slots=True)
class DraftView:
    """What a draft model thought of the tokens that it proposed: one entry each, or none."""

    draft_p: Sequence[float] = ()  # its own probability of the token
    top: Sequence[Alternatives] = ()


@dataclass(slots=True)
class Proposal:
    """The tokens that a drafter proposes, in order; may be empty.

    The lists that describe tokens have one entry each, or are empty where nothing is to be told.
    """

    ids: list[int] = field(default_factory=list)
    q: list[Distribution] = field(default_factory=list)  # of a sampled draft; empty: one-hot
    draws: list[Draw] = field(default_factory=list)
    match: int | None = None  # draftless: context index where the copied tokens begin
    end: str = ""  # why it ended here, in a few words
    fault: str = ""  # what broke in making it; told also where another strategy drafts instead
    describe: Callable[[int], DraftView] | None = None  # number of tokens -> what the draft thought of them
    _thoughts: DraftView | None = None

    @property
    def thoughts(self) -> DraftView:
        """The draft's own view of its tokens; worked out when first asked for, which is when it is recorded:
        at that time the target is busy and nobody waits."""
        if self._thoughts is None:
            known = self.describe is not None and bool(self.ids)
            self._thoughts = self.describe(len(self.ids)) if known and self.describe else DraftView()
        return self._thoughts

    def cut(self, k: int) -> None:
        """Keep the first `k` tokens."""
        del self.ids[k:], self.q[k:], self.draws[k:]


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a drafter may use in a generation besides the tokens."""

    sampler: Sampler  # the target's settings: a sampled draft is drawn under the same
    draws: Draws
    prompt_length: int  # answer positions count from here
    end_ids: frozenset[int]  # tokens behind which nothing follows


class Drafter(ABC):
    """Proposes tokens and learns what became of them.

    `context` is always the whole truth: prompt and emitted tokens, shape [n]. Only `propose` must be there.
    The rounds of an answer have a thread of their own, on which `propose` and `observe` are called; a drafter
    is made, begun, finished, reset and adjusted on another. Never two at a time, but what belongs to one
    thread (a connection of sqlite3) cannot be kept.
    """

    def begin(self, context: TokenIds, surroundings: RunContext) -> None:
        """A generation starts: learn the prompt. What a model has to decode of it belongs into `read`."""
        return

    def unread(self, context: TokenIds) -> int:
        """How many tokens a draft model would have to decode before it could draft behind the context."""
        return 0

    def read(self, context: TokenIds) -> None:
        """Let a draft model decode what it has not read yet. `propose` does it too where it was left out;
        this is for who wants to choose the time, or to know what it takes."""
        return

    @abstractmethod
    def propose(self, context: TokenIds, k: int) -> Proposal:
        """At most `k` (1 or more) tokens to follow the context."""

    def observe(self, context: TokenIds, proposal: Proposal, accepted: int) -> None:
        """A round is over: `context` now ends with what was emitted. `proposal` is this drafter's own of
        this round (empty where another one's was verified), `accepted` how many tokens of it passed."""
        return

    def finish(self, context: TokenIds) -> None:
        """The answer is over, also where it was stopped: keep what should outlive it."""
        return

    def reset(self) -> None:
        """Forget everything: the next generation is a cold one."""
        return

    def adjust(self, params: Any) -> None:
        """Go on with other settings, between two generations, and with all that was learned. Only where its
        StrategyKind names settings that shape the memory: those are the same as before."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Resources:
    """What a drafter is made from besides its own settings."""

    vocabulary: Vocabulary  # the target's
    draft: Context | None = None  # the draft model's, where one is loaded
    fit: VocabularyFit | None = None  # how its vocabulary fits the target's
    lookup_caches: LookupCaches | None = None  # of this engine: one reading of each file for all its drafters


def one_hot(proposal: Proposal) -> Sequence[Distribution | None]:
    """q for the verifier: the proposal's rows, or None for every token of a one-hot proposal."""
    return proposal.q or [None] * len(proposal.ids)
