"""The colours. Neutral surroundings; colour belongs to the fates of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.engine.fates import Origin, Verdict


def blend(colour: str, ground: str, share: float) -> str:
    """`share` of `colour` over `ground`, both "#RRGGBB"."""
    top, below = ([int(value[i : i + 2], 16) for i in (1, 3, 5)] for value in (colour, ground))
    mixed = (round(a * share + b * (1 - share)) for a, b in zip(top, below, strict=True))
    return "#" + "".join(f"{value:02X}" for value in mixed)


Cue = Literal["none", "line", "double line", "dots", "strike", "dashed strike"]
"""The line that shows a fate without its colour."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a fate looks: its line, and the line's colour on light and on dark ground."""

    cue: Cue
    light: str
    dark: str
    neutral: bool = False  # grey: no tint, and no colour in plots


@dataclass(frozen=True, slots=True)
class Palette:
    """One appearance. Every value is "#RRGGBB"."""

    dark: bool
    ground: str  # where text is read
    panel: str  # rail, status bar, cards
    raised: str  # what floats above the ground
    line: str  # hairlines, borders
    text: str
    secondary: str  # labels, units
    faint: str  # decoration only, not text that matters
    error: str
    good: str  # what is in use, fits or won
    aim: str  # the best possible
    link: str
    keyword: str  # these three in code
    string: str
    number: str
    tint_share: float  # how much of a fate's colour its tint holds
    wash_share: float  # how much of the text's colour lies over what is selected or found

    def fate(self, fate: str) -> str:
        """The colour of a fate's line and name."""
        return LOOKS[fate].dark if self.dark else LOOKS[fate].light

    def tint(self, fate: str) -> str:
        """The soft background behind a token of that fate; the ground where the fate is neutral."""
        return self.ground if LOOKS[fate].neutral else self.soft(self.fate(fate))

    def area(self, fate: str) -> str:
        """The colour of an area that stands for that fate."""
        return self.secondary if LOOKS[fate].neutral else self.fate(fate)

    def soft(self, colour: str) -> str:
        """`colour` as the background of text."""
        return blend(colour, self.ground, self.tint_share)


LIGHT = Palette(
    dark=False,
    ground="#FFFFFF",
    panel="#F7F7F5",
    raised="#FFFFFF",
    line="#E3E3DF",
    text="#1D2023",
    secondary="#5C636B",
    faint="#8B9199",
    error="#B0306A",
    good="#007F5F",
    aim="#0062A3",
    link="#0062A3",
    keyword="#075283",
    string="#076750",
    number="#8E4D09",
    tint_share=0.11,
    wash_share=0.13,
)

DARK = Palette(
    dark=True,
    ground="#16181C",
    panel="#1C1F24",
    raised="#1C1F24",
    line="#2B2F36",
    text="#E6E8EB",
    secondary="#9AA1AB",
    faint="#6C737D",
    error="#FF7AA8",
    good="#2EC4A0",
    aim="#56B4E9",
    link="#56B4E9",
    keyword="#7AC1EA",
    string="#5CCDB3",
    number="#F9C17A",
    tint_share=0.18,
    wash_share=0.18,
)

LOOKS: dict[str, Look] = {
    Origin.ACCEPTED: Look("line", "#007F5F", "#2EC4A0"),
    Origin.RESAMPLED: Look("dots", "#B35C00", "#FFB454"),
    Origin.BONUS: Look("double line", "#0062A3", "#56B4E9"),
    Origin.PLAIN: Look("none", LIGHT.text, DARK.text, neutral=True),
    Verdict.REJECTED: Look("strike", "#B0306A", "#FF7AA8"),
    Verdict.IGNORED: Look("dashed strike", LIGHT.secondary, DARK.secondary, neutral=True),
}
"""One for each of FATES."""
