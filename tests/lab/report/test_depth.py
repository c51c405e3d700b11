"""The numbers over the depth: curves, rows and the sentence, all of one report."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET

import msgspec
import pytest

from app.base import numbers
from app.lab.report.curves import CurveMark
from app.lab.report.depth import HEAD, depth_curves, depth_rows, depths_left_out
from app.lab.report.page.curve_chart import curve_chart
from app.lab.report.verdict import verdict
from tests.lab.report.reports import made_depths, made_report


def test_the_curves_hold_the_summaries_of_each_depth() -> None:
    report = made_depths()
    curves = depth_curves(report)
    assert curves is not None
    assert curves.places == (0, 1024) and curves.baselines == {0}
    speedup, acceptance, first_token = curves.plots
    for row in report.by_depth:
        at = row.lane, curves.places.index(row.depth)
        assert row.speedup is not None and row.first_token_seconds is not None
        assert speedup.values[at] == row.speedup.factor
        assert acceptance.values.get(at) == row.acceptance_rate
        assert first_token.values[at] == row.first_token_seconds.median
    assert speedup.level is None, "the baseline has a line of its own"
    names, rows = curves.table()
    assert names == ["lane", "depth", "speedup", "acceptance_rate", "first_token_seconds"]
    assert [row[:2] for row in rows] == [[name, depth] for name in curves.lanes for depth in (0, 1024)]
    assert rows[3][2] == speedup.values[1, 1]


def test_a_point_is_read_out_with_all_its_numbers() -> None:
    curves = depth_curves(made_depths())
    assert curves is not None
    said = curves.reading(1, 1)
    assert said.startswith(f"{curves.lanes[1]}\ndepth 1,024: speed-up {numbers.factor(1.24)[:3]}")
    assert "acceptance 66.7" in said and "first token 600" in said
    assert "acceptance" not in curves.reading(0, 0), "the baseline drafts nothing"


def test_a_report_without_depths_has_no_curves() -> None:
    assert depth_curves(made_report()) is None


def test_the_fastest_is_said_for_each_depth() -> None:
    report = made_depths()
    said = verdict(report)
    name = report.lanes[1].name
    assert said.startswith(f"The fastest at depth 0: {name} 1.5")
    assert f"; at 1,024: {name} 1.2" in said
    alone = made_depths(deepest="The prompt has 1,100 tokens and the context holds 1,024.")
    assert verdict(alone).endswith("; at 1,024: not measured.")
    assert depths_left_out(alone) == [
        "left out, depth 1,024: The prompt has 1,100 tokens and the context holds 1,024."
    ]
    slower = msgspec.structs.replace(
        report, by_depth=tuple(row for row in report.by_depth if row.lane in (0, 2))
    )
    assert "0: nothing is shown to be faster than none; at" in verdict(slower)


def test_the_rows_are_lane_by_lane_as_their_head_says() -> None:
    report = made_depths()
    rows = list(depth_rows(report))
    assert [row[1] for row in rows] == ["0", "1,024"] * 3
    assert all(len(row) == len(HEAD) for row in rows)


@pytest.mark.parametrize("marked", [False, True])
def test_the_picture_has_a_line_for_each_lane_and_number(marked: bool) -> None:
    curves = depth_curves(made_depths())
    assert curves is not None
    if marked:
        mark = CurveMark(0.5, 1.0, "one here")
        plots = (dataclasses.replace(curves.plots[0], marks=(mark,)), *curves.plots[1:])
        curves = dataclasses.replace(curves, plots=plots)
    drawn = ET.fromstring(curve_chart(curves, "Over the depth"))
    assert len([part for part in drawn if part.tag.endswith("polyline")]) == 3 + 2 + 3
    texts = [part.text for part in drawn if part.tag.endswith("text")]
    assert {"speed-up", "acceptance", "first token", "1,024", *curves.lanes} <= set(texts)
    assert ("one here" in texts) is marked
