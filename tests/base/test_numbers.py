"""Numbers as tables and reports write them."""

from __future__ import annotations

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
