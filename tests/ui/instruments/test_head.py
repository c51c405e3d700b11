"""Which rounds are shown."""

from __future__ import annotations

from app.ui.instruments.head import RoundRange


def test_a_finished_answer_fills_the_width() -> None:
    assert RoundRange().fit(0, 63, live=False) == (-0.5, 63.5)


def test_a_short_answer_does_not() -> None:
    assert RoundRange().fit(0, 4, live=False) == (-0.5, 31.5)


def test_a_growing_answer_gets_room_in_steps() -> None:
    span = RoundRange()
    widths = [span.fit(0, n - 1, live=True)[1] + 0.5 for n in range(1, 200)]
    assert sorted(set(widths)) == [32, 48, 64, 96, 128, 192, 256]
    assert all(width >= n for n, width in enumerate(widths, start=1))


def test_a_reset_moves_the_left_edge() -> None:
    assert RoundRange().fit(40, 103, live=False) == (39.5, 103.5)


def test_zoom_keeps_the_round_under_the_mouse_in_place() -> None:
    span = RoundRange()
    span.fit(0, 999, live=False)
    span.zoom(0.5, 250)
    first, last = span.fit(0, 999, live=False)
    assert last - first == 500
    assert (250 - first) / (last - first) == (250 + 0.5) / 1000


def test_zoom_and_pan_stay_inside() -> None:
    span = RoundRange()
    span.fit(0, 999, live=False)
    span.zoom(0.1, 0)
    span.pan(-50)
    assert span.fit(0, 999, live=False) == (-0.5, 99.5)
    span.pan(5000)
    assert span.fit(0, 999, live=False) == (899.5, 999.5)
    span.zoom(1e-9, 950)
    first, last = span.fit(0, 999, live=False)
    assert last - first == 8
    span.zoom(1e9, 950)
    assert span.fit(0, 999, live=False) == (-0.5, 999.5)


def test_zoomed_out_it_follows_new_rounds_again() -> None:
    span = RoundRange()
    span.fit(0, 99, live=False)
    span.zoom(0.2, 50)
    span.show_all()
    assert span.fit(0, 127, live=False) == (-0.5, 127.5)
