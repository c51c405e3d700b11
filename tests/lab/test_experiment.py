"""Experiments: baselines, order, what is refused."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from app.engine.errors import SettingError
from app.engine.types import Message, ModelOptions, Sampling
from app.lab.experiment import Experiment, Job, Lane, Pair, Prompt, conversations, make_experiment

PAIR = Pair(ModelOptions("t.gguf"), ModelOptions("d.gguf"))
OTHER_DRAFT = Pair(ModelOptions("t.gguf"), ModelOptions("e.gguf"))
OTHER_TARGET = Pair(ModelOptions("u.gguf"), ModelOptions("d.gguf"))


def experiment(*lanes: Lane, **settings: object) -> Experiment:
    prompts = tuple(Prompt(str(n)) for n in range(3))
    return make_experiment(Experiment(PAIR, lanes, prompts, **settings))  # type: ignore[arg-type]


def test_the_baseline_is_always_there_and_first() -> None:
    made = experiment(Lane("draft-simple"), Lane("none"), Lane("draft-simple:n_max=3"))
    assert [lane.strategy for lane in made.lanes] == ["none", "draft-simple"]  # each once, in one spelling
    assert made.baseline_of(1) == 0


def test_every_target_has_a_baseline_of_its_own_and_drafts_share_it() -> None:
    made = experiment(
        Lane("draft-simple"), Lane("draft-simple", "e", OTHER_DRAFT), Lane("draft-simple", "u", OTHER_TARGET)
    )
    assert [(lane.strategy, lane.pair) for lane in made.lanes] == [
        ("none", None),
        ("draft-simple", None),
        ("draft-simple", OTHER_DRAFT),
        ("none", OTHER_TARGET),
        ("draft-simple", OTHER_TARGET),
    ]
    assert [made.baseline_of(lane) for lane in range(5)] == [0, 0, 0, 3, 3]


def test_labels_are_kept_also_of_none_and_of_the_same_strategy_twice() -> None:
    made = experiment(
        Lane("suffix"),
        Lane("suffix", "again"),
        Lane("suffix"),
        Lane("suffix", "again"),
        Lane("none", "plain"),
    )
    assert [(lane.strategy, lane.label) for lane in made.lanes] == [
        ("none", "plain"),
        ("suffix", ""),
        ("suffix", "again"),
    ]
    assert make_experiment(made) == made


def test_none_beside_none_shows_what_chance_does() -> None:
    made = experiment(Lane("none", "a"), Lane("none:verify=greedy", "b"), Lane("none", "a"), Lane("none"))
    assert [(lane.strategy, lane.label) for lane in made.lanes] == [("none", "a"), ("none", "b")]
    assert [made.baseline_of(lane) for lane in range(2)] == [0, 0]


def test_none_on_another_target_has_its_own_label() -> None:
    lanes = (Lane("suffix"), Lane("none", "big", OTHER_TARGET), Lane("suffix", "", OTHER_TARGET))
    made = experiment(*lanes, Lane("none", "small"))
    assert [lane.name for lane in made.lanes] == ["small", "suffix", "big", "suffix"]


def test_a_lane_on_the_own_pair_has_no_pair_of_its_own() -> None:
    made = experiment(Lane("draft-simple", "", PAIR))
    assert [lane.pair for lane in made.lanes] == [None, None]


def test_every_lane_runs_every_prompt_and_repeat_and_begins_equally_often() -> None:
    made = experiment(Lane("prompt-lookup"), Lane("suffix"), repeats=2)
    jobs = made.jobs()
    assert set(jobs) == {Job(r, p, lane) for r in range(2) for p in range(3) for lane in range(3)}
    groups = [jobs[at : at + 3] for at in range(0, len(jobs), 3)]
    assert all(len({(job.repeat, job.prompt) for job in group}) == 1 for group in groups)
    assert Counter(group[0].lane for group in groups) == {0: 2, 1: 2, 2: 2}
    assert jobs == made.jobs()


def test_prompts_are_mixed_and_turns_stay_behind_each_other() -> None:
    prompts = (*(Prompt(str(n)) for n in range(6)), Prompt("a"), Prompt("b", before=("a",)))
    made = msgspec.structs.replace(experiment(Lane("suffix"), repeats=2), prompts=prompts)
    orders = [list(dict.fromkeys(job.prompt for job in made.jobs() if job.repeat == at)) for at in (0, 1)]
    assert orders[0] != orders[1] and [sorted(order) for order in orders] == [list(range(8))] * 2
    assert all(order.index(7) == order.index(6) + 1 for order in orders)


def test_lanes_of_one_target_stay_together() -> None:
    made = experiment(Lane("suffix"), Lane("suffix", "", OTHER_TARGET), repeats=2)
    targets = [made.pair_of(job.lane).target.path for job in made.jobs()]
    changes = sum(a != b for a, b in pairwise(targets))
    assert changes == 2  # t, u in the first repeat, u, t in the second


def test_an_open_seed_is_chosen_once_for_all() -> None:
    made = experiment(Lane("suffix"))
    assert 0 <= made.sampling.seed < 2**31
    assert experiment(Lane("suffix"), sampling=Sampling(seed=5)).sampling.seed == 5


@pytest.mark.parametrize(
    ("lanes", "settings", "words"),
    [
        ([], {}, "nothing to compare"),
        ([Lane("nosuch")], {}, "no strategy"),
        ([Lane("draft-simple", "", Pair(ModelOptions("t.gguf")))], {}, "needs a draft"),
        ([Lane(f"suffix:n_max={n}") for n in range(1, 9)], {}, "9 lanes are too many"),
        ([Lane("suffix")], {"repeats": 0}, "repeats"),
        ([Lane("suffix:verify=greedy")], {"sampling": Sampling(temperature=1.0)}, "temperature"),
    ],
)
def test_what_is_refused(lanes: list[Lane], settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        experiment(*lanes, **settings)


def two_turns() -> Experiment:
    prompts = Prompt("Count."), Prompt("Go on.", before=("Count.",))
    return msgspec.structs.replace(experiment(Lane("suffix")), prompts=prompts)


def test_a_turn_is_asked_with_the_conversation_before_it() -> None:
    asked = two_turns()
    request = asked.request(1, "none", said=("One.",))
    assert request.messages == (
        Message("user", "Count."),
        Message("assistant", "One."),
        Message("user", "Go on."),
    )
    raw = msgspec.structs.replace(asked, chat=False).request(1, "none", said=("One.",))
    assert raw.prompt == "Count.\n\nOne.\n\nGo on." and not raw.messages


def test_conversations_are_the_turns_that_stand_behind_each_other() -> None:
    first, second = two_turns().prompts
    assert conversations((first, second, first, first, second)) == [
        (first, second), (first,), (first, second),
    ]  # fmt: skip


def test_a_turn_without_those_before_it_is_refused() -> None:
    with pytest.raises(SettingError, match="without the turns before it"):
        make_experiment(msgspec.structs.replace(two_turns(), prompts=two_turns().prompts[::-1]))


def test_no_prompt_is_refused() -> None:
    with pytest.raises(SettingError, match="no prompt"):
        make_experiment(Experiment(PAIR, (Lane("suffix"),), ()))
