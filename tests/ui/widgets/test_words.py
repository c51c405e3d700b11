"""Numbers as they are shown."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.base import numbers as everywhere
from app.ui.widgets import words as numbers
from app.ui.widgets.words import relative_time


def plain(text: str) -> str:
    """With ordinary spaces, to be legible here."""
    assert " " not in text, "a line must not end between a number and its unit"
    return text.replace(numbers.SPACE, " ")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
        (0, "0.00"),
        (1.2e-7, "1.20e-07"),
        (0.05123, "0.0512"),
        (0.8126, "0.813"),
        (0.99951, "1.00"),
        (1, "1.00"),
        (4.239, "4.24"),
        (9.996, "10.0"),
        (42.42, "42.4"),
        (99.96, "100"),
        (213.7, "214"),
        (12345.4, "12,345"),
        (-4.239, "-4.24"),
    ],
)
def test_significant(value: float | None, shown: str) -> None:
    assert numbers.significant(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0.00 ms"),
        (0.000085, "85.0 µs"),
        (0.0009996, "1.00 ms"),
        (0.0011, "1.10 ms"),
        (0.2314, "231 ms"),
        (0.99961, "1.00 s"),
        (4.2, "4.20 s"),
        (119.4, "119 s"),
        (119.6, "2 min 00 s"),
        (123, "2 min 03 s"),
        (3723.4, "62 min 03 s"),
    ],
)
def test_duration(value: float | None, shown: str) -> None:
    assert plain(numbers.duration(value)) == shown


def test_units_and_separators() -> None:
    assert numbers.count(2048) == "2,048"
    assert plain(numbers.percent(0.426)) == "43 %"
    assert numbers.factor(1.4159) == "1.42×"
    assert plain(numbers.per_second(213.9)) == "214 tok/s"


@pytest.mark.parametrize(
    "show",
    [numbers.count, numbers.ratio, numbers.probability, numbers.percent, numbers.factor, numbers.per_second],
)
def test_nothing_is_a_dash(show) -> None:
    assert show(None) == "–"


def test_ratios_keep_their_width() -> None:
    shown = [numbers.ratio(value) for value in (0, 0.05, 0.8126, 0.9999, 1)]
    assert shown == ["0.000", "0.050", "0.813", "1.000", "1.000"]


def test_a_probability_is_zero_or_one_only_when_it_is() -> None:
    values = (0, 1e-9, 0.0004, 0.0005, 0.5, 0.9994, 0.9996, 1)
    shown = [numbers.probability(value) for value in values]
    assert shown == ["0.000", "<.001", "<.001", "0.001", "0.500", "0.999", ">.999", "1.000"]
    assert {len(text) for text in shown} == {5}


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.4, "999 B"),
        (999.6, "1.00 kB"),
        (1000, "1.00 kB"),
        (999_999, "1.00 MB"),
        (34_123_456, "34.1 MB"),
        (999_600_000, "1.00 GB"),
        (4_370_000_000, "4.37 GB"),
        (123e12, "123 TB"),
        (1234e12, "1,234 TB"),
    ],
)
def test_sizes_are_the_same_in_the_window_and_elsewhere(size: float, text: str) -> None:
    assert plain(numbers.file_size(size)) == text == everywhere.file_size(size)


NOW = datetime(2030, 3, 15, 14, 0, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(seconds=-90), "now"),  # the clock was set back
        (timedelta(seconds=59), "now"),
        (timedelta(seconds=60), "1 min"),
        (timedelta(minutes=59, seconds=59), "59 min"),
        (timedelta(hours=1), "1 h"),
        (timedelta(hours=11), "11 h"),
        (timedelta(hours=13), "13 h"),
        (timedelta(hours=15), "yesterday"),
        (timedelta(hours=37), "yesterday"),
        (timedelta(hours=39), "2 d"),
        (timedelta(days=6), "6 d"),
        (timedelta(days=7), "8 Mar"),
        (timedelta(days=80), "25 Dec 2029"),
    ],
)
def test_relative_time(ago: timedelta, words: str) -> None:
    assert relative_time((NOW - ago).astimezone(UTC), NOW) == words


def test_just_after_midnight_an_hour_ago_is_an_hour_ago() -> None:
    night = NOW.replace(hour=0, minute=30)
    assert relative_time(night - timedelta(hours=1), night) == "1 h"
