"""The contents of a round's cards, made from the numbers of `engine/explain/decision.py`. No Qt here."""

from __future__ import annotations

from dataclasses import replace

from app.base.numbers import ordinal
from app.engine.explain.decision import (
    Residual,
    TokenOdds,
    draft_heading,
    odds_of,
    own_token,
    place_law,
    residual_of,
)
from app.engine.fates import JUDGED, Origin, Verdict
from app.engine.rules.base import TokenTest
from app.engine.rules.formula import LOG_SHARE, Sum, add_up, draw_sums, visible, written
from app.engine.rules.greedy import BEST
from app.engine.rules.registry import rule_of
from app.engine.sampling.draws import Draws, Purpose
from app.engine.types import DraftedToken, Draw, EmittedToken, Round, TraceHeader
from app.ui.inspector.content import (
    OTHERS,
    CardContent,
    DrawLine,
    Instead,
    RaceBars,
    Stretch,
    TokenBar,
    final_line,
    known_words,
    law_bars,
    race_bars,
)
from app.ui.widgets.words import end_words

_LEAST = 0.0005  # a token less probable than this has no bar
_DRAWS = (
    "Draw 1,000 repeats this place: draw a token from q, then accept or replace it. "
    "The shares come close to p."
)


def cards_of(round: Round, header: TraceHeader, rows: int = 5) -> tuple[CardContent, ...]:
    """A card for each drafted token, then one for the target's own token. If that was drawn from the
    residual, it is on the rejected token's card.

    Unknown tokens after the judged ones share a card. A card shows the bars of at most `rows` tokens."""
    heading = draft_heading(round, header)
    known = [
        token.p is not None or token.verdict in JUDGED or place < len(round.draft_top)
        for place, token in enumerate(round.drafted)
    ]
    count = max((place + 1 for place, something in enumerate(known) if something), default=0)
    cards = [_drafted(round, place, header, heading, rows) for place in range(count)]
    if count < len(round.drafted):
        cards.append(_unknown(round, count))
    own = own_token(round)
    if own is not None and not any(card.own for card in cards):
        cards.append(_own(round, own, header, rows))
    return tuple(cards)


def asked_of(round: Round, header: TraceHeader) -> tuple[CardContent, ...]:
    """The cards of a draft whose verdict is asked for. Those of copied tokens would tell which are judged, so
    they share one."""
    return cards_of(round, header)[: len(round.drafted)] if round.draft_top else (_unknown(round, 0),)


def in_plain_words(card: CardContent) -> CardContent:
    """A card with words for its letters, if nothing was drawn: lessons that draw explain p and q."""
    if "draft_p" not in card.headings and not any(line.name == BEST for line in card.sums):
        return card
    return replace(card, headings=("draft", "target")[-len(card.headings) :])


def before_verdict(card: CardContent) -> CardContent:
    """A card with only the draft's probabilities, for a question about its verdict."""
    values = [(bar, bar.values[0] or 0.0) for bar in card.bars if len(bar.values) > 1]
    bars = tuple(
        TokenBar(bar.token, (value,), bar.token == card.title, ((value, ""),))
        for bar, value in sorted(values, key=lambda pair: -pair[1])
        if value
    )
    fate = Origin.PLAIN.value
    return CardContent(card.title, card.place, fate, "?", card.headings[:1], bars, None, (), ())


# ------------------------------------------------------------------------------------------ drafted tokens


def _drafted(round: Round, place: int, header: TraceHeader, heading: str, rows: int) -> CardContent:
    token = round.drafted[place]
    test = rule_of(header.verification).test(round, place)
    card = CardContent(
        _name(token),
        f"Place {ordinal(place)} of {len(round.drafted)}",
        token.verdict.value,
        token.verdict.value,
        (),
        (),
        _judged_line(round, place, header, test),
        test.sums(lambda id: _target_name(round, place, id)) if test is not None else (),
        (*_notes(round, place, test), *_alone(round, place, heading)),
    )
    residual = residual_of(round, header) if place == len(round.emitted) - 1 else None
    if residual is not None:
        card = replace(card, instead=_instead(round, header, residual), own=True)
    law = place_law(round, place, header)
    if law is None:
        return _with_bars(card, _bars(round, place, header, heading, rows), heading)
    chosen = {tokens[place].id for tokens in (round.drafted, round.emitted) if place < len(tokens)}
    law = law.first(list(chosen), rows)
    bars = law_bars(law, chosen)
    if residual is not None and residual.q is None and not law.draws:
        bars = _with_replacement(bars, _name(round.emitted[place]), residual.reach * residual.p)
    return replace(
        card,
        headings=("q", "p" if residual is None or residual.reach == 1 else "r p"),
        bars=bars,
        notes=(*card.notes, *known_words(law), *([_DRAWS] if law.draws else [])),
        law=law,
    )


def _with_replacement(bars: tuple[TokenBar, ...], name: str, p: float) -> tuple[TokenBar, ...]:
    """The bars with one for a replacement whose q is not recorded; it leaves the bar of all others."""
    *named, others = bars
    if others.token != OTHERS:
        return bars
    q, whole = others.values
    (accepted, passed), (uncovered, left), *refused = others.parts
    parts = ((accepted, passed), (max(uncovered - p, 0.0), left), *refused)
    less = replace(others, values=(q, max((whole or 0.0) - p, 0.0)), parts=parts)
    return *named, TokenBar(name, (None, p), True, ((p, left),)), less


def _with_bars(card: CardContent, bars: tuple[TokenBar, ...], heading: str) -> CardContent:
    return replace(card, headings=(heading, "p") if heading else ("p",), bars=bars)


def _alone(round: Round, place: int, heading: str) -> list[str]:
    """Why the bars of a drawn token show q of no other token."""
    token = round.drafted[place]
    best = round.draft_top[place].ids if place < len(round.draft_top) else ()
    if heading != "q" or token.draft_drawn is None or not best or token.id in best:
        return []
    return ["Not in the draft's top ten, so q of the others is unknown."]


def _unknown(round: Round, first: int) -> CardContent:
    """The card of all tokens from a place on, which were never judged and copied from text."""
    tokens = round.drafted[first:]
    last = len(round.drafted)
    places = f"Place {last}" if first + 1 == last else f"Places {first + 1} to {last}"
    fate = tokens[0].verdict.value
    title = "".join(map(_name, tokens))
    notes = tuple(_notes(round, first, None))
    return CardContent(title, f"{places} of {last}", fate, fate, (), (), None, (), notes)


def _bars(round: Round, place: int, header: TraceHeader, heading: str, most: int) -> tuple[TokenBar, ...]:
    """A bar of p for each token that was probable; a line across it is the draft's number. If no p is known,
    the bars are the draft's."""
    tokens = [tokens[place] for tokens in (round.drafted, round.emitted) if place < len(tokens)]
    fates = {token.id: _fate(token) for token in tokens}
    rows = []
    for odds in odds_of(round, place, header):
        draft = (odds.q if heading == "q" else odds.draft_p) if place < len(round.drafted) else None
        if max(odds.p or 0.0, draft or 0.0) >= _LEAST or odds.id in fates:
            rows.append((odds, draft))
    # Those that either model finds probable, and always the tokens that the card is about.
    rows.sort(key=lambda row: (row[0].id not in fates, -max(row[0].p or 0.0, row[1] or 0.0)))
    rows = sorted(rows[:most], key=lambda row: (-(row[0].p or 0.0), -(row[1] or 0.0)))
    judged = any(odds.p is not None for odds, _draft in rows)
    return tuple(
        TokenBar(
            _named(odds),
            (draft, odds.p) if heading else (odds.p,),
            odds.id in fates,
            (((odds.p if judged else draft) or 0.0, fates.get(odds.id, "")),),
            draft if heading and judged else None,
        )
        for odds, draft in rows
    )


def _fate(token: DraftedToken | EmittedToken) -> str:
    return token.verdict.value if isinstance(token, DraftedToken) else token.origin.value


def _judged_line(
    round: Round, place: int, header: TraceHeader, test: TokenTest | None
) -> DrawLine | RaceBars | None:
    """The line that decides whether a drafted token is accepted: it is if the draw is below the chance."""
    if test is None:
        return None
    if test.target_draw is not None:
        target, draw = test.target_draw
        if isinstance(draw, Draw):
            return DrawLine((Stretch(draw.low, draw.high, _passing(test.passed)),), draw.u, "v")
        weights = _weights(round, place, header)
        weights.setdefault(target, (_target_name(round, place, target), 0.0))
        key = _key(round, place, header, Purpose.TOKEN)
        return race_bars(draw, target, _passing(test.passed), weights, key)
    if test.chance is None:
        return None
    chance, u = test.chance
    accepted = Stretch(0.0, chance, Origin.ACCEPTED.value, "accepted")
    rejected = Stretch(chance, 1.0, Verdict.REJECTED.value)
    return DrawLine(tuple(each for each in (accepted, rejected) if each.high > each.low), u, "u")


def _passing(passed: bool) -> str:
    return Origin.ACCEPTED.value if passed else Origin.RESAMPLED.value


def _notes(round: Round, place: int, test: TokenTest | None) -> list[str]:
    token = round.drafted[place]
    rejected = next((token for token in round.drafted if token.verdict is Verdict.REJECTED), None)
    why = f"an earlier token, “{_name(rejected)}”, was rejected" if rejected else "the answer ended before it"
    if test is not None:
        return test.notes(token)
    if token.verdict not in JUDGED:
        return [f"Not judged, because {why}."]
    return ["The trace does not contain the numbers behind this verdict."]


# ---------------------------------------------------------------------------------- the target's own token


def _own(round: Round, token: EmittedToken, header: TraceHeader, rows: int) -> CardContent:
    card = CardContent(
        _name(token),
        "The target's own token",
        token.origin.value,
        round.fate_word(token),
        (),
        (),
        _target_line(round, header, token),
        _own_sums(token),
        tuple(_own_notes(round, token)),
        own=True,
    )
    if token.origin is Origin.RESAMPLED:
        return card  # the card of the rejected token has the bars
    return _with_bars(card, _bars(round, len(round.emitted) - 1, header, "", rows), "")


def _target_line(round: Round, header: TraceHeader, token: EmittedToken) -> DrawLine | RaceBars | None:
    place = len(round.emitted) - 1
    weights = {token.id: (_name(token), token.p or 0.0)} | _weights(round, place, header)
    return final_line(token, weights, _key(round, place, header, Purpose.TOKEN))


def _weights(round: Round, place: int, header: TraceHeader) -> dict[int, tuple[str, float]]:
    """The names and the p of the tokens known at a place; none if p is not what was drawn from."""
    if header.sampling.temperature == 0:
        return {}
    return {each.id: (_named(each), each.p) for each in odds_of(round, place, header) if each.p is not None}


def _key(round: Round, place: int, header: TraceHeader, purpose: Purpose) -> int:
    return Draws(header.seed).key(round.position + place, purpose)


def _residual_line(round: Round, header: TraceHeader, residual: Residual) -> DrawLine | RaceBars | None:
    weights = {
        odds.id: (_named(odds), max(residual.reach * odds.p - odds.q, 0.0) / residual.total)
        for odds in odds_of(round, len(round.emitted) - 1, header)
        if residual.total is not None and odds.p is not None and odds.q is not None
    }
    token = round.emitted[-1]
    key = _key(round, len(round.emitted) - 1, header, Purpose.RESIDUAL)
    return final_line(token, weights | {token.id: (_name(token), residual.share)}, key, LOG_SHARE)


def _instead(round: Round, header: TraceHeader, residual: Residual) -> Instead:
    token = round.emitted[-1]
    name = _name(token)
    proof: tuple[str, ...] = ()
    rule = rule_of(header.verification)
    if rule.keeps_law and not rule.whole and residual.rest and residual.total is not None:
        proof = proof_of(name, residual.p - residual.rest, residual.total, residual.share)
    line = _residual_line(round, header, residual)
    left = "max(p − q, 0)" if residual.reach == 1 else "max(r p − q, 0)"
    words = f"Drawn from the residual: {left}, scaled to sum to 1."
    if isinstance(line, DrawLine):
        words += " Each length is a token's probability."
    elif line is not None:
        words += (
            " Each token has a share of it. The highest sum of log share and random luck wins, so a token "
            "wins as often as its share says."
        )
    fate, notes = token.origin.value, tuple(_residual_notes(round, residual, header))
    return Instead(name, fate, fate, words, line, _residual_sums(residual), notes, proof)


def proof_of(name: str, accepted: float, rejected: float, share: float) -> tuple[str, ...]:
    """Why a token keeps its probability. `accepted`: how often it is drafted and accepted. `rejected`:
    how often any draft is replaced. `share`: how often the replacement is this token."""
    (first, second, third), p = add_up((accepted, rejected, share), lambda a, b, c: a + b * c)
    formula = f"{name}: q · min(1, p/q)", "+ (1 − Σ min(p, q)) · share"
    return *formula, f"= {first} + {second} × {third} = {p} = p"


def _residual_sums(residual: Residual) -> tuple[Sum, ...]:
    sums = []
    if residual.q is not None and residual.rest is not None and residual.total is not None:
        if residual.reach == 1:
            (p, q), rest = add_up((residual.p, residual.q), lambda p, q: p - q)
            sums.append(Sum("p − q", f"{p} − {q} = {rest}"))
        else:
            values = residual.reach, residual.p, residual.q
            (r, p, q), rest = add_up(values, lambda r, p, q: r * p - q)
            sums.append(Sum("r p − q", f"{r} × {p} − {q} = {rest}"))
        (left, total), share = add_up((residual.rest, residual.total), lambda left, total: left / total)
        name = "share = (p − q) / (1 − Σ min(p, q))" if residual.reach == 1 else "share of the residual"
        sums.append(Sum(name, f"{left} / {total} = {share}"))
    else:
        sums.append(Sum("share of the residual", written(residual.share)))
    return (*sums, *draw_sums(residual.draw, residual.share))


def _own_sums(token: EmittedToken) -> tuple[Sum, ...]:
    if token.drawn is None:
        return (Sum(BEST, _name(token)),)
    return *draw_sums(token.drawn), Sum("drawn from p", _name(token))


def _residual_notes(round: Round, residual: Residual, header: TraceHeader) -> list[str]:
    token = round.emitted[-1]
    if residual.rest == 0:
        return ["Only rounding is left of p − q, so the token was drawn from p itself."]
    if residual.total is not None:
        return []
    known = [odds.q for odds in odds_of(round, len(round.emitted) - 1, header) if odds.q is not None]
    below = f": at most {written(min(known))}, as it is not in the draft's top ten" if known[1:] else ""
    name, p = visible(token.piece, token.label), written(residual.p)
    return [f"“{name}” has p = {p}. Its q is not recorded{below}, but its share of the residual is."]


def _own_notes(round: Round, token: EmittedToken) -> list[str]:
    match token.origin:
        case Origin.RESAMPLED if token.drawn is not None:
            return ["The target's own draw replaces the rejected token."]
        case Origin.RESAMPLED:
            return ["The target's most likely token replaces the rejected one."]
        case Origin.BONUS:
            many = len(round.drafted)
            were = "The drafted token was" if many == 1 else f"All {many} drafted tokens were"
            return [f"{were} accepted: the same pass gives one more token."]
    why = end_words(round.draft_end)
    return [f"No draft in this round: {why}." if why else "No draft in this round."]


# ---------------------------------------------------------------------------------------------------- names


def _name(token: DraftedToken | EmittedToken) -> str:
    return visible(token.piece, token.label)


def _named(odds: TokenOdds) -> str:
    return visible(odds.piece, odds.label)


def _target_name(round: Round, place: int, id: int) -> str:
    """The name of a token that the target chose, which is the emitted one."""
    tokens: list[DraftedToken | EmittedToken] = [*round.emitted[place : place + 1]]
    tokens += round.drafted[place : place + 1]
    for token in tokens:
        if token.id == id:
            return _name(token)
    return f"token {id:,}"
