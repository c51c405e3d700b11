"""The colours. Neutral surroundings; colour belongs to the fates of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from app.engine.fates import Origin, Verdict


def blend(colour: str, ground: str, share: float) -> str:
    """A mixture: `share` of `colour`, the rest `ground`; both are "#RRGGBB"."""
    top, below = ([int(value[i : i + 2], 16) for i in (1, 3, 5)] for value in (colour, ground))
    mixed = (round(a * share + b * (1 - share)) for a, b in zip(top, below, strict=True))
    return "#" + "".join(f"{value:02X}" for value in mixed)


Cue = Literal["none", "line", "double line", "dots", "strike", "dashed strike"]
"""The line that shows a fate without its colour."""

STANDARD, SAFE, STRONG = "standard", "colour-blind", "high contrast"
"""The names of the palettes."""

OnGround = tuple[str, str]
"""A colour on light and on dark ground."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a fate looks: its line, and the line's colour in each palette."""

    cue: Cue
    colours: Mapping[str, OnGround]  # by the name of the palette
    neutral: bool = False  # grey: no tint, and no colour in plots


@dataclass(frozen=True, slots=True)
class Palette:
    """One appearance. Every value is "#RRGGBB"."""

    name: str
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
    chosen_share: float  # and under what is in use
    edge_share: float  # how much of the text's colour is in the edges of what can be operated

    @property
    def edge(self) -> str:
        """The edge of a control, a chip or the prompt box."""
        return blend(self.text, self.ground, self.edge_share)

    def fate(self, fate: str) -> str:
        """The colour of a fate's line and name."""
        return LOOKS[fate].colours[self.name][self.dark]

    def tint(self, fate: str) -> str:
        """The soft background of a token with a fate; the plain ground if the fate is neutral."""
        return self.ground if LOOKS[fate].neutral else self.soft(self.fate(fate))

    def area(self, fate: str) -> str:
        """The colour of an area that shows that fate."""
        return self.secondary if LOOKS[fate].neutral else self.fate(fate)

    def soft(self, colour: str) -> str:
        """`colour` as the background of text."""
        return blend(colour, self.ground, self.tint_share)


LIGHT = Palette(
    name=STANDARD,
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
    chosen_share=0.13,
    edge_share=0.51,
)

DARK = Palette(
    name=STANDARD,
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
    wash_share=0.15,
    chosen_share=0.13,
    edge_share=0.39,
)

SAFE_LIGHT = replace(LIGHT, name=SAFE, error="#B322E6", good="#047F45", aim="#1E3A9E", link="#1E3A9E")
SAFE_DARK = replace(
    DARK, name=SAFE, error="#FF4F8F", good="#70F5B8", aim="#3BA3FF", link="#3BA3FF", tint_share=0.15
)
STRONG_LIGHT = replace(
    LIGHT,
    name=STRONG,
    panel="#FFFFFF",
    line="#BDBDBD",
    text="#000000",
    secondary="#484C51",
    faint="#6E7277",
    error="#A400CC",
    good="#00703E",
    aim="#1A1A90",
    link="#1A1A90",
    keyword="#003A66",
    string="#00503C",
    number="#5E3000",
    chosen_share=0.24,
    edge_share=0.6,
)
STRONG_DARK = replace(
    DARK,
    name=STRONG,
    ground="#000000",
    panel="#000000",
    raised="#000000",
    line="#444444",
    text="#FFFFFF",
    secondary="#B8BDC4",
    faint="#8C9299",
    error="#FF5A98",
    good="#75FFA8",
    aim="#4AA8FF",
    link="#4AA8FF",
    chosen_share=0.24,
    edge_share=0.6,
)
PALETTES = {STANDARD: (LIGHT, DARK), SAFE: (SAFE_LIGHT, SAFE_DARK), STRONG: (STRONG_LIGHT, STRONG_DARK)}
"""The palettes by name: on light and on dark ground."""


def _look(cue: Cue, standard: OnGround, safe: OnGround, strong: OnGround) -> Look:
    return Look(cue, {STANDARD: standard, SAFE: safe, STRONG: strong})


def _grey(cue: Cue, ink: str) -> Look:
    """The look of a fate that is drawn in a grey of each palette."""
    inks = {name: (getattr(light, ink), getattr(dark, ink)) for name, (light, dark) in PALETTES.items()}
    return Look(cue, inks, neutral=True)


LOOKS: dict[str, Look] = {
    Origin.ACCEPTED: _look("line", ("#007F5F", "#2EC4A0"), ("#047F45", "#70F5B8"), ("#00703E", "#75FFA8")),
    Origin.RESAMPLED: _look("dots", ("#B35C00", "#FFB454"), ("#6A3300", "#D0A000"), ("#4F2000", "#E0B000")),
    Origin.BONUS: _look(
        "double line", ("#0062A3", "#56B4E9"), ("#1E3A9E", "#3BA3FF"), ("#1A1A90", "#4AA8FF")
    ),
    Origin.PLAIN: _grey("none", "text"),
    Verdict.REJECTED: _look("strike", ("#B0306A", "#FF7AA8"), ("#B322E6", "#FF4F8F"), ("#A400CC", "#FF5A98")),
    Verdict.IGNORED: _grey("dashed strike", "secondary"),
}
"""One for each of FATES; the colours are in the order of PALETTES. Outside the standard palette any two
differ by at least 10 (CIEDE2000), also for eyes that lack one of the three kinds of cones."""
