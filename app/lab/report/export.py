"""The report in other formats: Markdown, CSV, those of other tools.

`speed_bench` is the format of llama.cpp's benchmark client (tools/server/bench/speed-bench/speed_bench.py
--output). `acceptance_records` are lines of AIPerf's profile_export.jsonl, with the acceptance of each
request (SpecDecodeAcceptanceRecord).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from statistics import fmean
from typing import Any

import msgspec

from app.base import numbers
from app.base.numbers import count, csv_text
from app.engine.strategy import longest_draft
from app.lab.depths import DEFINITION, HEAD, depth_rows, depths_left_out
from app.lab.facts import FileFacts, PairFacts
from app.lab.report import columns as tables
from app.lab.report.plots import MAPS, grid_cells, heat_map, left_out
from app.lab.report.report import Report, SweepFacts
from app.lab.report.verdict import equality, parting_lines, server_notes, verdict, what_was_measured
from app.lab.runs.compare import is_measured
from app.lab.runs.disturbance import disturbances
from app.lab.runs.record import RunRecord


def markdown(report: Report) -> str:
    """The report's title, table, settings, machine, divergences and commands."""
    return "\n\n".join(filter(None, map("\n".join, _blocks(report)))) + "\n"


def _blocks(report: Report) -> Iterator[Iterable[str]]:
    """The lines of each block; an empty block is left out."""
    yield [f"### {escaped(report.title or 'Draftscope measurement')}"]
    yield from _maps(report)
    yield _table(report, tables.COLUMNS)
    yield [escaped(verdict(report))]
    if any(summary.lengths for summary in report.summary):
        yield _table(report, tables.SHAPE)
    if len(report.categories) > 1 and not report.sweep:
        yield [tables.CATEGORIES]
        yield markdown_table(["strategy", *report.categories], _marked(tables.category_cells(report)))
    if report.by_depth:
        yield markdown_table(HEAD, _marked(depth_rows(report)))
        yield [*(f"- {escaped(line)}" for line in depths_left_out(report)), escaped(DEFINITION)]
    system = report.system
    threads = f"{report.threads} thread{'' if report.threads == '1' else 's'}"
    yield [
        *(f"- {escaped(text)}" for text in disturbances(report)),
        f"- {what_was_measured(report)}",
        *dict.fromkeys(map(_pair, report.pairs)),
        f"- {system.cpu}, {count(system.cores, 'core')}, {threads}; {system.devices}",
        f"- Draftscope {system.app}, llama-cpp-python {system.llama_cpp_python}, {system.system}",
    ]
    yield [equality(report)]
    yield [f"- {line}" for line in parting_lines(report)]
    yield [f"- {escaped(note)}" for note in server_notes(report)]
    yield ["What the columns mean:"]
    columns = tables.filled_columns((*tables.COLUMNS, *tables.SHAPE), tables.lane_rows(report))
    yield [f"- {column.title}: {escaped(column.definition)}" for column in columns]
    yield ["The nearest llama.cpp commands:"]
    here = [(f"# {lane.name}", lane.command) for lane in report.lanes if lane.server is None]
    yield ["```sh", *chain.from_iterable(here), "```"]


def _maps(report: Report) -> Iterator[Iterable[str]]:
    """The maps of a sweep, and the cells that are left out."""
    if report.sweep is None:
        return
    facts, cells = report.sweep, heat_map(report)
    for each in MAPS:
        yield [f"**{each.title}**; across {facts.x}, down {facts.y}. {each.definition}"]
        yield markdown_table(["", *facts.x_values], grid_cells(facts, cells, each))
    yield [f"- {escaped(line)}" for line in left_out(facts, cells)]


def _pair(pair: PairFacts) -> str:
    draft = f"; draft {_file(pair.draft)}; {pair.vocabulary}" if pair.draft else ""
    return f"- target {_file(pair.target)}{draft}"


def _table(report: Report, columns: Sequence[tables.Column[tables.Row]]) -> Iterator[str]:
    """A row for each lane, with the columns that have a value for at least one."""
    shown = tables.filled_columns(columns, tables.lane_rows(report))
    head = ["strategy", *(column.title for column in shown)]
    return markdown_table(head, _marked(tables.lane_cells(shown, tables.lane_rows(report))))


def _file(model: FileFacts) -> str:
    digest = f", sha256 {model.sha256[:12]}…" if model.sha256 else ""
    name = " ".join(model.file.replace("`", "'").split())  # within these marks nothing else means anything
    return f"`{name}` ({model.quantisation}, {numbers.digits(model.size / 1e6)} MB{digest})"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, with numbers aligned right."""
    for row in (head, [":--", *("--:" for _ in head[1:])], *rows):
        plain = (escaped(text).replace("|", "\\|") for text in row)
        yield f"| {' | '.join(plain)} |"


def _marked(rows: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """The rows with their names as code."""
    return ([f"`{name}`", *cells] for name, *cells in rows)


def escaped(text: str) -> str:
    """Foreign text in one line, without HTML."""
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").split())


_LEFT_OUT = {
    "token_ids", "text", "first_divergence", "acc_per_pos", "acceptance_by_place",
    "judged_acceptance_by_place", "accepted_per_round", "lengths", "rejections", "strategies",
    "k_by_round", "smoothed_by_round", "alternatives", "whole_server", "arrival_gaps",
}  # fmt: skip
"""Fields that are not a single number, or too long for a cell; they are in the JSON."""


def csv_table(report: Report) -> str:
    """A line for each run: the lane's name (in a sweep with its values), then the numbers. Then a line for
    each invalid cell of a sweep, with the reason. Lists and texts are in the JSON only."""
    fields = [name for name in RunRecord.__struct_fields__ if name not in _LEFT_OUT]
    facts = report.sweep
    axes = [] if facts is None else [facts.x, facts.y]
    values = [() if facts is None else _values(facts, report, lane) for lane in range(len(report.lanes))]

    def row(run: RunRecord) -> Sequence[object]:
        parting = run.first_divergence
        at = (None, None) if parting is None else (parting.index, parting.logit_gap)
        return report.lanes[run.lane].name, *values[run.lane], *(getattr(run, name) for name in fields), *at

    refused = (
        ["", cell.x, cell.y, *(cell.refused if name == "error" else "" for name in fields), "", ""]
        for cell in (facts.cells if facts is not None else ())
        if cell.lane is None
    )
    head = ["name", *axes, *fields, "divergence_index", "divergence_logit_gap"]
    return csv_text(head, [*map(row, report.runs), *refused])


def _values(facts: SweepFacts, report: Report, lane: int) -> tuple[str, str]:
    """A lane's values on both axes; for a baseline, the values that its cells share."""
    cells = {place.lane for place in facts.cells}
    mine = (
        {lane}
        if lane in cells
        else {at for at in cells if at is not None and report.lanes[at].baseline == lane}
    )
    return facts.values_of(mine)


ENGINE = "draftscope"
_OVERALL = "overall"
_UNSAFE = re.compile(r"[^A-Za-z0-9._+=-]+")


def lane_files(report: Report) -> dict[str, bytes]:
    """Each lane's files by name."""
    files: dict[str, bytes] = {}
    for lane, described in enumerate(report.lanes):
        stem = _UNSAFE.sub("-", described.name).strip("-")
        if f"{stem}.speed-bench.json" in files:
            stem += f"-{lane}"
        files[f"{stem}.speed-bench.json"] = speed_bench(report, lane)
        files[f"{stem}.acceptance.jsonl"] = acceptance_records(report, lane)
    return files


def speed_bench(report: Report, lane: int) -> bytes:
    """A lane's runs in the format of llama.cpp's benchmark client; each run is a request."""
    runs = [run for run in report.runs if run.lane == lane]
    named = report.lanes[lane]
    sampling = named.sampling or report.settings.sampling
    groups = [
        _group(name, [run for run in runs if (run.category or "") == name])
        for name in dict.fromkeys(run.category or "" for run in runs)
    ]
    whole = {
        "config": {
            "url": ENGINE,
            "model": report.pairs[named.pair].target.file if named.pair >= 0 else None,
            "bench": report.title,
            "category": "all",
            "osl": report.settings.max_tokens,
            "concurrency": 1,
            "extra_inputs": {"temperature": sampling.temperature, "seed": sampling.seed},
            "strategy": named.strategy,
        },
        "selected_samples": len(runs),
        "completed_samples": sum(map(is_measured, runs)),
        "failed_samples": sum(not is_measured(run) for run in runs),
        "summary": [*groups, _group(_OVERALL, runs)],
        "results": [_request(run) for run in runs],
    }
    return msgspec.json.encode(whole) + b"\n"


def acceptance_records(report: Report, lane: int) -> bytes:
    """A line for each measured run; `spec_decode_acceptance` is null where nothing was drafted."""
    runs = [run for run in report.runs if run.lane == lane and is_measured(run)]
    return b"".join(msgspec.json.encode(_record(run)) + b"\n" for run in runs)


def _request(run: RunRecord) -> dict[str, Any]:
    measured = is_measured(run)
    prompt_ms = run.prompt_seconds * 1000
    return {
        "id": f"{run.prompt_index}-{run.repeat}",
        "category": run.category or "",
        "ok": measured,
        "turns": 1,
        "latency_s": run.whole_seconds,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.n_tokens,
        "total_tokens": run.prompt_tokens + run.n_tokens,
        "finish_reason": str(run.finish_reason) if measured else None,
        "draft_n": run.drafted,
        "draft_n_accepted": run.accepted,
        "prompt_ms": prompt_ms or None,
        "predicted_ms": run.seconds * 1000 or None,
        "prompt_per_second": run.prompt_tokens / run.prompt_seconds if run.prompt_seconds else None,
        "predicted_per_second": run.tokens_per_second,
        "error": run.failure or None,
    }


def _group(category: str, runs: Sequence[RunRecord]) -> dict[str, Any]:
    """A row of the summary; its speeds and times are means over requests, as theirs are."""
    good = [_request(run) for run in runs if is_measured(run)]
    drafted = sum(row["draft_n"] for row in good)
    accepted = sum(row["draft_n_accepted"] for row in good)
    return {
        "category": category,
        "requests": len(good),
        "turns": len(good),
        "failed": len(runs) - len(good),
        "avg_prompt_t_s": _mean(row["prompt_per_second"] for row in good),
        "avg_pred_t_s": _mean(row["predicted_per_second"] for row in good),
        "avg_latency": _mean(row["latency_s"] for row in good),
        "draft_n": drafted,
        "accepted": accepted,
        "accept_rate": accepted / drafted if drafted else None,
    }


def _mean(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _record(run: RunRecord) -> dict[str, Any]:
    first, end = run.first_token_seconds, run.whole_seconds
    metrics = {
        "time_to_first_token": None if first is None else {"value": first * 1000, "unit": "ms"},
        "request_latency": {"value": end * 1000, "unit": "ms"},
        "output_sequence_length": {"value": run.n_tokens, "unit": "tokens"},
        "input_sequence_length": {"value": run.prompt_tokens, "unit": "tokens"},
    }
    acceptance = None
    if run.drafted_rounds:
        steps = {str(count): rounds for count, rounds in enumerate(run.accepted_per_round) if rounds}
        acceptance = {
            "engine": ENGINE,
            "mean_acceptance_length": 1 + run.accepted / run.drafted_rounds,
            "draft_acceptance_rate": run.accepted / run.drafted,
            "acceptance_histogram": steps,
            "num_accepted_draft_tokens": run.accepted,
            "num_draft_tokens": run.drafted,
            "num_spec_steps": run.drafted_rounds,
            "num_spec_tokens": longest_draft(run.strategy),
            "completion_tokens": run.n_tokens,
        }
    return {
        "metadata": {"prompt_index": run.prompt_index, "repeat": run.repeat, "category": run.category},
        "metrics": {name: value for name, value in metrics.items() if value is not None},
        "spec_decode_acceptance": acceptance,
    }
