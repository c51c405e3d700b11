"""What a load measurement found, in sentences, and what changed between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.base import numbers
from app.engine.errors import UserError
from app.lab.load.levels import level_words
from app.lab.load.report import BurstReport, LoadRow
from app.lab.report.change import ReportChange, differences_between
from app.lab.report.interval import SpeedFinding, Speedup
from app.servers.address import server_words


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
        most = max(report.levels, default=0)
        if 0 < facts.server.slots < most:
            requests = numbers.count(facts.server.slots, "request")
            said[f"{facts.name} answers {requests} at once: the others of {most} wait for their turn."] = None
        if facts.server.speculation and not facts.server.tells_fates:
            said[f"{facts.name}: acceptance is that of the whole server, all its users together."] = None
    if report.limits:
        said[f"Goodput counts requests with {report.limits.words()}."] = None
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
    unit = "requests a second" if report.rates else "requests at once"
    if crossing is not None:
        said = f"{facts.name}: drafting pays up to about {crossing:.1f} {unit}."
    elif len(known) == 1:
        pays = "pays" if (known[0].gain or 0.0) > 1 else "does not pay"
        said = f"{facts.name}: drafting {pays} with {_words(known[0])}, the one load measured."
    elif all((row.gain or 0.0) > 1 for row in known):
        said = f"{facts.name}: drafting pays at every load measured, {_ends(known)}."
    elif all((row.gain or 0.0) <= 1 for row in known):
        said = f"{facts.name}: drafting pays at no load measured, {_ends(known)}."
    else:
        said = f"{facts.name}: drafting pays at some loads and not at others; measure more repeats."
    unsure = [row for row in known if row.interval.finding is SpeedFinding.SAME]
    return f"{said} With {_words(*unsure)} the interval includes 1×." if unsure else said


def _words(*rows: LoadRow) -> str:
    """ "1 request at once", "0.5, 1 and 2 requests a second"."""
    noun = "request" if rows[-1].level == 1 else "requests"
    levels = numbers.listed([f"{row.level:g}" for row in rows])
    return f"{levels} {noun} {'at once' if rows[0].rate is None else 'a second'}"


def _ends(rows: Sequence[LoadRow]) -> str:
    unit = "at once" if rows[0].rate is None else "a second"
    return f"from {rows[0].level:g} to {rows[-1].level:g} {unit}"


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A lane at a load that both measured: a number of requests at once, or a rate."""

    name: str
    before: LoadRow
    after: LoadRow
    speed: Speedup | None  # what a gain compares, after / before; the interval is over repeats


def load_change_between(before: BurstReport, after: BurstReport) -> ReportChange[LevelChange]:
    """Compare lanes of the same name at the same load, over bursts of the same prompts; bursts of the same
    repeat are paired. Raises UserError where the prompts differ, or where no lane and load is in both."""
    if before.prompts != after.prompts:
        raise UserError(
            "The two loads asked different prompts: their rates do not compare.",
            "Measure the same prompts with both, then compare.",
        )
    names = [[_name(report, row) for row in report.rows] for report in (before, after)]
    found = dict(zip(names[1], after.rows, strict=True))
    changes = [
        LevelChange(name, row, found[name], _speed(before, after, row, found[name]))
        for name, row in zip(names[0], before.rows, strict=True)
        if name in found
    ]
    if not changes:
        raise UserError(
            "The two files have no lane and load in common.",
            "Measure the same servers and loads with both, then compare.",
        )
    drawn = any(
        report.settings.sampling.temperature > 0 or any(row.rate is not None for row in report.rows)
        for report in (before, after)
    )
    facts, settings = differences_between(
        (before.system, after.system), (before.settings, after.settings), seeded=drawn
    )
    return ReportChange(
        lanes=tuple(changes),
        prompts=len(before.prompts),
        only_before=tuple(name for name in names[0] if name not in names[1]),
        only_after=tuple(name for name in names[1] if name not in names[0]),
        differences=(*facts, *settings),
    )


def _name(report: BurstReport, row: LoadRow) -> str:
    return f"{report.lanes[row.lane].name}, {level_words(row.level, by_rate=row.rate is not None)}"


def _speed(before: BurstReport, after: BurstReport, old: LoadRow, new: LoadRow) -> Speedup | None:
    rates = [
        {
            burst.repeat: burst.speed
            for burst in report.bursts
            if (burst.lane, burst.at_once, burst.rate) == (row.lane, row.at_once, row.rate) and burst.speed
        }
        for report, row in ((before, old), (after, new))
    ]
    return Speedup.of(
        {repeat: {0: rates[1][repeat] / rate} for repeat, rate in rates[0].items() if repeat in rates[1]}
    )
