"""A lane's runs in the formats of other tools, so that their readers take them.

`speed_bench` is what llama.cpp's benchmark client writes (tools/server/bench/speed-bench/speed_bench.py
--output). `acceptance_records` are lines as AIPerf's profile_export.jsonl has them, with the acceptance of
each request (SpecDecodeAcceptanceRecord).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import msgspec

from app.engine.strategy import longest_draft
from app.lab.report.compare import is_measured
from app.lab.report.report import Report
from app.lab.runs.journal.run_record import RunRecord

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
    """A lane's runs as llama.cpp's benchmark client writes them: each run is a request."""
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
