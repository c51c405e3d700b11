"""Times as the chat list shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.ui.widgets.words import relative_time

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
