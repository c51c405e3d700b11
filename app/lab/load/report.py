"""The report of a load measurement, and its folds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import msgspec

from app.base import numbers
from app.engine.record.stats import Statistics
from app.engine.types import PairInfo, ServerInfo, WholeServer
from app.lab.experiment import Experiment
from app.lab.facts import SystemFacts, system_facts
from app.lab.lane_names import lane_names
from app.lab.report.compare import is_measured
from app.lab.report.curves import CurveMark, CurvePlot, Curves, values_of
from app.lab.report.report import ReportPrompt, ReportSettings, now, report_prompts
from app.lab.runs.events import LabEvent
from app.lab.runs.journal.run_record import RunRecord
from app.servers.words import server_words

FORMAT = "load-1.1"


class Burst(msgspec.Struct, frozen=True):
    """Requests to one server, so many at once: as one ends, the next is sent.

    Only the time in which the server had them all counts for a rate: when no request is left to be sent,
    fewer and fewer are answered at once.
    """

    lane: int
    at_once: int
    repeat: int
    seconds: float  # from sending the first requests to the end of the last
    busy_seconds: float  # from sending the first requests until fewer than `at_once` were being answered
    busy_tokens: int  # that came in that time
    ends: tuple[float, ...]  # of the runs, in seconds since the first requests
    runs: tuple[RunRecord, ...]
    whole_server: WholeServer | None = None  # where a server only counts for all its users together

    @property
    def measured(self) -> tuple[RunRecord, ...]:
        return tuple(run for run in self.runs if is_measured(run))

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens / seconds while the server was busy with all requests; None where one of them failed: the
        load was less."""
        whole = len(self.measured) == len(self.runs) and self.busy_seconds > 0
        return self.busy_tokens / self.busy_seconds if whole else None

    @property
    def loaded(self) -> tuple[RunRecord, ...]:
        """The measured runs that had the whole load to their end."""
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


class LoadRow(msgspec.Struct, frozen=True):
    """A lane at one level. Ratios are pooled over its bursts."""

    lane: int
    at_once: int
    tokens_per_second: float | None  # of all requests together: median over bursts
    tokens_per_second_of_one: float | None  # of a request, from its own first token: median
    gain: float | None  # tokens/s of all over the baseline's at this level: geometric mean over repeats
    acceptance_rate: float | None
    first_token_seconds: float | None  # median
    failed: int


class BurstReport(msgspec.Struct, frozen=True):
    """A load measurement. Every other number can be recomputed from `bursts`."""

    format: str
    title: str
    created_at: str  # ISO 8601, UTC
    complete: bool
    system: SystemFacts
    settings: ReportSettings
    prompts: tuple[ReportPrompt, ...]
    levels: tuple[int, ...]
    lanes: tuple[LoadLane, ...]
    rows: tuple[LoadRow, ...]
    crossings: tuple[float | None, ...]
    """For each lane the number of requests at which its gain falls to 1, None where it does not."""
    bursts: tuple[Burst, ...]

    def to_json(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"

    @classmethod
    def from_json(cls, data: bytes | str) -> BurstReport:
        """Read a report; raises msgspec.DecodeError."""
        return msgspec.json.decode(data, type=cls)


def make_load_report(
    experiment: Experiment,
    infos: Sequence[PairInfo],
    levels: Sequence[int],
    bursts: Sequence[Burst],
) -> BurstReport:
    """The report of the bursts so far; `infos` are the servers by lane."""
    lanes = tuple(
        LoadLane(name, lane.strategy, experiment.baseline_of(index), info.server)
        for index, (name, lane, info) in enumerate(
            zip(lane_names(experiment), experiment.lanes, infos, strict=True)
        )
        if info.server is not None
    )
    rows = tuple(_rows(lanes, levels, bursts))
    return BurstReport(
        format=FORMAT,
        title=experiment.title,
        created_at=now(),
        complete=len(bursts) == len(lanes) * len(levels) * experiment.repeats,
        system=system_facts(infos[0]),
        settings=ReportSettings.of(experiment),
        prompts=report_prompts(experiment),
        levels=tuple(levels),
        lanes=lanes,
        rows=rows,
        crossings=tuple(_crossing([row for row in rows if row.lane == lane]) for lane in range(len(lanes))),
        bursts=tuple(bursts),
    )


def _rows(lanes: Sequence[LoadLane], levels: Sequence[int], bursts: Sequence[Burst]) -> Iterator[LoadRow]:
    for lane, facts in enumerate(lanes):
        for level in levels:
            mine = [burst for burst in bursts if (burst.lane, burst.at_once) == (lane, level)]
            runs = [run for burst in mine for run in burst.measured]
            loaded = [run for burst in mine for run in burst.loaded]
            baseline = None if facts.baseline in (None, lane) else facts.baseline
            theirs = [burst for burst in bursts if (burst.lane, burst.at_once) == (baseline, level)]
            yield LoadRow(
                lane,
                level,
                _median(burst.tokens_per_second for burst in mine),
                _median(run.tokens_per_second for run in loaded),
                _gain(mine, theirs),
                _acceptance(mine, runs),
                _median(run.first_token_seconds for run in runs),
                sum(len(burst.runs) - len(burst.measured) for burst in mine),
            )


def _median(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _gain(mine: Sequence[Burst], theirs: Sequence[Burst]) -> float | None:
    """The geometric mean of the ratios of bursts of the same repeat."""
    base = {burst.repeat: burst.tokens_per_second for burst in theirs}
    ratios = [
        math.log(burst.tokens_per_second / other)
        for burst in mine
        if burst.tokens_per_second and (other := base.get(burst.repeat))
    ]
    return math.exp(math.fsum(ratios) / len(ratios)) if ratios else None


def _acceptance(bursts: Sequence[Burst], runs: Sequence[RunRecord]) -> float | None:
    """Accepted / drafted, of these answers; of the whole server where it tells nothing else."""
    wholes = [burst.whole_server for burst in bursts if burst.whole_server is not None]
    if wholes:
        drafted = sum(whole.drafted for whole in wholes)
        return sum(whole.accepted for whole in wholes) / drafted if drafted else None
    return Statistics.pooled(run.statistics for run in runs).acceptance_rate


def _crossing(rows: Sequence[LoadRow]) -> float | None:
    """The number of requests at which the gain falls to 1, on a line between two levels (both axes in
    logarithms); None where it stays above or below, or rises again."""
    known = [(row.at_once, row.gain) for row in rows if row.gain is not None]
    falls = [
        (low, before, high, after) for (low, before), (high, after) in pairwise(known) if before > 1 >= after
    ]
    if len(falls) != 1 or known[0][1] <= 1 or known[-1][1] > 1:
        return None
    low, before, high, after = falls[0]
    share = math.log(before) / (math.log(before) - math.log(after))
    return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))


def load_curves(report: BurstReport) -> Curves:
    """Tokens/s of all requests and of one, gain and acceptance against the requests at once."""
    places, rows = report.levels, report.rows
    of_all = values_of(places, ((row.lane, row.at_once, row.tokens_per_second) for row in rows))
    of_one = values_of(places, ((row.lane, row.at_once, row.tokens_per_second_of_one) for row in rows))
    gains = values_of(places, ((row.lane, row.at_once, row.gain) for row in rows))
    acceptance = values_of(places, ((row.lane, row.at_once, row.acceptance_rate) for row in rows))
    marks = tuple(
        CurveMark(_place(places, crossing), 1.0, f"{crossing:.1f}")
        for crossing in report.crossings
        if crossing is not None
    )
    return Curves(
        axis="requests at once",
        places=places,
        lanes=tuple(lane.name for lane in report.lanes),
        baselines=frozenset(lane for lane, facts in enumerate(report.lanes) if facts.baseline == lane),
        plots=(
            CurvePlot("tokens_per_second", "tokens/s of all", numbers.digits, of_all),
            CurvePlot("tokens_per_second_of_one", "tokens/s of one", numbers.digits, of_one),
            CurvePlot("gain", "gain", numbers.factor, gains, level=1.0 if gains else None, marks=marks),
            CurvePlot("acceptance_rate", "acceptance", numbers.percent, acceptance),
        ),
    )


def _place(places: Sequence[int], at_once: float) -> float:
    """Where a number of requests stands between the places, on a logarithmic scale."""
    at = next(index for index, (_, high) in enumerate(pairwise(places)) if at_once <= high)
    low, high = places[at], places[at + 1]
    return at + math.log(at_once / low) / math.log(high / low)


def load_sentences(report: BurstReport) -> list[str]:
    """What was found, and what the servers say of themselves."""
    return [*load_findings(report), *load_notes(report)]


def load_findings(report: BurstReport) -> list[str]:
    """Where drafting stops paying, a sentence for each lane that drafts."""
    return [said for lane in range(len(report.lanes)) if (said := _finding(report, lane))]


def load_notes(report: BurstReport) -> list[str]:
    """What the servers say of themselves, and what to know of the numbers."""
    said = dict.fromkeys(server_words(lane.server) for lane in report.lanes)
    for facts in report.lanes:
        most = max(report.levels)
        if 0 < facts.server.slots < most:
            requests = numbers.count(facts.server.slots, "request")
            said[f"{facts.name} answers {requests} at once: the others of {most} wait for their turn."] = None
        if facts.server.speculation and not facts.server.tells_fates:
            said[f"{facts.name}: acceptance is that of the whole server, all its users together."] = None
    failed = sum(row.failed for row in report.rows)
    if failed:
        said[f"{numbers.count(failed, 'request')} failed; a burst with one of them counts for no rate."] = (
            None
        )
        whys = (run.failure for burst in report.bursts for run in burst.runs)
        said |= dict.fromkeys(f"  {why}" for why in whys if why)
    return list(said)


def _finding(report: BurstReport, lane: int) -> str:
    """Where drafting stops paying, in a sentence; "" for a baseline."""
    facts = report.lanes[lane]
    if facts.baseline == lane:
        return ""
    if facts.baseline is None:
        return (
            f"{facts.name} has no baseline: measure another server with the same model and without drafts "
            "beside it, to see where drafting stops paying."
        )
    known = [row for row in report.rows if row.lane == lane and row.gain is not None]
    if not known:
        return ""
    crossing = report.crossings[lane]
    if crossing is not None:
        return f"{facts.name}: drafting pays up to about {crossing:.1f} requests at once."
    if len(known) == 1:
        pays = "pays" if (known[0].gain or 0.0) > 1 else "does not pay"
        level = numbers.count(known[0].at_once, "request")
        return f"{facts.name}: drafting {pays} with {level} at once, the one load measured."
    ends = f"from {known[0].at_once} to {known[-1].at_once}"
    if all((row.gain or 0.0) > 1 for row in known):
        return f"{facts.name}: drafting pays at every load measured, {ends} at once."
    if all((row.gain or 0.0) <= 1 for row in known):
        return f"{facts.name}: drafting pays at no load measured, {ends} at once."
    return f"{facts.name}: drafting pays at some loads and not at others; measure more repeats."
