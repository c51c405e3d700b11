"""The report and its exports: every number can be recomputed from the data inside."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import statistics
from html.parser import HTMLParser

import msgspec
import pytest

from app.lab.columns import COLUMNS
from app.lab.csv_export import csv_table
from app.lab.markdown_export import markdown
from app.lab.page.page import embedded_json, html_page, verdict
from app.lab.report import Cell, Report, SweepFacts, summaries
from app.lab.run_record import RunRecord
from app.lab.sweep import heat_map
from tests.lab.reports import HOSTILE, made_report
from tests.lab.test_run_record import FIELDS


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
    one = report.summary[1]
    runs = [run for run in report.runs if run.lane == 1]
    base = {(run.repeat, run.prompt_index): run for run in report.runs if run.lane == 0}
    assert one.runs == 6 and one.failed == 0
    assert one.tokens_per_second.median == statistics.median(run.tokens_per_second for run in runs)
    ratios = [run.tokens_per_second / base[run.repeat, run.prompt_index].tokens_per_second for run in runs]
    assert [run.speedup for run in runs] == pytest.approx(ratios)
    assert one.speedup.factor == pytest.approx(statistics.geometric_mean(ratios))
    assert one.speedup.low < one.speedup.factor < one.speedup.high
    assert (one.acceptance_rate, one.alpha, one.tau) == (360 / 540, 0.75, 1 + 360 / 180)
    assert one.draft_share == 0.6
    assert one.engine_overhead == pytest.approx(0.05)
    whole = [(0.5 + base[run.repeat, run.prompt_index].seconds) / (0.5 + run.seconds) for run in runs]
    assert one.whole_speedup == pytest.approx(statistics.geometric_mean(whole))


def test_partings_are_counted(report: Report) -> None:
    one = report.summary[2]
    assert (one.compared, one.identical, one.near_ties) == (6, 5, 1)
    assert one.equal is True


def test_runs_that_failed_are_counted_and_measure_nothing(report: Report) -> None:
    runs = [
        msgspec.structs.replace(run, finish_reason="failed", speedup=None) if run.repeat == 0 else run
        for run in report.runs
    ]
    again, _ = summaries([lane.strategy for lane in report.lanes], runs, ())
    assert (again[1].runs, again[1].failed) == (4, 2)
    assert again[1].speedup.repeats == 2


def test_block_verification_has_no_alpha(report: Report) -> None:
    runs = [msgspec.structs.replace(run, alpha=None) for run in report.runs]
    again, _ = summaries([lane.strategy for lane in report.lanes], runs, ())
    assert again[1].alpha is None and again[1].acceptance_rate is not None


# ---------------------------------------------------------------------------------------- page


class Page(HTMLParser):
    """The page as a browser would take it: elements and rows of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: list[list[str]] = []
        self.in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.in_cell:
            self.rows[-1][-1] += data


def test_every_number_is_recomputed_from_the_embedded_data(report: Report) -> None:
    page = html_page(report)
    inside = Report.from_json(embedded_json(page))
    # Nothing but the runs is believed: summaries anew, and the page from them.
    whole, parts = summaries([lane.strategy for lane in inside.lanes], inside.runs, inside.categories)
    bare = msgspec.structs.replace(inside, summary=whole, by_category=parts)
    assert html_page(bare) == page
    rows = {row[0]: row[1:] for row in reversed(Page(page).rows)}
    for lane, one in zip(inside.lanes, whole, strict=True):
        shown = rows[lane.name]
        for column in COLUMNS:
            if column.value(one, lane) is not None:
                assert column.text(one, lane) in shown, column.key


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
    assert html.escape(HOSTILE) in page
    assert page.count("</script>") == 1
    assert HOSTILE in json.loads(embedded_json(page))["title"]


def test_the_charts_hold_a_dot_for_every_run(report: Report) -> None:
    page = html_page(report)
    assert page.count("<svg") == page.count("</svg>") == 2
    assert page.count('class="run"') == len(report.runs)
    assert "nan" not in page.split("<script")[0].lower().replace("nance", "")


def test_verdicts() -> None:
    assert verdict(made_report()).startswith("draft-simple is the fastest: 1.5")
    assert "one repeat" in verdict(made_report(repeats=1))


def test_a_sweep_is_a_map() -> None:
    cells = (Cell("1", "0", 1), Cell("2", "0", 2), Cell("1", "0.5", None, "not allowed"), Cell("2", "0.5", 1))
    report = made_report(sweep=SweepFacts("n_max", "p_min", ("1", "2"), ("0", "0.5"), cells))
    heat = heat_map(report)
    assert [one.strategy for one in heat] == ["draft-simple", "suffix", "", "draft-simple"]
    assert heat[0].speedup == report.summary[1].speedup.factor
    assert heat[2].speedup is None
    page = html_page(report)
    assert page.count('class="cell') >= 12  # three maps
    assert "across: n_max; down: p_min" in page


def test_an_empty_report_is_a_page_too(report: Report) -> None:
    bare = msgspec.structs.replace(report, runs=())
    whole, parts = summaries([lane.strategy for lane in bare.lanes], (), bare.categories)
    bare = msgspec.structs.replace(bare, summary=whole, by_category=parts)
    assert "Nothing could be compared" in html_page(bare)
    assert markdown(bare)


# ------------------------------------------------------------------------------- markdown, CSV


def test_markdown_is_a_table_with_its_circumstances(report: Report) -> None:
    lines = markdown(report).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 3
    columns = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
    assert len(columns) == 1  # a bar in a name does not make a column
    assert any("t.gguf" in line for line in lines)
    assert any("near-tie" in line for line in lines)
    assert any(line.startswith("llama-server") for line in lines)


def test_csv_has_a_line_a_run(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_table(report))))
    assert len(rows) == len(report.runs)
    assert {float(row["tokens_per_second"]) for row in rows} == {run.tokens_per_second for run in report.runs}


def test_csv_texts_are_no_formulas(report: Report) -> None:
    lanes = (msgspec.structs.replace(report.lanes[0], name="=1+1"), *report.lanes[1:])
    rows = list(csv.DictReader(io.StringIO(csv_table(msgspec.structs.replace(report, lanes=lanes)))))
    assert "'=1+1" in {row["name"] for row in rows}
    assert "=1+1" not in {row["name"] for row in rows}
