"""Experiments: baselines, order, what is refused."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from app.engine.errors import SettingError
from app.engine.types import Message, ModelOptions, Sampling
from app.lab.experiment import (
    Experiment,
    Job,
    Lane,
    Pair,
    Prompt,
    TurnOrder,
    conversations,
    make_experiment,
    mixed,
)

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
    with pytest.raises(SettingError, match="missing the turns before it"):
        make_experiment(msgspec.structs.replace(two_turns(), prompts=two_turns().prompts[::-1]))


def test_no_prompt_is_refused() -> None:
    with pytest.raises(SettingError, match="no prompt"):
        make_experiment(Experiment(PAIR, (Lane("suffix"),), ()))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_every_lane_has_every_place_once_over_repeats_and_over_prompts(count: int) -> None:
    order = TurnOrder(range(10, 10 + count), 3)
    everybody = set(range(10, 10 + count))
    for prompt in range(2 * count):
        for place in range(count):
            assert {order.turns(repeat, prompt)[place] for repeat in range(count)} == everybody
    for repeat in range(count):
        for place in range(count):
            assert {order.turns(repeat, prompt)[place] for prompt in range(count)} == everybody


@pytest.mark.parametrize(("repeats", "prompts", "lanes"), [(3, 8, 4), (2, 5, 3), (1, 12, 65), (5, 1, 4)])
def test_places_are_spread_about_evenly_over_any_measurement(repeats: int, prompts: int, lanes: int) -> None:
    order = TurnOrder(range(lanes), 7)
    places = Counter(
        (place, lane)
        for repeat in range(repeats)
        for prompt in range(prompts)
        for place, lane in enumerate(order.turns(repeat, prompt))
    )
    most = max(places.values())
    fair = repeats * prompts / lanes
    assert most <= fair + max(1.0, fair / 2)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_every_lane_follows_every_other_equally_often(count: int) -> None:
    order = TurnOrder(range(count), 11)
    rows = [order.turns(0, prompt) for prompt in range(count)]
    followed = Counter(pair for row in rows for pair in pairwise(row))
    if count % 2:  # then half of them, twice
        assert len(followed) == count * (count - 1) / 2 and set(followed.values()) == {2}
    else:
        assert len(followed) == count * (count - 1) and set(followed.values()) == {1}


def test_the_orders_are_drawn_by_the_seed() -> None:
    def orders(seed: int) -> list[tuple[int, ...]]:
        order = TurnOrder(range(4), seed)
        return [order.turns(repeat, prompt) for repeat in range(4) for prompt in range(40)]

    assert orders(5) == orders(5)
    assert orders(5) != orders(6)
    assert len(set(orders(5))) > 12  # of 24: no cycle of four that comes back


def test_with_many_lanes_none_stands_always_behind_the_same() -> None:
    """If the order only rotated, lane 1 of a sweep would always follow lane 0, the baseline."""
    order = TurnOrder(range(65), 2)
    before = {(row := order.turns(0, prompt))[row.index(1) - 1] for prompt in range(24)}
    assert len(before) > 12


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_prompts_are_mixed_and_each_has_every_place_once(count: int) -> None:
    orders = [mixed(count, repeat, 3) for repeat in range(2 * count)]
    assert all(sorted(order) == list(range(count)) for order in orders)
    for place in range(count):
        assert {order[place] for order in orders[:count]} == set(range(count))
    assert orders == [mixed(count, repeat, 3) for repeat in range(2 * count)]
    if count > 2:
        assert orders != [mixed(count, repeat, 4) for repeat in range(2 * count)]
    assert mixed(0, 0, 3) == ()
