"""Curves as a picture: plots side by side, a line for each lane."""

from __future__ import annotations

from collections.abc import Iterator

from app.lab.report.curves import CurvePlot, Curves, place_words
from app.lab.report.page.svg import Scale, drawing, element, label, ticks

WIDTH = 980
COLOURS = 8
"""As many lines are told apart by colour; further lanes share one."""
_LEFT, _GAP, _HIGH, _TOP = 60, 72, 200, 34
_LINE = 20  # of the legend


def curve_chart(curves: Curves, title: str) -> str:
    """The plots that have values, and a legend; "" where none has."""
    shown = list(curves.shown())
    if not shown:
        return ""
    width = (WIDTH - _LEFT - 20 - _GAP * (len(shown) - 1)) / len(shown)
    parts: list[str] = []
    for at, plot in enumerate(shown):
        left = _LEFT + at * (width + _GAP)
        parts += _plot(curves, plot, left, left + width)
    below = _TOP + _HIGH + 50
    for lane, name in enumerate(curves.lanes):
        y = below + _LINE * lane
        parts.append(element("line", x1=_LEFT, x2=_LEFT + 30, y1=y - 4, y2=y - 4, _class=_line_class(lane)))
        parts.append(label(_LEFT + 40, y, name))
    return drawing(WIDTH, below + _LINE * len(curves.lanes), title, *parts)


def _plot(curves: Curves, plot: CurvePlot, left: float, right: float) -> Iterator[str]:
    places = len(curves.places)
    x = Scale(0, max(1, places - 1), left, right)
    y = Scale(0, plot.top * 1.1, _TOP + _HIGH, _TOP)
    yield label(left, _TOP - 14, plot.title)
    for tick in ticks(0, y.high, 4):
        yield element("line", x1=x.start, x2=x.end, y1=y(tick), y2=y(tick), _class="grid")
        yield label(left - 6, y(tick) + 4, plot.text(tick), text_anchor="end")
    if plot.level is not None:
        yield element("line", x1=x.start, x2=x.end, y1=y(plot.level), y2=y(plot.level), _class="one")
    for at, place in enumerate(curves.places):
        yield label(x(at), y.start + 18, place_words(place), text_anchor="middle")
    yield label((x.start + x.end) / 2, y.start + 36, curves.axis, text_anchor="middle")
    for lane in range(len(curves.lanes)):
        known = [(x(at), y(value)) for at, value in plot.line(lane, places)]
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in known)
        if known:
            yield element("polyline", points=points, fill="none", _class=_line_class(lane))
        yield from (element("circle", cx=px, cy=py, r=3.5, _class=_dot_class(lane)) for px, py in known)
    for mark in plot.marks:
        yield element("circle", cx=x(mark.at), cy=y(mark.value), r=7, fill="none", stroke="currentColor")
        yield label(x(mark.at) + 10, y(mark.value) - 8, mark.text)


def _line_class(lane: int) -> str:
    return f"lane lane{lane % COLOURS}"


def _dot_class(lane: int) -> str:
    return f"dot lane{lane % COLOURS}"
