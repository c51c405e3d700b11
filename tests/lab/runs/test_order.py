"""The order of lanes: no lane gains by when it runs."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from app.lab.runs.order import TurnOrder, mixed


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
