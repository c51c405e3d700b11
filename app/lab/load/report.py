"""The report of a load measurement, and its folds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from app.base import numbers
from app.engine.record.stats import Statistics
from app.engine.types import PairInfo, ServerInfo, WholeServer
from app.lab.experiment import Experiment, Prompt
from app.lab.facts import SystemFacts, system_facts
from app.lab.lanes import lane_names
from app.lab.load.levels import Limits, LoadPlan
from app.lab.report.report import ReportSettings, now
from app.lab.report.summary import Speedup, Spread, middle, speedup_words
from app.lab.runs.compare import is_measured
from app.lab.runs.events import LabEvent
from app.lab.runs.record import JsonFile, Latency, RunRecord, percentiles

FORMAT = "load-1.2"


class Burst(msgspec.Struct, frozen=True):
    """Requests to one server: this many at once (when one ends, the next is sent), or this many a second.

    For requests at once, a speed counts only the time in which the server had them all: at the end, fewer and
    fewer are left. For a rate, the whole time counts.
    """

    lane: int
    at_once: int  # 0 for a rate
    repeat: int
    seconds: float  # from sending the first requests to the end of the last
    busy_seconds: float
    """From sending the first requests until fewer than `at_once` were being answered; for a rate, until the
    last had ended."""
    busy_tokens: int  # that came in that time
    ends: tuple[float, ...]  # of the runs, in seconds since the first requests
    runs: tuple[RunRecord, ...]
    whole_server: WholeServer | None = None  # where a server only counts for all its users together
    rate: float | None = None  # requests a second, on average
    arrivals: tuple[float, ...] = ()  # of a rate: when conversations were to be sent

    @property
    def level(self) -> float:
        return self.at_once if self.rate is None else self.rate

    @property
    def measured(self) -> tuple[RunRecord, ...]:
        return tuple(run for run in self.runs if is_measured(run))

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens / seconds while the server was busy with all requests; None if one failed, because the load
        was then lower."""
        whole = len(self.measured) == len(self.runs) and self.busy_seconds > 0
        return self.busy_tokens / self.busy_seconds if whole else None

    @property
    def speed(self) -> float | None:
        """The speed that the gain compares. For requests at once, it is total tokens/s. A rate fixes how
        many tokens are requested: there it is tokens / time from sending a request to its end, over all
        requests."""
        if self.rate is None or self.tokens_per_second is None:
            return self.tokens_per_second
        seconds = math.fsum(run.whole_seconds for run in self.runs)
        return sum(run.n_tokens for run in self.runs) / seconds if seconds else None

    def kept(self, limits: Limits) -> tuple[RunRecord, ...]:
        """The runs under the whole load that kept all limits; a run with unknown times did not."""
        return tuple(run for run in self.loaded if _kept(run, limits))

    @property
    def loaded(self) -> tuple[RunRecord, ...]:
        """The measured runs under the whole load until their end."""
        timed = zip(self.runs, self.ends, strict=True)
        return tuple(run for run, end in timed if end <= self.busy_seconds and is_measured(run))


class BurstDone(LabEvent, frozen=True):
    """A burst is done: `done` of `total`."""

    burst: Burst
    done: int
    total: int


class LoadLane(msgspec.Struct, frozen=True):
    """A lane of a load measurement."""

    name: str
    strategy: str
    baseline: int | None
    server: ServerInfo


class LoadRow(Latency, frozen=True):
    """A lane at one level. Ratios are pooled over its bursts, percentiles over all tokens of all requests."""

    lane: int
    at_once: int  # 0 for a rate
    tokens_per_second: float | None  # of all requests together: geometric mean over bursts
    tokens_per_second_of_one: float | None  # of a request, from its own first token: median
    gain: float | None  # speed over the baseline's at this level: geometric mean over repeats
    acceptance_rate: float | None
    first_token_seconds: float | None  # median
    failed: int
    rate: float | None = None  # requests a second, on average
    tokens_per_second_low: float | None = None  # of the 95 % interval over repeats; None with fewer than 3
    tokens_per_second_high: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    goodput: float | None = None  # requests a second that kept all limits: median over bursts
    kept_limits: float | None = None  # the share of all requests that did

    @property
    def level(self) -> float:
        return self.at_once if self.rate is None else self.rate

    @property
    def interval(self) -> Speedup:
        """The gain with its interval; the row must have one."""
        return Speedup(self.gain or 1.0, self.gain_low, self.gain_high)

    @property
    def gain_words(self) -> str:
        return speedup_words(None if self.gain is None else self.interval)

    @property
    def goodput_words(self) -> str:
        """ "1.92/s, 96 %"."""
        if self.goodput is None:
            return numbers.NONE
        return f"{numbers.digits(self.goodput)}/s, {numbers.percent(self.kept_limits, 0)}"

    @property
    def speed_words(self) -> str:
        """ "41.2 (39.8 to 42.7)"."""
        speed = numbers.digits(self.tokens_per_second)
        if self.tokens_per_second_low is None or self.tokens_per_second_high is None:
            return speed
        low, high = self.tokens_per_second_low, self.tokens_per_second_high
        return f"{speed} ({numbers.digits(low)} to {numbers.digits(high)})"


class BurstReport(JsonFile, frozen=True):
    """A load measurement. Every other number can be recomputed from `bursts`."""

    format: str
    title: str
    created_at: str  # ISO 8601, UTC
    complete: bool
    system: SystemFacts
    settings: ReportSettings
    prompts: tuple[Prompt, ...]
    levels: tuple[int, ...]
    lanes: tuple[LoadLane, ...]
    rows: tuple[LoadRow, ...]
    crossings: tuple[float | None, ...]
    """For each lane the number of requests at which its gain falls to 1, None if it does not."""
    bursts: tuple[Burst, ...]
    rates: tuple[float, ...] = ()  # requests a second; `levels` is empty then
    limits: Limits = Limits()

    @property
    def load(self) -> LoadPlan:
        return LoadPlan(self.levels, self.rates, self.limits)


def make_load_report(
    experiment: Experiment, infos: Sequence[PairInfo], load: LoadPlan, bursts: Sequence[Burst]
) -> BurstReport:
    """The report of the bursts so far; `infos` are the servers by lane."""
    lanes = tuple(
        LoadLane(name, lane.strategy, experiment.baseline_of(index), info.server)
        for index, (name, lane, info) in enumerate(
            zip(lane_names(experiment), experiment.lanes, infos, strict=True)
        )
        if info.server is not None
    )
    rows = tuple(_rows(lanes, load, bursts))
    return BurstReport(
        format=FORMAT,
        title=experiment.title,
        created_at=now(),
        complete=len(bursts) == len(lanes) * len(load.levels) * experiment.repeats,
        system=system_facts(infos[0]),
        settings=ReportSettings.of(experiment),
        prompts=experiment.prompts,
        levels=load.at_once,
        rates=load.rates,
        limits=load.limits,
        lanes=lanes,
        rows=rows,
        crossings=tuple(_crossing([row for row in rows if row.lane == lane]) for lane in range(len(lanes))),
        bursts=tuple(bursts),
    )


def _rows(lanes: Sequence[LoadLane], load: LoadPlan, bursts: Sequence[Burst]) -> Iterator[LoadRow]:
    for lane, facts in enumerate(lanes):
        for level in load.levels:
            mine = [burst for burst in bursts if (burst.lane, burst.level) == (lane, level)]
            runs = [run for burst in mine for run in burst.measured]
            baseline = None if facts.baseline in (None, lane) else facts.baseline
            theirs = [burst for burst in bursts if (burst.lane, burst.level) == (baseline, level)]
            base = {burst.repeat: burst.speed for burst in theirs}
            speed = _over_repeats((burst.repeat, burst.tokens_per_second, 1.0) for burst in mine)
            gain = _over_repeats((burst.repeat, burst.speed, base.get(burst.repeat)) for burst in mine)
            yield LoadRow(
                lane=lane,
                at_once=0 if load.rates else int(level),
                rate=level if load.rates else None,
                tokens_per_second_of_one=middle(
                    Spread.of(run.tokens_per_second for burst in mine for run in burst.loaded)
                ),
                acceptance_rate=_acceptance(mine, runs),
                first_token_seconds=middle(Spread.of(run.first_token_seconds for run in runs)),
                failed=sum(len(burst.runs) - len(burst.measured) for burst in mine),
                **_bounds("tokens_per_second", speed),
                **_bounds("gain", gain),
                **_kept_by(mine, load.limits),
                **percentiles(
                    (run.first_token_seconds for run in runs),
                    ((run.n_tokens, run.arrival_gaps) for run in runs),
                ),
            )


def _over_repeats(speeds: Iterator[tuple[int, float | None, float | None]]) -> Speedup | None:
    """The geometric mean of (repeat, speed, what it is compared with) and its interval over repeats."""
    return Speedup.of({repeat: {0: speed / base} for repeat, speed, base in speeds if speed and base})


def _bounds(name: str, speed: Speedup | None) -> dict[str, Any]:
    if speed is None:
        return {name: None}
    return {name: speed.factor, f"{name}_low": speed.low, f"{name}_high": speed.high}


def _kept_by(bursts: Sequence[Burst], limits: Limits) -> dict[str, Any]:
    """Goodput and the share of requests that kept the limits; nothing without limits."""
    asked = sum(len(burst.runs) - len(burst.measured) + len(burst.loaded) for burst in bursts)
    if not limits or not asked:
        return {}
    kept = [(len(burst.kept(limits)), burst.busy_seconds) for burst in bursts]
    return {
        "goodput": middle(Spread.of(count / seconds if seconds > 0 else None for count, seconds in kept)),
        "kept_limits": sum(count for count, _ in kept) / asked,
    }


def _kept(run: RunRecord, limits: Limits) -> bool:
    """Whether a request kept all limits. With one token there is no time between tokens."""
    first, between = run.first_token_seconds, run.inter_token_p95
    if limits.first_token is not None and (first is None or first > limits.first_token):
        return False
    if limits.inter_token is None or run.n_tokens == 1:
        return True
    return between is not None and between <= limits.inter_token


def _acceptance(bursts: Sequence[Burst], runs: Sequence[RunRecord]) -> float | None:
    """Accepted / drafted, of these answers; of the whole server where it reports nothing else."""
    wholes = [burst.whole_server for burst in bursts if burst.whole_server is not None]
    if wholes:
        drafted = sum(whole.drafted for whole in wholes)
        return sum(whole.accepted for whole in wholes) / drafted if drafted else None
    return Statistics.pooled(run.statistics for run in runs).acceptance_rate


def _crossing(rows: Sequence[LoadRow]) -> float | None:
    """The load at which the gain falls to 1, on the plot's straight line between two levels (the
    load in logarithms); None if it stays above or below, or rises again."""
    known = [(row.level, row.gain) for row in rows if row.gain is not None]
    falls = [
        (low, before, high, after) for (low, before), (high, after) in pairwise(known) if before > 1 >= after
    ]
    if len(falls) != 1 or known[0][1] <= 1 or known[-1][1] > 1:
        return None
    low, before, high, after = falls[0]
    share = (before - 1) / (before - after)
    return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
