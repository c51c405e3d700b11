"""Numbers as tables and reports write them."""

from __future__ import annotations

import math

import pytest

from app.base import numbers


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "–"),
        (0.0, "0.00"),
        (0.00025, "0.000250"),
        (0.0512, "0.0512"),
        (0.5, "0.500"),
        (2.894, "2.89"),
        (9.996, "10.0"),
        (-0.00025, "-0.000250"),
        (42.42, "42.4"),
        (12345.6, "12,346"),
    ],
)
def test_three_digits_are_significant(value: float | None, written: str) -> None:
    assert numbers.digits(value) == written


def test_a_unit_stands_behind() -> None:
    assert numbers.digits(0.0123, "s") == "0.0123 s"
    assert numbers.digits(None, "s") == "–"


def test_a_tiny_number_has_its_power_of_ten() -> None:
    assert numbers.significant(1.2e-7) == "1.20e-07"
    assert numbers.significant(1.2e-7, 2) == "1.2e-07"


@pytest.mark.parametrize("nothing", [None, math.nan, math.inf])
def test_a_share_that_is_no_number_is_not_written(nothing: float | None) -> None:
    assert numbers.percent(nothing) == "–"


def test_shares_factors_and_times_have_their_units() -> None:
    assert numbers.percent(0.425) == "42.5\N{NO-BREAK SPACE}%"
    assert numbers.percent(0.425, 0) == "42\N{NO-BREAK SPACE}%"
    assert (numbers.factor(1.417), numbers.factor(None)) == ("1.42×", "–")
    assert (numbers.milliseconds(0.0123), numbers.milliseconds(None)) == ("12.3 ms", "–")


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(59.4, "59 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (3600, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_a_duration_has_its_two_largest_units(seconds: float, written: str) -> None:
    assert numbers.duration(seconds) == written


def test_things_are_counted_and_listed_in_words() -> None:
    assert [numbers.count(n, "run") for n in (0, 1, 2, 2048)] == ["0 runs", "1 run", "2 runs", "2,048 runs"]
    assert [numbers.listed(names) for names in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
