"""Rounds as coloured pieces of text, a span per token. No Qt here.

Within a round, the order is the order of events. Accepted drafts come first, then the rejected and ignored
ones in place, then the target's own token (resampled, bonus or plain)."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from app.engine.fates import STRUCK, Origin, Verdict
from app.engine.loop.text import safe_length
from app.engine.record.trace import Trace
from app.engine.types import Round
from app.saved.chats.conversation import Question

if TYPE_CHECKING:
    from app.ui.state.answer import AnswerModel

UNKNOWN = ""
"""Instead of a fate, for text whose tokens are unknown."""

_INVALID = "\ufffd"
_WORDS: dict[str, str] = {fate: fate.value for fate in (*Origin, *Verdict)}
"""The fates as plain strings, because Python 3.11 is slow to look up an enum's member or value."""
_ACCEPTED = _WORDS["accepted"]
NEWLINE_MARK = "↵"


class Span(msgspec.Struct, frozen=True, gc=False):
    """The text of a token, or the part of it that is in a paragraph.

    `place` is an index into the round's drafted tokens if the span is struck, else into its emitted ones.
    `control` marks a control token: its text is its name, shown but no part of the answer.
    """

    text: str
    fate: str
    round: int
    place: int
    control: bool = False

    @property
    def struck(self) -> bool:
        """Whether the token was drafted but not emitted."""
        return self.fate in STRUCK

    @property
    def counts(self) -> bool:
        """Whether the span is part of the answer's text."""
        return not (self.control or self.fate in STRUCK)

    def same_token(self, span: Span) -> bool:
        return self.round == span.round and self.place == span.place and self.struck == span.struck


class PieceDecoder:
    """Decodes the bytes of tokens as they come; a character may be divided between tokens."""

    __slots__ = ("pending",)

    def __init__(self, pending: bytes = b"") -> None:
        self.pending = pending  # the beginning of a character

    def decode(self, piece: bytes, final: bool = False) -> str:
        """The characters that are complete now. Invalid bytes, and a cut character if `final`, are U+FFFD."""
        if not self.pending and piece.isascii():  # nearly every token
            return str(piece, "ascii")
        piece = self.pending + piece
        text, used = codecs.utf_8_decode(piece, "replace", final)
        self.pending = piece[used:]
        return text


class BuilderState(NamedTuple):
    """A mark: the state from which a builder of spans continues."""

    pending: bytes
    held: tuple[Span, ...]
    last: tuple[str, int, int] | None


class SpanBuilder:
    """Makes spans while rounds arrive; the cost of a round does not depend on those before.

    Text that may begin a stop string is held back until that is known.
    """

    def __init__(self, stop: Iterable[str] = ()) -> None:
        self._stop = tuple(text for text in stop if text)
        self._decoder = PieceDecoder()
        self._held: list[Span] = []
        self._last: tuple[str, int, int] | None = None  # fate, round, place of the last emitted token

    def add(self, round: Round) -> list[Span]:
        """Add a round; returns the spans that are now final, including those that were withheld before."""
        drafted, index = round.drafted, round.index
        accepted = round.accepted if drafted else 0
        decode, hold = self._decoder.decode, self._held.append
        for place, token in enumerate(round.emitted):
            if place == accepted < len(drafted):
                self._held += self._struck(round)
            fate = _ACCEPTED if place < accepted else _WORDS[token.origin]
            text = decode(token.piece)
            if text:
                hold(Span(text, fate, index, place))
            if token.label:
                hold(Span(token.label, fate, index, place, control=True))
            self._last = fate, index, place
        if len(round.emitted) <= accepted < len(drafted):
            self._held += self._struck(round)
        return self._release()

    @property
    def state(self) -> BuilderState:
        """The state to continue from."""
        return BuilderState(self._decoder.pending, tuple(self._held), self._last)

    def go_on_from(self, state: BuilderState) -> None:
        """Go back to a mark."""
        self._decoder.pending = state.pending
        self._held, self._last = list(state.held), state.last

    def finish(self) -> list[Span]:
        """The spans that are still withheld; incomplete characters become U+FFFD."""
        rest = self._decoder.decode(b"", final=True)
        if rest and self._last is not None:
            self._held.append(Span(rest, *self._last))
        held, self._held = self._held, []
        return held

    def _struck(self, round: Round) -> Iterable[Span]:
        """The rejected and ignored drafts. They continue the bytes emitted so far on a separate decoder, so
        that the answer's decoder is not changed."""
        decoder = PieceDecoder(self._decoder.pending)
        for place, token in enumerate(round.drafted):
            fate = _WORDS[token.verdict]
            if fate is _ACCEPTED:
                continue
            text = decoder.decode(token.piece, final=token is round.drafted[-1])
            shown = text.replace("\n", NEWLINE_MARK) + token.label
            if shown:
                yield Span(shown, fate, round.index, place, bool(token.label))

    def _release(self) -> list[Span]:
        if not self._stop:
            held, self._held = self._held, []
            return held
        safe = safe_length("".join(span.text for span in self._held if span.counts), self._stop)
        end = 0
        for index, span in enumerate(self._held):
            end += len(span.text) if span.counts else 0
            if end > safe:
                released, self._held = self._held[:index], self._held[index:]
                return released
        held, self._held = self._held, []
        return held


def spans_of(trace: Trace, cursor: int | None = None) -> list[Span]:
    """The spans of a trace's first `cursor` rounds (all: None).

    With all rounds and totals present, the text of the spans that count is exactly `totals.text`.
    """
    builder = SpanBuilder(trace.header.stop)
    spans: list[Span] = []
    whole = cursor is None or cursor >= len(trace.rounds)
    for round in trace.rounds if whole else trace.rounds[:cursor]:
        spans += builder.add(round)
    if whole and trace.totals is not None:
        spans = coloured(spans + builder.finish(), trace.totals.text)
    return spans


def text_of(spans: Iterable[Span]) -> str:
    """The answer's text: never a rejected or ignored token, never a control token's name."""
    return "".join(span.text for span in spans if span.counts)


def coloured(spans: Iterable[Span], text: str) -> list[Span]:
    """Spans whose text is exactly `text`, cut where it ends (at a stop string). They are coloured as far as
    the given spans agree with it; the rest has no fate."""
    kept: list[Span] = []
    position = 0
    for span in spans:
        if not span.counts:
            kept.append(span)
            continue
        taken = _same(span.text, text, position) if position < len(text) else None
        if taken is None:
            break
        position += len(taken)
        if taken:
            kept.append(span if taken == span.text else msgspec.structs.replace(span, text=taken))
        if len(taken) < len(span.text) and position == len(text):
            break  # it ends within this token
    if position < len(text):
        behind = kept[-1].round + 1 if kept else 0
        kept.append(Span(text[position:], UNKNOWN, behind, 0))
    return kept


def _same(wanted: str, text: str, position: int) -> str | None:
    """The part of a token's text that `text` has from `position` on; None if its text differs."""
    for own in (wanted, wanted.replace(_INVALID, "")):  # bytes that are no text may have been left out
        if text.startswith(own, position):
            return own
    rest = text[position:]
    return rest if wanted.startswith(rest) else None  # the text ends within this token, at a stop string


class SpanList(list[Span]):
    """The spans as they are shown, in the order of their rounds. `drafts` asks for struck drafts too."""

    def of_round(self, index: int, drafts: bool) -> list[Span]:
        """The spans of a round; empty if it shows no token."""
        spans = takewhile(lambda span: span.round == index, self._since(index))
        shown = [span for span in spans if drafts or not span.struck]
        return shown if any(span.fate for span in shown) else []

    def first_of_round(self, index: int, drafts: bool) -> Span | None:
        """The first token that a round shows."""
        return next((span for span in self.of_round(index, drafts) if span.fate), None)

    def emitted_from(self, index: int, place: int, count: int) -> list[Span]:
        """The spans of at most `count` emitted tokens, from a place of a round on."""
        found: list[Span] = []
        tokens: set[tuple[int, int]] = set()
        for span in self._since(index):
            if span.struck or not span.fate or (span.round, span.place) < (index, place):
                continue
            tokens.add((span.round, span.place))
            if len(tokens) > count:
                break
            found.append(span)
        return found

    def step(self, span: Span | None, by: int, drafts: bool) -> Span | None:
        """The token `by` places further; None beyond the ends. Without a token to begin at, the first or the
        last one."""
        tokens = [span for span in self if span.fate and (drafts or not span.struck)]
        if span is None:
            return tokens[0 if by > 0 else -1] if tokens else None
        for place, token in enumerate(tokens):
            if token.same_token(span):
                wanted = place + by
                while 0 <= wanted < len(tokens) and tokens[wanted].same_token(span):
                    wanted += by
                return tokens[wanted] if 0 <= wanted < len(tokens) else None
        return None

    def _since(self, index: int) -> Iterator[Span]:
        """The spans from a round on."""
        start = bisect_left(self, index, key=lambda span: span.round)
        return (self[at] for at in range(start, len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class SystemTurn:
    """The system prompt of the chat."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class UserTurn:
    """What the user wrote: a message, the text that a completion continues, or the texts around a gap."""

    text: str
    at: int | None = None  # its index in the chat; None if it belongs to no chat
    suffix: str | None = None  # the text after the gap; None if there is no gap
    answered: bool = False  # an answer follows: it shows the texts around the gap that it fills

    @property
    def question(self) -> Question:
        """The question, as a chat contains it."""
        return Question(self.text, self.suffix)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTurn:
    """What the model answered, or is about to answer."""

    answer: AnswerModel
    name: str  # name of the model
    at: int | None = None  # its index in the chat; None if it belongs to no chat
    text: str | None = None  # the text, where it is stored: the trace then only colours it
    goes_on_from: str = ""  # the text that it continues: a code fence may be open in it
    suffix: str | None = None  # the text after the gap that it fills: shown around it, all as code
    version: int = 0  # which of its versions it is
    versions: int = 1


Turn = SystemTurn | UserTurn | AnswerTurn
