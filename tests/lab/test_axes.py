"""Axes, and sweeps over two of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.engine.errors import SettingError
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Sampling
from app.lab.axes import Axis, keys_of, make_sweep, with_value
from app.lab.experiment import Experiment, Job, Pair, Prompt
from app.lab.report.plots import best_cell, heat_map, left_out
from app.lab.report.report import Report, make_report
from app.lab.runs.events import LabEvent, PairLoaded, RunStarted
from app.lab.runs.runner import Runner
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
        ("suffix:length=ewma:ewma_min=2", "ewma_start", "5", "suffix:length=ewma:ewma_start=5:ewma_min=2"),
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
    assert best_cell(facts, heat) == max(heat, key=lambda cell: cell.speedup or 0.0)


def written(strategy: str, *shown: str) -> str:
    return StrategySpec.parse(strategy).written(shown)


def test_a_swept_setting_is_shown_also_where_it_has_its_default() -> None:
    mix = "prompt-lookup+draft-simple:n_max=3:verify=match"
    assert written(mix, "draft-simple.n_max", "max_ngram_size") == (
        "prompt-lookup:max_ngram_size=3+draft-simple:n_max=3:verify=match"
    )
    assert written("draft-simple:n_max=8", "n_max", "length") == "draft-simple:n_max=8:length=fixed"
    assert written("suffix:length=ewma", "ewma_start") == "suffix:length=ewma:ewma_start=3"
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


def loaded(
    files: tuple[Path, Path], x: Axis, y: Axis, repeats: int = 1
) -> tuple[Runner, list[LabEvent], Report]:
    """A sweep of draft-simple over the tiny pair, run to its end."""
    own = msgspec.structs.replace(base(pair_of(files)), repeats=repeats)
    experiment, facts = make_sweep(own, "draft-simple", x, y)
    runner, events = finished(experiment)
    report = make_report(experiment, runner.records, runner.pairs, sweep=facts)
    runner.close()
    return runner, events, report


def test_a_load_setting_is_loaded_once_and_has_its_own_baseline(pair_files: tuple[Path, Path]) -> None:
    x, y = Axis("n_max", ("1", "4")), Axis.parse("threads=1,2")
    _, events, report = loaded(pair_files, x, y, repeats=2)
    infos = [event.pair for event in events if isinstance(event, PairLoaded)]
    assert [(info.target.threads, info.draft and info.draft.threads) for info in infos] == [(1, 1), (2, 2)]
    assert [lane.name for lane in report.lanes] == [
        "none, threads=1",
        "draft-simple:n_max=1, threads=1",
        "draft-simple:n_max=4, threads=1",
        "none, threads=2",
        "draft-simple:n_max=1, threads=2",
        "draft-simple:n_max=4, threads=2",
    ]
    assert [lane.baseline for lane in report.lanes] == [0, 0, 0, 3, 3, 3]
    assert report.sweep is not None and report.sweep.baselines == 2
    assert report.threads == "1, 2"
    cells = heat_map(report)
    assert all(cell.tokens_per_second and cell.speedup and cell.end_to_end_speedup for cell in cells)
    fastest = max(cells, key=lambda cell: cell.tokens_per_second or 0.0)
    assert best_cell(report.sweep, cells) == fastest, "over two baselines the factor does not say it"


def test_what_cannot_be_loaded_is_a_cell_with_its_reason(
    pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, missing = str(pair_files[0]), str(tmp_path / "missing.gguf")
    axis = Axis("target", (target, missing))
    _, events, report = loaded(pair_files, axis, Axis("temperature", ("0", "1")), repeats=2)
    cells = heat_map(report)
    assert [bool(cell.problem) for cell in cells] == [False, True, False, True]
    assert "missing.gguf" in cells[1].problem
    assert report.sweep is not None
    (line,) = left_out(report.sweep, cells)
    assert line.startswith(f"left out, target={missing} temperature=0 and target={missing} temperature=1: ")
    assert sum(isinstance(event, PairLoaded) for event in events) == 1


def test_every_temperature_has_its_own_baseline_on_the_same_load(pair_files: tuple[Path, Path]) -> None:
    x, y = Axis("temperature", ("0", "1.5")), Axis("n_max", ("2",))
    runner, events, report = loaded(pair_files, x, y)
    assert sum(isinstance(event, PairLoaded) for event in events) == 1
    assert [report.temperature_of(lane) for lane in range(4)] == [0, 0, 1.5, 1.5]
    assert [lane.baseline for lane in report.lanes] == [0, 0, 2, 2]
    headers = [event.header for event in events if isinstance(event, RunStarted)]
    assert {header.sampling.temperature for header in headers} == {0, 1.5}
    drawn = runner.records[Job(0, 0, 2)].token_ids
    assert drawn != runner.records[Job(0, 0, 0)].token_ids
    assert len({header.seed for header in headers}) == 1


@pytest.mark.parametrize(
    ("key", "value", "target", "draft"),
    [("threads", "3", 3, 3), ("threads-draft", "3", 0, 3), ("threads_draft", "3", 0, 3)],
)
def test_a_load_option_is_named_as_on_the_command_line(key: str, value: str, target: int, draft: int) -> None:
    experiment, _ = make_sweep(base(), "draft-simple", Axis(key, (value,)), Axis("n_max", ("1",)))
    assert experiment.pair.draft is not None
    assert (experiment.pair.target.threads, experiment.pair.draft.threads) == (target, draft)


def test_keys_that_are_joined_take_the_same_value() -> None:
    axis = Axis.parse("cache_type_k+cache_type_v+cache_type_k_draft=f16,q8_0")
    experiment, facts = make_sweep(base(), "draft-simple", axis, Axis("flash_attn", ("on",)))
    pairs = [experiment.pair_of(cell.lane) for cell in facts.cells if cell.lane is not None]
    assert [(pair.target.cache_type_k, pair.target.cache_type_v) for pair in pairs] == [
        ("f16", "f16"),
        ("q8_0", "q8_0"),
    ]
    assert [pair.draft and pair.draft.cache_type_k for pair in pairs] == ["f16", "q8_0"]
    assert [pair.draft and pair.draft.cache_type_v for pair in pairs] == ["f16", "f16"]


def test_plain_speed_is_swept_over_load_settings() -> None:
    experiment, facts = make_sweep(base(), "none", Axis("threads", ("1", "2")), Axis("repack", ("0", "1")))
    assert [lane.strategy for lane in experiment.lanes] == ["none"] * 4
    assert [cell.lane for cell in facts.cells] == [0, 1, 2, 3]


def test_a_draft_option_without_a_draft_is_refused() -> None:
    with pytest.raises(SettingError, match="threads_draft needs a draft model"):
        make_sweep(
            base(Pair(ModelOptions("t.gguf"))), "suffix", Axis("threads_draft", ("1",)), Axis("n_max", ("2",))
        )


def test_an_unknown_key_is_refused_with_all_that_are_allowed() -> None:
    with pytest.raises(SettingError, match=r"draft-simple\.n_max.*verify.*target.*threads.*temperature"):
        make_sweep(base(), "draft-simple", Axis("nosuch", ("1",)), Axis("n_max", ("2",)))


@pytest.mark.parametrize("strategy", ["none", "suffix", "ngram-mod+draft-simple"])
def test_every_key_that_is_offered_can_be_varied(strategy: str) -> None:
    for key, param in keys_of(strategy).items():
        value = param.format(param.default)
        other = Axis("draft", ("e.gguf",))
        experiment, _ = make_sweep(base(), strategy, Axis(key, (value,)), other)
        assert len(experiment.lanes) == 1 + (strategy != "none"), key
