"""Sweeps: grids of two parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine.errors import SettingError
from app.engine.types import ModelOptions, Sampling
from app.lab.experiment import Experiment, Pair, Prompt
from app.lab.report.report import make_report
from app.lab.sweep import Axis, best_cell, heat_map, make_sweep, spelled, with_value
from tests.lab.experiments import finished, pair_of

PAIR = Pair(ModelOptions("t.gguf"), ModelOptions("d.gguf"))


def base(pair: Pair = PAIR, temperature: float = 0.0) -> Experiment:
    return Experiment(
        pair, (), (Prompt("abcabc"),), Sampling(temperature=temperature, seed=1), 10, 1, chat=False
    )


@pytest.mark.parametrize(
    ("strategy", "key", "value", "expected"),
    [
        ("draft-simple", "n_max", "7", "draft-simple:n_max=7"),
        ("draft-simple:n_max=7", "n_max", "3", "draft-simple"),
        ("suffix+draft-simple", "draft-simple.n_max", "5", "suffix+draft-simple:n_max=5"),
        ("suffix+draft-simple", "max_depth", "9", "suffix:max_depth=9+draft-simple"),
        ("draft-simple:verify=match", "verify", "block", "draft-simple:verify=block"),
        ("draft-simple:verify=match", "length", "auto", "draft-simple:verify=match:length=auto"),
        (
            "suffix:length=ewma:ewma_min=2",
            "ewma_start",
            "5",
            "suffix:length=ewma:ewma_start=5:ewma_min=2",
        ),
    ],
)
def test_one_setting_is_changed(strategy: str, key: str, value: str, expected: str) -> None:
    assert with_value(strategy, key, value) == expected


@pytest.mark.parametrize(
    ("strategy", "key", "value", "words"),
    [
        ("suffix+draft-simple", "n_max", "5", "several parts"),
        ("draft-simple", "nosuch", "5", "is not a setting"),
        ("draft-simple", "n_max", "0", "n_max cannot be"),
        ("draft-simple", "verify", "wrong", "verify cannot be"),
        ("draft-simple", "ewma_start", "5", "belongs to length=ewma"),
    ],
)
def test_what_cannot_be_changed(strategy: str, key: str, value: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        with_value(strategy, key, value)


def test_axes_are_lists_or_ranges() -> None:
    assert Axis.parse("n_max=1, 2,4") == Axis("n_max", ("1", "2", "4"))
    assert Axis.parse("n_max=1..4") == Axis("n_max", ("1", "2", "3", "4"))
    for wrong in ("n_max", "=1,2", "n_max=", "n_max=4..1"):
        with pytest.raises(SettingError, match="not an axis"):
            Axis.parse(wrong)


def test_a_grid_is_a_lane_a_cell_row_by_row() -> None:
    experiment, facts = make_sweep(
        base(), "draft-simple", Axis("n_max", ("2", "3")), Axis("p_min", ("0", "0.5"))
    )
    assert [lane.strategy for lane in experiment.lanes] == [
        "none",
        "draft-simple:n_max=2",
        "draft-simple",
        "draft-simple:n_max=2:p_min=0.5",
        "draft-simple:p_min=0.5",
    ]
    assert [(cell.x, cell.y, cell.lane) for cell in facts.cells] == [
        ("2", "0", 1),
        ("3", "0", 2),
        ("2", "0.5", 3),
        ("3", "0.5", 4),
    ]


def test_values_that_do_not_go_together_are_left_out() -> None:
    experiment, facts = make_sweep(
        base(temperature=0.8), "draft-simple", Axis("sample", ("0", "1")), Axis("n_min", ("0", "1"))
    )
    refused = [cell for cell in facts.cells if cell.refused]
    assert [(cell.x, cell.y, cell.lane) for cell in refused] == [("1", "1", None)]
    assert "n_min cannot be used with sample=1" in refused[0].refused
    assert len(experiment.lanes) == 1 + 3


def test_a_rule_that_needs_temperature_0_is_a_cell_left_out() -> None:
    rules, lengths = Axis("verify", ("greedy", "speculative")), Axis("n_max", ("2", "4"))
    experiment, facts = make_sweep(base(temperature=0.8), "draft-simple", rules, lengths)
    assert [cell.x for cell in facts.cells if "needs temperature 0" in cell.refused] == ["greedy", "greedy"]
    assert len(experiment.lanes) == 1 + 2
    with pytest.raises(SettingError, match="needs temperature 0"):
        make_sweep(base(temperature=0.8), "draft-simple", Axis("verify", ("greedy",)), lengths)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (Axis("n_max", ("1",)), Axis("n_max", ("2",)), "Both axes"),
        (Axis("n_max", ("0",)), Axis("p_min", ("0",)), "n_max cannot be"),
        (Axis.parse("n_max=1..100"), Axis("p_min", ("0", "0.1", "0.2")), "too many"),
    ],
)
def test_grids_that_are_refused(x: Axis, y: Axis, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        make_sweep(base(), "draft-simple", x, y)


def test_a_sweep_runs_and_becomes_a_heat_map(pair_files: tuple[Path, Path]) -> None:
    experiment, facts = make_sweep(
        base(pair_of(pair_files)), "draft-simple", Axis("n_max", ("1", "4")), Axis("p_min", ("0", "1"))
    )
    runner, _ = finished(experiment)
    heat = heat_map(make_report(experiment, runner.records, runner.pairs, sweep=facts))
    runner.close()
    assert [(cell.cell.x, cell.cell.y) for cell in heat] == [("1", "0"), ("4", "0"), ("1", "1"), ("4", "1")]
    assert all(cell.tokens_per_second and cell.speedup for cell in heat)
    assert heat[1].acceptance_rate is not None
    assert best_cell(heat) == max(heat, key=lambda cell: cell.speedup or 0.0)


def test_a_swept_setting_is_shown_also_where_it_has_its_default() -> None:
    mix = "prompt-lookup+draft-simple:n_max=3:verify=match"
    assert spelled(mix, ("draft-simple.n_max", "max_ngram_size")) == (
        "prompt-lookup:max_ngram_size=3+draft-simple:n_max=3:verify=match"
    )
    assert spelled("draft-simple:n_max=8", ("n_max", "length")) == "draft-simple:n_max=8:length=fixed"
    assert spelled("suffix:length=ewma", ("ewma_start",)) == "suffix:length=ewma:ewma_start=3"
    experiment, facts = make_sweep(
        base(), "draft-simple", Axis("n_max", ("3", "4")), Axis("p_min", ("0", "0.5"))
    )
    assert [lane.name for lane in experiment.lanes[1:]] == [
        "draft-simple:n_max=3:p_min=0",
        "draft-simple:n_max=4:p_min=0",
        "draft-simple:n_max=3:p_min=0.5",
        "draft-simple:n_max=4:p_min=0.5",
    ]
    assert [cell.lane for cell in facts.cells] == [1, 2, 3, 4]
