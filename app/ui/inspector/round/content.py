"""What stands on a card of a round: texts, bars, an interval. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from app.ui.instruments import definitions
from app.ui.widgets.words.numbers import probability

_LETTERS = {
    "reach r": "r: the chance that the draft is accepted up to here or further.",
    "h": "h: the chance that this token's own draw passes.",
    "u": "u: a uniform draw from [0, 1), keyed by seed and place.",
    "v": "v: a uniform draw from [0, 1), keyed by seed and place, for the residual.",
}


@dataclass(frozen=True, slots=True)
class TokenBars:
    """A token at a place: its probability in the draft and in the target; None where it is not recorded."""

    token: str
    draft: float | None
    p: float | None
    chosen: bool  # drafted or emitted here
    rest: float | None = None  # on the card of a residual: max(p - q, 0)


@dataclass(frozen=True, slots=True)
class Interval:
    """The unit interval: the part in which a draw decides, and the draw."""

    low: float
    high: float
    draw: float
    name: str  # of the draw


@dataclass(frozen=True, slots=True)
class Sum:
    """A line of arithmetic."""

    name: str
    text: str
    verdict: str = ""  # what it decides


@dataclass(frozen=True, slots=True)
class CardContent:
    """A card: the token, its fate, and why."""

    title: str
    place: str  # where it stands, such as "place 2 of 4"
    fate: str
    word: str  # the fate's name
    draft_heading: str  # of the bars; "" where the draft has none
    bars: tuple[TokenBars, ...]
    interval: Interval | None
    sums: tuple[Sum, ...]
    notes: tuple[str, ...]
    wide: bool = False
    target_heading: str = "p"

    @property
    def name(self) -> str:
        """The card in a few words, for screen readers."""
        return f"{self.place}: {self.title}, {self.word}"

    @property
    def letters(self) -> tuple[str, ...]:
        """What the letters on the card stand for."""
        said = [definitions.P] if self.bars else []
        if self.draft_heading:
            said.insert(0, definitions.Q if self.draft_heading == "q" else definitions.DRAFT_P)
        names = {line.name for line in self.sums}
        said += [meaning for name, meaning in _LETTERS.items() if name in names]
        return tuple(said)

    def spoken(self) -> str:
        """Everything on the card as one text, for screen readers."""
        sums = [f"{line.name} {line.text} {line.verdict}".strip() + "." for line in self.sums]
        return " ".join([*sums, *self.notes, *map(self._said, self.bars)])

    def _said(self, bars: TokenBars) -> str:
        draft = f" {self.draft_heading} {probability(bars.draft)}," if self.draft_heading else ""
        return f"{bars.token}:{draft} p {probability(bars.p)}."
