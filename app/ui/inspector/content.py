"""The contents of a round and its cards: facts, texts, bars, the line of a draw. No Qt here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import log, sqrt

from app.base.numbers import listed, ordinal, percent
from app.engine.explain.copied import Copied
from app.engine.explain.decision import PlaceLaw, Tally, q_follows
from app.engine.fates import UNTOLD_DRAFT, Origin, Verdict
from app.engine.rules.formula import LOG_P, LOG_SHARE, Sum, visible
from app.engine.rules.registry import rule_of
from app.engine.sampling.noise import luck
from app.engine.types import EmittedToken, HeadInput, Race, Round, TraceHeader
from app.ui.instruments import definitions
from app.ui.widgets.words import count, duration, end_words, probability, ratio

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
        p = self.headings[1]
        share = f"Σ min(p, q) {'=' if law.exact else '≤'} {ratio(law.alpha)}"
        refused = Verdict.REJECTED.value, f"rejected: q above {p}"
        if self.drawn_so_far is not None:
            accepted, total = self.drawn_so_far
            expected = f"{'expected' if law.exact else 'at most'} {law.alpha * total:,.0f}"
            return (
                (Origin.ACCEPTED.value, f"accepted {accepted:,} ({expected})"),
                (Origin.RESAMPLED.value, f"replaced {total - accepted:,}"),
                ("", f"{p}, 95 % range"),
                refused,
            )
        return (
            (Origin.ACCEPTED.value, f"accepted: {share}" if law.draws else "accepted"),
            (Origin.RESAMPLED.value, f"not covered: {p} above q"),
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


def round_facts(round: Round, header: TraceHeader) -> str:
    """How many tokens of each fate, how long it took, and the rule."""
    verdicts = Counter(token.verdict for token in round.drafted)
    own = [token for token in round.emitted if token.origin is not Origin.ACCEPTED]
    facts = [f"{count(len(round.drafted))} drafted"]
    if not round.drafted:
        facts = ["draft unknown" if round.untold else "no draft"]
    facts += [f"{count(verdicts[verdict])} {verdict}" for verdict in Verdict if verdicts[verdict]]
    facts += [f"1 {round.fate_word(token)}" for token in own]
    times = (
        ()
        if header.pair.server is not None
        else (
            ("draft", round.draft_seconds),
            ("verify", round.verify_seconds),
            ("sampling", round.sample_seconds),
        )
    )
    facts.append(
        ", ".join(f"{name} {duration(seconds)}" for name, seconds in times) or duration(round.seconds)
    )
    if round.drafted:
        facts.append(f"{header.verification} verification")
    return " · ".join(facts)


def source_words(round: Round, header: TraceHeader) -> str:
    """Which strategies were asked, which one drafted, and what q is, in a few sentences."""
    if header.pair.server is not None:
        kind = header.pair.server.kind
        if round.untold:
            return UNTOLD_DRAFT
        return f"{kind} drafted. It does not report p, q or the rejected tokens." if round.drafted else ""
    said = [_asked(round), _read(round.head, header), _drawn(round, header)]
    at_zero = header.sampling.temperature == 0 and rule_of(header.verification).draws
    if at_zero:
        said.append(
            "At temperature 0 p is 1 for the most probable token; the bars are the model's own probabilities."
        )
    return " ".join(filter(None, said))


def _asked(round: Round) -> str:
    if not round.drafted:
        asked = listed(round.asked or ())
        return f"{asked} had no draft: {end_words(round.draft_end)}." if asked and round.draft_end else ""
    name = round.strategy or "A strategy"
    before = [asked for asked in round.asked or () if asked != round.strategy]
    were = "were" if before[1:] else "was"
    silent = f"{listed(before)} {were} asked first and had no draft. " if before else ""
    why = round.draft_end and end_words(round.draft_end)
    if why and why.startswith("the draft ended"):  # a sentence of its own: the draft model ended the answer
        return f"{silent}{name} drafted; {why}."
    ended = f"; it stopped: {why}" if why else ""
    return f"{silent}{name} drafted{ended}."


def _read(head: HeadInput | None, header: TraceHeader) -> str:
    """The target's rows that a head read, and the share of each."""
    if head is None:
        return ""
    inner = [f"{layer}" for layer in head.layers if layer != header.pair.target.n_layers]
    named = [f"before layer{'s' if inner[1:] else ''} {listed(inner)}"] if inner else []
    named += ["after the last layer"] if len(inner) < len(head.layers) else []
    sizes = listed([f"{norm:,.1f}" for norm in head.norms])
    said = f"It read the target's rows {listed(named)}, of length {sizes}"
    if not head.shares:
        return f"{said}."
    return f"{said}; they make up {listed([percent(share, 0) for share in head.shares])} of its input."


def _drawn(round: Round, header: TraceHeader) -> str:
    """What q is in this round."""
    if not round.drafted:
        return ""
    first = round.drafted[0]
    if first.draft_drawn is not None and q_follows(header.sampling):
        return (
            "The tokens were drawn from q. The trace records q of the drafted tokens alone. For the others, "
            "q is computed from the draft's recorded probabilities."
        )
    if first.draft_drawn is not None:
        return "The tokens were drawn from q. For the other tokens, q was not recorded."
    if first.draft_p is not None:
        taken = "The draft's most likely token was taken, not drawn, so q is 1 for it and 0 for the others"
        return (
            f"{taken}. draft_p is the draft model's own probability of each token, marked across its bar."
            if not _by_law(header)
            else f"{taken}."
        )
    return "The tokens were copied, not drawn, so q is 1 for them and 0 for the others."


def _by_law(header: TraceHeader) -> bool:
    """Whether p and q decide."""
    rule = rule_of(header.verification)
    return rule.keeps_law and rule.from_residual and not rule.whole and header.sampling.temperature > 0


def copied_words(copied: Copied, round: Round) -> str:
    """The source of the copied text, and what the trace does not say."""
    name = round.strategy or "The strategy"
    places = f"{count(copied.places)} places" if copied.places > 1 else ""
    if round.match is None:
        if not copied.places:
            return (
                f"{name} does not record where it copies from, and the text is not found earlier in this "
                "conversation."
            )
        where = places or "one place"
        shown = ", the last of which is shown" if places else ""
        return f"{name} does not record where it copies from. The text occurs earlier at {where}{shown}."
    if not copied.in_prompt:
        if copied.source is None:
            return (
                f"Copied from token {ordinal(round.match)} of the conversation, which is not in this trace."
            )
        return f"Copied from the answer, from round {ordinal(copied.source[0])} on, dashed in the text above."
    begin = f"Copied from token {ordinal(round.match)} of the prompt"
    if not copied.places:
        return f"{begin}. The trace does not say where that is, and the text is not found."
    if places:
        return f"{begin}. The text occurs at {places} that fit; the last one is shown."
    return f"{begin}."
