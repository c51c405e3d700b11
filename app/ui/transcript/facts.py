"""What is known about one token, in words and numbers. No Qt here.

Words are METRICS.md's: p is the target's probability, q the proposal's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.engine.types import Alternatives, DraftedToken, Draw, EmittedToken, Origin, Round, Verdict
from app.ui.draft_end import end_words
from app.ui.numbers import SPACE, significant
from app.ui.transcript.spans import Span

_SHOWN_ALTERNATIVES = 5
_MARKS = {" ": "·", "\n": "↵", "\t": "⇥", "\r": "␍"}


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the most probable tokens at a place."""

    token: str
    p: float
    chosen: bool


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """The contents of the card beside a token."""

    token: str
    fate: str
    rows: tuple[tuple[str, str], ...]
    verdict: tuple[str, ...]  # sentences without a full stop
    target: tuple[Alternative, ...] = ()
    draft: tuple[Alternative, ...] = ()

    def spoken(self) -> str:
        """All of it as one text, for screen readers."""
        rows = [f"{name}: {value}" for name, value in self.rows]
        return ". ".join([f"{self.token}, {self.fate}", *rows, *self.verdict])


def visible(piece: bytes, label: str = "") -> str:
    """A token with its spaces and newlines made visible; bytes that are no text in hexadecimal."""
    if label:
        return label
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return " ".join(f"<{byte:02X}>" for byte in piece)
    return "".join(_MARKS.get(character, character) for character in text) or "(no text)"


def facts_of(one: Round, span: Span) -> TokenFacts:
    """The facts of the token that a span shows."""
    if span.struck:
        return _struck(one, span.place)
    return _emitted(one, span.place)


def _struck(one: Round, place: int) -> TokenFacts:
    token = one.drafted[place]
    rows = [_place(one, place), *_proposal_rows(one, token)]
    name = visible(token.piece, token.label)
    if token.verdict is Verdict.IGNORED:
        if token.p is not None:
            rows.append(("p (target)", significant(token.p)))
        verdict = list(_ignored(one, place))
    else:
        rows.append(("p (target)", significant(token.p)))
        verdict = [_judgement(one, place)]
        if place < len(one.emitted):
            instead = one.emitted[place]
            shown = visible(instead.piece, instead.label)
            rows.insert(1, ("Emitted instead", shown))
            rows.append((f"p (target) of {shown}", significant(instead.p)))
    return TokenFacts(
        name, token.verdict.value, tuple(rows), tuple(verdict), *_alternatives(one, place, token.id)
    )


def _emitted(one: Round, place: int) -> TokenFacts:
    token = one.emitted[place]
    name = visible(token.piece, token.label)
    rows: list[tuple[str, str]] = [_place(one, place)]
    verdict: list[str] = []
    draft = one.drafted[place] if place < len(one.drafted) else None
    if token.origin is Origin.ACCEPTED and draft is not None:
        rows += [*_proposal_rows(one, draft), ("p (target)", significant(token.p))]
        verdict.append(_judgement(one, place))
    elif token.origin is Origin.RESAMPLED and draft is not None:
        said = visible(draft.piece, draft.label)
        rows += [("Draft said", said), *_proposal_rows(one, draft)]
        rows.append((f"p (target) of {said}", significant(draft.p)))
        rows.append((f"p (target) of {name}", significant(token.p)))
        verdict += [_judgement(one, place), *_resampling(token, draft)]
    else:
        rows.append(("p (target)", significant(token.p)))
        verdict.append(_nothing_rejected(one, token))
        verdict.append(_drawn(token.draw, "p") if token.draw else f"target's argmax: {name}")
    return TokenFacts(
        name, token.origin.value, tuple(rows), tuple(verdict), *_alternatives(one, place, token.id)
    )


def _place(one: Round, place: int) -> tuple[str, str]:
    drafted = len(one.drafted)
    if not drafted:
        return "Round", f"{one.index}"
    where = f"{place + 1} of {drafted}" if place < drafted else f"behind {drafted} of {drafted}"
    return "Round · place", f"{one.index} · {where}"


def _proposal_rows(one: Round, token: DraftedToken) -> Iterator[tuple[str, str]]:
    """Where the proposal came from and how probable it was there."""
    if one.match is not None:
        yield f"Copied ({one.strategy or 'draft'})", f"from token {one.match:,}"
    value = "1" if token.q == 1 and token.draft_draw is None else significant(token.q)
    if token.draft_draw is None and token.draft_p is not None:
        value += f" · argmax {_short(token.draft_p)}"
    yield "q (draft)", value
    if token.draft_draw is not None:
        draw = token.draft_draw
        yield "u of the draft", f"{significant(draw.u)} in {_interval(draw)}"


def _judgement(one: Round, place: int) -> str:
    """Why a judged draft token passed or not."""
    token = one.drafted[place]
    passed = token.verdict is Verdict.ACCEPTED
    word = "accepted" if passed else "rejected"
    if any(other.h is not None for other in one.drafted):
        return _block_judgement(one, place)
    if token.u is not None and token.p is not None:
        u, q, p = _tell_apart(token.u, token.q, token.p)
        sign = "<" if passed else "≥"
        return f"u·q {sign} p: {u} × {q} {sign} {p}, {word}"
    if token.target_id is not None:
        own = token
        name = visible(own.piece, own.label)
        if not passed:
            emitted = one.emitted[place] if place < len(one.emitted) else None
            name = visible(emitted.piece, emitted.label) if emitted else "another token"
        if token.draw is not None:
            return f"target drew {name}: u {significant(token.draw.u)} in {_interval(token.draw)}"
        return f"target's argmax: {name}"
    return word


def _block_judgement(one: Round, place: int) -> str:
    """Why a token of a draft judged as a whole passed or not: by its own draw or by a later one's."""
    for later, token in enumerate(one.drafted[place:], place):
        if token.u is None or token.h is None:
            continue
        passed = token.u < token.h
        u, _, h = _tell_apart(token.u, 1.0, token.h)
        sign = "<" if passed else "≥"
        held = f"block acceptance h = {h}, u = {u}: u {sign} h".replace(" = ", f"{SPACE}={SPACE}")
        if later > place:
            return f"accepted with the block, which passes at {visible(token.piece, token.label)}: {held}"
        if passed:
            return f"{held}, accepted up to here"
        return f"{held}, rejected" if token.verdict is Verdict.REJECTED else f"{held}, does not pass"
    return one.drafted[place].verdict.value


def _resampling(token: EmittedToken, draft: DraftedToken) -> Iterator[str]:
    """How the token in place of the rejected one was found, where the judgement does not say it."""
    if token.draw is not None and draft.draw is None:
        yield _drawn(token.draw, "the residual")


def _drawn(draw: Draw, source: str) -> str:
    return f"drawn from {source}: u {significant(draw.u)} in {_interval(draw)}"


def _nothing_rejected(one: Round, token: EmittedToken) -> str:
    drafted = len(one.drafted)
    if token.origin is Origin.BONUS:
        how_many = {1: "the draft was", 2: "both drafts were"}.get(drafted, f"all {drafted} drafts were")
        return f"{how_many} accepted"
    if one.draft_end:
        return f"no draft in this round: {end_words(one.draft_end)}"
    return "no draft in this round"


def _ignored(one: Round, place: int) -> Iterator[str]:
    rejected = [token for token in one.drafted if token.verdict is Verdict.REJECTED]
    if rejected:
        where = f"behind {visible(rejected[0].piece, rejected[0].label)}, which was rejected"
    else:
        where = "behind the end of the answer"
    if one.drafted[place].p is None:
        yield f"never judged: {where}"
    else:
        yield _block_judgement(one, place)
        yield where


def _alternatives(
    one: Round, place: int, chosen: int
) -> tuple[tuple[Alternative, ...], tuple[Alternative, ...]]:
    return (
        _top(one.target_top[place], chosen) if place < len(one.target_top) else (),
        _top(one.draft_top[place], chosen) if place < len(one.draft_top) else (),
    )


def _top(top: Alternatives, chosen: int) -> tuple[Alternative, ...]:
    rows = zip(top.ids, top.pieces, top.p, strict=True)
    made = [Alternative(visible(piece), p, id == chosen) for id, piece, p in rows]
    return tuple(made[:_SHOWN_ALTERNATIVES])


def _interval(draw: Draw) -> str:
    return f"[{significant(draw.low)}, {significant(draw.high)})"


def _tell_apart(u: float, q: float, p: float) -> tuple[str, str, str]:
    """The numbers with as many digits as it takes to see how u q and p compare, two at least."""
    digits = 2
    while digits < 15 and f"{u * q:.{digits}g}" == f"{p:.{digits}g}":
        digits += 1
    return f"{u:.{digits}g}", f"{q:.{digits}g}", f"{p:.{digits}g}"


def _short(p: float) -> str:
    """Two digits without the leading zero: .61."""
    return f"{p:.2f}".removeprefix("0")
