"""The drafter interface: the seam between the loop and every strategy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

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
"""Why a draft ended: no further token would be useful."""
TARGET_FULL = "the target's context is full"
ALIKE = "longer ones may change the text by rounding"
DEEPER = "further on, the text may be computed differently"
DRAFT_FULL = "the draft's context is full"
DRAFT_ENDED = "the draft ended the answer"


@dataclass(frozen=True, slots=True)
class DraftView:
    """A draft model's own view of its proposed tokens: one entry for each, or none."""

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
        """The draft's own view of its tokens. It is computed when the round is recorded, while the target is
        busy, so nothing waits for it."""
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
    """Data of a generation, besides its tokens, that a drafter may use."""

    sampler: Sampler  # the target's settings: a sampled draft is drawn under the same
    draws: Draws
    prompt_length: int  # answer positions count from here
    end_ids: frozenset[int]  # tokens that end the generation
    rehearsal: Rehearsal | None = None  # for a synthetic strategy
    is_stopped: Callable[[], bool] = lambda: False  # for drafters that wait
    shares_luck: bool = False  # a sampled draft is drawn with the noise that the target draws with (match)


class Drafter(ABC):
    """A strategy's state: proposes tokens and learns which were accepted.

    `context` is always the prompt and all emitted tokens, shape [n]. Only `propose` is required. `propose`
    and `observe` run on the thread of the answer's rounds; all other methods run on a different thread. Calls
    never overlap, but objects bound to one thread (such as an sqlite3 connection) cannot be kept.
    """

    def begin(self, context: TokenIds, surroundings: RunContext) -> None:
        """Start a generation: learn the prompt. A draft model decodes it in `read`."""
        return

    def unread(self, context: TokenIds) -> int:
        """The number of tokens that a draft model must still decode before it can draft after the context."""
        return 0

    def read(self, context: TokenIds) -> Iterator[tuple[int, int]]:
        """Let a draft model decode what it has not read, a part at every step. Yields how many tokens it has
        read, and how many the context has in its vocabulary. `propose` also reads if needed; reading here is
        timed separately."""
        return iter(())

    @abstractmethod
    def propose(self, context: TokenIds, k: int) -> Proposal:
        """Propose at most `k` (1 or more) tokens to follow the context."""

    def observe(self, context: TokenIds, proposal: Proposal, accepted: int) -> None:
        """Learn from a finished round: `context` now ends with the emitted tokens. `proposal` is this
        drafter's proposal (empty if a different drafter's was verified); `accepted` is how many of its tokens
        passed."""
        return

    def finish(self, context: TokenIds) -> None:
        """The answer ended or was stopped: save what should outlive it."""
        return

    def reset(self) -> None:
        """Forget everything: the next generation is cold."""
        return

    def adjust(self, params: Any) -> None:
        """Change the settings between two generations and keep what was learned. Called only if the
        StrategyKind names the settings that shape the memory, which never change here."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Resources:
    """The parts that a drafter is made from, besides its settings."""

    vocabulary: Vocabulary  # the target's
    draft: Context | None = None  # the draft model's, where one is loaded
    fit: VocabularyFit | None = None  # how its vocabulary fits the target's
    lookup_caches: LookupCaches | None = None  # the engine's: each file is read once for all its drafters


def one_hot(proposal: Proposal) -> Sequence[Distribution | None]:
    """Return q for the verifier: the proposal's rows, or None for every token of a one-hot proposal."""
    return proposal.q or [None] * len(proposal.ids)


class Copies(Enum):
    """Which drafts of a strategy are copied from the place in `Proposal.match`. Used to check records."""

    NOWHERE = "none"
    SOME = "some"
    ALL = "all"


class LlamaFlags(NamedTuple):
    """A strategy's flags in llama.cpp, made from the names of its settings."""

    prefix: str  # of all flags but the plain ones: --spec-PREFIX-KEY
    plain: tuple[str, ...] = ()  # settings whose flag has their bare name
    own: Mapping[str, str] = {}  # settings that llama.cpp lacks -> the sentence that says so
    notes: Mapping[str, str] = {}  # settings -> a sentence on what they do there

    def flag(self, key: str) -> str:
        """The flag of a setting."""
        words = key.replace("_", "-")
        return f"--{words}" if key in self.plain else f"--spec-{self.prefix}-{words}"


class VllmMethod(NamedTuple):
    """A strategy in vLLM's speculative config."""

    name: str
    keys: Mapping[str, str | int]  # vLLM's key -> our setting, or a number
    lacks: tuple[str, ...] = ()  # settings that it has not


class Keeps(NamedTuple):
    """The memory that a drafter uses, in bytes."""

    per_token: int = 0  # of the context
    fixed: int = 0
    more_tokens: str = ""  # the setting that says how many tokens it keeps besides the context's


@dataclass(frozen=True, slots=True)
class StrategyKind:
    """A strategy: its parameter dataclass, when it helps, and how its drafter is made."""

    name: str
    params: type[Any]
    summary: str
    needs_draft: bool = field(default=False, kw_only=True)
    needs_mtp: bool = field(default=False, kw_only=True)
    """Drafts with the head in the target's own file."""
    is_head: bool = field(default=False, kw_only=True)
    """Drafts with a head that was trained for its target and reads the target's internal state."""
    is_synthetic: bool = field(default=False, kw_only=True)
    """Drafts from a rehearsal of the answer. Its speed is synthetic, and every output says so."""
    memory: tuple[str, ...] | None = field(default=None, kw_only=True)
    """The parameters that shape the drafter's memory; None: all do. The others may change while the memory
    stays (see `Drafter.adjust`)."""
    keeps: Keeps = field(default=Keeps(), kw_only=True)
    length: str | None = field(default=None, kw_only=True)
    """The name of the setting that limits a draft's length, "" if none does; by default n_max."""
    least: str = field(default="n_min", kw_only=True)
    """The name of the setting for the shortest draft, if any: shorter drafts are discarded. n_min also
    applies if the loop asks for fewer tokens; other settings apply before a draft is cut."""
    copies: Copies = field(default=Copies.NOWHERE, kw_only=True)
    remembers: bool = field(default=False, kw_only=True)
    """Whether a server that uses it also drafts from its answers to other clients."""
    walks: bool = field(default=True, kw_only=True)
    """Whether its drafts in a known text can be computed without models (see explain/walk.py)."""
    settings: tuple[str, ...] = field(default=("",), kw_only=True)
    """Settings worth trying on an unknown machine, most promising first; "" means the defaults."""
    settings_drawn: tuple[str, ...] = field(default=(), kw_only=True)
    """More of them, for sampled answers."""
    settings_behind: tuple[str, ...] = field(default=("",), kw_only=True)
    """Settings worth trying after a copying strategy that is asked first."""
    before: str = field(default="", kw_only=True)
    """A copying strategy that is worth combining with this one."""
    llama: LlamaFlags | None = field(default=None, kw_only=True, hash=False)
    """How llama.cpp can do the same; None if it cannot."""
    vllm: VllmMethod | None = field(default=None, kw_only=True, hash=False)
    make: Callable[[Any, Resources], Drafter] = field(kw_only=True)
    """(parameters, resources) -> drafter. The resources hold the draft's context if `needs_draft`."""

    @property
    def limit(self) -> str:
        """The name of the setting that limits a draft's length; "" if none does."""
        return "n_max" if self.length is None else self.length

    @property
    def by_model(self) -> bool:
        """Whether a model or a head makes its drafts; the other strategies copy."""
        return self.needs_draft or self.needs_mtp

    def memory_at(self, params: Any, n_ctx: int) -> int:
        """The most bytes that its drafter uses with a context of this many tokens; 0 if not known."""
        return self.keeps.fixed + self.keeps.per_token * (n_ctx + getattr(params, self.keeps.more_tokens, 0))


def draft_of(resources: Resources) -> Context:
    """The draft's context, for a strategy that needs one."""
    assert resources.draft is not None
    return resources.draft
