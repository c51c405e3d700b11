"""Curves: numbers over a row of places (depths, requests at once), a line for each lane. Plots draw them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CurveMark:
    """A point between two places that means something."""

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
