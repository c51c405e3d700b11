"""Speed-ups with their intervals, held against scipy."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from app.lab.interval import Finding, Speedup, Spread, student_t


@pytest.mark.parametrize("degrees", [1, 2, 5, 29, 30, 31, 45, 100, 1000])
def test_students_t(degrees: int) -> None:
    assert student_t(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=2e-3)


def test_the_interval_is_students_over_the_repeats_means() -> None:
    ratios = {0: {0: 1.2, 1: 1.4}, 1: {0: 1.3, 1: 1.5}, 2: {0: 1.1, 1: 1.45}}
    means = [sum(map(math.log, one.values())) / 2 for one in ratios.values()]
    low, high = stats.t.interval(0.95, 2, loc=sum(means) / 3, scale=stats.sem(means))
    found = Speedup.of(ratios)
    assert found is not None
    assert found.factor == pytest.approx(math.exp(sum(means) / 3))
    assert found.low == pytest.approx(math.exp(low), rel=1e-3)
    assert found.high == pytest.approx(math.exp(high), rel=1e-3)
    assert found.repeats == 3


def test_a_repeat_that_was_broken_off_does_not_weigh_its_prompts_more() -> None:
    """Two prompts, 1x and 4x: the factor is 2 however many of the last repeat's runs were done."""
    whole = {0: {0: 1.0, 1: 4.0}, 1: {0: 1.0, 1: 4.0}}
    full = Speedup.of(whole)
    broken_off = Speedup.of(whole | {2: {1: 4.0}})
    assert full is not None and broken_off is not None
    assert full.factor == pytest.approx(2) == broken_off.factor
    assert (broken_off.low, broken_off.high) == (pytest.approx(2), pytest.approx(2))
    assert broken_off.repeats == 2


def test_repeats_of_different_prompts_give_no_interval() -> None:
    found = Speedup.of({0: {0: 1.0}, 1: {1: 4.0}})
    assert found is not None and found.factor == pytest.approx(2)
    assert found.finding is Finding.UNSURE


def test_it_holds_the_truth_as_often_as_it_says() -> None:
    import random

    dice = random.Random(5)
    held = 0
    for _ in range(600):
        found = Speedup.of({r: {0: 1.3 * math.exp(dice.gauss(0, 0.1))} for r in range(4)})
        assert found is not None and found.low is not None and found.high is not None
        held += found.low <= 1.3 <= found.high
    assert 0.92 < held / 600 < 0.98


@pytest.mark.parametrize(
    ("low", "high", "finding"),
    [
        (1.01, 1.2, Finding.FASTER),
        (0.8, 0.99, Finding.SLOWER),
        (0.9, 1.1, Finding.SAME),
        (None, None, Finding.UNSURE),
    ],
)
def test_what_it_says(low: float | None, high: float | None, finding: Finding) -> None:
    assert Speedup(1.0, low, high).finding is finding


def test_nothing_measured_is_nothing() -> None:
    assert Speedup.of({}) is None
    assert Speedup.of({0: {}}) is None
    assert Spread.of([None]) is None
    assert Spread.of([3.0, None, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
