"""The contents of a round's cards, made from the numbers of `engine/explain/decision.py`. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.explain.decision import (
    ArgmaxTest,
    BlockTest,
    DrawTest,
    RatioTest,
    Residual,
    Test,
    TokenOdds,
    block_chain,
    judgement_of,
    odds_of,
    only_temperature,
    own_token,
    residual_of,
)
from app.engine.fates import JUDGED, Origin, Verdict
from app.engine.types import DraftedToken, EmittedToken, Round, TraceHeader, Verification
from app.ui.inspector.round.content import CardContent, Interval, Sum, TokenBars
from app.ui.inspector.round.sums import add_up, compared, drawn, written
from app.ui.transcript.text.facts import visible
from app.ui.widgets.words.draft_end import end_words

ARGMAX = "argmax p"  # the name of the sum that says the target's most probable token
_ROWS = 5  # tokens whose bars are shown


def cards_of(round: Round, header: TraceHeader) -> tuple[CardContent, ...]:
    """A card for each drafted token, then one for the token that the target gave itself.

    Tokens behind the judged ones of which nothing is known share a card.
    """
    heading = draft_heading(round, header)
    known = [
        token.p is not None or token.verdict in JUDGED or place < len(round.draft_top)
        for place, token in enumerate(round.drafted)
    ]
    count = max((place + 1 for place, something in enumerate(known) if something), default=0)
    cards = [_drafted(round, place, header, heading) for place in range(count)]
    if count < len(round.drafted):
        cards.append(_unknown(round, count))
    own = own_token(round)
    if own is not None:
        cards.append(_own(round, own, header))
    return tuple(cards)


# ------------------------------------------------------------------------------------------ drafted tokens


def _drafted(round: Round, place: int, header: TraceHeader, heading: str) -> CardContent:
    token = round.drafted[place]
    test = judgement_of(round, place, header.verification)
    return CardContent(
        _name(token),
        f"Place {place + 1} of {len(round.drafted)}",
        token.verdict.value,
        token.verdict.value,
        heading,
        _bars(round, place, header, heading),
        _interval(test),
        _sums(round, place, test),
        (*_notes(round, place, test), *_alone(round, place, heading)),
    )


def _alone(round: Round, place: int, heading: str) -> list[str]:
    """Why the bars of a drawn token show q of no other token."""
    token = round.drafted[place]
    best = round.draft_top[place].ids if place < len(round.draft_top) else ()
    if heading != "q" or token.draft_draw is None or not best or token.id in best:
        return []
    return ["Not one of the draft's ten best: q of the others is not known."]


def _unknown(round: Round, first: int) -> CardContent:
    """The card of all tokens from a place on, which were never judged and copied from text."""
    tokens = round.drafted[first:]
    last = len(round.drafted)
    places = f"Place {last}" if first + 1 == last else f"Places {first + 1} to {last}"
    fate = tokens[0].verdict.value
    title = "".join(map(_name, tokens))
    notes = tuple(_notes(round, first, None))
    return CardContent(title, f"{places} of {last}", fate, fate, "", (), None, (), notes)


def draft_heading(round: Round, header: TraceHeader) -> str:
    """What the draft's bars show: q where it is known of more than the drafted token, else the draft model's
    own probability; "" where there is no draft."""
    if not round.drafted:
        return ""
    first = round.drafted[0]
    sampled = first.draft_draw is not None and only_temperature(header.sampling)
    return "q" if sampled or first.draft_p is None else "draft_p"


def _bars(round: Round, place: int, header: TraceHeader, heading: str = "") -> tuple[TokenBars, ...]:
    shown = {tokens[place].id for tokens in (round.drafted, round.emitted) if place < len(tokens)}
    rows = []
    for odds in odds_of(round, place, header):
        draft = (odds.q if heading == "q" else odds.draft_p) if place < len(round.drafted) else None
        if odds.p is not None or draft is not None or odds.id in shown:
            rows.append((odds, draft))
    # Those that either model finds probable, and always the tokens that the card is about.
    rows.sort(key=lambda row: (row[0].id not in shown, -max(row[0].p or 0.0, row[1] or 0.0)))
    rows = sorted(rows[:_ROWS], key=lambda row: (-(row[0].p or 0.0), -(row[1] or 0.0)))
    return tuple(TokenBars(_named(odds), draft, odds.p, odds.id in shown) for odds, draft in rows)


def _interval(test: Test | None) -> Interval | None:
    match test:
        case RatioTest():
            return Interval(0.0, test.chance, test.u, "u")
        case DrawTest():
            return Interval(test.draw.low, test.draw.high, test.draw.u, "u")
        case BlockTest(h=float() as h, u=float() as u):
            return Interval(0.0, h, u, "u")
    return None


def _sums(round: Round, place: int, test: Test | None) -> tuple[Sum, ...]:
    """The arithmetic of a verdict; its last line decides."""
    token = round.drafted[place]
    said = _name(token)
    match test:
        case ArgmaxTest():
            best = _target_name(round, place, test.best)
            return Sum(ARGMAX, best), _equal(said, best, test.passed)
        case RatioTest():
            (p, q), ratio = add_up((test.p, test.q), lambda p, q: p / q)
            return (
                Sum("p / q", f"{p} / {q} = {ratio}"),
                Sum("min(1, p/q)", written(test.chance)),
                Sum("u", compared(test.u, test.chance), "accepted" if test.passed else "rejected"),
            )
        case DrawTest():
            own = _target_name(round, place, test.drawn)
            return Sum("u", drawn(test.draw)), Sum("drawn from p", own), _equal(said, own, test.passed)
        case BlockTest():
            return tuple(_block_sums(test))
    return ()


def _equal(drafted: str, own: str, passed: bool) -> Sum:
    return Sum("drafted", f"{drafted} {'=' if passed else '≠'} {own}", "accepted" if passed else "rejected")


def _block_sums(test: BlockTest) -> list[Sum]:
    (before, p, q), reach = add_up((test.before, test.p, test.q), lambda b, p, q: min(1.0, b * p / q))
    sums = [Sum("reach r", f"min(1, {before} × {p} / {q}) = {reach}")]
    if test.h is None or test.u is None:
        return sums
    if test.left is not None and written(test.left) == written(test.reach):
        sums.append(Sum("h = r, all is left", written(test.h)))
    elif test.left is not None:
        (left, r), h = add_up((test.left, test.reach), lambda left, r: left / (left + 1 - r))
        sums.append(Sum("h", f"{left} / ({left} + 1 − {r}) = {h}"))
    else:
        sums.append(Sum("h", written(test.h)))
    return [*sums, Sum("u", compared(test.u, test.h), "passes" if test.own else "does not pass")]


def _notes(round: Round, place: int, test: Test | None) -> list[str]:
    token = round.drafted[place]
    rejected = next((token for token in round.drafted if token.verdict is Verdict.REJECTED), None)
    where = f"behind “{_name(rejected)}”, which was rejected" if rejected else "behind the end of the answer"
    if isinstance(test, BlockTest):
        if test.own is None and token.verdict is Verdict.ACCEPTED:
            return ["Accepted with the block: a later token passed."]
        if test.left is not None and written(test.left) != written(test.reach):
            return ["Left is what no next token takes up of r. It follows from the recorded h."]
        return []
    if test is not None:
        return []
    if token.verdict is Verdict.IGNORED:
        return [f"Never judged, {where}."]
    return ["The trace does not hold the numbers of this verdict."]


# ---------------------------------------------------------------------------------- the target's own token


def _own(round: Round, token: EmittedToken, header: TraceHeader) -> CardContent:
    place = len(round.emitted) - 1
    residual = residual_of(round, header)
    if residual is not None:
        bars = _residual_bars(round, header, residual)
    elif token.origin is Origin.RESAMPLED:
        bars = ()  # the card of the rejected token has them
    else:
        bars = _bars(round, place, header)
    draw = token.draw
    name = "v" if residual is not None else "u"
    return CardContent(
        _name(token),
        "The target's own token",
        token.origin.value,
        "resampled from the residual" if residual is not None else round.fate_word(token),
        "q" if residual is not None else "",
        bars,
        Interval(draw.low, draw.high, draw.u, name) if draw is not None else None,
        _residual_sums(residual) if residual is not None else _own_sums(token),
        tuple(_own_notes(round, token, residual, header)),
        wide=residual is not None,
    )


def _residual_bars(round: Round, header: TraceHeader, residual: Residual) -> tuple[TokenBars, ...]:
    place = len(round.emitted) - 1
    shown = round.drafted[place].id, round.emitted[place].id

    def rest(odds: TokenOdds) -> float | None:
        known = odds.p is not None and odds.q is not None
        return max(residual.reach * (odds.p or 0.0) - (odds.q or 0.0), 0.0) if known else None

    rows = [(odds, rest(odds)) for odds in odds_of(round, place, header)]
    rows.sort(key=lambda row: (row[0].id not in shown, -max(row[0].p or 0.0, row[0].q or 0.0)))
    rows = sorted(rows[: _ROWS + 1], key=lambda row: (-(row[1] or 0.0), -(row[0].p or 0.0)))
    return tuple(TokenBars(_named(odds), odds.q, odds.p, odds.id in shown, left) for odds, left in rows)


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
        sums += [Sum("sum over all tokens", total), Sum("scaled", f"{left} / {total} = {share}")]
    else:
        sums.append(Sum("width of its interval", written(residual.share)))
    return (*sums, Sum("v", drawn(residual.draw)))


def _own_sums(token: EmittedToken) -> tuple[Sum, ...]:
    if token.draw is None:
        return (Sum(ARGMAX, _name(token)),)
    return Sum("u", drawn(token.draw)), Sum("drawn from p", _name(token))


def _own_notes(
    round: Round, token: EmittedToken, residual: Residual | None, header: TraceHeader
) -> list[str]:
    if residual is not None:
        formula = "max(p − q, 0)" if residual.reach == 1 else "max(r p − q, 0)"
        notes = [
            f"{formula}, scaled to sum to 1, is drawn from: the dark part of each bar. v picks the interval."
        ]
        if residual.rest == 0:
            return ["Nothing is left of p − q but rounding, so p itself was drawn from."]
        if residual.total is not None:
            notes.append("The sum follows from the recorded interval.")
        else:
            known = [odds.q for odds in odds_of(round, len(round.emitted) - 1, header) if odds.q is not None]
            below = (
                f": at most {written(min(known))}, as it is not among the draft's ten best"
                if known[1:]
                else ""
            )
            notes.append(f"The q of this token is not recorded{below}; its interval is.")
        return notes
    match token.origin:
        case Origin.RESAMPLED if header.verification is Verification.MATCH:
            return ["The target's own draw takes the place of the rejected token."]
        case Origin.RESAMPLED:
            return ["The target's most probable token takes the place of the rejected one."]
        case Origin.BONUS:
            many = len(round.drafted)
            passed = "The drafted token passed" if many == 1 else f"All {many} drafted tokens passed"
            return [f"{passed}: the same pass gives one token more."]
    why = end_words(round.draft_end)
    return [f"No draft in this round: {why}." if why else "No draft in this round."]


# ------------------------------------------------------------------------------------------------- the block


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A token in the chain of a block."""

    token: str
    fate: str
    reach: float
    h: float | None
    u: float | None
    decides: bool  # the last token whose draw passed


def chain_of(round: Round, header: TraceHeader) -> tuple[ChainLink, ...]:
    """The chain of a draft that was judged as a block; empty under other rules."""
    if header.verification is not Verification.BLOCK:
        return ()
    chain = block_chain(round)
    last = max((place for place, test in enumerate(chain) if test.own), default=-1)
    return tuple(
        ChainLink(_name(token), token.verdict.value, test.reach, test.h, test.u, place == last)
        for place, (token, test) in enumerate(zip(round.drafted, chain, strict=False))
    )


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
