"""A load measurement for people and spreadsheets: table, CSV, Markdown, HTML."""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.base import numbers
from app.lab.load.report import BurstReport, LoadRow, load_sentences
from app.lab.report.csv_export import cell
from app.lab.report.page.page import document, lane_html
from app.lab.report.page.svg import Scale, drawing, element, label, spread_out, ticks

_e = html.escape
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 980, 320, 70, 240, 20, 280


@dataclass(frozen=True, slots=True)
class LoadColumn:
    """A column of the table."""

    title: str
    definition: str
    text: Callable[[LoadRow], str]


LOAD_COLUMNS = (
    LoadColumn("at once", "Requests that are sent at the same time.", lambda row: str(row.at_once)),
    LoadColumn(
        "tokens/s of all",
        "Median over repeats of the tokens of all requests / the time from sending them to the end of the "
        "last.",
        lambda row: numbers.digits(row.tokens_per_second),
    ),
    LoadColumn(
        "tokens/s of one",
        "Median over requests of a request's tokens / the time from its own first token.",
        lambda row: numbers.digits(row.tokens_per_second_of_one),
    ),
    LoadColumn(
        "gain",
        "Tokens/s of all over those of the server without drafts at the same load: geometric mean over "
        "repeats.",
        lambda row: numbers.factor(row.gain),
    ),
    LoadColumn(
        "acceptance",
        "Accepted / drafted tokens, pooled over all requests.",
        lambda row: numbers.percent(row.acceptance_rate),
    ),
    LoadColumn(
        "first token",
        "Median time from the request to its first token, with waiting for a free slot.",
        lambda row: numbers.milliseconds(row.first_token_seconds),
    ),
)


def load_cells(report: BurstReport) -> tuple[list[str], list[list[str]]]:
    """(headings, a row of texts for every lane and level)"""
    rows = [
        [report.lanes[row.lane].name, *(column.text(row) for column in LOAD_COLUMNS)] for row in report.rows
    ]
    return ["lane", *(column.title for column in LOAD_COLUMNS)], rows


def load_csv(report: BurstReport) -> str:
    """A line for every lane and level."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = [name for name in LoadRow.__struct_fields__ if name != "lane"]
    writer.writerow(["name", *fields])
    for row in report.rows:
        writer.writerow([cell(report.lanes[row.lane].name), *(cell(getattr(row, name)) for name in fields)])
    return out.getvalue()


def load_markdown(report: BurstReport) -> str:
    """The table and what was found, for an issue or a message."""
    head, rows = load_cells(report)
    lines = [f"### {report.title or 'Load'}", ""]
    lines += [f"| {' | '.join(words)} |" for words in [head, [":--", *["--:"] * len(LOAD_COLUMNS)], *rows]]
    lines += ["", *(f"- {' '.join(said.split())}" for said in load_sentences(report))]
    return "\n".join(lines) + "\n"


def load_html(report: BurstReport) -> str:
    """The report as one HTML page with its data."""
    first, *rest = load_sentences(report)
    return document(
        report.title or "Draftscope load",
        [
            f'<p class="soft">{_e(report.created_at[:10])}, '
            f"{_e(numbers.count(len(report.prompts), 'prompt'))}, "
            f"{_e(numbers.count(report.settings.repeats, 'repeat'))}, up to "
            f"{_e(numbers.count(report.settings.max_tokens, 'token'))} each.</p>",
            *(f'<p class="verdict">{_e(said)}</p>' for said in rest),
            f"<p>{_e(first)}</p>",
            _chart(report),
            *_table(report),
        ],
        report.to_json(),
    )


def _table(report: BurstReport) -> Iterator[str]:
    head, rows = load_cells(report)
    yield '<div class="scroll"><table><thead><tr>'
    yield "".join(f"<th>{_e(title)}</th>" for title in head) + "</tr></thead><tbody>"
    for name, *texts in rows:
        yield f"<tr><td>{lane_html(name)}</td>{''.join(f'<td>{_e(text)}</td>' for text in texts)}</tr>"
    yield "</tbody></table></div><div class='definitions'>"
    for column in LOAD_COLUMNS:
        yield f"<p><b>{_e(column.title)}</b>: {_e(column.definition)}</p>"
    yield "</div>"


def _chart(report: BurstReport) -> str:
    """Tokens/s of all requests over their number, a line for every lane. "" without any."""
    known = [row for row in report.rows if row.tokens_per_second is not None]
    if not known:
        return ""
    x = Scale(0.0, math.log2(max(report.levels)) or 1.0, _LEFT, _WIDTH - _RIGHT)
    y = Scale(0.0, max(row.tokens_per_second or 0.0 for row in known) * 1.05, _BOTTOM, _TOP)
    parts = [
        label(x(math.log2(level)), _BOTTOM + 22, f"{level} at once", text_anchor="middle")
        for level in report.levels
    ]
    for value in ticks(y.low, y.high, 5):
        parts.append(element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(value), y2=y(value), _class="grid"))
        parts.append(label(_LEFT - 10, y(value) + 4, f"{value:g}", text_anchor="end"))
    ends: dict[str, tuple[float, float]] = {}
    for lane, facts in enumerate(report.lanes):
        points = [
            (x(math.log2(row.at_once)), y(row.tokens_per_second or 0.0)) for row in known if row.lane == lane
        ]
        style = {"stroke_dasharray": "6 4"} if facts.baseline == lane else {}
        line = " ".join(f"{across:.1f},{up:.1f}" for across, up in points)
        parts.append(element("polyline", points=line, fill="none", stroke="currentColor", **style))
        parts += [element("circle", cx=across, cy=up, r=3, _class="run") for across, up in points]
        if points:
            ends[facts.name] = points[-1]
    rows = spread_out([up for _, up in ends.values()], 16, _TOP, _BOTTOM)
    parts += [
        label(across + 12, row + 4, name) for (name, (across, _)), row in zip(ends.items(), rows, strict=True)
    ]
    title = "Tokens per second of all requests together, by their number"
    return f"<h2>{title}</h2>{drawing(_WIDTH, _HEIGHT, title, *parts)}"
