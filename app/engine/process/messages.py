"""The messages to an engine (commands) and from it (events).

Both are tagged structs: the same bytes go through a pipe to the engine process or a queue to an engine
thread. Every event carries its command's run id; the receiver drops events of earlier runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from app.base.numbers import duration, significant
from app.engine.devices.memory import Device, PairMemory
from app.engine.devices.placement import LighterPair
from app.engine.record.trace import Trace
from app.engine.types import (
    Alternatives,
    GenerationRequest,
    ModelOptions,
    PairInfo,
    Role,
    Round,
    Totals,
    TraceHeader,
)

DOUBTFUL = 0.2
"""If their relative error is at least this, times of passes do not decide alone."""


class PassSeconds(msgspec.Struct, frozen=True):
    """Median times of passes after a text, including reading their logits."""

    target: dict[int, float]  # by the number of tokens
    draft: float = 0.0  # over one token; 0 if no draft was timed
    error: float | None = None
    """The largest relative difference to a second measurement; None if there was none."""

    @property
    def doubt(self) -> float:
        """Their relative error. For a single measurement: how much longer its pass over two tokens is than
        two of one token, which is rare in targets."""
        if self.error is not None:
            return self.error
        return max(0.0, self.target.get(2, 0.0) / (2 * self.target[1]) - 1)


class Command(msgspec.Struct, frozen=True, tag=True):
    run: int


class Load(Command, frozen=True, tag=True):
    """Load a pair in place of the loaded one. A draft `carried` over from the previous target is left out if
    its vocabulary differs from the new target's."""

    target: ModelOptions
    draft: ModelOptions | None = None
    carried: bool = False


class Generate(Command, frozen=True, tag=True):
    """Generate an answer with the loaded pair. `drafters` are the files of the plug-ins in use, sent every
    time because the engine may be new."""

    request: GenerationRequest
    drafters: tuple[str, ...] = ()
    held: bool = False  # the first round waits for a step
    passes: PassSeconds | None = None  # what the pair's passes took here, where that was timed


class SetPace(Command, frozen=True, tag=True):
    """Hold the rounds of the run with this id back after `steps` more, or let them run. Acts at once; a run
    that has ended ignores it."""

    held: bool
    steps: int = 0


class ListDevices(Command, frozen=True, tag=True):
    """List the devices; `rpc` names workers as in ModelOptions."""

    rpc: str = ""


class Measure(Command, frozen=True, tag=True):
    """Measure a pair's memory; with `fit`, with as many layers on devices as fit."""

    target: ModelOptions
    draft: ModelOptions | None = None
    fit: bool = False


class Lighten(Command, frozen=True, tag=True):
    """Look for ways to load a pair with less memory."""

    target: ModelOptions
    draft: ModelOptions | None = None
    smaller: tuple[ModelOptions, ...] = ()  # drafts to try in place of this one


class CountTexts(Command, frozen=True, tag=True):
    """Make a static lookup cache from text files, in the loaded target's vocabulary."""

    texts: tuple[str, ...]
    output: str


class ForcedText(msgspec.Struct, frozen=True):
    """An answer for teacher forcing, after the prompt of a request."""

    request: GenerationRequest
    answer: tuple[int, ...]


class Force(Command, frozen=True, tag=True):
    """Compare the loaded draft with the target over answers, by teacher forcing. If all answers are empty,
    only time the target's passes."""

    texts: tuple[ForcedText, ...]


class Judge(Command, frozen=True, tag=True):
    """Let the target judge places of an answer again. `request` and `answer` up to place `first` are read as
    a prompt (into an empty cache if `fresh`), the rest in passes of `width` tokens. A server judges only the
    place after the answer, whose text is `text`."""

    request: GenerationRequest
    answer: tuple[int, ...]
    first: int
    width: int
    candidates: tuple[int, ...] = ()  # tokens whose p is wanted at every place
    text: str = ""
    fresh: bool = True


class DraftAlone(Command, frozen=True, tag=True):
    """Let a strategy draft once after a prompt, in the vocabulary of the file `target`; no pair is needed."""

    target: str
    request: GenerationRequest
    drafters: tuple[str, ...] = ()


class Forget(Command, frozen=True, tag=True):
    """Empty what drafters and length rules learned from earlier answers. No event follows."""


class Stop(Command, frozen=True, tag=True):
    """Stop the run with this id; its Finished follows."""


class Shutdown(Command, frozen=True, tag=True):
    """Free the models and end."""


class Event(msgspec.Struct, frozen=True, tag=True):
    run: int


class LoadStage(StrEnum):
    """The stages of loading a file."""

    READING = "reading"  # the file
    TESTING = "testing"  # a first pass of each kind, so that faulty kernels crash now


class LoadProgress(Event, frozen=True, tag=True):
    """A model file is being read; `fraction` in [0, 1]."""

    role: Role
    file: str  # its name, which both files of a pair may share
    fraction: float
    stage: LoadStage = LoadStage.READING
    beside: str = ""  # another file that is being read at the same time
    on_devices: bool = False  # while testing: whether some of its layers are on devices besides the CPU


class Loaded(Event, frozen=True, tag=True):
    """The pair is ready."""

    pair: PairInfo
    seconds: float
    has_mtp: bool = False  # an MTP head is loaded with it


class DevicesListed(Event, frozen=True, tag=True):
    """The devices: those that hold layers first, the CPU last."""

    devices: tuple[Device, ...]
    backends: tuple[str, ...]  # of this build, such as "CUDA", "RPC", "CPU"


class Measured(Event, frozen=True, tag=True):
    """The measured memory, and the options that it is for: with `fit`, the options to load."""

    memory: PairMemory
    target: ModelOptions
    draft: ModelOptions | None = None


class Lightened(Event, frozen=True, tag=True):
    """The ways to load a pair with less memory; none if nothing helps."""

    pairs: tuple[LighterPair, ...]


class TextsCounted(Event, frozen=True, tag=True):
    """The lookup cache was written: the file, the tokens read, and the number of different n-grams."""

    output: str
    tokens: int
    n_grams: int


class PromptProgress(Event, frozen=True, tag=True):
    """Prompt tokens decoded so far by a model; if both read at once, by the slower one."""

    role: Role
    done: int
    total: int
    cached: int = 0  # of `done`: held before
    seconds: float = 0.0  # of this reading
    at_once: bool = False

    @property
    def at_end(self) -> bool:
        """Whether only the prompt's last token is unread, which the first round reads."""
        return self.done + 1 >= self.total

    @property
    def words(self) -> str:
        """Progress, speed and remaining time, in words."""
        whose = " (draft)" if self.role is Role.DRAFT else ""
        told = [
            f"Reading the prompt{' (target and draft at once)' if self.at_once else whose}, "
            f"{self.done:,} of {self.total:,} tokens"
        ]
        if self.done > self.cached and self.seconds > 0:
            speed = (self.done - self.cached) / self.seconds
            told.append(f"{significant(speed)} tokens/s")
            if not self.at_end:
                told.append(f"{duration((self.total - self.done) / speed)} left")
        return " · ".join(told)


class Started(Event, frozen=True, tag=True):
    """The request was accepted; the trace begins."""

    header: TraceHeader


class RoundFinished(Event, frozen=True, tag=True):
    """A round. `text` is the text that became readable: whole characters, stop strings held back."""

    round: Round
    text: str


class Agreement(msgspec.Struct, frozen=True):
    """The agreement over one text: sums over its places."""

    places: int
    overlap: float  # Σ min(p, q), after the sampler settings
    same_best: int  # places where both models have the same most probable token, after penalties and bans


class ForceProgress(Event, frozen=True, tag=True):
    """The number of texts compared by teacher forcing so far."""

    done: int
    total: int


class Forced(Event, frozen=True, tag=True):
    """The agreement over each text, and the times of passes."""

    agreements: tuple[Agreement, ...]
    seconds: PassSeconds


class JudgedRow(msgspec.Struct, frozen=True):
    """The target's view of a place: as a trace records it, and before filters."""

    top: Alternatives
    whole: Alternatives
    p: tuple[float, ...] = ()  # of the candidates
    edge: tuple[int, ...] = ()  # tokens that filters keep or drop as rounding falls


class JudgedRows(Event, frozen=True, tag=True):
    """The rows of all places from the first, including the one after the answer."""

    rows: tuple[JudgedRow, ...]


class AloneToken(msgspec.Struct, frozen=True):
    """A drafted token that is not judged."""

    id: int
    piece: bytes  # empty for control tokens
    label: str = ""  # a control token's name


class DraftedAlone(Event, frozen=True, tag=True):
    """The strategy that drafted without a target, and its draft; both empty if none did."""

    strategy: str
    prompt_tokens: int
    tokens: tuple[AloneToken, ...] = ()
    match: int | None = None  # token of the prompt where the copy begins
    end: str = ""  # why the draft ended there, or why there is none


class Finished(Event, frozen=True, tag=True):
    """The run ended or was stopped."""

    totals: Totals


class LastWords(Event, frozen=True, tag=True):
    """llama.cpp's last message: one of its own checks failed and ends the process."""

    text: str


class Offer(msgspec.Struct, frozen=True):
    """A safer setting: what differs, in a few words, and the pair to load."""

    words: str  # for a button: "Load with safe kernels"
    target: ModelOptions
    draft: ModelOptions | None = None


class Failed(Event, frozen=True, tag=True):
    """The run was refused (`expected`: a UserError) or failed (a bug, or the process died: `details` says
    where in the program, without values).

    `gone`: the engine itself has ended and will be restarted. `offer`: a different way to load the pair that
    may help. `role`: the model that could not be loaded, if known. `no_room`: memory ran out while a pair was
    loaded.
    """

    message: str
    hint: str = ""
    expected: bool = True
    details: str = ""
    gone: bool = False
    offer: Offer | None = None
    role: Role | None = None
    no_room: bool = False


AnyCommand = (
    Load | ListDevices | Measure | Lighten | CountTexts | Generate | Force | Judge | DraftAlone | SetPace
    | Forget | Stop | Shutdown
)  # fmt: skip
AnyEvent = (
    LoadProgress | Loaded | DevicesListed | Measured | Lightened | TextsCounted | PromptProgress | Started
    | RoundFinished | ForceProgress | Forced | JudgedRows | DraftedAlone | Finished | LastWords | Failed
)  # fmt: skip
ENDS = (
    Loaded, DevicesListed, Measured, Lightened, TextsCounted, Forced, JudgedRows, DraftedAlone, Finished,
    Failed,
)  # fmt: skip
"""The events that end a command."""


def kept(trace: Trace | None, event: Event) -> Trace | None:
    """The trace of an answer, extended by its next event; None before it began."""
    if isinstance(event, Started):
        return Trace(event.header)
    if trace is not None and isinstance(event, RoundFinished):
        trace.rounds.append(event.round)
    elif trace is not None and isinstance(event, Finished):
        trace.totals = event.totals
    return trace


def trace_of(events: Iterable[Event]) -> Trace:
    """The trace of a whole answer."""
    trace: Trace | None = None
    for event in events:
        trace = kept(trace, event)
    assert trace is not None, "an answer begins with Started"
    return trace
