"""Lines of arithmetic. Numbers have three digits, and more if a sum or a comparison needs them. Spaces in
tokens are visible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, log

from app.base.numbers import NONE, significant
from app.engine.types import Draw, Race

_MARKS = {" ": "·", "\n": "↵", "\t": "⇥", "\r": "␍"}
_MOST = 12  # figures
_ROUNDING = 6e-8  # of single precision, below 1

Named = Callable[[int], str]
"""Token id -> its text at the tested place."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A line of arithmetic."""

    name: str
    text: str
    verdict: str = ""  # what it decides


def visible(piece: bytes, label: str = "") -> str:
    """A token with visible spaces and newlines; bytes that are not text in hexadecimal."""
    if label:
        return label
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return " ".join(f"<{byte:02X}>" for byte in piece)
    return "".join(_MARKS.get(character, character) for character in text) or "(no text)"


def written(value: float | None, figures: int = 3) -> str:
    """A number in text. Only 0 reads as 0, and only 1 (apart from rounding) as 1."""
    if value is None or not isfinite(value):
        return NONE
    if value == 0 or abs(value - 1) < _ROUNDING:
        return f"{value:.0f}"
    while float(text := significant(value, figures).replace(",", "")) == 1:
        figures += 1
    return text


def add_up(values: tuple[float, ...], formula: Callable[..., float]) -> tuple[tuple[str, ...], str]:
    """The numbers of a sum and its result, with enough digits for the written sum to be correct.

    Numbers of a trace that give no result are written too.
    """
    result = written(_result(values, formula))
    for figures in range(3, _MOST):
        texts = tuple(written(value, figures) for value in values)
        if NONE in (result, *texts) or written(_result(tuple(map(float, texts)), formula)) == result:
            break
    return texts, result


def _result(values: tuple[float, ...], formula: Callable[..., float]) -> float | None:
    try:
        return formula(*values)
    except (ZeroDivisionError, OverflowError):
        return None


def apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers with enough digits to show which is smaller."""
    for figures in range(3, _MOST):
        texts = written(first, figures), written(second, figures)
        if NONE in texts:
            break
        told = float(texts[0]), float(texts[1])
        if first == second or (told[0] != told[1] and (told[0] < told[1]) == (first < second)):
            break
    return texts


def compared(first: float, second: float) -> str:
    """ "0.443 < 1", "0.424 ≥ 0.103"."""
    left, right = apart(first, second)
    return f"{left} {'<' if first < second else '≥'} {right}"


def drawn(draw: Draw) -> str:
    """A draw before format 1.10 and its interval: "0.654 in [0, 0.805)"."""
    for figures in range(3, _MOST):
        u, low, high = (written(value, figures) for value in (draw.u, draw.low, draw.high))
        if NONE in (u, low, high):
            break
        if (float(low) < float(u) or draw.low == draw.u) and float(u) < float(high):
            break
    return f"{u} in [{low}, {high})"


def signed(value: float) -> str:
    """A score with its sign: "−0.312"."""
    return written(value).replace("-", "−")


LOG_P, LOG_Q, LOG_SHARE = "log p + luck", "log q + luck", "log share + luck"
"""The score of a token drawn from p, from q, or from the residual by its share."""


def draw_sums(draw: Race | Draw, share: float | None = None) -> tuple[Sum, ...]:
    """By how much a token won its race or, before format 1.10, the interval of its draw. `share` is the
    token's share of the residual, None if it was drawn from p."""
    if isinstance(draw, Draw):
        return (Sum("v", drawn(draw)),)
    score = Sum(LOG_P, signed(draw.score))
    if share:
        (known, luck), total = add_up((log(share), draw.score - log(share)), lambda known, luck: known + luck)
        score = Sum(LOG_SHARE, f"{known} + {luck} = {total}".replace("+ -", "− ").replace("-", "−"))
    if draw.rival is None:
        return (score,)
    return score, Sum(f"ahead of “{visible(draw.piece, draw.label)}” by", written(draw.gap))


def equal_sum(drafted: str, own: str, passed: bool) -> Sum:
    """The deciding line if the drafted token is compared with the target's own."""
    return Sum("drafted", f"{drafted} {'=' if passed else '≠'} {own}", "accepted" if passed else "rejected")
