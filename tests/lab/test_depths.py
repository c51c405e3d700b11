"""Depth measurements: what may be asked for, and what is refused before anything runs."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET

import msgspec
import pytest

from app.base import numbers
from app.engine.errors import SettingError
from app.engine.types import ModelOptions, Sampling
from app.lab.depths import (
    HEAD,
    at_depths,
    check_room,
    depth_curves,
    depth_rows,
    depths_left_out,
    has_depths,
    parse_depths,
    room_for_depth,
    suggested_depths,
    without_depths,
)
from app.lab.experiment import Experiment, Lane, Pair, Prompt, conversations, make_experiment
from app.lab.report.charts import curve_chart
from app.lab.report.plots import CurveMark
from app.lab.report.verdict import verdict
from app.lab.suites import Suite
from tests.lab.report.reports import made_depths, made_report

LONG_SUITE = Suite("long", "Long", (Prompt("Sum it up:\n\nOnce upon a time", "story"),))


def experiment(*lanes: Lane, tokens: int = 100) -> Experiment:
    prompts = (Prompt("one", "code"), Prompt("two", "story"))
    return Experiment(
        Pair(ModelOptions("t.gguf")), lanes or (Lane("suffix"),), prompts, Sampling(seed=1), tokens
    )


def test_depths_are_written_as_numbers_or_in_k() -> None:
    assert parse_depths(" 0, 1k,1024 ,16K,300") == (0, 1024, 16_384, 300)


@pytest.mark.parametrize("text", ["", "0,,1", "1.5k", "-1", "k", "²", "0,99999999999"])
def test_what_is_no_depth_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingError, match="such as 0,1k,4k"):
        parse_depths(text)


def test_every_prompt_is_asked_at_every_depth_and_known_again() -> None:
    base = experiment()
    deep = at_depths(base, (0, 64), LONG_SUITE)
    assert [(prompt.depth, prompt.prompt) for prompt in deep.prompts] == [
        (0, "one"), (0, "two"), (64, "one"), (64, "two")
    ]  # fmt: skip
    assert deep.documents == "Once upon a time"
    assert has_depths(deep) and not has_depths(base)
    assert without_depths(deep) == without_depths(base) == base.prompts


def test_conversations_stay_whole_at_every_depth() -> None:
    turns = Prompt("one"), Prompt("two", before=("one",)), Prompt("one"), Prompt("three", before=("one",))
    base = msgspec.structs.replace(experiment(), prompts=turns)
    deep = make_experiment(at_depths(base, (0, 64), LONG_SUITE))
    assert [len(asked) for asked in conversations(deep.prompts)] == [2, 2, 2, 2]
    assert without_depths(deep) == turns


def test_the_long_documents_are_not_put_behind_themselves() -> None:
    base = Experiment(Pair(ModelOptions("t.gguf")), (Lane("suffix"),), LONG_SUITE.prompts)
    with pytest.raises(SettingError, match="Choose other prompts"):
        at_depths(base, (0, 64), LONG_SUITE)


def test_the_smallest_context_of_the_lanes_is_the_room() -> None:
    sizes = {"t.gguf": 4096, "small.gguf": 1024, "new.gguf": 0}
    lanes = [Lane("suffix", pair=Pair(ModelOptions(path))) for path in sizes]

    def n_ctx(target: ModelOptions) -> int:
        return sizes[target.path]

    assert room_for_depth(experiment(*lanes), n_ctx) == 924
    assert room_for_depth(experiment(*lanes[:1]), n_ctx) == 3996
    assert room_for_depth(experiment(lanes[2]), n_ctx) is None
    assert room_for_depth(experiment(lanes[1], tokens=2000), n_ctx) == 0


def test_a_depth_that_does_not_fit_is_refused_with_the_context() -> None:
    check_room((0, 923), 924, 100)
    check_room((0, 10_000), None, 100)
    check_room((0,), 0, 100)  # the prompt alone may fit: its run will say
    with pytest.raises(SettingError, match=r"1,000 tokens does not fit: the context has room for 1,024,"):
        check_room((0, 1000), 924, 100)


@pytest.mark.parametrize("room", [None, 0, 100, 1888, 7000, 40_000, 200_000])
def test_suggested_depths_fit_and_begin_at_0(room: int | None) -> None:
    depths = parse_depths(suggested_depths(room))
    assert depths[0] == 0 and len(depths) <= 4
    check_room(depths, room, 100)
    assert room is None or room < 100 or len(depths) > 1


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
    alone = made_depths(deepest="The prompt has 1,100 tokens, but the context has room for 1,024.")
    assert verdict(alone).endswith("; at 1,024: not measured.")
    assert depths_left_out(alone) == [
        "left out, depth 1,024: The prompt has 1,100 tokens, but the context has room for 1,024."
    ]
    slower = msgspec.structs.replace(
        report, by_depth=tuple(row for row in report.by_depth if row.lane in (0, 2))
    )
    assert verdict(slower) == "No lane is clearly faster than the baseline at any depth."


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
