"""Every text that matters has a contrast of at least 4.5 to 1 with its background, in every palette."""

from __future__ import annotations

from itertools import combinations

import pytest

from app.engine.fates import FATES, Origin, Verdict
from app.ui.theme import LOOKS, PALETTES, Palette
from app.ui.theme.palette import SAFE, STANDARD, STRONG, blend
from tests.ui.colour_vision import EYES, difference, seen
from tests.ui.contrast import contrast

LEAST = 4.5

EVERY = [palette for pair in PALETTES.values() for palette in pair]


def _called(palette: Palette) -> str:
    return f"{palette.name}, {'dark' if palette.dark else 'light'}"


every = pytest.mark.parametrize("palette", EVERY, ids=_called)
safe = pytest.mark.parametrize("palette", [p for p in EVERY if p.name != STANDARD], ids=_called)
strong = pytest.mark.parametrize("palette", PALETTES[STRONG], ids=_called)
each_fate = pytest.mark.parametrize("fate", FATES)


@every
@each_fate
def test_letters_on_tints(palette: Palette, fate: str) -> None:
    tint = palette.tint(fate)
    assert contrast(palette.text, tint) >= LEAST
    # Struck tokens, control tokens, fences and the legend are grey.
    assert contrast(palette.secondary, tint) >= LEAST


@every
@each_fate
def test_selected_letters(palette: Palette, fate: str) -> None:
    assert contrast(palette.text, blend(palette.text, palette.tint(fate), palette.wash_share)) >= LEAST


@every
@each_fate
def test_the_name_of_a_fate_in_its_colour(palette: Palette, fate: str) -> None:
    assert contrast(palette.fate(fate), palette.raised) >= LEAST
    assert contrast(palette.fate(fate), palette.ground) >= LEAST


@every
@each_fate
def test_lines_stand_out_from_tints(palette: Palette, fate: str) -> None:
    """Graphics need 3 to 1."""
    assert contrast(palette.fate(fate), palette.tint(fate)) >= 3


@every
def test_neutral_text(palette: Palette) -> None:
    assert contrast(palette.secondary, blend(palette.text, palette.ground, palette.wash_share)) >= LEAST
    for ground in (palette.ground, palette.panel, palette.raised):
        assert contrast(palette.edge, ground) >= 3, "the edge of what can be operated"
        assert contrast(palette.text, ground) >= LEAST
        assert contrast(palette.secondary, ground) >= LEAST
    assert contrast(palette.ground, palette.text) >= LEAST  # the current match, inverted


@every
def test_tints_can_be_told_from_the_ground_and_from_each_other(palette: Palette) -> None:
    tints = {palette.tint(fate) for fate in ("accepted", "resampled", "bonus", "rejected")}
    assert len(tints | {palette.ground}) == 5


def test_every_fate_has_a_look_and_a_line_of_its_own() -> None:
    assert LOOKS.keys() == FATES.keys() == {*Verdict, *Origin}
    assert len({look.cue for look in LOOKS.values()}) == len(FATES)


@every
def test_errors_links_and_code_can_be_read(palette: Palette) -> None:
    for colour in (palette.error, palette.link, palette.keyword, palette.string, palette.number):
        for ground in (palette.ground, palette.panel, palette.raised):
            assert contrast(colour, ground) >= LEAST


def test_contrast_is_the_known_one() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)


def test_each_palette_stands_under_its_name_light_before_dark() -> None:
    assert [(palette.name, palette.dark) for palette in EVERY] == [
        (name, dark) for name in PALETTES for dark in (False, True)
    ]
    for look in LOOKS.values():
        assert look.colours.keys() == PALETTES.keys()


@safe
@pytest.mark.parametrize("eyes", EYES)
def test_fates_stay_apart_for_colour_blind_eyes(palette: Palette, eyes: str) -> None:
    for first, second in combinations(FATES, 2):
        apart = difference(*(seen(palette.fate(fate), eyes) for fate in (first, second)))
        assert apart >= 10, f"{first} and {second}: {apart:.1f}"


@safe
@pytest.mark.parametrize("eyes", EYES)
def test_won_best_and_wrong_stay_apart_for_colour_blind_eyes(palette: Palette, eyes: str) -> None:
    for first, second in combinations((palette.good, palette.aim, palette.error, palette.secondary), 2):
        assert difference(seen(first, eyes), seen(second, eyes)) >= 10


def test_the_standard_palette_needs_its_lines_for_colour_blind_eyes() -> None:
    """The reason for the others: green and pink look alike without the second kind of cones."""
    for palette in PALETTES[STANDARD]:
        colours = [seen(palette.fate(fate), "deuteranopia") for fate in (Verdict.ACCEPTED, Verdict.REJECTED)]
        assert difference(*colours) < 10


@strong
def test_high_contrast_is_high(palette: Palette) -> None:
    for ground in (palette.ground, palette.panel, palette.raised):
        assert contrast(palette.text, ground) >= 15
        assert contrast(palette.secondary, ground) >= 7
        assert min(contrast(palette.fate(fate), ground) for fate in FATES) >= 6
        assert contrast(palette.faint, ground) >= 3


@strong
def test_fates_stand_out_from_what_plots_draw_behind_them(palette: Palette) -> None:
    assert min(contrast(palette.fate(fate), palette.line) for fate in FATES) >= 3


def test_the_safe_palette_is_the_standard_one_but_for_colours_with_a_meaning() -> None:
    for standard, palette in zip(PALETTES[STANDARD], PALETTES[SAFE], strict=True):
        assert (palette.ground, palette.text, palette.line) == (standard.ground, standard.text, standard.line)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (58.0, 24.0, 15.0), 19.4535),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_colour_differences_are_those_of_sharma_and_others(
    first: tuple[float, float, float], second: tuple[float, float, float], expected: float
) -> None:
    assert difference(first, second) == pytest.approx(expected, abs=1e-4)
    assert difference(second, first) == pytest.approx(expected, abs=1e-4)
