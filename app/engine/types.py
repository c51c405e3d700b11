"""The data of a generation: tokens, rounds, models; also exports the requests of `_options.py`. Terms:
ARCHITECTURE.md's glossary.

Records of every token are msgspec structs: immutable, a fifth of the cost of a frozen dataclass, and written
unchanged to traces and between processes.
"""

from __future__ import annotations

from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Annotated

import msgspec

from app.engine._options import (
    CACHE_TYPES,
    DEFAULT_CTX,
    LIKE_TARGET,
    UNQUANTISED,
    GenerationRequest,
    Message,
    ModelOptions,
    Sampling,
    split_list,
)
from app.engine.devices.memory import DeviceMemory
from app.engine.fates import Origin, Verdict
from app.engine.templates.options import TemplateOptions, Thinking

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    TokenIds = NDArray[np.int32]
    Floats = NDArray[np.float32]

__all__ = (
    "CACHE_STEP", "CACHE_TYPES", "DEFAULT_CTX", "LIKE_TARGET", "UNQUANTISED", "UNTOLD", "Alternatives",
    "DraftedToken", "Draw", "EmittedToken", "FinishReason", "GenerationRequest", "HeadInput", "Message",
    "ModelInfo", "ModelOptions", "PairInfo", "Probability", "Race", "Role", "Round", "Sampling", "ServerInfo",
    "Totals", "TraceHeader", "WholeServer", "split_list",
)  # fmt: skip

# Python 3.11 takes longer to look a member up than to count it.
_ACCEPTED, _REJECTED, _IGNORED = Verdict.ACCEPTED, Verdict.REJECTED, Verdict.IGNORED
UNTOLD = -1
"""The id of a token that a server does not report."""
CACHE_STEP = 256
"""Tokens by which llama.cpp's view of its cache grows; a larger one may be computed in another way."""

Probability = Annotated[float, msgspec.Meta(ge=0, le=1.001)]
"""In [0, 1]; sums in single precision may be slightly more."""
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Role(StrEnum):
    """A model's role in a pair."""

    TARGET = "target"
    DRAFT = "draft"


class FinishReason(StrEnum):
    """Why an answer ended."""

    END = "end"  # the model ended it
    STOP = "stop"  # a stop string was reached
    LENGTH = "length"  # max_tokens were emitted
    CONTEXT = "context"  # the context is full
    CANCELLED = "cancelled"  # the user stopped it
    FAILED = "failed"  # the engine failed


class Race(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How a token was drawn: the largest score, log p + luck, wins (see sampling/noise.py). p belongs to the
    distribution drawn from, scaled to one."""

    score: float
    rival: int | None = (
        None  # the second: where the score moves by the gap, it wins (None: nothing else could)
    )
    rival_score: float | None = None
    piece: bytes = b""  # the second's
    label: str = ""  # and its name, if it is a control token

    @property
    def gap(self) -> float:
        """By how much the winner's score exceeds the second's."""
        return self.score - self.rival_score if self.rival_score is not None else inf


class Draw(msgspec.Struct, frozen=True, gc=False):
    """How a token was drawn before format 1.10: a uniform draw in [0, 1), and its interval of the cumulative
    distribution.

    The interval's width is the drawn token's probability under the distribution drawn from.
    """

    u: float
    low: float
    high: float


class Alternatives(msgspec.Struct, frozen=True, gc=False):
    """The most probable tokens at one place, at most ten, most probable first."""

    ids: tuple[int, ...]
    pieces: tuple[bytes, ...]
    p: tuple[Probability, ...]


class DraftedToken(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A token of a proposal and the verifier's verdict on it."""

    id: int
    piece: bytes
    verdict: Verdict
    q: Probability | None = (
        None  # its probability in the proposal: 1 where that is one-hot (None: a server's)
    )
    draft_p: Probability | None = None  # the draft model's own probability (None: no draft model)
    p: Probability | None = None  # the target's probability (None: never judged)
    u: float | None = None  # speculative: accepted when u * q < p; block: the draft up to here when u < h
    target_id: int | None = None  # greedy: the target's argmax; match: the target's own draw
    draw: Draw | None = None  # before 1.10, match: the draw of target_id, under p
    draft_draw: Draw | None = None  # before 1.10, sampled drafts: the draw of this token, under q
    label: str = ""  # a control token's name; it has no text
    h: float | None = None  # block: the block's acceptance value (None: a later token decided)
    race: Race | None = None  # match: how target_id was drawn, under p
    draft_race: Race | None = None  # sampled drafts: how this token was drawn, under q

    @property
    def drawn(self) -> Race | Draw | None:
        """How the target's own token was drawn."""
        return self.race or self.draw

    @property
    def draft_drawn(self) -> Race | Draw | None:
        """How this token itself was drawn."""
        return self.draft_race or self.draft_draw


class EmittedToken(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One token of the answer."""

    id: int
    piece: bytes  # empty for control tokens
    origin: Origin
    p: Probability | None = None  # the target's probability (None: a server's)
    draw: Draw | None = None  # before 1.10: under p, or under the residual where origin is resampled
    label: str = ""  # a control token's name; it has no text
    race: Race | None = None  # under p, or under the residual where origin is resampled

    @property
    def drawn(self) -> Race | Draw | None:
        return self.race or self.draw


class HeadInput(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a head read of its target at the last place before a draft."""

    layers: tuple[int, ...]  # whose inputs; the number of all layers stands for what the last one gives
    norms: tuple[Annotated[float, msgspec.Meta(ge=0)], ...]  # Euclidean, of each layer's row
    shares: tuple[Probability, ...] = ()
    """For an EAGLE-3 head, whose matrix adds the layers up: the norm of each layer's term, as a share of
    all."""


class Round(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Draft k tokens, verify them in one target pass, emit.

    Target row j judged `drafted[j]` and gave `emitted[j]`; `target_top[j]` are its alternatives.
    Times are in seconds, `offset` from the start of round 0.
    """

    index: int
    position: int  # index in the answer of the first token emitted here
    offset: Seconds
    seconds: Seconds
    draft_seconds: Seconds
    verify_seconds: Seconds
    sample_seconds: Seconds
    native_seconds: Seconds  # decode calls and the logits reads that wait for them, both models
    drafted: tuple[DraftedToken, ...]
    emitted: tuple[EmittedToken, ...]
    strategy: str | None = None  # the strategy that drafted
    match: int | None = None  # draftless: token index in the context where the copy begins
    draft_end: str = ""  # why the draft ended where it did, in a few words
    target_top: tuple[Alternatives, ...] = ()
    draft_top: tuple[Alternatives, ...] = ()
    asked: tuple[str, ...] | None = None  # strategies that were asked for a draft (None: not recorded)
    read_seconds: Seconds = 0.0  # part of draft_seconds: a draft model first read text (length=auto)
    accept_seconds: Seconds = 0.0  # part of sample_seconds: the strategy that drafted learned the outcome
    begin_seconds: dict[str, Seconds] = {}  # in the first round: how long each strategy took to begin
    k: int | None = None  # length=ewma: most tokens that the strategy that drafted last might draft here
    smoothed: float | None = None  # its smoothed acceptance, with this round counted
    head: HeadInput | None = None  # of a draft by a head

    def count(self, verdict: Verdict) -> int:
        """The number of drafted tokens with that verdict."""
        return [token.verdict for token in self.drafted].count(verdict)

    @property
    def accepted(self) -> int:
        return self.count(_ACCEPTED)

    @property
    def rejected(self) -> int:
        return self.count(_REJECTED)

    @property
    def ignored(self) -> int:
        return self.count(_IGNORED)

    @property
    def untold(self) -> bool:
        """Whether its strategy drafted with an unknown outcome, because the server does not report it."""
        return self.strategy is not None and not self.drafted

    def fate_word(self, token: EmittedToken) -> str:
        """The name of an emitted token's fate."""
        return "unknown" if self.untold else token.origin.value


class ModelInfo(msgspec.Struct, frozen=True):
    """Facts about a loaded model file."""

    path: str
    name: str  # for people: general.name, or the file's name if that says nothing
    architecture: str
    quantisation: str  # llama.cpp's own words, such as "Q8_0"
    size: int  # bytes of the file
    n_params: int
    n_layers: int
    n_vocab: int
    n_ctx_train: int
    n_ctx: int  # as loaded, tokens
    threads: int
    has_chat_template: bool
    n_gpu_layers: int = 0  # kept on devices besides the CPU
    memory: tuple[DeviceMemory, ...] = ()  # memory taken, by device
    n_experts: int = 0  # of a layer; 0 for a dense model, and where that is not known

    @property
    def file(self) -> str:
        return self.path.replace("\\", "/").rsplit("/", 1)[-1]


class ServerInfo(msgspec.Struct, frozen=True):
    """What a running server reports about itself (see app.servers)."""

    address: str
    kind: str  # "llama-server" or "vLLM"
    model: str  # its name, without a folder
    version: str = ""
    speculation: tuple[str, ...] = ()  # what it drafts with, in its own words; empty if it does not draft
    switches_off: bool = False  # whether it answers without drafting where a request asks for that
    tells_fates: bool = True  # whether it tells what became of every draft
    slots: int = 0  # requests that it answers at once; 0 if it does not say
    settings: dict[str, str | float] = {}  # its defaults, by its own names

    @property
    def has_baseline(self) -> bool:
        """Whether it answers with drafts, and without them on request."""
        return bool(self.speculation) and self.switches_off


class PairInfo(msgspec.Struct, frozen=True):
    """A loaded target with its draft, if any; or a server's model."""

    target: ModelInfo
    draft: ModelInfo | None = None
    vocabulary: str = ""  # "same vocabulary", "same but padded: …", "different: through text (…)"
    devices: str = "CPU"
    thinking: Thinking | None = None  # what the target's chat template can be told about it
    fills_middle: bool = False  # the target has tokens for a prefix and a suffix
    server: ServerInfo | None = None  # the server that answers; probabilities and parts of times are unknown

    @property
    def on_devices(self) -> bool:
        """Whether layers of either model are on devices besides the CPU."""
        return any(model.n_gpu_layers > 0 for model in (self.target, self.draft) if model is not None)


class TraceHeader(msgspec.Struct, frozen=True):
    """The first line of a trace: the request and the pair."""

    format: str  # "major.minor"
    app_version: str
    strategy: str
    verification: str  # the name of its rule
    sampling: Sampling
    seed: Annotated[int, msgspec.Meta(ge=-1, le=2**63 - 1)]
    """The actual seed, even if sampling.seed asked for a new one."""
    max_tokens: int
    pair: PairInfo
    prompt: str  # as handed to the tokenizer, template applied
    prompt_tokens: int
    cached_tokens: int  # prompt tokens that were still in the target's cache
    cold: bool
    started_at: str  # ISO 8601, UTC
    stop: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()  # the chat, if a template made the prompt from it
    machine: str = ""  # its processor
    template_options: TemplateOptions = {}  # the options that the chat template was given and read
    suffix: str | None = None  # the text after the answer, if it filled in the middle
    prompt_ids: tuple[int, ...] = ()  # if tokens were given; `prompt` is then their text
    context_ids: tuple[int, ...] = ()  # the prompt in tokens, as the target read it (empty: not recorded)

    @property
    def warm(self) -> bool:
        """Whether the answer began with a cache from earlier answers. (What drafters had learned is not
        recorded.)"""
        return self.cached_tokens > 0

    @property
    def untold(self) -> bool:
        """Whether the answer comes from a server that does not report what became of its drafts."""
        return self.pair.server is not None and not self.pair.server.tells_fates


class WholeServer(msgspec.Struct, frozen=True):
    """What a server drafted for all its users together, from before an answer until after it."""

    drafted: int
    accepted: int


class Totals(msgspec.Struct, frozen=True):
    """The last line of a trace: how the answer ended. All other totals are folds over the rounds."""

    finish_reason: FinishReason
    text: str
    seconds: float  # wall time from the start of round 0
    prompt_seconds: float
    draft_prompt_seconds: float  # of them those after the target's reading: both may read at once
    first_token_seconds: float | None  # from the request to the first emitted token
    error: str = ""
    draft_prompt_in_rounds: float = (
        0.0  # part of draft_prompt_seconds: the prompt was read when a draft was first asked for
    )
    whole_server: WholeServer | None = None  # where a server tells no fates, but counts for all its users

    @property
    def lead_seconds(self) -> float:
        """The time from the request to the start of round 0."""
        return self.prompt_seconds + self.draft_prompt_seconds - self.draft_prompt_in_rounds
