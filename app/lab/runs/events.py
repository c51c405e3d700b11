"""The events of a long run, the commands to it, and the remaining time."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from statistics import fmean

import msgspec

from app.engine.record.trace import Trace
from app.engine.types import PairInfo, Round, TraceHeader
from app.lab.experiment import Experiment, Job
from app.lab.runs.record import RunRecord


class LabEvent(msgspec.Struct, frozen=True):
    """The base of all events."""


class Begun(LabEvent, frozen=True):
    """The experiment begins, with baselines and seed set; `done` of `total` runs are already done. The
    journal had these `records`, and `pairs` by lane."""

    experiment: Experiment
    done: int
    total: int
    records: dict[Job, RunRecord] = {}
    pairs: dict[int, PairInfo] = {}


class Loading(LabEvent, frozen=True):
    """A model file of a lane is being read; `fraction` in [0, 1]."""

    file: str
    fraction: float


class PairLoaded(LabEvent, frozen=True):
    """The pair of these lanes is ready."""

    lanes: tuple[int, ...]
    pair: PairInfo


class WarmingUp(LabEvent, frozen=True):
    """A short, unrecorded run before the measured ones begins."""

    lane: int


class WarmedUp(LabEvent, frozen=True):
    """The short runs give an upper bound for the time of the measured ones: answers may end early."""

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
    """The current run does not count (a pause, a crash): it is restarted or abandoned."""

    job: Job


class RunDone(LabEvent, frozen=True):
    """A run is over and recorded; `trace` is None if it failed."""

    job: Job
    record: RunRecord
    trace: Trace | None
    others: tuple[RunRecord, ...]  # earlier runs of which this is the baseline: compared now
    done: int
    total: int
    seconds_left: float | None  # estimated, for the whole experiment

    @property
    def records(self) -> dict[Job, RunRecord]:
        """Its record, and those that can now be compared."""
        others = {Job(each.repeat, each.prompt_index, each.lane): each for each in self.others}
        return {self.job: self.record, **others}


class EngineReplaced(LabEvent, frozen=True):
    """The engine died; a new engine takes over."""

    message: str


class Paused(LabEvent, frozen=True):
    """Nothing runs until `resume`."""


class Resumed(LabEvent, frozen=True):
    """The work continues after a pause."""


class Ended(LabEvent, frozen=True):
    """The last event; not `complete` if the run was cancelled."""

    complete: bool


class Control:
    """The switch of one run. Every method is safe from any thread."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._paused = False
        self._cancelled = False

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @property
    def interrupted(self) -> bool:
        """Whether the current work must stop, for now or for good."""
        return self._paused or self._cancelled

    def pause(self) -> None:
        """Stop the current run; it starts again after `resume`."""
        with self._condition:
            self._paused = True
            self._condition.notify_all()

    def resume(self) -> None:
        with self._condition:
            self._paused = False
            self._condition.notify_all()

    def cancel(self) -> None:
        """Stop for good; finished runs are kept."""
        with self._condition:
            self._cancelled = True
            self._condition.notify_all()

    def wait(self) -> None:
        """Wait until the run is resumed or cancelled."""
        with self._condition:
            self._condition.wait_for(lambda: self._cancelled or not self._paused)


class TimeLeft:
    """Collects the times of finished runs and estimates the rest."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[float]] = {}

    def add(self, job: Job, seconds: float) -> None:
        self._known.setdefault((job.prompt, job.lane), []).append(seconds)

    def seconds(self, todo: Mapping[tuple[int, int], int]) -> float | None:
        """Seconds for the runs in `todo`, counted by (prompt, lane), because a search has a million. A new
        run is assumed to take as long as others of its prompt, else of its lane, else of all. None if nothing
        is known."""
        if not self._known:
            return None
        by_prompt, by_lane = self._means(0), self._means(1)
        every = fmean(seconds for times in self._known.values() for seconds in times)
        total = 0.0
        for (prompt, lane), runs in todo.items():
            seen = self._known.get((prompt, lane))
            total += runs * (fmean(seen) if seen else by_prompt.get(prompt, by_lane.get(lane, every)))
        return total

    def _means(self, key: int) -> dict[int, float]:
        groups: dict[int, list[float]] = {}
        for where, times in self._known.items():
            groups.setdefault(where[key], []).extend(times)
        return {index: fmean(times) for index, times in groups.items()}
