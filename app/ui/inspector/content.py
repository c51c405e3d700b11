"""What a card of a round shows: texts, bars, the line that a draw falls onto. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log

from app.engine.explain.law import PlaceLaw, Tally
from app.engine.fates import Origin, Verdict
from app.engine.rules.formula import Sum, visible
from app.engine.sampling.noise import luck
from app.engine.types import EmittedToken, Race
from app.ui.instruments import definitions
from app.ui.widgets.words import probability, ratio

OTHERS = "all others"
_RUNNERS = 4  # tokens of a race that are shown
_THIN = 1e-3  # a shorter stretch of a line cannot be seen
_LETTERS = {
    "reach r": "r: the chance that the draft is accepted up to here or further.",
    "h": "h: the chance that this token's own draw passes.",
    "u": "u: a uniform draw from [0, 1), keyed by seed and place. It decides whether a drafted token passes.",
    "log p + luck": "luck: a number that seed, place and token give. The largest sum is drawn.",
    "v": "v: a uniform draw from [0, 1), keyed by seed and place. It picks the target's own token.",
}


@dataclass(frozen=True, slots=True)
class TokenBar:
    """A token at a place: its bar, and a number for each heading, None if it is not recorded."""

    token: str
    values: tuple[float | None, ...]
    chosen: bool  # drafted or emitted here
    parts: tuple[tuple[float, str], ...]  # lengths side by side, each with the fate that it stands for, or ""
    mark: float | None = None  # a line across the bar

    @property
    def length(self) -> float:
        return max(sum(length for length, _fate in self.parts), self.mark or 0.0)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the line from 0 to 1: what a draw means that falls into it."""

    low: float
    high: float
    fate: str
    label: str = ""
    pale: bool = False


@dataclass(frozen=True, slots=True)
class DrawLine:
    """The line from 0 to 1, and the draw on it."""

    stretches: tuple[Stretch, ...]
    draw: float
    name: str  # of the draw


@dataclass(frozen=True, slots=True)
class Contender:
    """A token in a race: the one with the largest score, log p + luck, is drawn."""

    token: str
    log_p: float
    luck: float
    won: bool

    @property
    def score(self) -> float:
        return self.log_p + self.luck


@dataclass(frozen=True, slots=True)
class RaceBars:
    """The race that a token was drawn by, best first."""

    contenders: tuple[Contender, ...]
    fate: str


@dataclass(frozen=True, slots=True)
class Instead:
    """The token that was drawn in place of a rejected one, on the card of that one."""

    title: str
    fate: str
    word: str
    words: str  # what was drawn from
    line: DrawLine | RaceBars | None
    sums: tuple[Sum, ...]
    notes: tuple[str, ...]
    proof: tuple[str, ...] = ()  # why the token keeps its probability: the formula, then its numbers


@dataclass(frozen=True, slots=True)
class CardContent:
    """A card: the token, its fate, and why."""

    title: str
    place: str  # where it is, such as "Place 2 of 4"
    fate: str
    word: str  # the fate's name
    headings: tuple[str, ...]  # of the numbers beside the bars
    bars: tuple[TokenBar, ...]
    line: DrawLine | RaceBars | None
    sums: tuple[Sum, ...]
    notes: tuple[str, ...]
    law: PlaceLaw | None = None  # that of the bars
    instead: Instead | None = None
    own: bool = False  # whether it shows the token that the target gave itself

    @property
    def name(self) -> str:
        """The card in a few words, for screen readers."""
        said = f"{self.place}: {self.title}, {self.word}"
        return f"{said}; {self.instead.title} instead, {self.instead.word}" if self.instead else said

    @property
    def all_sums(self) -> tuple[Sum, ...]:
        return self.sums + (self.instead.sums if self.instead else ())

    @property
    def letters(self) -> tuple[str, ...]:
        """What the letters on the card stand for."""
        heads = {"p": definitions.P, "q": definitions.Q, "draft_p": definitions.DRAFT_P}
        said = [heads[name] for name in self.headings if name in heads]
        names = {line.name for line in self.all_sums}
        said += [meaning for name, meaning in _LETTERS.items() if name in names]
        return tuple(said)

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """What the parts of the bars are: a fate and its words. Empty if a bar is a single number."""
        law = self.law
        if law is None:
            return ()
        p = self.headings[-1]
        alpha = f" α {'=' if law.exact else '≤'} {ratio(law.alpha)}" if law.draws else ""
        return (
            (Origin.ACCEPTED.value, f"accepted{alpha}"),
            (Origin.RESAMPLED.value, f"residual {p} > q"),
            (Verdict.REJECTED.value, f"refused q > {p}"),
        )

    def drawn(self, tally: Tally) -> CardContent:
        """The card with what came in repeated draws in place of what both models think."""
        total = max(tally.total, 1)
        bars = []
        for bar, accepted, replaced in zip(self.bars, tally.accepted, tally.replaced, strict=False):
            p, came = bar.values[-1], (accepted + replaced) / total
            parts = ((accepted / total, Origin.ACCEPTED.value), (replaced / total, Origin.RESAMPLED.value))
            bars.append(replace(bar, values=(came, p), parts=parts, mark=p))
        return replace(self, headings=("came", self.headings[-1]), bars=tuple(bars))

    def spoken(self) -> str:
        """Everything on the card as one text, for screen readers."""
        sums = [f"{line.name} {line.text} {line.verdict}".strip() + "." for line in self.all_sums]
        instead = self.instead
        ends = (*instead.notes, " ".join(instead.proof)) if instead is not None else ()
        legend = [f"{words}." for _fate, words in self.legend]
        return " ".join(filter(None, [*sums, *self.notes, *ends, *legend, *map(self.said, self.bars)]))

    def said(self, bar: TokenBar) -> str:
        """A bar in words."""
        values = zip(self.headings, bar.values, strict=True)
        return f"{bar.token}: {', '.join(f'{name} {probability(value)}' for name, value in values)}."


def law_bars(law: PlaceLaw, chosen: set[int], names: dict[int, str] | None = None) -> tuple[TokenBar, ...]:
    """A bar for each share of a law: what passes, then what p has above q, then what q has above p. `names`
    are those of tokens without text."""
    bars = []
    for share in law.shares:
        odds = share.odds
        if odds is None:
            token = OTHERS
        else:
            token = names[odds.id] if names is not None else visible(odds.piece, odds.label)
        parts = (
            (share.accepted, Origin.ACCEPTED.value),
            (share.residual, Origin.RESAMPLED.value),
            (share.refused, Verdict.REJECTED.value),
        )
        is_chosen = odds is not None and odds.id in chosen
        bars.append(TokenBar(token, (share.q, share.p), is_chosen, parts))
    return tuple(bars)


def known_words(law: PlaceLaw) -> list[str]:
    """How much of p and q the record tells by token, if that is not all."""
    p, q = (min(int(share * 100), 100) for share in law.named)
    return [f"Recorded by token: {p} % of p, {q} % of q. The rest is one bar."] if min(p, q) < 99 else []


# ------------------------------------------------------------------------------------------ the final draw


def race_bars(race: Race, id: int, fate: str, weights: dict[int, tuple[str, float]], key: int) -> RaceBars:
    """The race that token `id` won, with the tokens of `weights` that come next: their names and their
    probabilities."""
    names = {race.rival: visible(race.piece, race.label)} | {id: name for id, (name, _) in weights.items()}
    scores = {id: log(weight) + luck(key, id) for id, (_, weight) in weights.items() if weight > 0}
    scores[id] = race.score
    if race.rival is not None and race.rival_score is not None:
        scores[race.rival] = race.rival_score
    best = [(each, luck(key, each)) for each in sorted(scores, key=lambda id: -scores[id])[:_RUNNERS]]
    return RaceBars(
        tuple(Contender(names[each], scores[each] - own, own, each == id) for each, own in best), fate
    )


def final_line(
    token: EmittedToken, weights: dict[int, tuple[str, float]], key: int
) -> DrawLine | RaceBars | None:
    """How the target's own token was drawn, or the line that its draw fell onto; None if nothing was drawn.

    `weights` are the names and the probabilities of the tokens known here, p or the scaled residual; `key` is
    that of their luck. On a line tokens are in the order of the vocabulary, as they were drawn; the emitted
    one is where the record has it.
    """
    fate, draw = token.origin.value, token.draw
    if token.race is not None:
        return race_bars(token.race, token.id, fate, weights, key)
    if draw is None:
        return None
    stretches, at = [], 0.0
    for id, (name, weight) in sorted(weights.items()):
        if id == token.id:
            stretches.append(Stretch(at, draw.low, "", OTHERS))
            stretches.append(Stretch(draw.low, draw.high, fate, name))
            at = draw.high
        else:
            high = min(at + weight, draw.low if id < token.id else 1.0)
            stretches.append(Stretch(at, high, fate, name, pale=True))
            at = max(at, high)
    stretches.append(Stretch(at, 1.0, "", OTHERS))
    shown = tuple(each for each in stretches if each.high - each.low > _THIN or each.high == draw.high)
    return DrawLine(shown, draw.u, "v")
