"""Runs an experiment: cold runs, one at a time, through pauses and crashes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import msgspec

from app.engine.errors import PromptError, UserError
from app.engine.process.host import EngineHome
from app.engine.process.messages import Finished, RoundFinished, Started, kept
from app.engine.record.stats import strategy_names
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import GenerationRequest, PairInfo
from app.lab.experiment import Experiment, Job, Pair
from app.lab.facts import EnergyMeter, OtherLoad
from app.lab.runs import events
from app.lab.runs import journal as journals
from app.lab.runs.compare import TraceStore, compared_run, compared_runs
from app.lab.runs.lab_engine import EngineGone, Interrupted, LabEngine
from app.lab.runs.record import RunRecord
from app.servers.address import find_key

MakeHome = Callable[[], EngineHome]

_WARM_UP_TOKENS = 24
_TRIES = 3  # of one run, before it counts as failed


class _WarmUpGone(EngineGone):
    """The engine died in a warm-up."""


class Runner:
    """Runs one experiment. `run` may be called on one thread only; `control` and `records` are safe from any.

    With a journal, every run is saved as soon as it is done, and saved runs are not repeated (except failed
    ones).
    """

    def __init__(
        self,
        experiment: Experiment,
        make_home: MakeHome,
        *,
        journal: Path | None = None,
        control: events.Control | None = None,
        engine: LabEngine | None = None,
        jobs: Sequence[Job] = (),
        key_of: Callable[[str], str] = find_key,
    ) -> None:
        """`experiment` comes from `make_experiment`. An existing `journal` must be of the same experiment,
        files, versions and processor; it is locked until the end of `run`, or `close`. A given `engine` stays
        open. `jobs` are all runs, in a different order. `key_of` gives a server's key.

        Raises UserError.
        """
        self.control = control or events.Control()
        self.experiment = experiment
        self._engine = engine or LabEngine(make_home, self.control, key_of)
        self._lent = engine is not None
        self._jobs = tuple(jobs) or experiment.jobs()
        self._lock = journals.lock_journal(journal) if journal else None
        self._journal: journals.Journal | None = None
        self._records: dict[Job, RunRecord] = {}
        self._resumed = 0  # times
        self.pairs: dict[int, PairInfo] = {}
        """The loaded pair, by lane."""
        self._before: dict[int, PairInfo] = {}  # `pairs` when the journal was written
        try:
            if journal is not None:
                self._take_journal(journal)
            else:
                self.traces = TraceStore()
        except UserError:
            self._release()
            raise
        self._left = events.TimeLeft()
        self._to_warm_up: list[int] = []  # lanes on the loaded pair
        self._warm: list[float] = []  # seconds of an answer that is as long as it may be
        self._timed = False  # once is enough
        self._unfit: set[tuple[str, ...]] = set()  # sets of drafters that killed the engine in a warm-up
        self._warm_servers: set[Pair] = set()
        self._deaths: Counter[Pair] = Counter()  # of the engine while it loaded a pair
        self._refused: dict[Pair, UserError] = {}  # why pairs could not be loaded
        self._latest: dict[Job, Trace] = {}  # the traces of the current prompt, to compare

    @property
    def records(self) -> dict[Job, RunRecord]:
        """The runs so far, compared with their baselines if these are measured."""
        return dict(self._records)

    def run(self) -> Iterator[events.LabEvent]:
        """Do the remaining runs. Raises UserError if the experiment's pair cannot be loaded (a missing
        file)."""
        jobs = self._jobs
        todo = [job for job in jobs if job not in self._records]
        left = Counter((job.prompt, job.lane) for job in todo)
        yield events.Begun(self.experiment, len(jobs) - len(todo), len(jobs), self.records, dict(self.pairs))
        try:
            for job in todo:
                yield from self._do(job)
                if job not in self._records:  # cancelled
                    break
                left[job.prompt, job.lane] -= 1
                others, seconds = self._compare_others(job), self._left.seconds(left)
                record, trace, done = self._records[job], self._latest.get(job), len(self._records)
                yield events.RunDone(job, record, trace, others, done, len(jobs), seconds)
        finally:
            if not self._lent:
                self._engine.close()
            self._release()
        yield events.Ended(len(self._records) == len(jobs))

    def close(self) -> None:
        """Remove the traces if there is no journal, and unlock the journal."""
        self.traces.close()
        self._release()

    def _take_journal(self, path: Path) -> None:
        self._journal = journals.open_journal(path, self.experiment)
        self.traces = TraceStore(self._journal.trace_folder)
        if not self._journal.records:
            self.traces.clear()  # of an earlier measurement of this name
        self._records = compared_runs(self.experiment, journals.done_of(self._journal), self.traces)
        before = (record.resumed for record in self._journal.records.values())
        self._resumed = max(before, default=-1) + 1
        self.pairs, self._before = dict(self._journal.pairs), dict(self._journal.pairs)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _do(self, job: Job) -> Iterator[events.LabEvent]:
        """Do one run, with retries; it is in `records` then, unless the control cancelled it."""
        for tried in range(1, _TRIES + 1):
            while not self.control.cancelled:
                try:
                    yield from self._prepare(job)
                    yield from self._measure(job)
                    return
                except UserError as error:
                    own = self.experiment.pair_of(job.lane) == self.experiment.pair
                    if own and not self.experiment.loads_once:
                        raise  # another pair that cannot be loaded fails its own lanes only
                    self._keep(job, RunRecord.of_failed(self.experiment, job, str(error)), None)
                    return
                except Interrupted:
                    yield events.RunDropped(job)
                    yield from self._rest()
                except _WarmUpGone as gone:  # another lane's fault: not a try of this run
                    yield events.EngineReplaced(str(gone))
                except EngineGone as gone:
                    yield events.RunDropped(job)
                    yield events.EngineReplaced(str(gone))
                    problem = str(gone)
                    break
            else:
                return
            if tried == _TRIES:
                self._keep(job, RunRecord.of_failed(self.experiment, job, problem), None)

    def _rest(self) -> Iterator[events.LabEvent]:
        if self.control.cancelled:
            return
        yield events.Paused()
        self.control.wait()
        if not self.control.cancelled:
            yield events.Resumed()

    def _prepare(self, job: Job) -> Iterator[events.LabEvent]:
        """Load the lane's pair unless it is loaded, and warm up all lanes that run on it."""
        pair = self.experiment.pair_of(job.lane)
        if self.control.interrupted:
            raise Interrupted
        if self._engine.holds(pair):
            lanes = self._note(pair)
        else:
            yield from self._load(pair)
            lanes = self._note(pair)
            if pair in self._warm_servers:
                return
            self._to_warm_up = self._one_of_each(lanes)
            info = self._engine.info
            assert info is not None
            yield events.PairLoaded(lanes, info)
        while self._to_warm_up:
            yield events.WarmingUp(self._to_warm_up[0])
            self._warm_up(self._to_warm_up[0], job)
            del self._to_warm_up[0]
        if any(map(self._goes_by_clock, lanes)):
            with suppress(UserError):  # then the rule learns from the answers what passes take
                self._engine.time_passes()
        if self._warm:
            yield events.WarmedUp((len(self._jobs) - len(self._records)) * fmean(self._warm))
            self._warm = []
            self._timed = True
        if pair.is_server:  # it stays as warm as it is while others answer
            self._warm_servers.add(pair)

    def _load(self, pair: Pair) -> Iterator[events.LabEvent]:
        """Load a pair. If it could not be loaded, or ended the engine _TRIES times, it is refused at once."""
        if pair in self._refused:
            raise self._refused[pair]
        try:
            if self._deaths[pair] < _TRIES:
                for file, fraction in self._engine.load(pair):
                    yield events.Loading(file, fraction)
                self._deaths[pair] = 0
                self._check_gaps()
                return
        except UserError as error:
            self._refused[pair] = error
            raise
        except EngineGone:
            self._deaths[pair] += 1
            if self._deaths[pair] < _TRIES:
                raise
        raise UserError(
            f"Loading {Path(pair.target.path).name} ended the engine {_TRIES} times.",
            "Memory may be short: load fewer layers on the GPU, or a shorter context.",
        )

    def _check_gaps(self) -> None:
        """Raise PromptError if every prompt is a gap to fill, which the loaded target cannot do: else every
        run would fail."""
        info = self._engine.info
        if info is None or info.server is not None or info.fills_middle:
            return
        if all(prompt.suffix is not None for prompt in self.experiment.prompts):
            raise PromptError(
                f"{Path(info.target.path).name} has no fill-in-the-middle tokens, and every prompt needs "
                "them.",
                "Choose a code model, such as Qwen2.5-Coder, or other prompts.",
            )

    def _one_of_each(self, lanes: tuple[int, ...]) -> list[int]:
        """The lanes to warm up: one for each set of drafters, whatever their settings."""
        kinds: dict[tuple[str, ...], int] = {}
        for lane in lanes:
            kinds.setdefault(self._drafters_of(lane), lane)
        return [lane for kind, lane in kinds.items() if kind not in self._unfit]

    def _request(self, job: Job) -> GenerationRequest:
        """The request of a run. Raises UserError for a turn after an unanswered one."""
        experiment, strategy = self.experiment, self.experiment.lanes[job.lane].strategy
        asked = experiment.request(job.prompt, strategy, experiment.sampling_of(job.lane), self._said(job))
        return replace(asked, repeat=job.repeat)

    def _said(self, job: Job) -> tuple[str, ...]:
        """The answers to the turns before a prompt. They are the baseline's, so that compared runs read the
        same conversation, or the lane's own without a baseline. Raises UserError if one is missing."""
        base = self.experiment.baseline_job(job) or job
        first = job.prompt - len(self.experiment.prompts[job.prompt].before)
        turns = [msgspec.structs.replace(base, prompt=prompt) for prompt in range(first, job.prompt)]
        answers = [self._records.get(turn) for turn in turns]
        if any(answer is None or answer.failure for answer in answers):
            raise UserError("The turn before this one was not answered.")
        return tuple(answer.text for answer in answers if answer is not None)

    def _goes_by_clock(self, lane: int) -> bool:
        """Whether a lane's length rule uses times of passes."""
        strategy = self.experiment.lanes[lane].strategy
        return not self.experiment.pair_of(lane).is_server and StrategySpec.parse(strategy).length.by_clock

    def _drafters_of(self, lane: int) -> tuple[str, ...]:
        return strategy_names(self.experiment.lanes[lane].strategy)

    def _warm_up(self, lane: int, job: Job) -> None:
        """Do a short run that is not recorded. Drafters that kill the engine here are not warmed up again."""
        try:
            with suppress(UserError):  # a lane that cannot run reports it in its first run
                request = self._request(msgspec.structs.replace(job, lane=lane))
                short = replace(request, max_tokens=min(_WARM_UP_TOKENS, request.max_tokens))
                tokens = 0
                for event in self._engine.generate(short, self.experiment.drafters):
                    if isinstance(event, RoundFinished):
                        tokens += len(event.round.emitted)
                    elif isinstance(event, Finished) and tokens and not self._timed:
                        each = event.totals.seconds / tokens
                        self._warm.append(event.totals.lead_seconds + each * request.max_tokens)
        except EngineGone as gone:
            self._unfit.add(self._drafters_of(lane))
            raise _WarmUpGone(str(gone)) from gone

    def _note(self, pair: Pair) -> tuple[int, ...]:
        """Remember the loaded pair for its lanes; returns the lanes."""
        experiment, info = self.experiment, self._engine.info
        lanes = tuple(i for i in range(len(experiment.lanes)) if experiment.pair_of(i) == pair)
        if info is not None and any(self.pairs.get(lane) != info for lane in lanes):
            for lane in lanes:
                if how := journals.loaded_otherwise(self._before.get(lane, info), info):
                    raise UserError(
                        f"The journal cannot be resumed: {how}.",
                        "Load the pair as it was loaded before, or start a new journal.",
                    )
            self.pairs |= dict.fromkeys(lanes, info)
            if self._journal is not None:
                self._journal.add(journals.PairLine(lanes, info))
        return lanes

    def _measure(self, job: Job) -> Iterator[events.LabEvent]:
        """Do the run and keep its record. A refused request is a failed run."""
        started, load, energy = time.monotonic(), OtherLoad(), EnergyMeter()
        trace: Trace | None = None
        try:
            request = self._request(job)
            for event in self._engine.generate(request, self.experiment.drafters):
                trace = kept(trace, event)
                if isinstance(event, Started):
                    yield events.RunStarted(job, event.header)
                elif isinstance(event, RoundFinished):
                    yield events.RunRound(job, event.round, event.text)
        except UserError as error:
            self._keep(job, RunRecord.of_failed(self.experiment, job, str(error)), None)
            return
        assert trace is not None
        self._left.add(job, time.monotonic() - started)
        record = RunRecord.of_job(trace, self.experiment, job)
        if trace.header.pair.server is None:  # a server may be another program here, or on another machine
            used, counted = energy.joules()
            record = msgspec.structs.replace(record, other_load=load.cores(), joules=used, energy_of=counted)
        self._keep(job, record, trace)

    def _keep(self, job: Job, record: RunRecord, trace: Trace | None) -> None:
        self._latest = {
            known: kept
            for known, kept in self._latest.items()
            if (known.repeat, known.prompt) == (job.repeat, job.prompt)
        }
        record = msgspec.structs.replace(record, resumed=self._resumed)
        # The trace first: every run in the journal has one.
        if trace is not None:
            self._latest[job] = trace
            self.traces.put(job, trace)
        if self._journal is not None:
            self._journal.add(journals.RunLine(job, record))
        self._records[job] = record
        self._records[job] = self._compared(job)

    def _compared(self, job: Job) -> RunRecord:
        return compared_run(self.experiment, job, self._records, self._trace)

    def _compare_others(self, job: Job) -> tuple[RunRecord, ...]:
        """Compare the runs that waited for `job`, their baseline; returns their records."""
        jobs = [
            waiting
            for lane in range(len(self.experiment.lanes))
            if (waiting := Job(job.repeat, job.prompt, lane)) in self._records and waiting != job
            if self.experiment.baseline_job(waiting) == job
        ]
        for waiting in jobs:
            self._records[waiting] = self._compared(waiting)
        return tuple(self._records[waiting] for waiting in jobs)

    def _trace(self, job: Job) -> Trace | None:
        return self._latest.get(job) or self.traces.readable(job)
