"""A sweep's cells with their numbers, and the maps that show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from app.base import numbers
from app.lab.report.interval import middle
from app.lab.report.report import Cell, Report, SweepFacts
from app.lab.report.summary import Summary

_MOST_CELLS_NAMED = 3  # of those left out for one reason


class Heat(msgspec.Struct, frozen=True):
    """One cell with its numbers, for a heat map."""

    cell: Cell
    strategy: str
    tokens_per_second: float | None = None
    acceptance_rate: float | None = None
    speedup: float | None = None
    end_to_end_speedup: float | None = None
    problem: str = ""  # why it has no numbers: it is not allowed, does not fit, or failed

    @property
    def name(self) -> str:
        """The strategy with the values of both axes, even defaults."""
        return self.cell.name or self.strategy


@dataclass(frozen=True, slots=True)
class Map:
    """One number over the grid."""

    title: str
    definition: str
    value: Callable[[Heat], float | None]
    text: Callable[[float | None], str]


MAPS = (
    Map(
        "tokens/s",
        "Medians over runs of emitted tokens / wall time from the start of round 0.",
        lambda heat: heat.tokens_per_second,
        numbers.digits,
    ),
    Map(
        "speed-up over none",
        "Tokens/s over that of none with the same settings of models and sampler: geometric mean.",
        lambda heat: heat.speedup,
        numbers.factor,
    ),
    Map(
        "speed-up end to end",
        "The same, including the time to read the prompt: from the request to the last token.",
        lambda heat: heat.end_to_end_speedup,
        numbers.factor,
    ),
    Map(
        "acceptance",
        "Accepted / drafted tokens, pooled over all runs.",
        lambda heat: heat.acceptance_rate,
        numbers.percent,
    ),
)


def heat_map(report: Report) -> tuple[Heat, ...]:
    """The cells of a sweep with their numbers, row by row (y), column by column (x)."""
    return heats(report.sweep, report.summary) if report.sweep is not None else ()


def heats(facts: SweepFacts, summary: Sequence[Summary]) -> tuple[Heat, ...]:
    """The cells with their numbers, from the summaries alone: there is no report while a sweep runs."""
    heat = []
    for cell in facts.cells:
        if cell.lane is None:
            heat.append(Heat(cell, "", problem=cell.refused))
            continue
        row = summary[cell.lane]
        heat.append(
            Heat(
                cell,
                row.strategy,
                middle(row.tokens_per_second),
                row.acceptance_rate,
                row.speedup.factor if row.speedup else None,
                row.whole_speedup,
                "" if row.runs else row.failure,
            )
        )
    return tuple(heat)


def best_cell(facts: SweepFacts, cells: Sequence[Heat]) -> Heat | None:
    """The fastest cell; None where nothing was measured. Speed-ups compare runs side by side, but over
    several baselines only tokens/s say which is the fastest."""

    def speed(cell: Heat) -> float | None:
        return cell.tokens_per_second if facts.baselines > 1 else cell.speedup

    known = [cell for cell in cells if speed(cell) is not None]
    return max(known, key=lambda cell: speed(cell) or 0.0, default=None)


def left_out(facts: SweepFacts, cells: Sequence[Heat]) -> list[str]:
    """A line for each reason why cells have no numbers, with the cells."""
    reasons: dict[str, list[str]] = {}
    for heat in cells:
        if heat.problem:
            place = f"{facts.x}={heat.cell.x} {facts.y}={heat.cell.y}"
            reasons.setdefault(heat.problem, []).append(place)
    return [f"left out, {_some(places)}: {reason}" for reason, places in reasons.items()]


def _some(places: Sequence[str]) -> str:
    shown = list(places[:_MOST_CELLS_NAMED])
    more = len(places) - len(shown)
    return numbers.listed([*shown, f"{more} more"] if more else shown)
