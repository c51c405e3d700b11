"""What a long run says while it goes."""

from __future__ import annotations

import msgspec

from app.engine.record.trace import Trace
from app.engine.types import PairInfo, Round, TraceHeader
from app.lab.experiment import Experiment, Job
from app.lab.runs.run_record import RunRecord


class LabEvent(msgspec.Struct, frozen=True):
    """The base of all of them."""


class Begun(LabEvent, frozen=True):
    """The experiment as it runs (baselines and seed are set), and how much of it is there already."""

    experiment: Experiment
    done: int
    total: int


class Loading(LabEvent, frozen=True):
    """A model file of a lane is being read; `fraction` in [0, 1]."""

    file: str
    fraction: float


class PairLoaded(LabEvent, frozen=True):
    """The pair of these lanes is ready."""

    lanes: tuple[int, ...]
    pair: PairInfo


class WarmingUp(LabEvent, frozen=True):
    """A short run before the measured ones; it is not kept."""

    lane: int


class RunStarted(LabEvent, frozen=True):
    """A measured run begins: its trace's header."""

    job: Job
    header: TraceHeader


class RunRound(LabEvent, frozen=True):
    """One more round of the run at hand; `text` is what became readable by it."""

    job: Job
    round: Round
    text: str


class RunDropped(LabEvent, frozen=True):
    """The run at hand does not count (a pause, a crash): it begins anew or is left."""

    job: Job


class RunDone(LabEvent, frozen=True):
    """A run is over and kept; `trace` is None where it could not be done at all."""

    job: Job
    record: RunRecord
    trace: Trace | None
    others: tuple[RunRecord, ...]  # whose baseline this was: compared only now
    done: int
    total: int
    seconds_left: float | None  # of the whole experiment, by what runs took up to here


class EngineReplaced(LabEvent, frozen=True):
    """The engine died; another one takes over where it was."""

    message: str


class Paused(LabEvent, frozen=True):
    """Nothing runs until `resume`."""


class Resumed(LabEvent, frozen=True):
    """It goes on."""


class Ended(LabEvent, frozen=True):
    """Nothing more comes. Not `complete` where it was cancelled."""

    complete: bool
