"""From one load measurement to another: how much faster each lane became at each load."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.errors import UserError
from app.lab.load.levels import level_words
from app.lab.load.report import BurstReport, LoadRow
from app.lab.report.change import ReportChange, differences_between
from app.lab.report.interval import Speedup


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
