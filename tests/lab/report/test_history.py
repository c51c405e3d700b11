"""A history over results: what stands together, in which order, and its page."""

from __future__ import annotations

import json

import msgspec
from markupsafe import escape

from app.lab.report.change import histories, history_html
from app.lab.report.page import embedded_json
from app.lab.report.report import Report
from app.lab.report.summary import speedup_words
from tests.lab.report.reports import HOSTILE, made_report

replace = msgspec.structs.replace


def at(report: Report, day: int, app: str) -> Report:
    system = replace(report.system, app=app)
    return replace(report, created_at=f"2026-11-{day:02}T10:00:00+00:00", system=system)


def test_each_lane_is_shown_from_the_earliest_result_on() -> None:
    report = made_report()
    [history] = histories([at(report, 24, "0.3.0"), at(report, 2, "0.2.0")])
    drafting = sorted(lane.name for lane in report.lanes[1:])
    assert [(row.lane, row.version.split(",")[0]) for row in history.rows] == [
        (lane, version) for lane in drafting for version in ("0.2.0", "0.3.0")
    ], "the baseline's factor is 1 by definition"
    assert history.rows[-1].speed == report.summary[1].speedup
    low, high = history.reach
    assert low < 1 < history.rows[-1].speed.high <= high
    assert not any(row.doubtful for row in history.rows)


def test_other_prompts_and_another_target_have_a_history_of_their_own() -> None:
    report = made_report()
    fewer = replace(report, prompts=report.prompts[:1])
    other = replace(report, pair=replace(report.pair, target=replace(report.pair.target, file="u.gguf")))
    assert len(histories([report, fewer, other, report])) == 3


def test_the_page_holds_every_factor_and_no_text_becomes_markup() -> None:
    report = made_report()
    found = histories([at(report, 2, "0.2.0"), at(report, 24, f"0.3.0 {HOSTILE}")])
    page = history_html(found)
    assert page.count('class="interval"') == page.count('class="mean ') == 4
    assert all(speedup_words(row.speed) in page for row in found[0].rows)
    assert "<img" not in page and escape(HOSTILE) in page
    assert len(json.loads(embedded_json(page))[0]["rows"]) == 4
