"""The colours. Neutral surroundings; colour belongs to the fates of tokens."""

from __future__ import annotations

from dataclasses import dataclass


def blend(colour: str, ground: str, share: float) -> str:
    """`share` of `colour` over `ground`, both "#RRGGBB"."""
    top, below = ([int(value[i : i + 2], 16) for i in (1, 3, 5)] for value in (colour, ground))
    mixed = (round(a * share + b * (1 - share)) for a, b in zip(top, below, strict=True))
    return "#" + "".join(f"{value:02X}" for value in mixed)


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
    accepted: str
    resampled: str
    bonus: str
    rejected: str
    ignored: str
    tint_share: float  # how much of a fate's colour its tint holds
    wash_share: float  # how much of the text's colour lies over what is selected or found

    def tint(self, fate: str) -> str:
        """The soft background behind a token of that fate; plain and ignored have the ground's."""
        if fate in ("plain", "ignored"):
            return self.ground
        return blend(self.fate(fate), self.ground, self.tint_share)

    def fate(self, fate: str) -> str:
        """The line colour of a fate: an Origin or a Verdict value."""
        colours = {
            "accepted": self.accepted,
            "resampled": self.resampled,
            "bonus": self.bonus,
            "rejected": self.rejected,
            "ignored": self.ignored,
            "plain": self.text,
        }
        return colours[fate]


LIGHT = Palette(
    dark=False,
    ground="#FFFFFF",
    panel="#F7F7F5",
    raised="#FFFFFF",
    line="#E3E3DF",
    text="#1D2023",
    secondary="#5C636B",
    faint="#8B9199",
    accepted="#007F5F",
    resampled="#B35C00",
    bonus="#0062A3",
    rejected="#B0306A",
    ignored="#5C636B",
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
    accepted="#2EC4A0",
    resampled="#FFB454",
    bonus="#56B4E9",
    rejected="#FF7AA8",
    ignored="#9AA1AB",
    tint_share=0.18,
    wash_share=0.18,
)
