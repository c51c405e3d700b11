"""The report as one HTML page that opens offline, prints well and contains its own data.

The page is a function of the report, which it embeds as JSON. Every number can be recomputed from it
(`Report.from_json(embedded_json(page))`). The templates are in `resources/pages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

import jinja2
from markupsafe import Markup

from app.base import numbers
from app.base.paths import resource_folder
from app.engine.params import params_of
from app.engine.types import Sampling
from app.lab.depths import DEFINITION, HEAD, depth_curves, depth_rows, depths_left_out
from app.lab.facts import FileFacts, PairFacts, SystemFacts
from app.lab.report.charts import charts, curve_chart, finding_class, share_bars
from app.lab.report.columns import COLUMNS, SHAPE, Column, Row, category_rows, filled_columns, lane_rows
from app.lab.report.plots import heat_map, left_out
from app.lab.report.report import Report, ReportSettings
from app.lab.report.summary import Summary
from app.lab.report.verdict import equality, parting_lines, server_notes, verdict, what_was_measured
from app.lab.runs.disturbance import disturbances

_DATA = re.compile('<script type="application/json" id="report">(.*?)</script>', re.DOTALL)
_SHOWN = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed")
"""Sampler settings that a page always shows."""
_RUN_HEAD = (
    "lane", "prompt", "repeat", "tokens", "tokens/s", "speed-up", "acceptance", "same text as baseline",
    "end",
)  # fmt: skip

HtmlCell = str | tuple[str, str]
"""A text, or a style class and the content."""


@cache
def _templates() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(resource_folder() / "pages")
    made = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    made.filters["pieces"] = lambda name: re.findall(r"[^:+]+[:+]?|[:+]", name)
    return made


def page(template: str, title: str, data: bytes, **values: object) -> str:
    """A page from a template, with its JSON `data` embedded."""
    # JSON knows these escapes; without them a text could end the script element.
    text = data.decode().strip()
    for character in ("<", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _templates().get_template(template).render(values, title=title, data=Markup(text)) + "\n"


def embedded_json(page: str) -> str:
    """The report's JSON, extracted from its page."""
    found = _DATA.search(page)
    if found is None:
        raise ValueError("this page contains no report")
    return found[1]


def html_page(report: Report) -> str:
    """The report as an HTML document."""
    curves = depth_curves(report)
    categories = category_rows(report) if len(report.categories) > 1 and not report.sweep else ()
    return page(
        "report.html",
        report.title or "Draftscope measurement",
        report.to_json(),
        report=report,
        what=what_was_measured(report),
        verdict=verdict(report),
        disturbances=disturbances(report),
        charts=charts(report),
        left_out=left_out(report.sweep, heat_map(report)) if report.sweep is not None else [],
        lanes=_table(report, COLUMNS),
        shape=_table(report, SHAPE) if any(summary.lengths for summary in report.summary) else None,
        categories=[[name, *map(_category_cell, found)] for name, found in categories],
        depths=list(depth_rows(report)),
        depth_chart=curve_chart(curves, _DEPTHS) if curves is not None else "",
        depth_head=HEAD,
        depth_definition=DEFINITION,
        depths_left_out=depths_left_out(report),
        equality=equality(report),
        partings=list(parting_lines(report)),
        measured_with=facts(report.system, report.settings, report.pairs, report.threads),
        server_notes=server_notes(report),
        commands=[lane for lane in report.lanes if lane.server is None],
        run_head=_RUN_HEAD,
        runs=_runs(report),
    )


_DEPTHS = "Speed-up, acceptance and first-token time against the length of the context"


def _table(
    report: Report, columns: Sequence[Column[Row]]
) -> tuple[list[str], list[list[HtmlCell]], list[Column[Row]]]:
    """(headings, a row for each lane, the columns that have a value)"""
    columns = filled_columns(columns, lane_rows(report))

    def cell(column: Column[Row], row: Row) -> HtmlCell:
        if column.key == "speedup":
            return finding_class(row[0].speedup), column.text(row)
        shares = column.shares(row) if column.shares is not None else ()
        return ("", Markup(share_bars(shares, column.text(row)))) if shares else column.text(row)

    rows = [[row[1].name, *(cell(column, row) for column in columns)] for row in lane_rows(report)]
    return ["lane", *(column.title for column in columns)], rows, columns


def _category_cell(summary: Summary) -> tuple[str, str]:
    text = numbers.factor(summary.speedup.factor if summary.speedup else None)
    kind = finding_class(summary.speedup)
    if summary.acceptance_rate is None:
        return kind, text
    share = numbers.percent(summary.acceptance_rate)
    return kind, Markup("{} <span class='soft'>{}</span>").format(text, share)


def facts(
    system: SystemFacts, settings: ReportSettings, pairs: Sequence[PairFacts], threads: str
) -> Iterator[tuple[str, str]]:
    """Models, machine, versions and settings, each with its name."""
    models = dict.fromkeys(  # loaded in several ways, they read the same
        (_file(pair.target), f"{_file(pair.draft)}; {pair.vocabulary}" if pair.draft else "")
        for pair in pairs
    )
    for number, (target, draft) in enumerate(models, start=1):
        which = f" {number}" if len(models) > 1 else ""
        yield f"Target{which}", target
        if draft:
            yield f"Draft{which}", draft
    yield "Processor", f"{system.cpu}, {numbers.count(system.cores, 'core')}; {system.devices}"
    yield "Threads", threads
    yield "System", f"{system.system}; Python {system.python}"
    yield "Versions", f"Draftscope {system.app}, llama-cpp-python {system.llama_cpp_python}"
    drawing = (
        f"{param.name} {param.format(getattr(settings.sampling, param.name))}"
        for param in params_of(Sampling)
        if param.name in _SHOWN or getattr(settings.sampling, param.name) != param.default
    )
    yield "Sampling", ", ".join(drawing)
    yield "Prompts", "chat template" if settings.chat else "raw text"


def _file(model: FileFacts) -> str:
    digest = f", SHA-256 {model.sha256}" if model.sha256 else ""
    return (
        f"{model.file}: {model.name}, {model.architecture}, {model.quantisation}, "
        f"{numbers.digits(model.n_params / 1e6)} M parameters, {numbers.digits(model.size / 1e6)} MB, "
        f"context {model.n_ctx:,}{digest}"
    )


def _runs(report: Report) -> Iterator[Sequence[str]]:
    for run in report.runs:
        yield (
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
