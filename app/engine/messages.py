"""What is said to an engine (commands) and what it answers (events).

Both are tagged structs: the same bytes go through a pipe to the engine process and through a queue to
an engine on a thread. Every event carries the run id of the command that it answers; an event whose
run is no longer the current one is stale and dropped by the receiver.
"""

from __future__ import annotations

import msgspec

from app.engine.types import (
    GenerationRequest,
    ModelOptions,
    PairInfo,
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


class Stop(Command, frozen=True, tag=True):
    """Stop the run of that id; its Finished follows."""


class Shutdown(Command, frozen=True, tag=True):
    """Free the models and end."""


class Event(msgspec.Struct, frozen=True, tag=True):
    run: int


class LoadProgress(Event, frozen=True, tag=True):
    """A model file is being read; `fraction` in [0, 1]."""

    file: str
    fraction: float


class Loaded(Event, frozen=True, tag=True):
    """The pair is ready."""

    pair: PairInfo
    seconds: float


class PromptProgress(Event, frozen=True, tag=True):
    """Prompt tokens decoded so far by the target (or by the draft)."""

    model: str  # "target" or "draft"
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


class Failed(Event, frozen=True, tag=True):
    """The run could not be done (`expected`: a UserError) or broke (a bug, `details` has the traceback).

    `gone` says that the engine itself is gone and will be started anew.
    """

    message: str
    hint: str = ""
    expected: bool = True
    details: str = ""
    gone: bool = False


AnyCommand = Load | Generate | Stop | Shutdown
AnyEvent = LoadProgress | Loaded | PromptProgress | Started | RoundFinished | Finished | Failed
