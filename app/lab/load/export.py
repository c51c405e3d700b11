"""A load measurement for people and spreadsheets: table, CSV, Markdown, HTML."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.base import numbers
from app.base.numbers import cell
from app.lab.latency import FIRST_TOKEN_TITLE, INTER_TOKEN, INTER_TOKEN_TITLE
from app.lab.load.findings import load_findings, load_notes, load_sentences
from app.lab.load.levels import level_words
from app.lab.load.report import BurstReport, LoadRow, load_curves
from app.lab.report.export.markdown_export import escaped
from app.lab.report.page.curve_chart import curve_chart
from app.lab.report.page.page import document, lane_html

ABOUT = "Speed, gain and acceptance against the load. A ring: where the gain falls to 1."
_e = html.escape


@dataclass(frozen=True, slots=True)
class LoadColumn:
    """A column of the table."""

    title: str
    definition: str
    text: Callable[[LoadRow], str]


LOAD_COLUMNS = (
    LoadColumn(
        "load",
        "Requests at once: as one ends, the next is sent. Or requests a second: they are sent at random "
        "times (a Poisson process, drawn by the seed), the same for every lane.",
        lambda row: level_words(row.level, by_rate=row.rate is not None),
    ),
    LoadColumn(
        "tokens/s of all (95 %)",
        "Tokens of all requests / time. Of requests at once, that is the time in which this many were being "
        "answered. Geometric mean over repeats; an interval needs three.",
        lambda row: row.speed_words,
    ),
    LoadColumn(
        "tokens/s of one",
        "Median over requests of a request's tokens / the time from its own first token, of those that had "
        "the whole load to their end.",
        lambda row: numbers.digits(row.tokens_per_second_of_one),
    ),
    LoadColumn(
        "gain (95 %)",
        "Tokens/s of all over those of the server without drafts at the same load. At a rate: tokens / time "
        "from sending a request to its end, over the same. Geometric mean over repeats.",
        lambda row: row.gain_words,
    ),
    LoadColumn(
        "acceptance",
        "Accepted / drafted tokens, pooled over all requests.",
        lambda row: numbers.percent(row.acceptance_rate),
    ),
    LoadColumn(
        FIRST_TOKEN_TITLE,
        "p50, p95 and p99 of the time from a request to its first token, with waiting for a free slot.",
        lambda row: row.first_token_words,
    ),
    LoadColumn(INTER_TOKEN_TITLE, INTER_TOKEN, lambda row: row.inter_token_words),
    LoadColumn(
        "goodput",
        "Requests a second that kept all limits, and their share of all. A failed request keeps none.",
        lambda row: row.goodput_words,
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
    lines = [f"### {escaped(report.title or 'Load')}", ""]
    rows = [[escaped(words).replace("|", "\\|") for words in row] for row in rows]
    lines += [f"| {' | '.join(words)} |" for words in [head, [":--", *["--:"] * len(LOAD_COLUMNS)], *rows]]
    lines += ["", *(f"- {escaped(said)}" for said in load_sentences(report))]
    lines += ["", "What the columns mean:", ""]
    lines += [f"- {column.title}: {column.definition}" for column in LOAD_COLUMNS]
    return "\n".join(lines) + "\n"


def load_html(report: BurstReport) -> str:
    """The report as one HTML page with its data."""
    return document(
        report.title or "Draftscope load",
        [
            f'<p class="soft">{_e(report.created_at[:10])}, '
            f"{_e(numbers.count(len(report.prompts), 'prompt'))}, "
            f"{_e(numbers.count(report.settings.repeats, 'repeat'))}, up to "
            f"{_e(numbers.count(report.settings.max_tokens, 'token'))} each.</p>",
            *(f'<p class="verdict">{_e(said)}</p>' for said in load_findings(report)),
            *(f"<p>{_e(said)}</p>" for said in load_notes(report)),
            f"<figure>{curve_chart(load_curves(report), ABOUT)}<figcaption>{_e(ABOUT)}</figcaption></figure>",
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
