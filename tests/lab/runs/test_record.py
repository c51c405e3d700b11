"""The record of a run, and latency as percentiles."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import pairwise

import msgspec
import pytest

from app.base.numbers import significant
from app.cli.answer.strategies import statistics_lines
from app.engine.engine import Engine
from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.types import FinishReason
from app.lab.report.columns import COLUMNS
from app.lab.report.export import csv_table, markdown
from app.lab.report.page import html_page
from app.lab.report.summary import Summary, summarise
from app.lab.runs.record import RunRecord, arrival_gaps, folds_of, percentiles
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


FIELDS = """strategy, category, prompt_index, repeat, cold, token_ids, text,
n_tokens, seconds, tokens_per_second, prompt_tokens, prompt_seconds, draft_prompt_seconds,
first_token_seconds, rounds, drafted, accepted, rejected, ignored, acceptance_rate, alpha, tau,
target_seconds, draft_seconds,
engine_overhead, speedup, identical_to_baseline, first_divergence, finish_reason,
tokens_per_pass, end_to_end_seconds, end_to_end_speedup, acc_per_pos, acceptance_by_place,
judged_acceptance_by_place,
accepted_per_round, strategies, lengths"""


@pytest.fixture(scope="module")
def trace(shared_engine: Engine) -> Trace:
    shared_engine.reset()
    return answer(shared_engine, strategy="draft-simple:n_max=4", max_tokens=40, ignore_eos=True, cold=True)


def test_every_field_of_the_contract_is_there(trace: Trace) -> None:
    written = json.loads(RunRecord.of(trace).to_json())
    assert set(re.split(r",\s+", FIELDS)) <= set(written)


def test_an_early_record_without_tokens_per_pass_has_its_share_of_drafts(trace: Trace) -> None:
    early = msgspec.structs.replace(RunRecord.of(trace), tokens_per_pass=None)
    assert early.statistics.draft_share == Statistics.of(trace.rounds).draft_share


@pytest.mark.same_text
def test_the_numbers_are_those_of_the_trace(trace: Trace) -> None:
    record = RunRecord.of(trace, category="code", prompt_index=3, repeat=2)
    statistics = Statistics.of(trace.rounds)
    assert trace.totals is not None
    assert (record.category, record.prompt_index, record.repeat) == ("code", 3, 2)
    assert record.strategy == "draft-simple:n_max=4"
    assert record.cold
    assert record.seed == trace.header.seed
    assert record.token_ids == trace.token_ids and record.n_tokens == len(trace.token_ids) == 40
    assert record.text == trace.totals.text
    assert record.rounds == len(trace.rounds)
    assert record.drafted == record.accepted + record.rejected + record.ignored > 0
    assert record.n_tokens == record.accepted + record.rounds
    assert record.acceptance_rate == statistics.acceptance_rate
    assert (record.alpha, record.tau) == (statistics.alpha, statistics.tau)
    assert record.seconds == trace.totals.seconds > 0
    assert record.tokens_per_second == record.n_tokens / record.seconds
    assert record.prompt_tokens == trace.header.prompt_tokens
    assert record.first_token_seconds == trace.totals.first_token_seconds
    assert record.target_seconds == pytest.approx(sum(round.verify_seconds for round in trace.rounds))
    assert record.draft_seconds == pytest.approx(sum(round.draft_seconds for round in trace.rounds))
    native = sum(round.native_seconds for round in trace.rounds)
    assert record.engine_overhead == pytest.approx(1 - native / record.seconds)
    assert record.finish_reason is FinishReason.LENGTH


def test_the_shape_is_that_of_the_trace(trace: Trace) -> None:
    record, statistics = RunRecord.of(trace), Statistics.of(trace.rounds)
    assert record.tokens_per_pass == 40 / record.rounds
    assert record.acc_per_pos == statistics.acc_per_pos != ()
    assert record.acceptance_by_place == statistics.acceptance_by_place != ()
    assert record.judged_acceptance_by_place == statistics.judged_acceptance_by_place
    assert record.accepted_per_round == tuple(statistics.accepted_per_round)
    assert (
        sum(accepted * rounds for accepted, rounds in enumerate(record.accepted_per_round)) == record.accepted
    )
    assert sum(length * rounds for length, rounds in enumerate(record.lengths)) == record.drafted
    share = record.strategies["draft-simple"]
    assert (share.drafted, share.accepted) == (record.drafted, record.accepted)
    assert share.asked is not None and share.asked >= record.drafted_rounds
    assert record.alternatives == AlternativeStatistics.of(trace.rounds)
    assert record.alternatives.rows == 40 and record.target_entropy == record.alternatives.target_entropy
    assert trace.totals is not None
    assert record.end_to_end_seconds == record.whole_seconds == trace.totals.lead_seconds + record.seconds


def test_records_pooled_have_the_shape_of_all_their_rounds(trace: Trace) -> None:
    record, statistics = RunRecord.of(trace), Statistics.of(trace.rounds)
    twice = Statistics.pooled([record.statistics, record.statistics])
    assert twice.judged_acceptance_by_place == statistics.judged_acceptance_by_place
    assert twice.accepted_per_round == [2 * rounds for rounds in statistics.accepted_per_round]
    assert twice.strategies["draft-simple"].drafted == 2 * record.drafted


def test_a_record_contains_the_sums_of_every_number_of_a_summary(trace: Trace) -> None:
    rounds, record = Statistics.of_answer(trace), RunRecord.of(trace)
    numbers, expected = folds_of(record.statistics, Summary), folds_of(rounds, Summary)
    for name in numbers.keys() - {"strategies"}:
        assert numbers[name] == pytest.approx(expected[name]), name


def test_a_record_of_an_older_version_has_no_shape(trace: Trace) -> None:
    written = json.loads(RunRecord.of(trace).to_json())
    for name in ("lengths", "accepted_per_round", "rejections", "strategies", "alternatives"):
        del written[name]
    read = msgspec.json.decode(json.dumps(written), type=RunRecord)
    assert read.statistics.acceptance_by_place == () and read.statistics.tau == read.tau


def test_without_a_baseline_nothing_is_compared(trace: Trace) -> None:
    record = RunRecord.of(trace)
    assert record.speedup is record.identical_to_baseline is record.first_divergence is None


def test_empty_ratios_are_null(trace: Trace) -> None:
    written = json.loads(RunRecord.of(Trace(trace.header)).to_json())
    for ratio in ("tokens_per_second", "acceptance_rate", "alpha", "tau", "engine_overhead"):
        assert written[ratio] is None
    assert written["first_token_seconds"] is None
    assert written["rounds"] == written["n_tokens"] == written["drafted"] == 0
    assert written["category"] is None


def test_a_trace_that_breaks_off_counts_as_failed(trace: Trace) -> None:
    record = RunRecord.of(Trace(trace.header, trace.rounds[:3]))
    last = trace.rounds[2]
    assert record.finish_reason is FinishReason.FAILED
    assert record.seconds == last.offset + last.seconds
    assert record.rounds == 3


def test_it_is_one_line(trace: Trace) -> None:
    assert RunRecord.of(trace).to_json().count(b"\n") == 1


def test_the_lengths_that_a_rule_chose_are_in_the_record_and_on_the_line(shared_engine: Engine) -> None:
    shared_engine.reset()
    strategy = "draft-simple:n_max=8:length=ewma:ewma_start=5"
    trace = answer(shared_engine, strategy=strategy, max_tokens=40, cold=True, ignore_eos=True)
    record = RunRecord.of(trace)
    assert record.k_by_round[0] == 5 and len(record.k_by_round) == record.rounds
    drafted = [len(round.drafted) for round in trace.rounds]
    assert all(k >= length for k, length in zip(record.k_by_round, drafted, strict=True))
    smoothed = 0.55
    for round, at in zip(trace.rounds, record.smoothed_by_round, strict=True):
        if round.drafted:
            smoothed += 0.2 * (round.accepted / len(round.drafted) - smoothed)
        assert at == pytest.approx(smoothed)
    line = next(line for line in statistics_lines(trace) if line.startswith("draft length: k 5 at first, "))
    assert f"smoothed acceptance {significant(smoothed)} at the end" in line
    plain = RunRecord.of(answer(shared_engine, strategy="draft-simple:n_max=4", max_tokens=8))
    assert plain.k_by_round == plain.smoothed_by_round == ()
