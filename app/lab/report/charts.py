"""The report's charts as SVG: pure functions from numbers to text."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from app.base import numbers
from app.lab.report.columns import Column
from app.lab.report.plots import MAPS, CurvePlot, Curves, Heat, best_cell, heat_map, place_words
from app.lab.report.report import Report
from app.lab.report.summary import Speedup, speedup_words


def element(name: str, content: str = "", **attributes: object) -> str:
    """An element; `content` is markup. Underscores in names become hyphens."""
    written = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(_plain(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def label(x: float, y: float, text: str, **attributes: object) -> str:
    return element("text", escape(text), x=x, y=y, **attributes)


def drawing(width: float, height: float, title: str, *parts: str) -> str:
    """A whole picture; `title` is read out by screen readers."""
    return element(
        "svg",
        element("title", escape(title)) + "".join(parts),
        viewBox=f"0 0 {_plain(width)} {_plain(height)}",
        width=width,
        height=height,
        role="img",
        xmlns="http://www.w3.org/2000/svg",
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from values to coordinates."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round values from `low` to `high`, in steps of 1, 2, 2.5 or 5 times a power of ten."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * multiple for multiple in (1, 2, 2.5, 5, 10) if power * multiple >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(n * step, 10) for n in range(first, last + 1)]


def spread_out(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Coordinates moved apart so that neighbours are at least `gap` apart, near where they were."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    at = low - gap
    for index in order:
        at = moved[index] = max(moved[index], at + gap)
    over = at - high
    if over > 0:  # move back from the edge, the last first
        at = high + gap
        for index in reversed(order):
            at = moved[index] = min(moved[index], at - gap)
    return moved


def _plain(value: object) -> str:
    """A value as text; numbers have at most two decimals, enough for a picture."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


WIDTH = 980
_ROW = 34
_LEFT = 300
_RIGHT = 170
_LONGEST_NAME = 42  # characters that fit on the left
MOST_BARS = 16  # of a cell
SHADES = (0.06, 0.5)
"""Opacity of a map's cells: numbers stay legible on the darkest, on light and dark screens and on paper."""


def share_bars(shares: Sequence[float | None], text: str) -> str:
    """Shares as small bars; `text` lists them for the mouse and screen readers."""
    bars = [
        element("rect", x=6 * at, y=16 * (1 - (share or 0.0)), width=5, height=max(1.0, 16 * (share or 0.0)))
        for at, share in enumerate(shares[:MOST_BARS])
    ]
    return drawing(6 * len(bars), 17, text, *bars)


def speedup_chart(report: Report) -> str:
    """Each lane's speed-up: a dot for each run, the geometric mean and its interval. "" without any."""
    without = {(out.prompt_index, out.repeat) for out in report.left_out}
    dots: defaultdict[int, list[float]] = defaultdict(list)
    for run in report.runs:
        if run.speedup is not None and (run.prompt_index, run.repeat) not in without:
            dots[run.lane].append(run.speedup)
    rows = [
        (shortened(report.lanes[summary.lane].name), summary.speedup, dots[summary.lane])
        for summary in report.summary
        if summary.speedup is not None
    ]
    values = [value for _, speed, runs in rows for value in (*runs, speed.low, speed.high) if value]
    if not values:
        return ""
    low, high = min(1.0, *values, 0.9), max(1.0, *values, 1.1)
    # A very wide interval is cut off.
    high = min(high, 2.5 * max(1.0, *(speed.factor for _, speed, _ in rows)))
    return factor_rows(rows, low, high, "Speed-up of each lane over none")


def factor_rows(
    rows: Sequence[tuple[str, Speedup, Sequence[float]]], low: float, high: float, title: str
) -> str:
    """A row for each (name, factor with its interval, single factors as dots), on an axis from `low` to
    `high`."""
    x = Scale(max(0.0, low - 0.05), high + 0.05, _LEFT, WIDTH - _RIGHT)
    bottom = _ROW * len(rows) + 14
    parts = []
    for tick in ticks(x.low, x.high):
        parts.append(_line(x(tick), 6, x(tick), bottom, "grid"))
        parts.append(label(x(tick), bottom + 20, f"{tick:g}×", text_anchor="middle"))
    parts.append(_line(x(1.0), 6, x(1.0), bottom, "one"))
    for row, (name, speed, dots) in enumerate(rows):
        y = 24 + _ROW * row
        parts.append(label(_LEFT - 14, y + 4, name, text_anchor="end"))
        parts += [
            element("circle", cx=x(value), cy=y, r=3, _class="run") for value in dots if value <= x.high
        ]
        ends = x(max(x.low, speed.low or speed.factor)), x(min(x.high, speed.high or speed.factor))
        parts.append(_line(ends[0], y, ends[1], y, "interval"))
        parts.append(element("circle", cx=x(speed.factor), cy=y, r=6, _class=f"mean {finding_class(speed)}"))
        parts.append(label(WIDTH - _RIGHT + 14, y + 4, speedup_words(speed), _class="value"))
    return drawing(WIDTH, bottom + 30, title, *parts)


def scatter_chart(report: Report) -> str:
    """Acceptance against speed-up: a high acceptance is not a high speed. "" without a drafting lane."""
    shown = [summary for summary in report.summary if summary.speedup and summary.acceptance_rate is not None]
    if not shown:
        return ""
    factors = [summary.speedup.factor for summary in shown if summary.speedup]
    x = Scale(0.0, 1.0, 60, WIDTH - 300)
    y = Scale(min(0.8, *factors) - 0.1, max(1.2, *factors) + 0.1, 330, 20)
    parts = []
    for tick in ticks(0, 1, 5):
        parts.append(_line(x(tick), y.end, x(tick), y.start, "grid"))
        parts.append(label(x(tick), y.start + 20, numbers.percent(tick, 0), text_anchor="middle"))
    for tick in ticks(y.low, y.high, 6):
        parts.append(_line(x.start, y(tick), x.end, y(tick), "grid"))
        parts.append(label(x.start - 10, y(tick) + 4, f"{tick:g}×", text_anchor="end"))
    parts.append(_line(x.start, y(1.0), x.end, y(1.0), "one"))
    names = spread_out([y(factor) for factor in factors], 17, y.end, y.start)
    few = len(shown) <= 12
    for summary, factor, beside in zip(shown, factors, names, strict=True):
        assert summary.acceptance_rate is not None
        at = x(summary.acceptance_rate)
        if few:
            parts.append(_line(at, y(factor), x.end + 16, beside, "leader"))
            parts.append(label(x.end + 20, beside + 4, shortened(report.lanes[summary.lane].name)))
        parts.append(
            element("circle", cx=at, cy=y(factor), r=6, _class=f"mean {finding_class(summary.speedup)}")
        )
    parts.append(label((x.start + x.end) / 2, y.start + 42, "acceptance rate", text_anchor="middle"))
    parts.append(label(x.start, y.end - 8, "speed-up", text_anchor="middle"))
    return drawing(WIDTH, 380, "Acceptance rate against speed-up", *parts)


def heat_chart(report: Report, shown: Column[Heat]) -> str:
    """A sweep as a map: darker is more. "" without a sweep."""
    if report.sweep is None:
        return ""
    cells = heat_map(report)
    known = [number for cell in cells if (number := shown.value(cell)) is not None]
    if not known:
        return ""
    shade = Scale(min(known), max(known), *SHADES)
    columns, rows = len(report.sweep.x_values), len(report.sweep.y_values)
    left, top, high = 110, 30, 34
    wide = min(90.0, (WIDTH - left) / columns)
    parts = [
        label(left + wide * (i + 0.5), top - 8, text, text_anchor="middle")
        for i, text in enumerate(report.sweep.x_values)
    ]
    parts += [
        label(left - 10, top + high * (row + 0.5) + 4, text, text_anchor="end")
        for row, text in enumerate(report.sweep.y_values)
    ]
    best = best_cell(report.sweep, cells)
    for index, cell in enumerate(cells):
        row, column = divmod(index, columns)
        x, y = left + wide * column, top + high * row
        number = shown.value(cell)
        strength = 0.0 if number is None else shade(number)
        kind = "cell best" if cell is best else "cell"
        parts.append(
            element("rect", x=x, y=y, width=wide - 2, height=high - 2, _class=kind, fill_opacity=strength)
        )
        text = "left out" if cell.problem else shown.text(cell)
        parts.append(label(x + wide / 2 - 1, y + high / 2 + 3, text, text_anchor="middle"))
    bottom = top + high * rows
    parts.append(label(left, bottom + 18, f"across: {report.sweep.x}; down: {report.sweep.y}"))
    return drawing(WIDTH, bottom + 28, _over_the_grid(shown), *parts)


def _over_the_grid(shown: Column[Heat]) -> str:
    return f"{shown.title[:1].upper()}{shown.title[1:]} over the grid"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return element("line", x1=x1, x2=x2, y1=y1, y2=y2, _class=kind)


def shortened(name: str, longest: int = _LONGEST_NAME) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def finding_class(speed: Speedup | None) -> str:
    """The style class of a factor: faster, slower, or neither shown."""
    return speed.finding.name.lower() if speed else ""


def charts(report: Report) -> Sequence[tuple[str, str, str]]:
    """(title, caption, picture) of every chart that has something to show."""
    framed = " In every map the fastest setting is framed."
    heat = [
        (_over_the_grid(each), each.definition + framed * (each is MAPS[0]), heat_chart(report, each))
        for each in MAPS
    ]
    lanes = [
        (
            "Speed-up over none",
            "A small dot is one run compared with the baseline's run of the same prompt and repeat. The "
            "large dot is the geometric mean of the runs, the bar its 95\u00a0% interval over prompts and "
            "repeats. Right of 1× is faster.",
            "" if report.sweep else speedup_chart(report),
        ),
        (
            "Acceptance is not speed",
            "Accepted tokens help only if drafting and verifying cost less time than they save.",
            scatter_chart(report),
        ),
    ]
    return [chart for chart in (*heat, *lanes) if chart[2]]


COLOURS = 8
"""The number of colours; more lanes share them."""
_CURVES_LEFT, _GAP, _HIGH, _TOP = 60, 72, 200, 34
_LINE = 20  # of the legend


def curve_chart(curves: Curves, title: str) -> str:
    """The plots that have values, and a legend; "" if none has."""
    shown = list(curves.shown())
    if not shown:
        return ""
    width = (WIDTH - _CURVES_LEFT - 20 - _GAP * (len(shown) - 1)) / len(shown)
    parts: list[str] = []
    for at, plot in enumerate(shown):
        left = _CURVES_LEFT + at * (width + _GAP)
        parts += _plot(curves, plot, left, left + width)
    below = _TOP + _HIGH + 50
    for lane, name in enumerate(curves.lanes):
        y = below + _LINE * lane
        parts.append(_line(_CURVES_LEFT, y - 4, _CURVES_LEFT + 30, y - 4, _line_class(lane)))
        parts.append(label(_CURVES_LEFT + 40, y, name))
    return drawing(WIDTH, below + _LINE * len(curves.lanes), title, *parts)


def _plot(curves: Curves, plot: CurvePlot, left: float, right: float) -> Iterator[str]:
    places = len(curves.places)
    x = Scale(0, max(1, places - 1), left, right)
    y = Scale(0, plot.top * 1.1, _TOP + _HIGH, _TOP)
    yield label(left, _TOP - 14, plot.title)
    for tick in ticks(0, y.high, 4):
        yield _line(x.start, y(tick), x.end, y(tick), "grid")
        yield label(left - 6, y(tick) + 4, plot.text(tick), text_anchor="end")
    if plot.level is not None:
        yield _line(x.start, y(plot.level), x.end, y(plot.level), "one")
    for at, place in enumerate(curves.places):
        yield label(x(at), y.start + 18, place_words(place), text_anchor="middle")
    yield label((x.start + x.end) / 2, y.start + 36, curves.axis, text_anchor="middle")
    for lane in range(len(curves.lanes)):
        known = [(x(at), y(value)) for at, value in plot.line(lane, places)]
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in known)
        if known:
            yield element("polyline", points=points, fill="none", _class=_line_class(lane))
        yield from (
            element("circle", cx=px, cy=py, r=3.5, _class=f"dot lane{lane % COLOURS}") for px, py in known
        )
    for mark in plot.marks:
        yield element("circle", cx=x(mark.at), cy=y(mark.value), r=7, fill="none", stroke="currentColor")
        yield label(x(mark.at) + 10, y(mark.value) - 8, mark.text)


def _line_class(lane: int) -> str:
    return f"lane lane{lane % COLOURS}"
