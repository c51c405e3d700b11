"""The names of lanes beside each other."""

from __future__ import annotations

from app.engine.types import ModelOptions, Sampling
from app.lab.experiment import Experiment, Lane, Pair, Prompt, make_experiment
from app.lab.lane_names import lane_names

OWN = Pair(ModelOptions("/m/t.gguf"), ModelOptions("/m/d.gguf"))


def names(*lanes: Lane) -> tuple[str, ...]:
    return lane_names(make_experiment(Experiment(OWN, lanes, (Prompt("a"),), Sampling(seed=1))))


def test_a_synthetic_lane_says_so() -> None:
    experiment = make_experiment(
        Experiment(Pair(ModelOptions("t.gguf")), (Lane("oracle:alpha=0.9"),), (Prompt("a"),))
    )
    assert lane_names(experiment) == ("none", "oracle:alpha=0.9 (synthetic)")


def test_one_pair_goes_without_saying() -> None:
    assert names(Lane("draft-simple"), Lane("suffix", "mine")) == ("none", "draft-simple", "mine")


def test_where_there_are_several_targets_each_lane_says_its_own() -> None:
    second = Pair(ModelOptions("/m/u.gguf"))
    assert names(Lane("suffix"), Lane("suffix", "", second), Lane("ngram-mod", "mine", second)) == (
        "none on t.gguf",
        "suffix on t.gguf",
        "none on u.gguf",
        "suffix on u.gguf",
        "mine",
    )


def test_where_there_are_several_drafts_the_lanes_that_use_them_say_so() -> None:
    second = Pair(OWN.target, ModelOptions("/m/e.gguf"))
    assert names(Lane("suffix"), Lane("draft-simple"), Lane("draft-simple", "", second)) == (
        "none",
        "suffix",
        "draft-simple with d.gguf",
        "draft-simple with e.gguf",
    )
    assert names(Lane("suffix"), Lane("draft-simple", "", second)) == ("none", "suffix", "draft-simple")


def test_a_label_that_two_lanes_share_says_it_too() -> None:
    second = Pair(ModelOptions("/m/u.gguf"))
    assert names(Lane("suffix", "fast"), Lane("suffix", "fast", second))[1::2] == (
        "fast on t.gguf",
        "fast on u.gguf",
    )


def test_files_of_one_name_show_their_folders_and_one_file_its_options() -> None:
    elsewhere = Pair(ModelOptions("/n/t.gguf"))
    assert names(Lane("suffix"), Lane("suffix", "", elsewhere))[::2] == (
        "none on m/t.gguf",
        "none on n/t.gguf",
    )
    short = Pair(ModelOptions("/m/t.gguf", ctx_size=512))
    assert names(Lane("suffix"), Lane("suffix", "", short))[::2] == (
        "none on t.gguf ctx_size=0",
        "none on t.gguf ctx_size=512",
    )
