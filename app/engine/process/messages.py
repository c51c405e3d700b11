"""What is said to an engine (commands) and what it answers (events).

Both are tagged structs: the same bytes go through a pipe to the engine process and through a queue to
an engine on a thread. Every event carries the run id of the command that it answers; an event whose
run is no longer the current one is stale and dropped by the receiver.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from app.engine.devices.memory import Device, PairMemory
from app.engine.types import (
    GenerationRequest,
    ModelOptions,
    PairInfo,
    Role,
    Round,
    Totals,
    TraceHeader,
)


class Command(msgspec.Struct, frozen=True, tag=True):
    run: int


class Load(Command, frozen=True, tag=True):
    """Load a pair, replacing the one that is loaded."""

    target: ModelOptions
    draft: ModelOptions | None = None


class Generate(Command, frozen=True, tag=True):
    """Generate an answer with the loaded pair. `drafters` are the files of the plug-ins in use: an engine
    that was replaced learns them so too."""

    request: GenerationRequest
    drafters: tuple[str, ...] = ()


class ListDevices(Command, frozen=True, tag=True):
    """Which devices there are; `rpc` names workers as in ModelOptions."""

    rpc: str = ""


class Measure(Command, frozen=True, tag=True):
    """What a pair would need; with `fit`, with as many layers on devices as fit there."""

    target: ModelOptions
    draft: ModelOptions | None = None
    fit: bool = False


class Stop(Command, frozen=True, tag=True):
    """Stop the run of that id; its Finished follows."""


class Shutdown(Command, frozen=True, tag=True):
    """Free the models and end."""


class Event(msgspec.Struct, frozen=True, tag=True):
    run: int


class LoadStage(StrEnum):
    """What loading is about."""

    READING = "reading"  # the file
    TESTING = "testing"  # a first pass of each kind, so that kernels that fault do so now


class LoadProgress(Event, frozen=True, tag=True):
    """A model file is being read; `fraction` in [0, 1]."""

    role: Role
    file: str  # its name: both files of a pair may have the same
    fraction: float
    stage: LoadStage = LoadStage.READING
    beside: str = ""  # another file that is being read at the same time
    on_devices: bool = False  # where it is tested: whether layers of it are on devices besides the CPU


class Loaded(Event, frozen=True, tag=True):
    """The pair is ready."""

    pair: PairInfo
    seconds: float


class DevicesListed(Event, frozen=True, tag=True):
    """What ListDevices asked for: those that hold layers first, the CPU last."""

    devices: tuple[Device, ...]
    backends: tuple[str, ...]  # of this build, such as "CUDA", "RPC", "CPU"


class Measured(Event, frozen=True, tag=True):
    """What Measure asked for, and the options that it is for: with `fit`, those to load."""

    memory: PairMemory
    target: ModelOptions
    draft: ModelOptions | None = None


class PromptProgress(Event, frozen=True, tag=True):
    """Prompt tokens decoded so far by one of the models."""

    role: Role
    done: int
    total: int


class Started(Event, frozen=True, tag=True):
    """The request is understood; the trace begins."""

    header: TraceHeader


class RoundFinished(Event, frozen=True, tag=True):
    """One more round. `text` is what became readable by it: whole characters, stop strings held back."""

    round: Round
    text: str
    context_used: int  # tokens in the target's cache


class Finished(Event, frozen=True, tag=True):
    """The run is over, also where it was stopped."""

    totals: Totals


class LastWords(Event, frozen=True, tag=True):
    """llama.cpp ends the process, because a check of its own failed: which one."""

    text: str


class Offer(msgspec.Struct, frozen=True):
    """The next safer setting: what is different about it, in a few words, and the pair to load."""

    words: str  # for a button: "Load with safe kernels"
    target: ModelOptions
    draft: ModelOptions | None = None


class Failed(Event, frozen=True, tag=True):
    """The run could not be done (`expected`: a UserError) or broke (a bug, `details` has the traceback).

    `gone` says that the engine itself is gone and will be started anew. `offer` is there where another way
    of loading the pair may help. `role` is the model that could not be loaded, where it is known which.
    """

    message: str
    hint: str = ""
    expected: bool = True
    details: str = ""
    gone: bool = False
    offer: Offer | None = None
    role: Role | None = None


AnyCommand = Load | ListDevices | Measure | Generate | Stop | Shutdown
AnyEvent = (
    LoadProgress
    | Loaded
    | DevicesListed
    | Measured
    | PromptProgress
    | Started
    | RoundFinished
    | Finished
    | LastWords
    | Failed
)
