"""Running sums compared with plain counting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.fates import Origin
from app.engine.types import Round
from app.ui.state.folds import RATE_WINDOW, RoundSeries
from tests.ui.instruments.answers import answer


def series_of(rounds: list[Round], start: int = 0) -> RoundSeries:
    series = RoundSeries()
    for round in rounds:
        series.add([round])
    series.start = start
    return series


def test_every_round_is_its_own_group_where_there_is_room() -> None:
    rounds = answer(40)
    bins = series_of(rounds).bins(0, 39, 100)
    assert bins.step == 1
    assert bins.centre.tolist() == list(range(40))
    assert bins.drafted.tolist() == [len(round.drafted) for round in rounds]
    assert bins.origins.keys() == set(Origin)
    for origin, values in bins.origins.items():
        assert values.tolist() == [sum(token.origin is origin for token in round.emitted) for round in rounds]


def test_acceptance_of_rounds_and_pooled() -> None:
    rounds = answer(40)
    bins = series_of(rounds, start=5).bins(0, 39, 100)
    assert bins.left[0] == 5
    drafted = accepted = 0
    for place, round in enumerate(rounds[5:]):
        drafted += len(round.drafted)
        accepted += round.accepted
        if round.drafted:
            assert bins.acceptance[place] == round.accepted / len(round.drafted)
        else:
            assert math.isnan(bins.acceptance[place])
        assert bins.pooled[place] == accepted / drafted


def test_rate_is_over_the_last_rounds() -> None:
    rounds = answer(40)
    series = series_of(rounds, start=3)
    bins = series.bins(3, 39, 100)
    for place, index in enumerate(range(3, 40)):
        window = rounds[max(index - RATE_WINDOW + 1, 3) : index + 1]
        seconds = window[-1].offset + window[-1].seconds - window[0].offset
        expected = sum(len(round.emitted) for round in window) / seconds
        assert bins.rate[place] == pytest.approx(expected)
        assert series.rate_at(index) == pytest.approx(expected)


@settings(max_examples=60)
@given(st.integers(0, 3000), st.integers(1, 400), st.integers(0, 50), st.integers(0, 3000))
def test_groups_cover_every_round_once(n: int, most: int, start: int, first: int) -> None:
    start = min(start, n)
    series = RoundSeries()
    series.add(ROUNDS[:n])
    series.start = start
    first = min(max(first, start), max(n - 1, start))
    bins = series.bins(first, n - 1, most)
    if n <= start:
        assert not len(bins.left)
        return
    assert bins.step & (bins.step - 1) == 0
    assert len(bins.left) <= most + 1
    assert bins.left[1:].tolist() == bins.right[:-1].tolist()
    assert not any(left % bins.step for left in bins.left[1:])
    assert bins.left[0] <= first and bins.right[-1] == n
    inside = ROUNDS[int(bins.left[0]) : n]
    sizes = bins.right - bins.left
    assert np.dot(bins.drafted, sizes) == pytest.approx(sum(len(r.drafted) for r in inside))


ROUNDS = answer(3000)


def test_a_complete_group_never_changes_while_an_answer_grows() -> None:
    before = series_of(ROUNDS[:700]).bins(0, 699, 100)
    after = series_of(ROUNDS[:790]).bins(0, 789, 100)
    assert before.step == after.step == 8
    complete = len(before.left) - 1
    for origin, values in before.origins.items():
        assert values[:complete].tolist() == after.origins[origin][:complete].tolist()
    assert before.rate[:complete].tolist() == after.rate[:complete].tolist()


def test_buffers_grow() -> None:
    series = series_of(ROUNDS)
    assert len(series) == 3000
    bins = series.bins(2990, 2999, 100)
    assert bins.drafted.tolist() == [len(round.drafted) for round in ROUNDS[2990:]]
    assert series.pooled_at(2999) == pytest.approx(
        sum(round.accepted for round in ROUNDS) / sum(len(round.drafted) for round in ROUNDS)
    )
