"""Where the tokens of a copied draft come from in the conversation, as far as the trace determines it.

A trace contains the text of the prompt, but not where its tokens begin. The source of a copy is known to the
token if it is in the answer. In the prompt it is found by its text and the text before it, which may fit
several places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.engine.types import DraftedToken, EmittedToken, Round, TraceHeader

_BEFORE, _MATCHED, _AFTER = 32, 48, 24  # bytes of the excerpt
_MOST = 1000  # places that are counted

Source = tuple[int, int]
"""A token of the answer: the index of its round, and its place among the round's emitted tokens."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A copied draft and its surroundings in the prompt or the answer, in reading order."""

    before: str
    matched: str  # what also stands right before the draft
    copied: str
    after: str
    in_prompt: bool
    places: int  # that fit; the last of them is shown. 0: none was found, and the texts are empty
    source: Source | None = None  # the first copied token, in the answer


def is_copied(round: Round) -> bool:
    """Whether a round's draft was copied from text: not a model's choice, not drawn, and not a server's,
    which is unknown."""
    if not round.drafted or round.drafted[0].q is None:
        return False
    return round.drafted[0].draft_p is None and round.drafted[0].draft_drawn is None


class ContextText:
    """The text of a prompt and of the answer to it, and where the tokens of the answer begin.

    It is read once and grows with the rounds, so each round costs only what it adds.
    """

    def __init__(self, header: TraceHeader) -> None:
        self._prompt_tokens = header.prompt_tokens
        self._prompt = len(header.prompt.encode())
        self._text = bytearray(header.prompt.encode())
        self._rounds = 0
        self._first = 0  # position of the first known token: an answer that was continued has others before
        self._tokens: list[
            tuple[int, int, tuple[int, int]]
        ] = []  # id, where its text begins, round and place

    def read(self, rounds: Sequence[Round]) -> None:
        """Read the new rounds; `rounds` are all of the answer so far, in order."""
        for index in range(self._rounds, len(rounds)):
            round = rounds[index]
            if not self._tokens:
                self._first = round.position
            for place, token in enumerate(round.emitted):
                self._tokens.append((token.id, len(self._text), (round.index, place)))
                self._text += _piece(token)
        self._rounds = len(rounds)

    def copied(self, round: Round) -> Copied | None:
        """Where the draft of a round that was read was copied from; None if it was not copied."""
        if not is_copied(round):
            return None
        here = round.position - self._first
        end = self._tokens[here][1] if here < len(self._tokens) else len(self._text)
        wanted = b"".join(map(_piece, round.drafted))
        at = round.match - self._prompt_tokens if round.match is not None else None
        if at is not None and at >= 0:
            return self._from_answer(round, at - self._first, here, end, wanted)
        last = self._prompt if at is not None else end  # a recorded place lies in the prompt
        found = [offset for offset in self._places(wanted, last, end) if self._same_before(offset, end)]
        if not found:
            return _nowhere(in_prompt=at is not None)
        return self._excerpt(found[-1], end, wanted, len(found), None)

    def _from_answer(self, round: Round, at: int, here: int, end: int, wanted: bytes) -> Copied:
        source = self._tokens[max(at, 0) : min(at + len(round.drafted), here)]
        ids = [id for id, _, _ in source]
        if at < 0 or not ids or ids != [token.id for token in round.drafted[: len(ids)]]:
            return _nowhere(in_prompt=False)
        _, offset, first = source[0]
        return self._excerpt(offset, end, wanted, 1, first)

    def _places(self, wanted: bytes, last: int, end: int) -> Iterator[int]:
        """Where `wanted` begins before `last` and ends before `end`, at most 1,000 times."""
        offset = self._text.find(wanted, 0, end) if wanted else -1
        for _ in range(_MOST):
            if not 0 <= offset < last:
                return
            yield offset
            offset = self._text.find(wanted, offset + 1, end)

    def _same_before(self, offset: int, end: int) -> int:
        """How many bytes before a place equal those before the draft, at most an excerpt's length."""
        text, same = self._text, 0
        while same < min(_MATCHED, offset) and text[offset - same - 1] == text[end - same - 1]:
            same += 1
        return same

    def _excerpt(self, offset: int, end: int, wanted: bytes, places: int, source: Source | None) -> Copied:
        text, matched = self._text, offset - self._same_before(offset, end)
        while matched < offset and text[matched] & 0xC0 == 0x80:  # inside a character
            matched += 1
        behind = offset + len(wanted)
        parts = (
            text[max(matched - _BEFORE, 0) : matched],
            text[matched:offset],
            wanted,
            text[behind : min(behind + _AFTER, end)],
        )
        before, same, copied, after = (part.decode(errors="ignore") for part in parts)
        return Copied(before, same, copied, after, offset < self._prompt, places, source)


def _nowhere(in_prompt: bool) -> Copied:
    return Copied("", "", "", "", in_prompt, 0)


def _piece(token: DraftedToken | EmittedToken) -> bytes:
    return token.piece or token.label.encode()
