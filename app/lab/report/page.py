"""The report as one HTML page: opens offline, reads well printed, holds its own data.

The page is a function of the report, and the report is embedded as JSON: every number of the page can be
recomputed from it (`Report.from_json(embedded_json(page))`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from app.base import numbers
from app.engine.params import params_of
from app.engine.types import Sampling
from app.lab.depths import DEFINITION, HEAD, depth_curves, depth_rows, depths_left_out
from app.lab.facts import FileFacts, PairFacts, SystemFacts
from app.lab.report.charts import charts, curve_chart, share_bars, speed_class
from app.lab.report.columns import COLUMNS, SHAPE, Column, Row, filled_columns, lane_rows
from app.lab.report.plots import heat_map, left_out
from app.lab.report.report import Report, ReportPrompt, ReportSettings
from app.lab.report.summary import Summary
from app.lab.report.verdict import equality, parting_lines, server_notes, verdict, what_was_measured
from app.lab.runs.disturbance import disturbances

_OPEN = '<script type="application/json" id="report">'
_CLOSE = "</script>"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # nothing is fetched, nothing is run
_SHOWN = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed")
"""Sampler settings that a page shows even at their defaults."""
_e = html.escape


def html_page(report: Report) -> str:
    """The report as an HTML document."""
    return document(
        report.title or "Draftscope measurement",
        [
            f'<p class="soft">{_e(what_was_measured(report))}. {_day(report)}</p>',
            f'<p class="verdict">{_e(verdict(report))}</p>',
            *(f'<p class="caution">{_e(sentence)}</p>' for sentence in disturbances(report)),
            *(_charts(report) if report.sweep else _table(report, COLUMNS)),
            *(_table(report, COLUMNS) if report.sweep else _charts(report)),
            *_shape(report),
            *_by_category(report),
            *_by_depth(report),
            *_partings(report),
            *facts(report.system, report.settings, report.pairs, report.threads),
            *_commands(report),
            *_runs(report),
        ],
        report.to_json(),
    )


def document(title: str, body: Iterable[str], data: bytes) -> str:
    """A whole page, with `data`, the JSON that it was made from, embedded."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{_e(title)}</title>",
        f"<style>\n{STYLE}\n</style></head><body>",
        f"<h1>{_e(title)}</h1>",
        *body,
        f"{_OPEN}{_embedded(data)}{_CLOSE}",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def embedded_json(page: str) -> str:
    """The report's JSON, extracted from its page."""
    found = re.search(re.escape(_OPEN) + "(.*?)" + re.escape(_CLOSE), page, re.DOTALL)
    if found is None:
        raise ValueError("this page holds no report")
    return found.group(1)


def _embedded(data: bytes) -> str:
    # JSON knows these escapes; without them a text could end the script element.
    text = data.decode().strip()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _day(report: Report) -> str:
    return f'<span class="whole">{_e(report.created_at[:10])}</span>'


def lane_html(name: str) -> str:
    """A lane's name, with line breaks allowed only between its settings."""
    pieces = [piece for piece in re.findall(r"[^:+]*[:+]?", name) if piece]
    whole = (f'<span class="whole">{_e(piece)}</span>' for piece in pieces)
    return f"<code>{'<wbr>'.join(whole)}</code>"


HtmlCell = str | tuple[str, str]


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[HtmlCell]],
    defined: Sequence[Column[Any]] = (),
    *,
    first: Callable[[str], str] = lane_html,
) -> Iterator[str]:
    """A table; a cell is a text, or (style class, markup), and the `first` of a row a name. Below it stands
    what the columns mean that are `defined`."""
    yield '<div class="scroll"><table><thead><tr>'
    titles = (title.replace(" %", "\N{NO-BREAK SPACE}%") for title in head)  # never broken there
    yield "".join(f"<th>{_e(title)}</th>" for title in titles) + "</tr></thead><tbody>"
    for name, *cells in rows:
        shown = (
            f"<td>{_e(cell)}</td>" if isinstance(cell, str) else f'<td class="{cell[0]}">{cell[1]}</td>'
            for cell in cells
        )
        yield f"<tr><td>{first(str(name))}</td>{''.join(shown)}</tr>"
    yield "</tbody></table></div>"
    if defined:
        yield '<div class="definitions">'
        yield from (f"<p><b>{_e(column.title)}</b>: {_e(column.definition)}</p>" for column in defined)
        yield "</div>"


def _table(report: Report, columns: Sequence[Column[Row]]) -> Iterator[str]:
    columns = filled_columns(columns, lane_rows(report))

    def cell(column: Column[Row], row: Row) -> HtmlCell:
        if column.key == "speedup":
            return speed_class(row[0]), _e(column.text(row))
        shares = column.shares(row) if column.shares is not None else ()
        return ("", share_bars(shares, column.text(row))) if shares else column.text(row)

    rows = [[row[1].name, *(cell(column, row) for column in columns)] for row in lane_rows(report)]
    return html_table(["lane", *(column.title for column in columns)], rows, columns)


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_e(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _charts(report: Report) -> Iterator[str]:
    for title, about, picture in charts(report):
        yield f"<h2>{_e(title)}</h2><figure>{picture}<figcaption>{_e(about)}</figcaption></figure>"
    if report.sweep is not None:
        yield _list(left_out(report.sweep, heat_map(report)))


def _shape(report: Report) -> Iterator[str]:
    if any(summary.lengths for summary in report.summary):
        yield "<h2>How drafts fared</h2>"
        yield from _table(report, SHAPE)


def _by_category(report: Report) -> Iterator[str]:
    if len(report.categories) < 2 or report.sweep:
        return
    yield "<h2>By category</h2><p class='soft'>Speed-up, and acceptance rate if something was drafted.</p>"
    found = {(summary.lane, summary.category): summary for summary in report.by_category}
    rows: Iterator[Sequence[HtmlCell]] = (
        [described.name, *(_category_cell(found[lane, name]) for name in report.categories)]
        for lane, described in enumerate(report.lanes)
    )
    yield from html_table(["lane", *report.categories], rows)


def _by_depth(report: Report) -> Iterator[str]:
    curves = depth_curves(report)
    if curves is None:
        return
    chart = curve_chart(curves, "Speed-up, acceptance and first-token time against the length of the context")
    yield f"<h2>Against the length of the context</h2><figure>{chart}</figure>"
    yield from html_table(HEAD, depth_rows(report))
    yield f'<p class="soft">{_e(DEFINITION)}</p>'
    yield _list(depths_left_out(report))


def _category_cell(summary: Summary) -> tuple[str, str]:
    text = numbers.factor(summary.speedup.factor if summary.speedup else None)
    if summary.acceptance_rate is not None:
        text += f" <span class='soft'>{numbers.percent(summary.acceptance_rate)}</span>"
    return speed_class(summary), text


def _partings(report: Report) -> Iterator[str]:
    yield "<h2>Divergences</h2>"
    yield f"<p>{_e(equality(report))}</p>"
    yield _list(parting_lines(report))


def facts(
    system: SystemFacts, settings: ReportSettings, pairs: Sequence[PairFacts], threads: str
) -> Iterator[str]:
    """The list of models, machine, versions and settings."""
    sampling = settings.sampling
    yield "<h2>Measured with</h2><dl class='facts'>"
    models = dict.fromkeys(map(_models, pairs))  # loaded in several ways, they read the same
    for number, (target, draft) in enumerate(models, start=1):
        which = f" {number}" if len(models) > 1 else ""
        yield _fact(f"Target{which}", target)
        if draft:
            yield _fact(f"Draft{which}", draft)
    yield _fact("Processor", f"{system.cpu}, {numbers.count(system.cores, 'core')}; {system.devices}")
    yield _fact("Threads", threads)
    yield _fact("System", f"{system.system}; Python {system.python}")
    yield _fact("Versions", f"Draftscope {system.app}, llama-cpp-python {system.llama_cpp_python}")
    yield _fact(
        "Sampling",
        ", ".join(
            f"{param.name} {param.format(getattr(sampling, param.name))}"
            for param in params_of(Sampling)
            if param.name in _SHOWN or getattr(sampling, param.name) != param.default
        ),
    )
    yield _fact("Prompts", "chat template" if settings.chat else "raw text")
    yield "</dl>"


def _models(pair: PairFacts) -> tuple[str, str]:
    """Target and draft in words; "" without a draft."""
    return _file(pair.target), f"{_file(pair.draft)}; {pair.vocabulary}" if pair.draft else ""


def _fact(name: str, text: str) -> str:
    return f"<dt>{_e(name)}</dt><dd>{_e(text)}</dd>"


def _file(model: FileFacts) -> str:
    digest = f", SHA-256 {model.sha256}" if model.sha256 else ""
    return (
        f"{model.file}: {model.name}, {model.architecture}, {model.quantisation}, "
        f"{numbers.digits(model.n_params / 1e6)} M parameters, {numbers.digits(model.size / 1e6)} MB, "
        f"context {model.n_ctx:,}{digest}"
    )


def _commands(report: Report) -> Iterator[str]:
    for note in server_notes(report):
        yield f"<p>{_e(note)}</p>"
    if report.sweep or all(lane.server is not None for lane in report.lanes):
        return
    yield "<h2>In llama.cpp</h2><p class='soft'>The nearest command for each lane.</p>"
    for lane in report.lanes:
        if lane.server is not None:
            continue
        notes = "".join(f"\n# {difference}" for difference in lane.differences)
        yield f"<pre># {_e(lane.name)}{_e(notes)}\n{_e(lane.command)}</pre>"


_RUN_HEAD = (
    "lane", "prompt", "repeat", "tokens", "tokens/s", "speed-up", "acceptance", "same text as baseline",
    "end",
)  # fmt: skip


def _runs(report: Report) -> Iterator[str]:
    rows = (
        (
            report.lanes[run.lane].name,
            str(run.prompt_index + 1),
            str(run.repeat + 1),
            str(run.n_tokens),
            numbers.digits(run.tokens_per_second),
            numbers.factor(run.speedup),
            numbers.percent(run.acceptance_rate),
            {None: numbers.NONE, True: "identical", False: "differs"}[run.identical_to_baseline],
            run.failure or run.finish_reason,
        )
        for run in report.runs
    )
    yield f"<details><summary>Every run ({len(report.runs):,})</summary>"
    yield from html_table(_RUN_HEAD, rows, first=_e)
    yield "</details>"
    yield from prompts_html(report.prompts)


def prompts_html(prompts: Sequence[ReportPrompt]) -> Iterator[str]:
    yield "<details><summary>Prompts</summary><ol>"
    yield from (f"<li><pre>{_e(prompt.shown)}</pre></li>" for prompt in prompts)
    yield "</ol></details>"


STYLE = """
:root { --ink: #1d2330; --soft: #5b6475; --line: #d9dee7; --page: #ffffff; --tint: #f4f6f9; --accent: #2563b8;
  --good: #0a5fa8; --bad: #a84a00; --same: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --line: #353c49;
  --page: #14181f; --tint: #1c222c; --accent: #7fb0f5; --good: #6cc3f5; --bad: #f0a050; --same: #9aa4b5; } }
@media print { :root { --ink: #000; --soft: #444; --line: #d9d9d9; --page: #fff; --tint: #fff;
  --accent: #1d4f94; --good: #0a4f90; --bad: #8a3a00; --same: #555; } }
* { box-sizing: border-box; }
html { background: var(--page); color: var(--ink); font: 15px/1.5 Inter, "Segoe UI", system-ui, sans-serif; }
body { max-width: 1160px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 6px; }
h2 { font-size: 18px; margin: 36px 0 8px; }
p { margin: 6px 0; max-width: 78ch; }
.soft, figcaption, .facts dt { color: var(--soft); }
.verdict { font-size: 18px; margin: 18px 0; padding: 12px 16px; background: var(--tint);
  border-left: 4px solid var(--accent); }
.caution { color: var(--bad); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: 5px 7px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
.whole { white-space: nowrap; }
td.faster { color: var(--good); } td.slower { color: var(--bad); }
code, pre { font: 12.5px/1.5 "JetBrains Mono", ui-monospace, Menlo, Consolas, monospace; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--tint); padding: 10px 12px;
  margin: 6px 0; }
figure { margin: 12px 0 0; } figure svg { width: 100%; height: auto; display: block; }
svg text { font: 12px Inter, "Segoe UI", system-ui, sans-serif; fill: var(--ink); }
svg .grid { stroke: var(--line); } svg .one { stroke: var(--ink); stroke-dasharray: 4 3; }
svg .run { fill: var(--soft); fill-opacity: .35; } svg .interval { stroke: var(--ink); stroke-width: 2.5; }
td svg { vertical-align: middle; fill: var(--accent); }
svg .leader { stroke: var(--line); } svg .mean { stroke: var(--page); stroke-width: 1.5; fill: var(--same); }
svg .mean.faster { fill: var(--good); } svg .mean.slower { fill: var(--bad); }
svg .cell { fill: var(--accent); stroke: var(--line); }
svg .lane { stroke-width: 2.5; } svg .dot { stroke: var(--page); }
svg .lane0 { stroke: var(--same); } svg .lane1 { stroke: #0a72b8; } svg .lane2 { stroke: #d06a00; }
svg .lane3 { stroke: #0b8f6a; } svg .lane4 { stroke: #b8459a; } svg .lane5 { stroke: #8a7a00; }
svg .lane6 { stroke: #5a56c8; } svg .lane7 { stroke: #b03a2e; }
svg .cell.best { stroke: var(--ink); stroke-width: 2; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 8px 0;
  font-size: 13.5px; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.definitions { font-size: 12.5px; color: var(--soft); columns: 2; column-gap: 32px; margin-top: 8px; }
.definitions p { break-inside: avoid; margin: 0 0 4px; }
details { margin: 24px 0 0; } details summary { cursor: pointer; color: var(--accent); }
@media print { @page { margin: 14mm; } body { max-width: none; padding: 0; } html { font-size: 11pt; }
  h2 { break-after: avoid; } figure, tr, pre, .verdict { break-inside: avoid; } table { font-size: 7.5pt; }
  th, td { padding: 3px 4px; } td code { font-size: 7.5pt; }
  .scroll { overflow: visible; } details { display: none; } }
""".strip()
