"""Speed-ups with their intervals, held against scipy."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from app.lab.report.summary import SpeedFinding, Speedup, Spread, student_t


@pytest.mark.parametrize("degrees", [1, 2, 5, 29, 30, 31, 45, 100, 1000])
def test_students_t(degrees: int) -> None:
    assert student_t(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=2e-3)


@pytest.mark.parametrize("degrees", [1.2, 1.5, 2.5, 3.3, 7.7, 29.5])
def test_students_t_between_whole_degrees_is_a_little_wide(degrees: float) -> None:
    exact = stats.t.ppf(0.975, degrees)
    assert exact * 0.9995 < student_t(degrees) < exact * 1.03


@pytest.mark.parametrize("turned", [False, True])
def test_over_one_prompt_or_one_repeat_the_interval_is_students(turned: bool) -> None:
    values = [1.2, 1.4, 1.3, 1.5]
    logs = [math.log(value) for value in values]
    low, high = stats.t.interval(0.95, 3, loc=sum(logs) / 4, scale=stats.sem(logs))
    found = Speedup.of(
        {0: dict(enumerate(values))} if turned else {n: {0: value} for n, value in enumerate(values)}
    )
    assert found is not None
    assert found.factor == pytest.approx(math.exp(sum(logs) / 4))
    assert found.low == pytest.approx(math.exp(low), rel=1e-3)
    assert found.high == pytest.approx(math.exp(high), rel=1e-3)
    assert (found.repeats, found.prompts) == ((1, 4) if turned else (4, 1))


def test_repeats_do_not_narrow_the_interval_of_prompts_that_differ() -> None:
    """Ten repeats of three prompts are still three prompts: a fourth may differ as much as these do."""
    found = Speedup.of({n: {0: 1.0, 1: 2.0, 2: 4.0} for n in range(10)})
    assert found is not None and found.low is not None and found.high is not None
    logs = [math.log(value) for value in (1.0, 2.0, 4.0)]
    low, high = stats.t.interval(0.95, 2, loc=sum(logs) / 3, scale=stats.sem(logs))
    assert found.low == pytest.approx(math.exp(low), rel=1e-3)
    assert found.high == pytest.approx(math.exp(high), rel=1e-3)


def test_two_repeats_over_eight_prompts_are_more_than_two_measurements() -> None:
    """Student's t over the two repeats of these 16 noisy pairs gives 0.69 to 4.32."""
    dice = random.Random(58)
    of_prompts = [dice.gauss(0, 0.15) for _ in range(8)]
    pairs = {
        repeat: {n: 1.76 * math.exp(of_prompt + dice.gauss(0, 0.2)) for n, of_prompt in enumerate(of_prompts)}
        for repeat in range(2)
    }
    found = Speedup.of(pairs)
    assert found is not None and found.low is not None and found.high is not None
    assert found.factor == pytest.approx(1.72, abs=0.01)
    assert 1.2 < found.low < 1.3 and 2.3 < found.high < 2.4
    assert (found.repeats, found.prompts) == (2, 8)


def test_a_repeat_that_was_broken_off_does_not_weigh_its_prompts_more() -> None:
    """The factor is 2 however many of the last repeat's runs were done."""
    whole = {n: {0: 1.0, 1: 2.0, 2: 4.0} for n in range(2)}
    full = Speedup.of(whole)
    broken_off = Speedup.of(whole | {2: {1: 2.0}})
    assert full is not None and full == broken_off
    assert full.factor == pytest.approx(2) and full.repeats == 2


@pytest.mark.parametrize(
    "ratios",
    [
        {0: {0: 1.3}},
        {0: {0: 1.0}, 1: {0: 1.5}},
        {0: {0: 1.0}, 1: {1: 4.0}},
        {n: {0: 1.0, 1: 2.0} for n in range(9)},
        {n: {prompt: 1.5 + n + prompt / 1000 for prompt in range(9)} for n in range(2)},
    ],
)
def test_where_all_hangs_on_one_difference_there_is_no_interval(ratios: dict[int, dict[int, float]]) -> None:
    found = Speedup.of(ratios)
    assert found is not None and found.factor > 1
    assert found.finding is SpeedFinding.UNSURE and found.low is found.high is None


@pytest.mark.parametrize(("prompts", "repeats"), [(1, 3), (1, 6), (6, 1), (8, 2), (16, 2), (12, 3), (3, 3)])
@pytest.mark.parametrize(
    ("of_prompts", "of_repeats", "noise"),
    [(0.2, 0.0, 0.05), (0.3, 0.1, 0.15), (0.0, 0.1, 0.02), (0.02, 0.0, 0.05)],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(
    prompts: int, repeats: int, of_prompts: float, of_repeats: float, noise: float
) -> None:
    """Simulated measurements: effects of prompts, of repeats (a machine that was slower then), and noise.

    One repeat says nothing of the effect of repeats, one prompt nothing of that of prompts: the truth is then
    the mean of that repeat, or of that prompt.
    """
    dice = random.Random(5)
    given, missed, tries = 0, 0, 600
    for _ in range(tries):
        by_prompt = [dice.gauss(0, of_prompts) if prompts > 1 else 0.0 for _ in range(prompts)]
        by_repeat = [dice.gauss(0, of_repeats) if repeats > 1 else 0.0 for _ in range(repeats)]
        ratios = {
            r: {p: 1.3 * math.exp(by_prompt[p] + by_repeat[r] + dice.gauss(0, noise)) for p in range(prompts)}
            for r in range(repeats)
        }
        found = Speedup.of(ratios)
        assert found is not None
        given += found.low is not None
        missed += found.low is not None and found.high is not None and not found.low <= 1.3 <= found.high
    assert missed / tries < 0.09
    if (of_prompts, of_repeats) == (0.2, 0.0):  # the usual case: prompts differ, repeats do not
        assert given / tries > 0.95


@pytest.mark.parametrize(
    ("low", "high", "finding"),
    [
        (1.01, 1.2, SpeedFinding.FASTER),
        (0.8, 0.99, SpeedFinding.SLOWER),
        (0.9, 1.1, SpeedFinding.SAME),
        (None, None, SpeedFinding.UNSURE),
    ],
)
def test_what_it_says(low: float | None, high: float | None, finding: SpeedFinding) -> None:
    assert Speedup(1.0, low, high).finding is finding


def test_nothing_measured_is_nothing() -> None:
    assert Speedup.of({}) is None
    assert Speedup.of({0: {}}) is None
    assert Spread.of([None]) is None
    assert Spread.of([3.0, None, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
