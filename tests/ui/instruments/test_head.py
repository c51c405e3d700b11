"""Which rounds are shown."""

from __future__ import annotations

from app.ui.instruments.head import room_for


def test_a_growing_answer_gets_room_in_steps() -> None:
    widths = [room_for(n) for n in range(1, 200)]
    assert sorted(set(widths)) == [32, 48, 64, 96, 128, 192, 256]
    assert all(width >= n for n, width in enumerate(widths, start=1))
