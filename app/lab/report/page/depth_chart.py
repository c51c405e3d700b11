"""The report's chart over the length of the context: three plots side by side, a line for each lane."""

from __future__ import annotations

from app.lab.report.depth import PLOTTED, DepthNumber
from app.lab.report.page.svg import Scale, drawing, element, label, ticks
from app.lab.report.report import Report, depths_of

WIDTH = 980
COLOURS = 8
"""As many lines are told apart by colour; further lanes share one."""
_LEFT, _PLOT, _GAP, _HIGH, _TOP = 60, 236, 84, 200, 34
_LINE = 20  # of the legend


def depth_chart(report: Report) -> str:
    """Speed-up, acceptance and first-token time against the depth; "" without depths."""
    depths = depths_of(report.prompts)
    if not depths:
        return ""
    parts = [_plot(report, depths, shown, at) for at, shown in enumerate(PLOTTED)]
    below = _TOP + _HIGH + 50
    for lane, described in enumerate(report.lanes):
        y = below + _LINE * lane
        parts.append(element("line", x1=_LEFT, x2=_LEFT + 30, y1=y - 4, y2=y - 4, _class=_line_class(lane)))
        parts.append(label(_LEFT + 40, y, described.name))
    title = "Speed-up, acceptance and first-token time against the length of the context"
    return drawing(WIDTH, below + _LINE * len(report.lanes), title, *parts)


def _plot(report: Report, depths: tuple[int, ...], shown: DepthNumber, at: int) -> str:
    left = _LEFT + at * (_PLOT + _GAP)
    values = {
        (row.lane, row.depth): value
        for row in report.by_depth
        if (value := shown.value(row)) is not None and row.depth is not None
    }
    # Depths stand at equal distances: they usually grow by factors.
    x = Scale(0, max(1, len(depths) - 1), left, left + _PLOT)
    y = Scale(0, max(values.values(), default=1.0) * 1.1 or 1.0, _TOP + _HIGH, _TOP)
    parts = [label(left, _TOP - 14, shown.title)]
    for tick in ticks(0, y.high, 4):
        parts.append(element("line", x1=x.start, x2=x.end, y1=y(tick), y2=y(tick), _class="grid"))
        parts.append(label(left - 6, y(tick) + 4, shown.text(tick), text_anchor="end"))
    for place, depth in enumerate(depths):
        parts.append(label(x(place), y.start + 18, f"{depth:,}", text_anchor="middle"))
    for lane in range(len(report.lanes)):
        known = [(x(i), y(values[lane, d])) for i, d in enumerate(depths) if (lane, d) in values]
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in known)
        if known:
            parts.append(element("polyline", points=points, fill="none", _class=_line_class(lane)))
        parts += [element("circle", cx=px, cy=py, r=3.5, _class=_dot_class(lane)) for px, py in known]
    return "".join(parts)


def _line_class(lane: int) -> str:
    return f"lane lane{lane % COLOURS}"


def _dot_class(lane: int) -> str:
    return f"dot lane{lane % COLOURS}"
