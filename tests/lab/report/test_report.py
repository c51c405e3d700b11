"""The report and its exports: every number can be recomputed from the data inside."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import statistics
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations

import msgspec
import pytest
from markupsafe import escape
from typing_extensions import override

from app.base.numbers import NONE, csv_text
from app.base.paths import resource_folder
from app.lab.experiment import Job
from app.lab.report import summary
from app.lab.report.charts import SHADES, share_bars
from app.lab.report.columns import COLUMNS, SHAPE
from app.lab.report.export import acceptance_records, csv_table, escaped, lane_files, markdown, speed_bench
from app.lab.report.page import embedded_json, html_page
from app.lab.report.plots import heat_map
from app.lab.report.report import Cell, Report, SweepFacts, make_report, summaries
from app.lab.report.summary import Speedup, summarise
from app.lab.report.verdict import equality, fastest, parting_lines, verdict
from app.lab.runs.compare import TraceStore, compared_runs, is_measured
from app.lab.runs.disturbance import disturbances
from app.lab.runs.record import Divergence, RunRecord
from app.ui.theme.palette import blend
from tests.lab.report.reports import HOSTILE, made_experiment, made_records, made_report, pair_info
from tests.lab.runs.test_record import FIELDS
from tests.ui.colour_vision import EYES, difference, seen
from tests.ui.contrast import contrast


@pytest.fixture(scope="module")
def report() -> Report:
    return made_report()


def test_the_json_holds_what_the_contract_lists(report: Report) -> None:
    written = json.loads(report.to_json())
    assert {"system", "pair", "runs", "summary"} <= set(written)
    assert set(re.split(r",\s+", FIELDS)) <= set(written["runs"][0])
    assert {"file", "size", "sha256"} <= set(written["pair"]["target"])
    assert written["pair"]["vocabulary"] == "same vocabulary"
    assert written["system"]["cores"] > 0
    assert len(written["runs"]) == 3 * 2 * 3
    assert len(written["summary"]) == 3


def test_it_is_read_back_as_it_was(report: Report) -> None:
    assert Report.from_json(report.to_json()) == report


def test_it_does_not_tell_where_files_lie(report: Report) -> None:
    for text in (report.to_json().decode(), html_page(report), markdown(report), csv_table(report)):
        assert "somebody" not in text


def test_the_summary_is_a_fold_over_the_runs(report: Report) -> None:
    folded = report.summary[1]
    runs = [run for run in report.runs if run.lane == 1]
    base = {(run.repeat, run.prompt_index): run for run in report.runs if run.lane == 0}
    assert folded.runs == 6 and folded.failed == 0
    assert folded.tokens_per_second.median == statistics.median(run.tokens_per_second for run in runs)
    ratios = [run.tokens_per_second / base[run.repeat, run.prompt_index].tokens_per_second for run in runs]
    assert [run.speedup for run in runs] == pytest.approx(ratios)
    assert folded.speedup.factor == pytest.approx(statistics.geometric_mean(ratios))
    assert folded.speedup.low < folded.speedup.factor < folded.speedup.high
    assert (folded.acceptance_rate, folded.alpha, folded.tau) == (360 / 540, 0.75, 1 + 360 / 180)
    assert folded.draft_share == 0.6
    assert folded.engine_overhead == pytest.approx(0.05)
    whole = [(0.5 + base[run.repeat, run.prompt_index].seconds) / (0.5 + run.seconds) for run in runs]
    assert folded.whole_speedup == pytest.approx(statistics.geometric_mean(whole))


def test_reading_the_prompt_is_the_reading_of_both_models(report: Report) -> None:
    runs = [
        msgspec.structs.replace(run, prompt_seconds=0.5, draft_prompt_seconds=0.25) for run in report.runs
    ]
    spread = summarise(1, "draft-simple", runs).prompt_seconds
    assert spread is not None and spread.median == 0.75


def test_partings_are_counted(report: Report) -> None:
    folded = report.summary[2]
    assert (folded.compared, folded.identical, folded.near_ties) == (6, 5, 1)
    assert folded.equal is True


def test_runs_that_failed_are_counted_and_measure_nothing() -> None:
    report = made_report(repeats=4)
    runs = [
        msgspec.structs.replace(run, finish_reason="failed", speedup=None) if run.repeat == 0 else run
        for run in report.runs
    ]
    again, _ = summaries([lane.strategy for lane in report.lanes], runs, ())
    assert (again[1].runs, again[1].failed) == (6, 2)
    assert again[1].speedup.repeats == 3


def failing(report: Report, *failed: tuple[int, int, int]) -> Report:
    """The report of an experiment whose runs (lane, prompt, repeat) failed."""
    experiment = made_experiment(len(report.lanes), report.settings.repeats)
    records = made_records(experiment)
    for lane, prompt, repeat in failed:
        job = Job(repeat, prompt, lane)
        records[job] = RunRecord.of_failed(experiment, job, "no room")
    compared = compared_runs(experiment, records, TraceStore())
    return make_report(experiment, compared, dict.fromkeys(range(len(report.lanes)), pair_info()))


def test_only_what_every_lane_answered_is_compared(report: Report) -> None:
    """Prompts are as different as they are long: medians of some and of all would not compare."""
    part = failing(report, *((1, 0, repeat) for repeat in range(3)))
    for lane, folded in enumerate(part.summary):
        mine = [run for run in part.runs if run.lane == lane and run.prompt_index == 1]
        assert folded.tokens_per_second.median == statistics.median(run.tokens_per_second for run in mine)
        assert (folded.runs, folded.left_out) == (3, 0 if lane == 1 else 3)
        assert folded.n_tokens == 300
    assert [(out.prompt_index, out.repeat, out.lanes) for out in part.left_out] == [
        (0, repeat, (1,)) for repeat in range(3)
    ]
    sentence = (
        "Only answers that every lane completed are compared: 1 of 2 prompts is left out, because "
        "draft-simple failed."
    )
    assert disturbances(part) == [sentence]
    for text in (html_page(part), markdown(part)):
        assert sentence in html.unescape(text)
    assert html_page(part).count('class="run"') == 3 * 3, "a dot for each run that is compared"
    assert json.loads(part.to_json())["left_out"][0] == {"prompt_index": 0, "repeat": 0, "lanes": [1]}
    assert part.summary[2].compared == 6, "the text of every answer is compared"


def test_one_failure_takes_its_repeat_and_a_lane_without_answers_takes_nothing(report: Report) -> None:
    once = failing(report, (1, 0, 2))
    assert [folded.runs for folded in once.summary] == [5, 5, 5]
    assert "1 of 6 runs of each lane is left out" in disturbances(once)[0]
    none = failing(report, *((1, prompt, repeat) for prompt in range(2) for repeat in range(3)))
    assert [folded.runs for folded in none.summary] == [6, 0, 6]
    assert none.left_out == () and disturbances(none) == []


def test_a_category_that_a_lane_failed_keeps_the_others(report: Report) -> None:
    part = failing(report, *((1, 0, repeat) for repeat in range(3)))
    assert {(row.category, row.lane): row.runs for row in part.by_category} == {
        **{("code", lane): 0 if lane == 1 else 3 for lane in range(3)},
        **{("story", lane): 3 for lane in range(3)},
    }


def test_every_prompt_weighs_the_same_in_a_run_that_was_broken_off() -> None:
    """Also end to end; the prompts' factors differ a lot here."""
    report = made_report(repeats=4)
    slow = [
        msgspec.structs.replace(run, seconds=run.seconds / 3, tokens_per_second=3 * run.tokens_per_second)
        if run.lane == 1 and run.prompt_index == 1
        else run
        for run in report.runs
    ]
    runs = [
        msgspec.structs.replace(run, speedup=3 * run.speedup, end_to_end_speedup=3 * run.end_to_end_speedup)
        if run.lane == 1 and run.prompt_index == 1
        else run
        for run in slow
    ]
    names = [lane.strategy for lane in report.lanes]
    whole, _ = summaries(names, runs, ())
    part, _ = summaries(names, [run for run in runs if (run.repeat, run.prompt_index) != (2, 0)], ())
    assert part[1].speedup.factor == pytest.approx(whole[1].speedup.factor, rel=0.02)
    assert part[1].whole_speedup == pytest.approx(whole[1].whole_speedup, rel=0.02)


def test_block_verification_has_no_alpha(report: Report) -> None:
    runs = [msgspec.structs.replace(run, alpha=None) for run in report.runs]
    again, _ = summaries([lane.strategy for lane in report.lanes], runs, ())
    assert again[1].alpha is None and again[1].acceptance_rate is not None


# ---------------------------------------------------------------------------------------- page


class Page(HTMLParser):
    """The page as a browser parses it: elements and rows of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: list[list[str]] = []
        self.in_cell = False
        self.feed(text)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.in_cell = True
            self.rows[-1].append("")

    @override
    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in ("td", "th")

    @override
    def handle_data(self, data: str) -> None:
        if self.in_cell:
            self.rows[-1][-1] += data


def test_every_number_is_recomputed_from_the_embedded_data(report: Report) -> None:
    page = html_page(report)
    inside = Report.from_json(embedded_json(page))
    # The summaries are recomputed from the runs alone, and the page from the summaries.
    whole, parts = summaries([lane.strategy for lane in inside.lanes], inside.runs, inside.categories)
    bare = msgspec.structs.replace(inside, summary=whole, by_category=parts)
    assert html_page(bare) == page
    rows = {row[0]: row[1:] for row in reversed(Page(page).rows)}
    for lane, folded in zip(inside.lanes, whole, strict=True):
        shown = rows[lane.name]
        for column in COLUMNS:
            if column.value((folded, lane)) is not None:
                assert column.text((folded, lane)) in shown, column.key


def test_speedups_of_runs_are_recomputed_from_tokens_and_seconds(report: Report) -> None:
    inside = Report.from_json(embedded_json(html_page(report)))
    runs: dict[tuple[int, int, int], RunRecord] = {
        (run.lane, run.repeat, run.prompt_index): run for run in inside.runs
    }
    for run in inside.runs:
        assert run.tokens_per_second == pytest.approx(run.n_tokens / run.seconds)
        base = runs[inside.lanes[run.lane].baseline, run.repeat, run.prompt_index]
        expected = (run.n_tokens / run.seconds) / (base.n_tokens / base.seconds)
        assert run.speedup == pytest.approx(expected)


def test_the_page_needs_nothing_beside_it_and_runs_nothing(report: Report) -> None:
    page = Page(html_page(report))
    assert not {"img", "link", "iframe", "object"} & set(page.tags)
    assert page.tags.count("script") == 1
    assert ("type", "application/json") in page.attributes
    names = {name for name, _ in page.attributes}
    assert not {"src", "href", "onerror", "onload"} & names
    assert not re.search(r"url\(|@import", html_page(report))


def test_texts_of_people_stay_texts(report: Report) -> None:
    page = html_page(report)
    assert escape(HOSTILE) in page
    assert page.count("</script>") == 1
    assert HOSTILE in json.loads(embedded_json(page))["title"]


def test_the_charts_hold_a_dot_for_every_run(report: Report) -> None:
    page = html_page(report)
    assert page.count("<figure><svg") == 2 and page.count("<svg") == page.count("</svg>")
    assert page.count('class="run"') == len(report.runs)
    assert "nan" not in page.split("<script")[0].lower().replace("nance", "")


def test_a_lane_that_never_drafts_has_no_drafting_time() -> None:
    report = made_report()
    (column,) = (column for column in COLUMNS if column.key == "draft_seconds")
    none, drafting = (
        column.text((msgspec.structs.replace(summary, draft_seconds=1.0), lane))
        for summary, lane in zip(report.summary[:2], report.lanes[:2], strict=True)
    )
    assert (none, drafting) == (NONE, "1.67 ms")


def test_synthetic_lanes_never_win() -> None:
    report = made_report()
    lanes = (
        *report.lanes[:2],
        msgspec.structs.replace(report.lanes[2], strategy="oracle", name="oracle (synthetic)"),
    )
    slow, fast = Speedup(1.2, 1.1, 1.3, 3), Speedup(3.0, 2.9, 3.1, 3)
    summary = (
        report.summary[0],
        msgspec.structs.replace(report.summary[1], speedup=slow),
        msgspec.structs.replace(report.summary[2], speedup=fast, strategy="oracle"),
    )
    said = verdict(msgspec.structs.replace(report, lanes=lanes, summary=summary))
    assert said.startswith("draft-simple is the fastest measured: 1.20×")
    assert "oracle (synthetic) measured 3.00×" in said and "oracle is synthetic: " in said
    alone = msgspec.structs.replace(report, lanes=lanes, summary=(summary[0], summary[2]))
    assert verdict(alone).startswith("oracle (synthetic) measured 3.00×")


def test_verdicts() -> None:
    assert verdict(made_report()).startswith("draft-simple is the fastest measured: 1.5")
    assert verdict(made_report(repeats=1)) == (
        "draft-simple measured 1.50×, the most. Add prompts or repeats for an interval."
    )
    stopped = msgspec.structs.replace(made_report(repeats=1), complete=False)
    assert verdict(stopped).endswith(", the most. Finish the runs for an interval.")


def with_speedups(report: Report, *speedups: Speedup) -> Report:
    """The report with these speed-ups of the lanes after the baseline."""
    changed = [
        msgspec.structs.replace(summary, speedup=speedup)
        for summary, speedup in zip(report.summary[1:], speedups, strict=True)
    ]
    return msgspec.structs.replace(report, summary=(report.summary[0], *changed), by_category=())


def test_a_noisy_lane_does_not_hide_one_that_is_shown_to_be_faster(report: Report) -> None:
    said = verdict(with_speedups(report, Speedup(1.49, 0.56, 3.96, 3), Speedup(1.30, 1.28, 1.33, 3)))
    assert said.startswith(f"{report.lanes[2].name} is the fastest measured: 1.30×")
    assert said.endswith("draft-simple may be just as fast (the intervals overlap).")
    said = verdict(with_speedups(report, Speedup(1.49, 1.45, 1.53, 3), Speedup(1.30, 1.28, 1.33, 3)))
    assert said == "draft-simple is the fastest measured: 1.49× (1.45 to 1.53) as fast as the baseline."


def test_a_lane_is_fastest_only_where_the_verdict_says_so(report: Report) -> None:
    unclear, clear, slower = (
        Speedup(1.49, 0.56, 3.96, 3),
        Speedup(1.30, 1.28, 1.33, 3),
        Speedup(0.9, 0.8, 0.95, 3),
    )
    assert fastest(with_speedups(report, unclear, clear)) == 2
    assert fastest(with_speedups(report, clear, slower)) == 1
    for speedups in ((unclear, slower), (slower, slower)):
        assert fastest(with_speedups(report, *speedups)) is None
        assert "is the fastest" not in verdict(with_speedups(report, *speedups))


def test_the_headline_names_the_categories_in_which_it_does_not_hold(report: Report) -> None:
    def told(code: Speedup, rival: Speedup | None = None) -> str:
        found = {("code", 1): code, ("code", 2): rival}
        parts = [
            msgspec.structs.replace(row, speedup=found.get((row.category, row.lane), row.speedup))
            for row in report.by_category
        ]
        return verdict(msgspec.structs.replace(report, by_category=tuple(parts)))

    assert " Not in " not in told(Speedup(1.4, 1.3, 1.5, 3), Speedup(0.8, 0.7, 0.9, 3))
    assert " Not in code, where it is slower than the baseline, 0.70×." in told(Speedup(0.7, 0.6, 0.8, 3))
    rival = report.lanes[2].name
    assert f" Not in code, where {rival} is faster, 2.00×." in told(
        Speedup(1.4, 1.3, 1.5, 3), Speedup(2.0, 1.9, 2.1, 3)
    )
    assert " Not in " not in told(Speedup(1.4, 1.3, 2.5, 3), Speedup(2.0, 1.9, 2.1, 3)), "they overlap"


def test_where_nothing_pays_overall_the_headline_names_the_kinds_where_something_does(report: Report) -> None:
    slower = with_speedups(report, Speedup(0.9, 0.8, 0.95, 3), Speedup(0.7, 0.6, 0.8, 3))

    def told(code: Speedup) -> str:
        found = {"code": code, "story": Speedup(0.8, 0.7, 0.9, 3)}
        parts = [
            msgspec.structs.replace(row, speedup=found[row.category] if row.lane else row.speedup)
            for row in report.by_category
        ]
        return verdict(msgspec.structs.replace(slower, by_category=tuple(parts)))

    assert told(Speedup(1.2, 1.1, 1.3, 3)).startswith("Nothing pays overall; for code, draft-simple 1.20×. ")
    assert "overall" not in told(Speedup(1.2, 0.9, 1.6, 3)), "that may be chance"


def test_shares_are_small_bars_whose_words_stay(report: Report) -> None:
    page = Page(html_page(report))
    shown = {cell.replace("\N{NO-BREAK SPACE}", " ") for row in page.rows for cell in row}
    assert "80 · 75 · 100 %" in shown
    cell = share_bars(report.summary[1].judged_acceptance_by_place, "words")
    assert cell.count("<rect") == 3 and "<title>words</title>" in cell


def test_of_many_lanes_that_come_near_the_first_are_named(report: Report) -> None:
    folded = report.summary[1]
    lanes = tuple(msgspec.structs.replace(report.lanes[1], name=f"n{n}") for n in range(9))
    many = [
        msgspec.structs.replace(folded, lane=n, speedup=Speedup(2.0 - n / 100, 1.8, 2.1, 3))
        for n in range(1, 9)
    ]
    said = verdict(msgspec.structs.replace(report, lanes=lanes, summary=tuple(many)))
    assert said.endswith("n2, n3, n4 and 4 more may be just as fast (the intervals overlap).")
    said = verdict(msgspec.structs.replace(report, lanes=lanes, summary=tuple(many[:5])))
    assert said.endswith(" n2, n3, n4 and n5 may be just as fast (the intervals overlap).")


def test_what_may_be_faster_is_not_passed_over_for_what_is_slower(report: Report) -> None:
    said = verdict(with_speedups(report, Speedup(0.98, 0.97, 0.99, 3), Speedup(0.9, 0.5, 1.6, 3)))
    assert said.startswith("No lane is clearly faster than the baseline: the best, ")
    assert said.endswith(", measured 0.90× (0.50 to 1.60), and the interval includes 1×.")


def test_lanes_on_two_targets_are_not_ranked_against_each_other(report: Report) -> None:
    lanes = (
        *report.lanes,
        msgspec.structs.replace(report.lanes[0], name="none on u.gguf", baseline=3),
        msgspec.structs.replace(report.lanes[1], name="draft-simple on u.gguf", baseline=3),
    )
    first, second = report.summary[1:]

    def said(*speedups: Speedup) -> str:
        changed = [
            msgspec.structs.replace(each, lane=lane, speedup=speedup)
            for each, lane, speedup in zip((first, second, first), (1, 2, 4), speedups, strict=True)
        ]
        summary = (report.summary[0], *changed)
        return verdict(msgspec.structs.replace(report, lanes=lanes, summary=summary, by_category=()))

    near, far, top = Speedup(1.3, 1.28, 1.32, 3), Speedup(1.1, 1.05, 1.2, 3), Speedup(1.4, 1.31, 1.5, 3)
    assert said(near, far, top) == (
        "draft-simple on u.gguf gains most over its own baseline: 1.40× (1.31 to 1.50) as fast. "
        "draft-simple may gain just as much (the intervals overlap)."
    )
    slow = Speedup(0.9, 0.8, 0.95, 3)
    assert said(slow, slow, slow).startswith("Nothing was faster than its own baseline")
    even = Speedup(1.0, 0.9, 1.1, 3)
    assert said(even, slow, slow).startswith("No lane is clearly faster than its own baseline")


def test_a_sweep_is_a_map() -> None:
    cells = (Cell("1", "0", 1), Cell("2", "0", 2), Cell("1", "0.5", None, "not allowed"), Cell("2", "0.5", 1))
    report = made_report(sweep=SweepFacts("n_max", "p_min", ("1", "2"), ("0", "0.5"), cells))
    heat = heat_map(report)
    assert [cell.strategy for cell in heat] == ["draft-simple", "suffix", "", "draft-simple"]
    assert heat[0].speedup == report.summary[1].speedup.factor
    assert heat[2].speedup is None
    page = html_page(report)
    assert page.count('class="cell') >= 16  # four maps
    assert "across: n_max; down: p_min" in page
    # In every map the same cell is framed: the fastest.
    assert page.count('class="cell best"') == 4


def test_an_empty_report_is_a_page_too(report: Report) -> None:
    bare = msgspec.structs.replace(report, runs=())
    whole, parts = summaries([lane.strategy for lane in bare.lanes], (), bare.categories)
    bare = msgspec.structs.replace(bare, summary=whole, by_category=parts)
    assert "Nothing could be compared" in html_page(bare)
    assert markdown(bare)


# ------------------------------------------------------------------------------- markdown, CSV


def test_markdown_is_a_table_with_its_circumstances(report: Report) -> None:
    lines = markdown(report).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    for table in (rows[:5], rows[5:10], rows[10:]):
        assert len(table) == 2 + 3
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
        assert len(columns) == 1  # a bar in a name does not make a column
    assert any("t.gguf" in line for line in lines)
    assert any("rounding tie" in line for line in lines)
    assert any(line.startswith("llama-server") for line in lines)


def with_runs(report: Report, runs: list[RunRecord]) -> Report:
    whole, parts = summaries([lane.strategy for lane in report.lanes], runs, report.categories)
    return msgspec.structs.replace(report, runs=tuple(runs), summary=whole, by_category=parts)


def test_runs_that_failed_are_told_and_no_equality_is_claimed_for_them(report: Report) -> None:
    runs = [
        msgspec.structs.replace(run, finish_reason="failed", speedup=None, identical_to_baseline=None)
        if run.lane == 1
        else run
        for run in report.runs
    ]
    failed = with_runs(report, runs)
    assert equality(failed) == "5 of 6 compared answers have exactly the baseline's tokens. 6 runs failed."
    for text in (html_page(failed), markdown(failed)):
        assert html.unescape(text).count(equality(failed)) == 1
    row = next(line for line in markdown(failed).splitlines() if line.startswith("| `draft-simple`"))
    assert row.rstrip(" |").endswith("6")
    assert "failed |" not in markdown(report)


def test_a_near_tie_hides_no_parting_of_another_repeat(report: Report) -> None:
    real = Divergence(9, 5, 6, "x", "y", 2.9, 0.0, False)
    runs = [
        msgspec.structs.replace(run, identical_to_baseline=False, first_divergence=real)
        if (run.lane, run.prompt_index) == (2, 0) and run.repeat > 0
        else run
        for run in report.runs
    ]
    lines = list(parting_lines(with_runs(report, runs)))
    assert len(lines) == 2
    assert "repeat 1, token 5" in lines[0] and "rounding tie" in lines[0]
    assert "repeat 2, 3, token 10: 'y' instead of 'x', logit gap 2.90" in lines[1]
    assert lines[1].endswith("2.90")


@pytest.mark.parametrize(("rule", "excused"), [("speculative", True), ("block", True), ("match", False)])
def test_only_rules_that_draw_are_excused(report: Report, rule: str, excused: bool) -> None:
    settings = msgspec.structs.replace(
        report.settings, sampling=replace(report.settings.sampling, temperature=0.8)
    )
    real = Divergence(9, 5, 6, "x", "y")
    run = msgspec.structs.replace(
        report.runs[0], lane=1, strategy=f"draft-simple:verify={rule}", first_divergence=real
    )
    hot = msgspec.structs.replace(report, settings=settings, runs=(run,))
    assert ("as expected" in next(parting_lines(hot))) is excused


def test_how_drafts_fared_is_a_table_of_its_own(report: Report) -> None:
    for made in (html_page(report), markdown(report)):
        for column in SHAPE:
            assert (column.title in made) == (column.key != "strategies"), "the lanes are no mixes"
    cells = [
        "2.50",
        "3.00",
        "80 · 60 · 60 %",
        "80 · 60 · 60 %",
        "80 · 75 · 100 %",
        "20 · 20 · 0 · 60 %",
        "75 · 25 %",
        "0.500 bit",
    ]
    assert f"| {' | '.join(cells)} |" in markdown(report).replace("\N{NO-BREAK SPACE}", " ")


def test_shape_is_pooled_over_runs(report: Report) -> None:
    folded = report.summary[1]
    assert folded.accepted_per_round == (36, 36, 0, 108) and folded.lengths == (0, 0, 0, 180)
    assert folded.acc_per_pos == (144 / 180, 108 / 180, 108 / 180)
    assert folded.acceptance_by_place == (144 / 180, 108 / 180, 108 / 180)
    assert folded.tokens_per_pass == 100 / 40
    assert folded.alternatives.ranks == [18, 6] and folded.alternatives.target_entropy == 0.5
    assert report.summary[0].alternatives.target_entropy is None


def test_csv_has_a_line_a_run(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_table(report))))
    assert len(rows) == len(report.runs)
    assert {float(row["tokens_per_second"]) for row in rows} == {run.tokens_per_second for run in report.runs}
    assert [row["end_to_end_speedup"] for row in rows] == [str(run.end_to_end_speedup) for run in report.runs]
    partings = [(row["divergence_index"], row["divergence_logit_gap"]) for row in rows]
    assert sorted(set(partings)) == [("", ""), ("4", "0.01")]
    assert not any("[" in cell or "{" in cell for row in rows for cell in row.values())


def test_csv_texts_are_no_formulas(report: Report) -> None:
    lanes = (msgspec.structs.replace(report.lanes[0], name="=1+1"), *report.lanes[1:])
    rows = list(csv.DictReader(io.StringIO(csv_table(msgspec.structs.replace(report, lanes=lanes)))))
    assert "'=1+1" in {row["name"] for row in rows}
    assert "=1+1" not in {row["name"] for row in rows}


def test_a_report_reads_each_run_a_few_times_however_many_lanes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = made_report(lanes=4)
    looked: list[RunRecord] = []
    monkeypatch.setattr(summary, "is_measured", lambda run: looked.append(run) or is_measured(run))
    summaries([lane.strategy for lane in report.lanes], report.runs, report.categories)
    assert len(looked) == 4 * len(report.runs), "for its lane, its category, and what all answered"
    looked.clear()
    summaries([lane.strategy for lane in report.lanes], report.runs, ())
    assert len(looked) == 2 * len(report.runs)


def palettes() -> list[dict[str, str]]:
    """The page's colours on screen, on a dark screen and on paper."""
    style = (resource_folder() / "pages" / "page.css").read_text(encoding="utf-8")
    found = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    screen = dict(re.findall(r"--(\w+): (#\w+)", found[0]))
    every = [screen | dict(re.findall(r"--(\w+): (#\w+)", block)) for block in found]
    return [{name: six(colour) for name, colour in palette.items()} for palette in every]


def six(colour: str) -> str:
    return colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("colours", palettes())
def test_all_eyes_tell_faster_slower_and_the_same_apart(colours: dict[str, str], eyes: str) -> None:
    for first, second in combinations(("good", "bad", "same"), 2):
        assert difference(seen(colours[first], eyes), seen(colours[second], eyes)) >= 10
    for name in ("good", "bad"):
        assert min(contrast(colours[name], colours[ground]) for ground in ("page", "tint")) >= 4.5


@pytest.mark.parametrize("colours", palettes())
def test_the_numbers_of_a_map_are_legible_on_every_shade(colours: dict[str, str]) -> None:
    for step in range(101):
        strength = SHADES[0] + (SHADES[1] - SHADES[0]) * step / 100
        shade = blend(colours["accent"], colours["page"], strength)
        assert contrast(colours["ink"], shade) >= 4.5
    cells = tuple(Cell(str(n), "0", 1 + n % 3) for n in range(9))
    report = made_report(
        4, sweep=SweepFacts("n_max", "p_min", tuple(str(n) for n in range(9)), ("0",), cells)
    )
    drawn = {float(strength) for strength in re.findall(r'fill-opacity="([\d.]+)"', html_page(report))}
    assert (min(drawn), max(drawn)) == SHADES, "the picture has no other shade"


def test_lanes_are_written_as_llamas_benchmark_client_writes_them() -> None:
    report = made_report()
    base, drafted = (json.loads(speed_bench(report, lane)) for lane in (0, 1))
    # What speed_bench_compare.py reads: rows by category, with the speeds and times that it divides.
    rows = {row["category"]: row for row in base["summary"]}
    for row in drafted["summary"]:
        runs = [
            run for run in report.runs if run.lane == 1 and row["category"] in (run.category or "", "overall")
        ]
        assert row["requests"] == len(runs) and row["failed"] == 0
        assert row["avg_pred_t_s"] == pytest.approx(statistics.fmean(run.tokens_per_second for run in runs))
        assert row["avg_latency"] == pytest.approx(statistics.fmean(run.whole_seconds for run in runs))
        assert row["accept_rate"] == sum(run.accepted for run in runs) / sum(run.drafted for run in runs)
        assert row["avg_pred_t_s"] / rows[row["category"]]["avg_pred_t_s"] > 0
    assert list(rows)[-1] == "overall" and rows["overall"]["accept_rate"] is None
    (first, *_) = drafted["results"]
    run = next(run for run in report.runs if run.lane == 1)
    assert (first["draft_n"], first["draft_n_accepted"]) == (run.drafted, run.accepted)
    assert first["predicted_per_second"] == run.tokens_per_second
    assert drafted["completed_samples"] == drafted["selected_samples"] == len(drafted["results"])


def test_acceptance_records_hold_what_aiperf_checks() -> None:
    report = made_report()
    lines = [json.loads(line) for line in acceptance_records(report, 1).splitlines()]
    runs = [run for run in report.runs if run.lane == 1]
    assert len(lines) == len(runs)
    for line, run in zip(lines, runs, strict=True):
        record = line["spec_decode_acceptance"]
        steps = {int(accepted): count for accepted, count in record["acceptance_histogram"].items()}
        assert all(steps.values()), "empty buckets are left out"
        assert sum(steps.values()) == record["num_spec_steps"] == run.drafted_rounds
        assert sum(accepted * count for accepted, count in steps.items()) == run.accepted
        assert record["num_accepted_draft_tokens"] == run.accepted <= record["num_draft_tokens"]
        assert record["mean_acceptance_length"] == pytest.approx(1 + run.accepted / run.drafted_rounds)
        assert record["num_spec_tokens"] == 3, "draft-simple's own limit"
    assert all(
        json.loads(line)["spec_decode_acceptance"] is None
        for line in acceptance_records(report, 0).splitlines()
    )


def test_every_lane_has_its_own_files_also_where_names_are_alike() -> None:
    report = made_report()
    lanes = [msgspec.structs.replace(lane, name="a:b") for lane in report.lanes]
    names = list(lane_files(msgspec.structs.replace(report, lanes=tuple(lanes))))
    assert len(names) == len(set(names)) == 2 * len(lanes)
    assert names[0] == "a-b.speed-bench.json"


def test_energy_has_a_column_only_where_every_run_has_it() -> None:
    report = made_report()
    assert "J/token" not in html_page(report) and "J/token" not in markdown(report)
    runs = [msgspec.structs.replace(run, joules=50.0, energy_of="RAPL package-0") for run in report.runs]
    row = summary.summarise(1, "draft-simple", [run for run in runs if run.lane == 1])
    assert (row.joules, row.energy_of) == (50.0 * row.runs, "RAPL package-0")
    (column,) = (column for column in COLUMNS if column.key == "joules_per_token")
    assert column.value((row, report.lanes[1])) == pytest.approx(0.5), "50 J for 100 tokens"
    at = next(at for at, run in enumerate(runs) if run.lane == 2)
    runs[at] = msgspec.structs.replace(runs[at], joules=None)
    assert summary.summarise(2, "suffix", [run for run in runs if run.lane == 2]).joules is None


def test_markdown_has_the_categories_and_says_what_its_columns_mean() -> None:
    report = made_report()
    text = markdown(report)
    (head,) = (line for line in text.splitlines() if line.startswith("| strategy | code | story |"))
    row = text.splitlines()[text.splitlines().index(head) + 3]
    part = next(part for part in report.by_category if (part.lane, part.category) == (1, "code"))
    assert f"{part.speedup.factor:.2f}× {part.acceptance_rate:.0%}".replace("%", " %") in row
    for column in COLUMNS[:4]:
        assert f"- {column.title}: {column.definition}" in text


def test_a_stranger_s_words_are_text_in_every_table() -> None:
    assert escaped("<script>alert(1)</script> & more") == "&lt;script>alert(1)&lt;/script> &amp; more"
    hostile = ("=HYPERLINK(1)", "+1", "-1+1", "@x", "\tx", "\rx")
    (names, row) = csv.reader(io.StringIO(csv_text(hostile, [hostile]), newline=""))
    assert names == row == [f"'{text}".replace("\r", " ") for text in hostile]
