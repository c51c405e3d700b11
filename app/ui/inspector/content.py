"""What cards show: texts, bars, the line of a draw. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, sqrt

from app.engine.explain.decision import PlaceLaw, Tally
from app.engine.fates import Origin, Verdict
from app.engine.rules.formula import LOG_P, LOG_SHARE, Sum, visible
from app.engine.sampling.noise import luck
from app.engine.types import EmittedToken, Race
from app.ui.instruments import definitions
from app.ui.widgets.words import probability, ratio

DRAWS = 1_000  # that a place is repeated
OTHERS = "all others"
_RUNNERS = 4  # tokens of a race that are shown
_THIN = 1e-3  # a shorter stretch of a line cannot be seen
_LUCK = (
    "luck: random noise, computed from seed, place and token. The token with the highest sum is drawn: each "
    "as often as its probability says. Negative luck is outlined. Bars start below the lowest value."
)
_LETTERS = {
    "reach r": "r: the probability that the draft is accepted at least up to here.",
    "h": "h: the probability that the token's own draw u is below it.",
    "u": "u: a uniform draw from [0, 1), keyed by seed and place. It decides whether a token is accepted.",
    LOG_P: _LUCK,
    LOG_SHARE: f"share: a token's probability in the residual, which sums to 1.\n{_LUCK}",
    "v": "v: a uniform draw from [0, 1), keyed by seed and place. It selects the target's own token.",
}


@dataclass(frozen=True, slots=True)
class TokenBar:
    """A token at a place: its bar, and a number for each heading, None if it is not recorded."""

    token: str
    values: tuple[float | None, ...]
    chosen: bool  # drafted or emitted here
    parts: tuple[tuple[float, str], ...]  # lengths side by side, each with the fate that it stands for, or ""
    mark: float | None = None  # a line across the bar
    spread: float = 0.0  # how far the bar may end from its mark, 19 times in 20

    @property
    def length(self) -> float:
        return max(sum(length for length, _fate in self.parts), (self.mark or 0.0) + self.spread)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the line from 0 to 1, and the meaning of a draw in it."""

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
    """A token in a race: the one with the largest score is drawn. `log_p` is the logarithm of its probability
    in p or the residual."""

    token: str
    log_p: float
    luck: float
    won: bool

    @property
    def score(self) -> float:
        return self.log_p + self.luck


@dataclass(frozen=True, slots=True)
class RaceBars:
    """The race that drew a token, best first."""

    contenders: tuple[Contender, ...]
    fate: str
    name: str  # of the score


@dataclass(frozen=True, slots=True)
class Instead:
    """The token that replaced a rejected one, shown on the rejected one's card."""

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
    drawn_so_far: tuple[int, int] | None = None  # of repeated draws: those accepted, and all
    brief: bool = False  # whether the legend has names without formulas
    overlap: bool = True  # whether min(p, q) of each bar is accepted: else the legend has no formulas

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
        """The meanings of the letters on the card."""
        heads = {"p": definitions.P, "q": definitions.Q, "draft_p": definitions.DRAFT_P}
        said = [heads[name] for name in self.headings if name in heads]
        names = {line.name for line in self.all_sums}
        said += [meaning for name, meaning in _LETTERS.items() if name in names]
        return tuple(said)

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """What the parts of the bars are: a fate, or "" for the line across, and its words. Empty if a bar is
        a single number."""
        law = self.law
        if law is None:
            return ()
        p, formulas = self.headings[1], self.overlap and not self.brief
        share = f"{'=' if law.exact else '≤'} {ratio(law.alpha)}"
        share = f"accepted: Σ min(p, q) {share}" if formulas else f"accepted {share}"
        refused = Verdict.REJECTED.value, f"rejected: q above {p}" if formulas else "rejected"
        if self.drawn_so_far is not None:
            accepted, total = self.drawn_so_far
            expected = f" ({'expected' if law.exact else 'at most'} {law.alpha * total:,.0f})"
            return (
                (Origin.ACCEPTED.value, f"accepted {accepted:,}{'' if self.brief else expected}"),
                (Origin.RESAMPLED.value, f"replaced {total - accepted:,}"),
                ("", f"{p}, 95 % range"),
                refused,
            )
        return (
            (Origin.ACCEPTED.value, share if law.draws else "accepted"),
            (Origin.RESAMPLED.value, f"not covered: {p} above q" if formulas else "not covered"),
            refused,
        )

    @property
    def legends(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """The legends before and, if something can be drawn, after the draws: a card has room for both."""
        if self.law is None or not self.law.draws:
            return (self.legend,)
        return self.legend, replace(self, drawn_so_far=(DRAWS // 2, DRAWS)).legend

    def drawn(self, tally: Tally) -> CardContent:
        """The card with the results of repeated draws: another number for each token, and bars of them."""
        total = max(tally.total, 1)
        bars = []
        for bar, accepted, replaced in zip(self.bars, tally.accepted, tally.replaced, strict=False):
            p, came = bar.values[-1] or 0.0, (accepted + replaced) / total
            parts = ((accepted / total, Origin.ACCEPTED.value), (replaced / total, Origin.RESAMPLED.value))
            spread = 2 * sqrt(max(p * (1 - p), 0.0) / DRAWS)
            bars.append(replace(bar, values=(*bar.values, came), parts=parts, mark=p, spread=spread))
        counts = int(tally.accepted.sum()), tally.total
        return replace(self, headings=(*self.headings, "drawn"), bars=tuple(bars), drawn_so_far=counts)

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
        said = f"{bar.token}: {', '.join(f'{name} {probability(value)}' for name, value in values)}."
        if self.drawn_so_far is None or bar.mark is None:
            return said
        ends = max(bar.mark - bar.spread, 0.0), min(bar.mark + bar.spread, 1.0)
        low, high = map(probability, ends)
        return f"{said} In 95 % of runs of {DRAWS:,} it is drawn in {low} to {high} of them."


def law_bars(law: PlaceLaw, chosen: set[int], names: dict[int, str] | None = None) -> tuple[TokenBar, ...]:
    """A bar for each token: what is accepted, then the part of p above q, then the part of q above p.
    `names` are for tokens without text."""
    bars = []
    for share in law.shares:
        odds = share.odds
        if odds is None:
            token = OTHERS
        else:
            token = names[odds.id] if names is not None else visible(odds.piece, odds.label)
        parts = (
            (share.accepted, Origin.ACCEPTED.value),
            (share.uncovered, Origin.RESAMPLED.value),
            (share.refused, Verdict.REJECTED.value),
        )
        is_chosen = odds is not None and odds.id in chosen
        bars.append(TokenBar(token, (share.q, share.p), is_chosen, parts))
    return tuple(bars)


def known_words(law: PlaceLaw) -> list[str]:
    """What the last bar contains, if not all of p and q is recorded per token."""
    p, q = (100 - min(int(share * 100), 100) for share in law.named)
    words = f"“{OTHERS}” is every token without a bar. {p} % of p and {q} % of q are not recorded by token."
    return [words] if max(p, q) > 1 else []


# ------------------------------------------------------------------------------------------ the final draw


def race_bars(
    race: Race, id: int, fate: str, weights: dict[int, tuple[str, float]], key: int, name: str = LOG_P
) -> RaceBars:
    """The race that token `id` won, with the tokens of `weights` that come next: their names and their
    probabilities. `name` is that of the score."""
    names = {race.rival: visible(race.piece, race.label)} | {id: name for id, (name, _) in weights.items()}
    scores = {id: log(weight) + luck(key, id) for id, (_, weight) in weights.items() if weight > 0}
    scores[id] = race.score
    if race.rival is not None and race.rival_score is not None:
        scores[race.rival] = race.rival_score
    best = [(each, luck(key, each)) for each in sorted(scores, key=lambda id: -scores[id])[:_RUNNERS]]
    return RaceBars(
        tuple(Contender(names[each], scores[each] - own, own, each == id) for each, own in best), fate, name
    )


def final_line(
    token: EmittedToken, weights: dict[int, tuple[str, float]], key: int, score: str = LOG_P
) -> DrawLine | RaceBars | None:
    """How the target's own token was drawn, or the line of its draw; None if nothing was drawn.

    `weights` are names and probabilities (p or residual) of the known tokens. `key` gives their luck, and
    `score` is the name of the score that wins. On a line tokens are in the order of the vocabulary, as they
    were drawn; the emitted one is where the record has it.
    """
    fate, draw = token.origin.value, token.draw
    if token.race is not None:
        return race_bars(token.race, token.id, fate, weights, key, score)
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
