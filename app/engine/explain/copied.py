"""Where the tokens of a draft that was copied stand in the conversation, as far as the trace determines it.

A trace holds the text of the prompt, but not where its tokens begin. A copy from the answer is known to the
token; one from the prompt is looked for by its text and by what stands before it, which may fit several
places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from app.engine.types import DraftedToken, EmittedToken, Round, TraceHeader

_BEFORE, _MATCHED, _AFTER = 32, 48, 24  # bytes of the excerpt
_MOST = 1000  # places that are counted


@dataclass(frozen=True, slots=True)
class Copied:
    """A copied draft and its surroundings in the prompt or the answer, in reading order."""

    before: str
    matched: str  # what also stands right before the draft
    copied: str
    after: str
    in_prompt: bool
    places: int  # that fit; the last of them is shown. 0: none was found, and the texts are empty
    round: int | None = None  # index of the round that emitted the first copied token


def is_copied(round: Round) -> bool:
    """Whether the draft of a round was copied from text: neither a model's choice nor drawn."""
    return bool(round.drafted) and round.drafted[0].draft_p is None and round.drafted[0].draft_draw is None


def copied_from(before: Sequence[Round], round: Round, header: TraceHeader) -> Copied | None:
    """Where the draft of a round was copied from; `before` are the answer's rounds before it. None where it
    was not copied."""
    if not is_copied(round):
        return None
    tokens = [token for earlier in before for token in earlier.emitted]
    pieces = [_text(token) for token in tokens]
    prompt = header.prompt.encode()
    whole = prompt + b"".join(pieces)
    copied = b"".join(map(_text, round.drafted))
    unknown = round.position - len(
        tokens
    )  # tokens of an answer that was continued, whose rounds are not here
    at = round.match - header.prompt_tokens if round.match is not None else None
    if at is not None and at >= 0:
        at -= unknown
        same = [token.id for token in tokens[max(at, 0) : at + len(round.drafted)]]
        if at < 0 or not same or same != [token.id for token in round.drafted[: len(same)]]:
            return _nowhere(in_prompt=False)
        *_, offset = accumulate(map(len, pieces[:at]), initial=len(prompt))
        return _excerpt(whole, offset, copied, 1, _round_of(before, at))
    end = len(prompt) if at is not None else len(whole)  # a recorded place lies in the prompt
    found = [offset for offset in _places(whole, copied, end) if _same_before(whole, offset)]
    if not found:
        return _nowhere(in_prompt=at is not None)
    return _excerpt(whole, found[-1], copied, len(found), None, in_prompt=found[-1] < len(prompt))


def _nowhere(in_prompt: bool) -> Copied:
    return Copied("", "", "", "", in_prompt, 0)


def _places(whole: bytes, wanted: bytes, end: int) -> Iterator[int]:
    """Where `wanted` begins before `end`, at most 1,000 times."""
    offset = whole.find(wanted) if wanted else -1
    for _ in range(_MOST):
        if not 0 <= offset < end:
            return
        yield offset
        offset = whole.find(wanted, offset + 1)


def _same_before(whole: bytes, offset: int) -> int:
    """How many bytes before a place are those before the draft, at most what an excerpt shows."""
    same = 0
    while same < min(_MATCHED, offset) and whole[offset - same - 1] == whole[len(whole) - same - 1]:
        same += 1
    return same


def _excerpt(
    whole: bytes, offset: int, copied: bytes, places: int, round: int | None, *, in_prompt: bool = False
) -> Copied:
    matched = offset - _same_before(whole, offset)
    while matched < offset and whole[matched] & 0xC0 == 0x80:  # inside a character
        matched += 1
    end = offset + len(copied)
    parts = (
        whole[max(matched - _BEFORE, 0) : matched],
        whole[matched:offset],
        copied,
        whole[end : end + _AFTER],
    )
    around, same, taken, after = (part.decode(errors="ignore") for part in parts)
    return Copied(around, same, taken, after, in_prompt, places, round)


def _round_of(rounds: Sequence[Round], position: int) -> int | None:
    """The round that emitted a token of the answer."""
    emitted = 0
    for round in rounds:
        emitted += len(round.emitted)
        if position < emitted:
            return round.index
    return None


def _text(token: DraftedToken | EmittedToken) -> bytes:
    return token.piece or token.label.encode()
