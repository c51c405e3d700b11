"""The facts about a token, in words and numbers. No Qt here.

p is the target's probability, q the proposal's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from app.base.numbers import ordinal
from app.engine.explain.decision import TokenOdds, draft_heading, odds_of
from app.engine.fates import JUDGED, UNTOLD_DRAFT, Origin, Verdict
from app.engine.rules.formula import (
    LOG_P,
    LOG_Q,
    LOG_SHARE,
    add_up,
    apart,
    compared,
    drawn,
    signed,
    visible,
    written,
)
from app.engine.rules.registry import rule_of
from app.engine.types import DraftedToken, Draw, EmittedToken, FinishReason, Race, Round, TraceHeader
from app.ui.transcript.text.spans import Span
from app.ui.widgets.words import SPACE, end_words, percent, probability

_SHOWN_ALTERNATIVES = 5


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the most probable tokens at a position."""

    token: str
    p: float
    chosen: bool


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """The contents of the card beside a token."""

    token: str
    fate: str
    word: str  # the name of the fate
    rows: tuple[tuple[str, str], ...]
    verdict: tuple[str, ...]  # sentences: what happened, then the numbers behind it
    target: tuple[Alternative, ...] = ()
    draft: tuple[Alternative, ...] = ()
    draft_heading: str = ""  # what the draft's numbers are

    def spoken(self) -> str:
        """All facts as one text, for screen readers."""
        rows = [f"{name}: {value}." for name, value in self.rows]
        return " ".join([f"{self.token}, {self.word}.", *self.verdict[:1], *rows, *self.verdict[1:]])


def facts_of(round: Round, span: Span, header: TraceHeader) -> TokenFacts:
    """The facts of the token that a span shows."""
    made = _struck(round, span.place) if span.struck else _emitted(round, span.place)
    return replace(made, **_alternatives(round, span, header))


def _struck(round: Round, place: int) -> TokenFacts:
    token = round.drafted[place]
    rows = [_place(round, place), *_proposal_rows(round, token)]
    if token.verdict not in JUDGED:
        if token.p is not None:
            rows.append(("p (target)", probability(token.p)))
        verdict = list(_ignored(round, place))
    else:
        rows.append(("p (target)", probability(token.p)))
        verdict = list(_judgement(round, place))
        if place < len(round.emitted):
            instead = round.emitted[place]
            shown = visible(instead.piece, instead.label)
            rows.insert(1, ("Emitted instead", shown))
            rows.append((f"p (target) of {shown}", probability(instead.p)))
    return _facts(token, token.verdict.value, rows, verdict)


def _emitted(round: Round, place: int) -> TokenFacts:
    token = round.emitted[place]
    name = visible(token.piece, token.label)
    rows: list[tuple[str, str]] = [_place(round, place)]
    verdict: list[str] = []
    draft = round.drafted[place] if place < len(round.drafted) else None
    if token.origin is Origin.ACCEPTED and draft is not None:
        rows += [*_proposal_rows(round, draft), ("p (target)", probability(token.p))]
        verdict += _judgement(round, place)
    elif token.origin is Origin.RESAMPLED and draft is not None:
        said = visible(draft.piece, draft.label)
        rows += [("Draft proposed", said), *_proposal_rows(round, draft)]
        rows.append((f"p (target) of {said}", probability(draft.p)))
        rows.append((f"p (target) of {name}", probability(token.p)))
        verdict += _judgement(round, place)
        if token.drawn is not None and draft.drawn is None:  # otherwise the judgement says it
            verdict.append(f"Drawn from the residual: {_drawn(token.drawn, score=LOG_SHARE)}.")
    else:
        rows.append(("p (target)", probability(token.p)))
        verdict.append(_nothing_rejected(round, token))
        how = "drew" if token.drawn is not None else "wanted"
        verdict.append(f"The target {how} {_said(token)} {_chance(token.p)}.")
        if token.drawn is not None:
            verdict.append(f"Drawn from p: {_drawn(token.drawn)}.")
    return _facts(token, round.fate_word(token), rows, verdict)


def _facts(
    token: DraftedToken | EmittedToken, word: str, rows: list[tuple[str, str]], verdict: list[str]
) -> TokenFacts:
    fate = token.verdict if isinstance(token, DraftedToken) else token.origin
    return TokenFacts(visible(token.piece, token.label), fate.value, word, tuple(rows), tuple(verdict))


def _place(round: Round, place: int) -> tuple[str, str]:
    drafted = len(round.drafted)
    if not drafted:
        return "Round", ordinal(round.index)
    where = f"{ordinal(place)} of {drafted}" if place < drafted else f"after {drafted} of {drafted}"
    return "Round · place", f"{ordinal(round.index)} · {where}"


def _proposal_rows(round: Round, token: DraftedToken) -> Iterator[tuple[str, str]]:
    """The source of the proposal, and the proposal's probabilities."""
    if round.match is not None:
        yield f"Copied ({round.strategy or 'draft'})", f"from token {ordinal(round.match)}"
    if token.draft_drawn is None and token.draft_p is not None:
        yield "draft_p", probability(token.draft_p)
    yield "q (draft)", probability(token.q)
    if token.draft_drawn is not None:
        yield "The draft's draw", _drawn(token.draft_drawn, "", LOG_Q)


def _judgement(round: Round, place: int) -> Iterator[str]:
    """The verdict on a judged draft token in plain words, then its numbers."""
    token = round.drafted[place]
    if any(drafted.h is not None for drafted in round.drafted):
        yield _drafted(round, token)
        yield _block_judgement(round, place)
        return
    passed = token.verdict is Verdict.ACCEPTED
    word = "accepted" if passed else "rejected"
    instead = round.emitted[place] if not passed and place < len(round.emitted) else None
    if token.u is not None and token.p is not None and token.q is not None:
        yield f"{_drafted(round, token)} The target gave it {_percent(token.p)}: {word}."
        (p, q), ratio = add_up((token.p, token.q), lambda p, q: p / q)
        held = compared(token.u, min(1.0, token.p / token.q)) if token.q else ratio
        yield f"p / q = {p} / {q} = {ratio}. u: {held}."
        return
    how = "drew" if token.drawn is not None else "wanted"
    if passed:
        own = f"the same {_chance(token.p)}"
    else:
        own = f"{_said(instead)} {_chance(instead.p)}" if instead is not None else "a different token"
    yield f"{_drafted(round, token)} The target {how} {own}: {word}."
    if token.drawn is not None:
        yield f"The target's draw: {_drawn(token.drawn)}."
    elif instead is not None:
        yield "The target's own choice replaces it."


def _drafted(round: Round, token: DraftedToken) -> str:
    """Which strategy proposed a token, and with what probability."""
    if token.draft_p is None and token.draft_drawn is None:  # it was looked up, not predicted
        return f"{round.strategy or 'The draft'} proposed {_said(token)}."
    drew = token.draft_drawn is not None or token.draft_p is None
    return f"The draft proposed {_said(token)} {_chance(token.q if drew else token.draft_p)}."


def _said(token: DraftedToken | EmittedToken) -> str:
    """A token as written in a sentence: in quotes, since it may be a comma, and without its leading space."""
    name = visible(token.piece, token.label)
    return f"“{name.removeprefix('·') or name}”"


def _block_judgement(round: Round, place: int) -> str:
    """Why a token passed or not if the draft is judged as a whole: by its own draw or by a later
    token's."""
    for later, token in enumerate(round.drafted[place:], place):
        if token.u is None or token.h is None:
            continue
        passed = token.u < token.h
        u, h = apart(token.u, token.h)
        sign = "<" if passed else "≥"
        held = f"block acceptance h = {h}, u = {u}: u {sign} h".replace(" = ", f"{SPACE}={SPACE}")
        if later > place:
            return f"Accepted with the block up to {_quoted(token)}: {held}."
        held = held[0].upper() + held[1:]
        if passed:
            return f"{held}, accepted up to here."
        return (
            f"{held}, rejected." if token.verdict is Verdict.REJECTED else f"{held}, not accepted by itself."
        )
    return f"{round.drafted[place].verdict.value.capitalize()}."


def _nothing_rejected(round: Round, token: EmittedToken) -> str:
    drafted = len(round.drafted)
    if round.untold:
        return UNTOLD_DRAFT
    if token.origin is Origin.BONUS:
        how_many = {1: "The drafted token was", 2: "Both drafted tokens were"}
        return f"{how_many.get(drafted, f'All {drafted} drafted tokens were')} accepted."
    if round.draft_end:
        return f"No draft in this round: {end_words(round.draft_end)}."
    return "No draft in this round."


def _quoted(token: DraftedToken) -> str:
    """A token in a sentence; it may be a comma."""
    return f"“{visible(token.piece, token.label)}”"


def _ignored(round: Round, place: int) -> Iterator[str]:
    rejected = [token for token in round.drafted if token.verdict is Verdict.REJECTED]
    if rejected:
        where = f"after {_quoted(rejected[0])}, which was rejected"
    else:
        where = "after the end of the answer"
    if round.drafted[place].p is None:
        yield f"Not judged: it comes {where}."
    else:
        yield _block_judgement(round, place)
        yield f"It comes {where}."


def _alternatives(round: Round, span: Span, header: TraceHeader) -> dict[str, Any]:
    """The most probable tokens of both models, with the numbers that the Inspector shows."""
    tokens = round.drafted if span.struck else round.emitted
    chosen, heading = tokens[span.place].id, draft_heading(round, header)
    odds = odds_of(round, span.place, header)

    def top(value: Callable[[TokenOdds], float | None]) -> tuple[Alternative, ...]:
        known = [(value(each), each) for each in odds if value(each)]
        known.sort(key=lambda pair: -(pair[0] or 0.0))
        return tuple(
            Alternative(visible(each.piece, each.label), share or 0.0, each.id == chosen)
            for share, each in known[:_SHOWN_ALTERNATIVES]
        )

    target = top(lambda each: each.p) if span.place < len(round.target_top) else ()
    draft = top(lambda each: each.q if heading == "q" else each.draft_p)
    shown = draft if span.place < len(round.draft_top) else ()
    return {"target": target, "draft": shown, "draft_heading": heading}


def _drawn(draw: Race | Draw, name: str = "v ", score: str = LOG_P) -> str:
    """The lead with which a token won, with the name of its score. For a draw before format 1.10: the name of
    the draw, and where it fell."""
    if isinstance(draw, Draw):
        return f"{name}{drawn(draw)}"
    won = f"{score} {signed(draw.score)}"
    if draw.rival is None:
        return f"{won}; no other token could win"
    return f"{won}, “{visible(draw.piece, draw.label)}” {written(draw.gap)} behind"


def _chance(p: float | None) -> str:
    return f"({_percent(p)})"


def _percent(p: float | None) -> str:
    """A probability as written in a sentence. A value above 0 never reads as 0 %, nor a value below 1 as 100
    %."""
    if p is not None and 0 < p <= 0.005:
        return f"<1{SPACE}%"
    if p is not None and 0.995 <= p < 1:
        return f">99{SPACE}%"
    return percent(p)


CAPTIONS = {
    FinishReason.END: "",
    FinishReason.STOP: "Ended at a stop string",
    FinishReason.LENGTH: "Ended at the token limit",
    FinishReason.CONTEXT: "Ended because the context is full",
    FinishReason.CANCELLED: "Stopped",
    FinishReason.FAILED: "Interrupted",
}


def manner(header: TraceHeader) -> str:
    """How the answer was made, in a few words."""
    temperature = header.sampling.temperature
    if header.strategy == "none":
        words = "no draft"
    else:
        words = header.verification
    if rule_of(header.verification).draws and temperature:
        words += f"  ·  temperature {temperature:g}"
    return f"{words}  ·  warm" if header.warm else words
