"""A round as lines of a table: its draft, and the token that ended it. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from app.base.numbers import ordinal
from app.engine.fates import JUDGED, UNTOLD_DRAFT, Origin, Verdict
from app.engine.rules.formula import LOG_P, LOG_SHARE, signed
from app.engine.strategy import SERVER
from app.engine.types import UNTOLD, DraftedToken, Draw, EmittedToken, Race, Round
from app.ui.widgets.words import duration, end_words, probability

_MARKS = {" ": "·", "\n": "↵", "\t": "→", "\r": "␍"}


@dataclass(frozen=True, slots=True)
class RoundRow:
    """One token; `fate` is its verdict or its origin."""

    token: str
    draft_p: float | None
    q: float | None
    p: float | None
    fate: str
    details: str
    word: str = ""  # the shown name of the fate, where it differs


def token_text(piece: bytes, label: str = "") -> str:
    """A token in one visible line: spaces as dots, line breaks as arrows, a control token's name."""
    if label or not piece:
        return label
    text = piece.decode("utf-8", errors="backslashreplace")
    text = "".join(_MARKS.get(char, char) for char in text)
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def round_rows(round: Round) -> tuple[RoundRow, ...]:
    """Drafted tokens in order, then the token that the target itself gave."""
    rows = [_drafted_row(token) for token in round.drafted]
    own = [token for token in round.emitted if token.origin is not Origin.ACCEPTED]
    rows += [_emitted_row(token, round.fate_word(token)) for token in own]
    return tuple(rows)


def has_q(round: Round) -> bool:
    """Whether a draft token was sampled. Otherwise every q is 1 and means nothing."""
    return any(token.q != 1 for token in round.drafted)


def times_text(round: Round) -> str:
    """The times of a round in a few words. A server does not report them for each part."""
    if not round.verify_seconds:
        return duration(round.seconds)
    parts = [f"verify {duration(round.verify_seconds)}"]
    if round.drafted or round.draft_end:
        parts.insert(0, f"draft {duration(round.draft_seconds)}")
    return " · ".join(parts)


def times_details(round: Round) -> str:
    """All times of a round that are known, one per line."""
    parts = (
        ("draft", round.draft_seconds),
        ("verify, the target's pass", round.verify_seconds),
        ("sample and judge", round.sample_seconds),
    )
    known = parts if round.verify_seconds else ()
    rows = (("whole round", round.seconds), *known, ("from the start of the first round", round.offset))
    return "\n".join(f"{name}: {duration(value)}" for name, value in rows)


def draft_text(round: Round) -> str:
    """The strategy that drafted, and the reason why the draft ended."""
    if round.untold:
        return UNTOLD_DRAFT
    if not round.drafted:
        return f"No draft: {end_words(round.draft_end)}." if round.draft_end else "No draft in this round."
    words = "The server's own draft" if round.strategy == SERVER else round.strategy or "Drafted"
    if round.match is not None:
        words += f", copied from token {ordinal(round.match)}"
    return f"{words} · end: {end_words(round.draft_end)}" if round.draft_end else f"{words}."


def _drafted_row(token: DraftedToken) -> RoundRow:
    lines = ["token unknown" if token.id == UNTOLD else f"token {token.id:,}"]
    if token.draft_p is not None:
        lines.append(f"draft_p {probability(token.draft_p)}")
    one_hot = ", chosen without sampling" if token.q == 1 else ""
    lines.append(f"q {probability(token.q)}{one_hot}")
    if token.p is not None:
        lines.append(f"p {probability(token.p)}")
    if token.h is not None and token.u is not None:
        passed = token.u < token.h
        lines.append(f"block acceptance h {probability(token.h)}")
        lines.append(f"u {probability(token.u)}: u {'<' if passed else '≥'} h")
    elif token.u is not None and token.p is not None:
        sign = "<" if token.verdict is Verdict.ACCEPTED else "≥"
        lines.append(f"u {probability(token.u)}: u × q {sign} p")
    if token.drawn is not None:
        lines += _drawn("p", token.drawn)
    if token.target_id is not None:
        if token.target_id == token.id:
            lines.append("the target chose the same token")
        else:
            lines.append(f"the target chose token {token.target_id:,}")
    if token.verdict not in JUDGED and token.p is None:
        lines.append("never judged")
    text = token_text(token.piece, token.label)
    details = "\n".join([f"{text}   {token.verdict}", *lines])
    return RoundRow(text, token.draft_p, token.q, token.p, token.verdict.value, details)


def _emitted_row(token: EmittedToken, word: str) -> RoundRow:
    lines = [f"token {token.id:,}", f"p {probability(token.p)}"]
    if token.drawn is not None:
        lines += _drawn("the residual" if token.origin is Origin.RESAMPLED else "p", token.drawn)
    text = token_text(token.piece, token.label)
    details = "\n".join([f"{text}   {word}", *lines])
    return RoundRow(text, None, None, token.p, token.origin.value, details, word)


def _drawn(under: str, draw: Race | Draw) -> tuple[str, ...]:
    if isinstance(draw, Draw):
        between = f"{probability(draw.low)} and {probability(draw.high)}"
        return f"drawn from {under} with u {probability(draw.u)}", f"u fell between {between}"
    won = f"drawn from {under}: {LOG_P if under == 'p' else LOG_SHARE} {signed(draw.score)}"
    return (
        (won,)
        if draw.rival is None
        else (won, f"{draw.gap:.2g} more than {token_text(draw.piece, draw.label)}")
    )


def cells(row: RoundRow) -> tuple[str, str, str, str, str, str]:
    """The texts of the columns draft, draft_p, q, p, bar, verdict."""
    draft_p, q, p = map(probability, (row.draft_p, row.q, row.p))
    return row.token, draft_p, q, p, "", row.word or row.fate
