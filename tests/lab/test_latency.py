"""Percentiles of first token and of the time between tokens."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise

import msgspec
import pytest

from app.engine.engine import Engine
from app.lab.report.columns import COLUMNS
from app.lab.report.export import csv_table, markdown
from app.lab.report.page import html_page
from app.lab.report.summary import summarise
from app.lab.runs.record import RunRecord, arrival_gaps, percentiles
from tests.answers import answer
from tests.lab.report.reports import made_report


def test_tokens_of_a_round_arrive_together_and_the_first_waited_for_the_round(shared_engine: Engine) -> None:
    shared_engine.reset()
    trace = answer(shared_engine, strategy="draft-simple:n_max=4", max_tokens=40, ignore_eos=True, cold=True)
    record = RunRecord.of(trace)
    ends = [round.offset + round.seconds for round in trace.rounds for _token in round.emitted]
    between = sorted(later - earlier for earlier, later in pairwise(ends))
    assert len(between) == 39 and between[0] == 0.0 and record.arrival_gaps is not None
    assert len(record.arrival_gaps) == len(trace.rounds) - 1
    middle = len(between) // 2
    assert record.inter_token_p50 == pytest.approx(between[middle], abs=1e-6)
    at = 0.95 * (len(between) - 1)
    low, share = int(at), at % 1
    p95 = between[low] + share * (between[low + 1] - between[low])
    assert record.inter_token_p95 == pytest.approx(p95, abs=1e-6)
    assert record.inter_token_p99 is not None and p95 <= record.inter_token_p99 <= between[-1] + 1e-6
    assert record.first_token_p50 == record.first_token_p99 == record.first_token_seconds


def test_a_round_without_tokens_is_no_arrival(shared_engine: Engine) -> None:
    shared_engine.reset()
    rounds = answer(shared_engine, strategy="none", max_tokens=4, ignore_eos=True, cold=True).rounds
    silent = msgspec.structs.replace(rounds[1], emitted=())
    gaps = arrival_gaps([rounds[0], silent, *rounds[2:]])
    assert len(gaps) == 2 and gaps[0] == pytest.approx(sum(arrival_gaps(rounds)[:2]), abs=2e-6)


def test_a_lane_pools_the_tokens_of_its_runs_and_not_their_percentiles() -> None:
    found = percentiles([0.1, 0.3, None], [(3, (1.0, 1.0)), (101, (2.0,)), (5, None)])
    assert found["first_token_p50"] == pytest.approx(0.2) and found["first_token_p99"] == pytest.approx(0.298)
    assert (found["inter_token_p50"], found["inter_token_p99"]) == (0.0, pytest.approx(1.0, abs=0.02))
    assert set(percentiles([], []).values()) == {None}


def test_early_records_open_and_have_what_they_tell() -> None:
    written = json.loads(made_report().runs[0].to_json())
    for name in [name for name in written if "_p5" in name or "_p9" in name or name == "arrival_gaps"]:
        del written[name]
    early = msgspec.json.decode(json.dumps(written), type=RunRecord)
    row = summarise(0, "none", [early])
    assert early.arrival_gaps is row.inter_token_p50 is None
    assert row.first_token_p95 == early.first_token_seconds


def test_every_output_of_a_comparison_has_them() -> None:
    report = made_report()
    runs = [msgspec.structs.replace(run, arrival_gaps=(0.05,) * 39) for run in report.runs]
    rows = [summarise(lane, "x", [run for run in runs if run.lane == lane]) for lane in range(3)]
    report = msgspec.structs.replace(report, runs=tuple(runs), summary=tuple(rows))
    assert rows[0].inter_token_words == "0 · 50.0 · 50.0 ms" and rows[0].first_token_words.startswith("600")
    for text in (markdown(report), html_page(report)):
        assert "0 · 50.0 · 50.0 ms" in text and "600 · 600 · 600 ms" in text
    table = next(csv.DictReader(io.StringIO(csv_table(report))))
    assert {"first_token_p50", "first_token_p99", "inter_token_p95"} <= set(table)
    assert "arrival_gaps" not in table
    assert {"first_token_seconds", "inter_token"} <= {column.key for column in COLUMNS}
