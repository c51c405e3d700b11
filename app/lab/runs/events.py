"""The events of a long run."""

from __future__ import annotations

import msgspec

from app.engine.record.trace import Trace
from app.engine.types import PairInfo, Round, TraceHeader
from app.lab.experiment import Experiment, Job
from app.lab.runs.journal.run_record import RunRecord


class LabEvent(msgspec.Struct, frozen=True):
    """The base of all events."""


class Begun(LabEvent, frozen=True):
    """The experiment begins, its baselines and seed set; `done` of `total` runs are done already."""

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
    """A short run before the measured ones begins; it is not recorded."""

    lane: int


class WarmedUp(LabEvent, frozen=True):
    """The short runs tell how long the measured ones take: at most, since answers may end early."""

    most_seconds: float


class RunStarted(LabEvent, frozen=True):
    """A measured run begins, with its trace's header."""

    job: Job
    header: TraceHeader


class RunRound(LabEvent, frozen=True):
    """A round of the current run; `text` is the text that it completed."""

    job: Job
    round: Round
    text: str


class RunDropped(LabEvent, frozen=True):
    """The current run does not count (a pause, a crash): it starts again or is given up."""

    job: Job


class RunDone(LabEvent, frozen=True):
    """A run is over and recorded; `trace` is None where it failed."""

    job: Job
    record: RunRecord
    trace: Trace | None
    others: tuple[RunRecord, ...]  # earlier runs of which this is the baseline: compared now
    done: int
    total: int
    seconds_left: float | None  # estimated, for the whole experiment


class EngineReplaced(LabEvent, frozen=True):
    """The engine died; a new engine takes over."""

    message: str


class Paused(LabEvent, frozen=True):
    """Nothing runs until `resume`."""


class Resumed(LabEvent, frozen=True):
    """The work continues after a pause."""


class Ended(LabEvent, frozen=True):
    """The last event. Not `complete` where the run was cancelled."""

    complete: bool
