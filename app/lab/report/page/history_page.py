"""A history as one HTML page: opens offline, holds its own data."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

import msgspec

from app.lab.report.history import HEAD, History
from app.lab.report.interval import speedup_words
from app.lab.report.page.charts import WIDTH
from app.lab.report.page.page import document, lane_html
from app.lab.report.page.svg import Scale, drawing, element, label, ticks

_ROW, _LEFT, _RIGHT, _TOP = 26, 330, 170, 24
_LONGEST = 34  # characters of a lane's name
_e = html.escape


def history_html(histories: Sequence[History]) -> str:
    """The histories as an HTML document: a plot and a table each."""
    body = [part for history in histories for part in (_chart(history), *_table(history))]
    return document("History of measurements", body, msgspec.json.encode(histories))


def _chart(history: History) -> str:
    """A dot for each result's speed-up, with its interval, below the lane's earlier ones."""
    shown = [row for row in history.rows if row.speed is not None]
    head = f"<h2>{_e(history.title)}</h2>"
    if not shown:
        return head
    low, high = history.reach
    x = Scale(max(0.0, low - 0.05), high + 0.05, _LEFT, WIDTH - _RIGHT)
    bottom = _TOP + _ROW * len(shown)
    parts = []
    for tick in ticks(x.low, x.high):
        parts.append(element("line", x1=x(tick), x2=x(tick), y1=6, y2=bottom, _class="grid"))
        parts.append(label(x(tick), bottom + 20, f"{tick:g}×", text_anchor="middle"))
    parts.append(element("line", x1=x(1.0), x2=x(1.0), y1=6, y2=bottom, _class="one"))
    for at, row in enumerate(shown):
        speed, y = row.speed, _TOP + _ROW * at
        assert speed is not None
        name = row.lane if len(row.lane) <= _LONGEST else f"{row.lane[: _LONGEST - 1]}…"
        parts.append(label(_LEFT - 14, y + 4, f"{name}  {row.created_at[:10]}", text_anchor="end"))
        ends = x(speed.low or speed.factor), x(speed.high or speed.factor)
        parts.append(element("line", x1=ends[0], x2=ends[1], y1=y, y2=y, _class="interval"))
        kind = f"mean {speed.finding.name.lower()}"
        parts.append(element("circle", cx=x(speed.factor), cy=y, r=6, _class=kind))
        parts.append(label(WIDTH - _RIGHT + 14, y + 4, speedup_words(speed), _class="value"))
    about = "Speed-up of each lane over none of the same result, with its 95\u00a0% interval."
    picture = drawing(WIDTH, bottom + 30, f"Speed-up over time: {history.title}", *parts)
    return f"{head}<figure>{picture}<figcaption>{about}</figcaption></figure>"


def _table(history: History) -> Iterator[str]:
    yield '<div class="scroll"><table><thead><tr>'
    yield "".join(f"<th>{title}</th>" for title in ("lane", *HEAD, "")) + "</tr></thead><tbody>"
    for row in history.rows:
        kinds = [""] * (len(HEAD) - 1) + [row.speed.finding.name.lower() if row.speed else "", ""]
        cells = zip(kinds, row.cells, strict=True)
        yield f"<tr><td>{lane_html(row.lane)}</td>"
        yield "".join(f'<td class="{kind}">{_e(cell)}</td>' for kind, cell in cells) + "</tr>"
    yield "</tbody></table></div>"
