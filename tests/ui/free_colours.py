"""Prints colours for a new fate, for each palette: they can be read, and differ most from all other fates.

`.venv/bin/python -m tests.ui.free_colours NAME` leaves out a fate whose colours are not chosen yet.
The number is the least difference (CIEDE2000) for any eyes: `tests/ui/theme/test_palette.py` needs 10
outside the standard palette.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product

from app.ui.theme import LOOKS, PALETTES, Palette
from app.ui.theme.palette import STRONG, blend
from tests.ui.colour_vision import EYES, difference, seen
from tests.ui.contrast import contrast

_STEPS = range(0, 256, 17)
_SHOWN = 4


def readable(palette: Palette, colour: str) -> bool:
    """Whether a fate's name, line and tint in this colour pass the tests of the palette."""
    tint = palette.soft(colour)
    selected = blend(palette.text, tint, palette.wash_share)
    texts = [(palette.text, tint), (palette.secondary, tint), (palette.text, selected)]
    texts += [(colour, palette.raised), (colour, palette.ground)]
    if min(contrast(*pair) for pair in texts) < 4.5 or contrast(colour, tint) < 3:
        return False
    strong = palette.name == STRONG
    return not strong or (contrast(colour, palette.ground) >= 6 and contrast(colour, palette.line) >= 3)


def found(palette: Palette, without: str) -> Iterator[tuple[float, str]]:
    """The readable colours, each after its least difference from a fate."""
    taken = [(eyes, seen(palette.fate(fate), eyes)) for fate in LOOKS if fate != without for eyes in EYES]
    for red, green, blue in product(_STEPS, repeat=3):
        colour = f"#{red:02X}{green:02X}{blue:02X}"
        if readable(palette, colour):
            yield min(difference(seen(colour, eyes), other) for eyes, other in taken), colour


def main() -> None:
    without = sys.argv[1] if len(sys.argv) > 1 else ""
    for palette in (palette for pair in PALETTES.values() for palette in pair):
        best = sorted(found(palette, without), reverse=True)[:_SHOWN]
        ground = "dark" if palette.dark else "light"
        print(f"{palette.name}, {ground}:", *(f"{colour} ({apart:.1f})" for apart, colour in best))


if __name__ == "__main__":
    main()
