"""Sends requests to servers, n at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from app.engine.errors import SettingError, UserError
from app.engine.process.messages import RoundFinished, kept
from app.engine.record.trace import Trace
from app.engine.types import GenerationRequest, PairInfo
from app.lab.experiment import Experiment, Job
from app.lab.load.levels import LoadPlan, check_load
from app.lab.load.report import Burst, BurstDone, BurstReport, make_load_report
from app.lab.runs.events import Begun, Control, Ended, LabEvent, WarmingUp
from app.lab.runs.record import RunRecord
from app.servers.address import find_key, is_address
from app.servers.client import ServerClient
from app.servers.http import Stopped

_WARM_UP_TOKENS = 24
_PATIENCE = 0.05  # seconds from Cancel until the next request is not waited for


@dataclass(frozen=True, slots=True)
class _Answered:
    """One answer of a burst, in seconds since the burst began."""

    record: RunRecord
    ended: float
    came: Sequence[tuple[float, int]]  # (when, how many tokens)


class LoadRunner:
    """Measures an experiment's lanes, which must all be servers, at every level. Call `run` on one thread;
    `control` is safe from any thread."""

    def __init__(
        self,
        experiment: Experiment,
        load: LoadPlan,
        *,
        control: Control | None = None,
        key_of: Callable[[str], str] = find_key,
    ) -> None:
        """`experiment` comes from `make_experiment`. Raises SettingError for lanes that are not servers', and
        for an invalid load."""
        for lane in range(len(experiment.lanes)):
            if not is_address(experiment.pair_of(lane).target.path):
                raise SettingError("Only servers answer several requests at once.", "Leave other lanes out.")
        self.experiment = experiment
        check_load(load)
        self.load = load
        self.control = control or Control()
        self._key_of = key_of
        self._clients: dict[str, ServerClient] = {}
        self._infos: dict[str, PairInfo] = {}
        self._bursts: list[Burst] = []

    def run(self) -> Iterator[LabEvent]:
        """Measure: WarmingUp for every lane, Begun, BurstDone for every burst, Ended. Raises UserError if a
        server does not describe itself; ends early if `control` is cancelled."""
        lanes, repeats = range(len(self.experiment.lanes)), range(self.experiment.repeats)
        total = len(lanes) * len(self.load.levels) * len(repeats)
        try:
            for lane in lanes:
                yield WarmingUp(lane)
                self._warm_up(lane)
            yield Begun(self.experiment, 0, total)
            for repeat in repeats:
                for level in self.load.levels:
                    for lane in [*lanes][repeat % len(lanes) :] + [*lanes][: repeat % len(lanes)]:
                        burst = self._burst(lane, level, repeat)
                        self._bursts.append(burst)
                        yield BurstDone(burst, len(self._bursts), total)
        except Stopped:
            pass
        yield Ended(len(self._bursts) == total)

    def report(self) -> BurstReport:
        """The report of the bursts so far; all servers must be described."""
        return make_load_report(self.experiment, self.infos, self.load, self._bursts)

    @property
    def infos(self) -> list[PairInfo]:
        """The servers by lane; all must be described."""
        return [self._infos[self._address(lane)] for lane in range(len(self.experiment.lanes))]

    @property
    def described(self) -> bool:
        """Whether all servers have described themselves."""
        return all(self._address(lane) in self._infos for lane in range(len(self.experiment.lanes)))

    def _address(self, lane: int) -> str:
        return self.experiment.pair_of(lane).target.path

    def _warm_up(self, lane: int) -> None:
        """Ask a server for its description, and for a short answer."""
        address = self._address(lane)
        if address not in self._clients:
            client = ServerClient(address, self._key_of(address), lambda: self.control.cancelled)
            self._infos[address] = client.describe()
            self._clients[address] = client
        request = self._request(Job(0, 0, lane))
        for _event in self._clients[address].generate(
            replace(request, max_tokens=min(_WARM_UP_TOKENS, request.max_tokens))
        ):
            continue
        if self._clients[address].stopped:
            raise Stopped

    def _request(self, job: Job, said: Sequence[str] = ()) -> GenerationRequest:
        return self.experiment.request(job.prompt, self.experiment.lanes[job.lane].strategy, said=said)

    def _burst(self, lane: int, level: float, repeat: int) -> Burst:
        """Send all prompts: `level` at once (when one ends, the next is sent), or `level` a second. Every
        lane gets the same prompts in the same order at the same times. Raises Stopped."""
        client = self._clients[self._address(lane)]
        jobs = [
            [Job(repeat, prompt, lane) for prompt in turns]
            for turns in self.load.burst_of(level, self.experiment.prompts)
        ]
        arrivals = self.load.arrivals(level, len(jobs), f"{self.experiment.sampling.seed} {repeat}")
        before = client.whole()
        started = time.perf_counter()

        def sent(turns: Sequence[Job], at: float) -> list[_Answered]:
            while not self.control.cancelled and (left := started + at - time.perf_counter()) > 0:
                time.sleep(min(left, _PATIENCE))
            return self._answers(client.another(), turns, started)

        with ThreadPoolExecutor(len(jobs) if arrivals else int(level)) as pool:
            answered = list(pool.map(sent, jobs, arrivals or [0.0] * len(jobs)))
        seconds = time.perf_counter() - started
        if self.control.cancelled:
            raise Stopped
        # From this end on nothing is sent in the place of what ended.
        busy = sorted(turns[-1].ended for turns in answered)[-1 if arrivals else -int(level)]
        asked = [request for turns in answered for request in turns]
        return Burst(
            lane=lane,
            at_once=0 if arrivals else int(level),
            rate=level if arrivals else None,
            arrivals=arrivals,
            repeat=repeat,
            seconds=seconds,
            busy_seconds=busy,
            busy_tokens=sum(tokens for request in asked for at, tokens in request.came if at <= busy),
            ends=tuple(request.ended for request in asked),
            runs=tuple(request.record for request in asked),
            whole_server=client.since(before),
        )

    def _answers(self, client: ServerClient, jobs: Sequence[Job], started: float) -> list[_Answered]:
        """The answers to a conversation's turns, in order. A failed answer ends it."""
        answers: list[_Answered] = []
        for job in jobs:
            said = [answer.record.text for answer in answers]
            answers.append(self._answer(client, job, said, started))
            if answers[-1].record.failure:
                break
        return answers

    def _answer(self, client: ServerClient, job: Job, said: Sequence[str], started: float) -> _Answered:
        """One answer, even a failed one, after those of the turns before; times count from `started`."""
        trace: Trace | None = None
        came: list[tuple[float, int]] = []
        problem = "It was stopped."  # before its first token
        try:
            for event in client.generate(self._request(job, said)):
                trace = kept(trace, event)
                if isinstance(event, RoundFinished):
                    came.append((time.perf_counter() - started, len(event.round.emitted)))
        except UserError as error:
            trace, problem = None, str(error)
        record = (
            RunRecord.of_failed(self.experiment, job, problem)
            if trace is None
            else RunRecord.of_job(trace, self.experiment, job)
        )
        return _Answered(record, time.perf_counter() - started, came)
