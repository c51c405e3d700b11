"""The report as Markdown: for an issue, a pull request, a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.base import numbers
from app.base.numbers import count
from app.engine.templates.options import option_text
from app.lab.depths import DEFINITION, HEAD, depth_rows, depths_left_out
from app.lab.facts import FileFacts, PairFacts
from app.lab.report.columns import CATEGORIES, COLUMNS, SHAPE, Column, category_cells, filled_columns
from app.lab.report.compare import keeps_text
from app.lab.report.export.server_notes import server_notes
from app.lab.report.heat import MAPS, heat_map, left_out
from app.lab.report.report import Report
from app.lab.report.verdict import verdict
from app.lab.runs.disturbance import disturbances
from app.lab.runs.journal.run_record import RunRecord


def markdown(report: Report) -> str:
    """The report's title, table, settings and machine, partings and commands."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"### {escaped(report.title or 'Draftscope measurement')}"
    yield ""
    yield from _maps(report)
    yield from _table(report, COLUMNS)
    yield ""
    yield escaped(verdict(report))
    yield ""
    if any(summary.lengths for summary in report.summary):
        yield from _table(report, SHAPE)
        yield ""
    if len(report.categories) > 1 and not report.sweep:
        yield CATEGORIES
        yield ""
        yield _row(["strategy", *report.categories])
        yield _row([":--", *("--:" for _ in report.categories)])
        yield from (_row([f"`{name}`", *cells]) for name, *cells in category_cells(report))
        yield ""
    if report.by_depth:
        yield _row(HEAD)
        yield _row([":--", *("--:" for _ in HEAD[1:])])
        yield from (_row([f"`{name}`", *cells]) for name, *cells in depth_rows(report))
        yield ""
        yield from (f"- {escaped(line)}" for line in depths_left_out(report))
        yield escaped(DEFINITION)
        yield ""
    for text in disturbances(report):
        yield f"- {escaped(text)}"
    yield f"- {what_was_measured(report)}"
    yield from dict.fromkeys(map(_pair, report.pairs))
    system = report.system
    threads = f"{report.threads} thread{'' if report.threads == '1' else 's'}"
    yield f"- {system.cpu}, {count(system.cores, 'core')}, {threads}; {system.devices}"
    yield f"- Draftscope {system.app}, llama-cpp-python {system.llama_cpp_python}, {system.system}"
    yield ""
    yield equality(report)
    yield ""
    for line in parting_lines(report):
        yield f"- {line}"
    yield ""
    for note in server_notes(report):
        yield f"- {escaped(note)}"
    yield ""
    yield "What the columns mean:"
    yield ""
    rows = list(zip(report.summary, report.lanes, strict=True))
    for column in filled_columns((*COLUMNS, *SHAPE), rows):
        yield f"- {column.title}: {escaped(column.definition)}"
    yield ""
    yield "The nearest llama.cpp commands:"
    yield ""
    yield "```sh"
    for lane in report.lanes:
        if lane.server is None:
            yield f"# {lane.name}"
            yield lane.command
    yield "```"


def _maps(report: Report) -> Iterator[str]:
    """The maps of a sweep, and the cells that are left out."""
    if report.sweep is None:
        return
    facts, cells = report.sweep, heat_map(report)
    across = len(facts.x_values)
    for each in MAPS:
        yield f"**{each.title}**; across {facts.x}, down {facts.y}. {each.definition}"
        yield ""
        yield _row(["", *facts.x_values])
        yield _row([":--", *("--:" for _ in facts.x_values)])
        for at, value in enumerate(facts.y_values):
            row = cells[at * across : (at + 1) * across]
            yield _row([value, *(each.text(each.value(cell)) for cell in row)])
        yield ""
    for line in left_out(facts, cells):
        yield f"- {escaped(line)}"
    yield ""


def _pair(pair: PairFacts) -> str:
    draft = f"; draft {_file(pair.draft)}; {pair.vocabulary}" if pair.draft else ""
    return f"- target {_file(pair.target)}{draft}"


def _table(report: Report, columns: Sequence[Column]) -> Iterator[str]:
    """A row for each lane, with the columns that have a value for at least one."""
    rows = list(zip(report.summary, report.lanes, strict=True))
    shown = filled_columns(columns, rows)
    yield _row(["strategy", *(column.title for column in shown)])
    yield _row([":--", *("--:" for _ in shown)])
    for summary, lane in rows:
        yield _row([f"`{lane.name}`", *(column.text(summary, lane) for column in shown)])


def what_was_measured(report: Report) -> str:
    """A sentence on how much was measured, and how."""
    sampling = report.settings.sampling
    drawing = "greedy" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}"
    told = "".join(f", {option_text(*option)}" for option in report.settings.template_options.items())
    done = "" if report.complete else f" ({len(report.runs)} runs were done before it was stopped)"
    return (
        f"{count(len(report.prompts), 'prompt')} × {count(report.settings.repeats, 'repeat')}{done}, up to "
        f"{count(report.settings.max_tokens, 'token')} each, {drawing}{told}, seed {sampling.seed}; "
        "every run cold"
    )


def equality(report: Report) -> str:
    """A sentence on how many answers have exactly their baseline's tokens, and how many runs failed."""
    drafting = [summary for summary in report.summary if summary.lane != report.lanes[summary.lane].baseline]
    compared, identical = (
        sum(summary.compared for summary in drafting),
        sum(summary.identical for summary in drafting),
    )
    failed = sum(summary.failed for summary in report.summary)
    text = f"{identical:,} of {count(compared, 'compared answer')} have exactly the baseline's tokens."
    if not compared:
        text = "No answer could be compared with the baseline's."
    return f"{text} {count(failed, 'run')} failed." if failed else text


def parting_lines(report: Report) -> Iterator[str]:
    """A line for every place where a lane's answer parts from the baseline's, with the repeats."""
    found: dict[tuple[int, int, int, int | None, int | None, bool | None], list[RunRecord]] = {}
    for run in report.runs:
        if (parting := run.first_divergence) is not None:
            place = (
                run.lane,
                run.prompt_index,
                parting.index,
                parting.token,
                parting.baseline_token,
                parting.near_tie,
            )
            found.setdefault(place, []).append(run)
    for runs in found.values():
        yield _parting(report, runs)


def _parting(report: Report, runs: Sequence[RunRecord]) -> str:
    run, parting = runs[0], runs[0].first_divergence
    assert parting is not None
    gap = "" if parting.logit_gap is None else f", logit gap {numbers.digits(parting.logit_gap)}"
    why = ""
    if not keeps_text(run.strategy, report.temperature_of(run.lane)):
        why = " (as expected: the rule keeps the target's distribution, not the text)"
    elif parting.near_tie:
        why = " (near-tie: rounding)"
    repeats = ", ".join(str(run.repeat + 1) for run in runs)
    return (
        f"{report.lanes[run.lane].name}, prompt {run.prompt_index + 1}, repeat {repeats}, token "
        f"{parting.index + 1}: {parting.token_text!r} instead of {parting.baseline_text!r}{gap}{why}"
    )


def _file(model: FileFacts) -> str:
    digest = f", sha256 {model.sha256[:12]}…" if model.sha256 else ""
    name = " ".join(model.file.replace("`", "'").split())  # within these marks nothing else means anything
    return f"`{name}` ({model.quantisation}, {numbers.digits(model.size / 1e6)} MB{digest})"


def _row(cells: Sequence[str]) -> str:
    plain = (escaped(cell).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(plain)} |"


def escaped(text: str) -> str:
    """A stranger's text in one line, in which nothing is HTML."""
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").split())
