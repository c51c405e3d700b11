"""The drafter interface: the seam between the loop and every strategy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.types import Alternatives, HeadInput, Race

if TYPE_CHECKING:
    from app.engine.compat import VocabularyFit
    from app.engine.drafters.lookup_caches import LookupCaches
    from app.engine.native import Context, Vocabulary
    from app.engine.types import TokenIds

ENOUGH = "answer at its length limit"
"""The end of a draft to which no further token is useful."""
TARGET_FULL = "the target's context is full"
DRAFT_FULL = "the draft's context is full"
DRAFT_ENDED = "the draft ended the answer"


@dataclass(frozen=True, slots=True)
class DraftView:
    """A draft model's own view of its proposed tokens: one entry each, or none."""

    draft_p: Sequence[float] = ()  # its own probability of the token
    top: Sequence[Alternatives] = ()
    head: HeadInput | None = None


@dataclass(slots=True)
class Proposal:
    """The tokens that a drafter proposes, in order; may be empty.

    The lists that describe tokens have one entry for each token, or are empty if there is nothing to record.
    """

    ids: list[int] = field(default_factory=list)
    q: list[Distribution] = field(default_factory=list)  # of a sampled draft; empty if one-hot
    races: list[Race] = field(default_factory=list)  # how they were drawn; empty if one-hot
    match: int | None = None  # draftless: context index where the copied tokens begin
    end: str = ""  # why it ended here, in a few words
    fault: str = ""  # the drafter's error; recorded also if another strategy drafts instead
    describe: Callable[[int], DraftView] | None = None  # number of tokens -> the draft's view of them
    _thoughts: DraftView | None = None

    @property
    def thoughts(self) -> DraftView:
        """The draft's own view of its tokens, computed only when the round is recorded: the target is busy
        then, so nothing waits for it."""
        if self._thoughts is None:
            known = self.describe is not None and bool(self.ids)
            self._thoughts = self.describe(len(self.ids)) if known and self.describe else DraftView()
        return self._thoughts

    def cut(self, k: int) -> None:
        """Keep the first `k` tokens."""
        del self.ids[k:], self.q[k:], self.races[k:]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The answer that the target gives without speculation, for a synthetic strategy."""

    ids: list[int] = field(default_factory=list)  # its tokens, from the first of the answer on
    pass_seconds: float = 0.0  # median time of a target pass over one token
    repeat: int = 0  # of the measurement


@dataclass(frozen=True, slots=True)
class RunContext:
    """The data of a generation that a drafter may use besides the tokens."""

    sampler: Sampler  # the target's settings: a sampled draft is drawn under the same
    draws: Draws
    prompt_length: int  # answer positions count from here
    end_ids: frozenset[int]  # tokens that end the generation
    rehearsal: Rehearsal | None = None  # for a synthetic strategy
    is_stopped: Callable[[], bool] = lambda: False  # for drafters that wait
    shares_luck: bool = False  # a sampled draft is drawn with the noise that the target draws with (match)


class Drafter(ABC):
    """A strategy's state: proposes tokens and learns which were accepted.

    `context` is always the whole truth: prompt and emitted tokens, shape [n]. Only `propose` is required.
    `propose` and `observe` are called on the thread of the answer's rounds; a drafter is created, begun,
    finished, reset and adjusted on another thread. Calls never overlap, but an object bound to one thread
    (such as an sqlite3 connection) cannot be kept.
    """

    def begin(self, context: TokenIds, surroundings: RunContext) -> None:
        """Start a generation: learn the prompt. A draft model decodes it in `read`."""
        return

    def unread(self, context: TokenIds) -> int:
        """The number of tokens that a draft model must decode before it can draft after the context."""
        return 0

    def read(self, context: TokenIds) -> Iterator[tuple[int, int]]:
        """Let a draft model decode what it has not read yet, a part at every step; yields how many tokens it
        holds, and how many the context has in its vocabulary. `propose` reads too if needed; this chooses the
        time, and allows timing it."""
        return iter(())

    @abstractmethod
    def propose(self, context: TokenIds, k: int) -> Proposal:
        """Propose at most `k` (1 or more) tokens to follow the context."""

    def observe(self, context: TokenIds, proposal: Proposal, accepted: int) -> None:
        """Learn from a finished round: `context` now ends with the emitted tokens. `proposal` is this
        drafter's proposal in this round (empty if another drafter's was verified), `accepted` the number of
        its tokens that passed."""
        return

    def finish(self, context: TokenIds) -> None:
        """The answer ended or was stopped: keep what should outlive it."""
        return

    def reset(self) -> None:
        """Forget everything: the next generation is cold."""
        return

    def adjust(self, params: Any) -> None:
        """Change the settings between two generations and keep what was learned. Called only if the
        StrategyKind names the settings that shape the memory; those never change here."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Resources:
    """The parts that a drafter is made from besides its own settings."""

    vocabulary: Vocabulary  # the target's
    draft: Context | None = None  # the draft model's, where one is loaded
    fit: VocabularyFit | None = None  # how its vocabulary fits the target's
    lookup_caches: LookupCaches | None = None  # the engine's: each file is read once for all its drafters


def one_hot(proposal: Proposal) -> Sequence[Distribution | None]:
    """Return q for the verifier: the proposal's rows, or None for every token of a one-hot proposal."""
    return proposal.q or [None] * len(proposal.ids)
