"""Every text that matters has a contrast of at least 4.5 to 1 with its background."""

from __future__ import annotations

import pytest

from app.engine.fates import FATES, Origin, Verdict
from app.ui.theme import DARK, LIGHT, LOOKS, Palette
from app.ui.theme.palette import blend
from tests.ui.contrast import contrast

LEAST = 4.5

both = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
each_fate = pytest.mark.parametrize("fate", FATES)


@both
@each_fate
def test_letters_on_tints(palette: Palette, fate: str) -> None:
    tint = palette.tint(fate)
    assert contrast(palette.text, tint) >= LEAST
    # Struck tokens, control tokens, fences and the legend are grey.
    assert contrast(palette.secondary, tint) >= LEAST


@both
@each_fate
def test_selected_letters(palette: Palette, fate: str) -> None:
    assert contrast(palette.text, blend(palette.text, palette.tint(fate), palette.wash_share)) >= LEAST


@both
@each_fate
def test_the_name_of_a_fate_in_its_colour(palette: Palette, fate: str) -> None:
    assert contrast(palette.fate(fate), palette.raised) >= LEAST
    assert contrast(palette.fate(fate), palette.ground) >= LEAST


@both
@each_fate
def test_lines_stand_out_from_tints(palette: Palette, fate: str) -> None:
    """Graphics need 3 to 1."""
    assert contrast(palette.fate(fate), palette.tint(fate)) >= 3


@both
def test_neutral_text(palette: Palette) -> None:
    for ground in (palette.ground, palette.panel, palette.raised):
        assert contrast(palette.text, ground) >= LEAST
        assert contrast(palette.secondary, ground) >= LEAST
    assert contrast(palette.ground, palette.text) >= LEAST  # the current match, inverted


@both
def test_tints_can_be_told_from_the_ground_and_from_each_other(palette: Palette) -> None:
    tints = {palette.tint(fate) for fate in ("accepted", "resampled", "bonus", "rejected")}
    assert len(tints | {palette.ground}) == 5


def test_every_fate_has_a_look_and_a_line_of_its_own() -> None:
    assert LOOKS.keys() == FATES.keys() == {*Verdict, *Origin}
    assert len({look.cue for look in LOOKS.values()}) == len(FATES)


@both
def test_errors_links_and_code_can_be_read(palette: Palette) -> None:
    for colour in (palette.error, palette.link, palette.keyword, palette.string, palette.number):
        for ground in (palette.ground, palette.panel, palette.raised):
            assert contrast(colour, ground) >= LEAST


def test_contrast_is_the_known_one() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)
