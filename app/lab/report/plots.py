"""The contents of plots: maps of a sweep's cells, and curves over places (depths, requests at once)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.base import numbers
from app.lab.report.columns import Column, Shown, columns_of
from app.lab.report.report import Cell, Report, SweepFacts
from app.lab.report.summary import middle

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


MAPS: tuple[Column[Heat], ...] = columns_of(
    """
tokens_per_second  tokens/s  Medians over runs of emitted tokens / wall time from the start of the first
    round.
speedup  speed-up over none  Tokens/s divided by tokens/s of none with the same model and sampler settings:
    geometric mean.
end_to_end_speedup  speed-up end to end  Speed-up including the time to read the prompt: from the request to
    the last token.
acceptance_rate  acceptance  Accepted / drafted tokens, pooled over all runs.
""",
    speedup=Shown(written=numbers.factor),
    end_to_end_speedup=Shown(written=numbers.factor),
    acceptance_rate=Shown(written=numbers.percent),
)


def heat_map(report: Report) -> tuple[Heat, ...]:
    """The cells of a sweep with their numbers, row by row (y), column by column (x)."""
    heat = []
    for cell in report.sweep.cells if report.sweep is not None else ():
        if cell.lane is None:
            heat.append(Heat(cell, "", problem=cell.refused))
            continue
        row = report.summary[cell.lane]
        factors = row.speedup.factor if row.speedup else None, row.whole_speedup
        shares = middle(row.tokens_per_second), row.acceptance_rate
        heat.append(Heat(cell, row.strategy, *shares, *factors, "" if row.runs else row.failure))
    return tuple(heat)


def grid_cells(facts: SweepFacts, cells: Sequence[Heat], shown: Column[Heat]) -> list[list[str]]:
    """The rows of a map as texts, each beginning with its y value."""
    across = len(facts.x_values)
    return [
        [value, *(shown.text(cell) for cell in cells[at * across : (at + 1) * across])]
        for at, value in enumerate(facts.y_values)
    ]


def best_cell(facts: SweepFacts, cells: Sequence[Heat]) -> Heat | None:
    """The fastest cell; None if nothing was measured. Over several baselines only tokens/s, not speed-ups,
    show which is fastest."""

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


@dataclass(frozen=True, slots=True)
class CurveMark:
    """A marked point between two places."""

    at: float  # index of the place, with its fraction
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class CurvePlot:
    """One number over the places."""

    key: str  # in tables
    title: str
    text: Callable[[float | None], str]
    values: Mapping[tuple[int, int], float]  # by lane and index of the place; without those not known
    level: float | None = None  # of the baseline, where the number is compared with it
    marks: tuple[CurveMark, ...] = ()

    @property
    def top(self) -> float:
        """The highest value, 1.0 without any."""
        return max([*self.values.values(), self.level or 0.0]) or 1.0

    def line(self, lane: int, places: int) -> list[tuple[int, float]]:
        """(index of the place, value) of a lane, in order."""
        return [(at, self.values[lane, at]) for at in range(places) if (lane, at) in self.values]


@dataclass(frozen=True, slots=True)
class Curves:
    """Plots side by side, over the same places and lanes."""

    axis: str  # of what the places are a number
    places: tuple[float, ...]  # in increasing order; at equal distances, since they grow by factors
    lanes: tuple[str, ...]
    baselines: frozenset[int]  # of these the baselines
    plots: tuple[CurvePlot, ...]

    def reading(self, lane: int, at: int) -> str:
        """All numbers of a lane at a place, in words."""
        known = [
            f"{plot.title} {plot.text(plot.values[lane, at])}"
            for plot in self.plots
            if (lane, at) in plot.values
        ]
        return f"{self.lanes[lane]}\n{self.axis} {place_words(self.places[at])}: {', '.join(known)}"

    def words_at(self, at: float) -> str:
        """The place at an index; "" between two places and beyond the ends."""
        return place_words(self.places[int(at)]) if at in range(len(self.places)) else ""

    def table(self) -> tuple[list[str], list[list[str | int | float | None]]]:
        """(names of the columns, a row for each lane and place)"""
        rows = [self._row(lane, at) for lane in range(len(self.lanes)) for at in range(len(self.places))]
        return ["lane", self.axis, *(plot.key for plot in self.plots)], rows

    def _row(self, lane: int, at: int) -> list[str | int | float | None]:
        return [self.lanes[lane], self.places[at], *(plot.values.get((lane, at)) for plot in self.plots)]

    def shown(self) -> Iterator[CurvePlot]:
        """The plots that have a value."""
        return (plot for plot in self.plots if plot.values)


def place_words(place: float) -> str:
    """ "4,096", "0.5"."""
    return f"{place:,.0f}" if place == int(place) else f"{place:g}"


def values_of(
    places: Sequence[float], rows: Iterable[tuple[int, float | None, float | None]]
) -> dict[tuple[int, int], float]:
    """The values of a plot from rows of (lane, place, number), without those whose place or number is not
    known."""
    return {
        (lane, places.index(place)): number
        for lane, place, number in rows
        if place is not None and number is not None
    }
