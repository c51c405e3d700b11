"""Spans gathered into paragraphs: where lines break, and which of them are code. No Qt here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import copy
from enum import StrEnum
from typing import NamedTuple

import msgspec

from app.ui.transcript.text.spans import Span


def utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(_encoded(text)) // 2


def to_utf16(text: str, offset: int) -> int:
    """The UTF-16 offset of a character offset."""
    return utf16_length(text[:offset])


def from_utf16(text: str, units: int) -> int:
    """The character offset of a UTF-16 offset; the middle of a character counts as its start."""
    if text.isascii():
        return min(units, len(text))
    return len(_encoded(text)[: 2 * units].decode("utf-16-le", "ignore"))


def _encoded(text: str) -> bytes:
    # A codec is faster than a loop over characters: every line asks at every repaint.
    return text.encode("utf-16-le", "replace")


MAX_LENGTH = 200
"""A paragraph with more characters than this (including struck ones) is continued in a new paragraph. So
laying out and painting the last one stays cheap, however long a line grows."""

MOST_JOINED = 32
"""At most this many paragraphs share a line, because the start of each is known only once all before it are
laid out. The next one begins on a new line."""

_SLACK = 60

_OPENS = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)")


class Kind(StrEnum):
    """The kind of a paragraph, which decides its font and wrapping."""

    PROSE = "prose"
    CODE = "code"
    FENCE = "fence"  # the ``` line before and after code


class Paragraph:
    """A line of the text, or a part of a long one. Offsets count characters of `text`."""

    __slots__ = ("_text", "continued", "cut", "end", "kind", "shown", "spans")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.spans: list[Span] = []
        self.shown = 0  # characters, struck ones included
        self.end: Span | None = None  # the token whose newline ended it
        self.continued = False  # the next paragraph continues in the same line
        self.cut = False  # the next paragraph begins a new line, without a newline in the text
        self._text: str | None = ""

    @property
    def text(self) -> str:
        """The text, without struck drafts, control names and the final newline."""
        if self._text is None:
            self._text = "".join([span.text for span in self.spans if span.counts])
        return self._text

    def same_as(self, paragraph: Paragraph) -> bool:
        """Whether a paragraph looks the same."""
        mine = self.kind, self.continued, self.cut, self.end, self.spans
        return mine == (paragraph.kind, paragraph.continued, paragraph.cut, paragraph.end, paragraph.spans)

    def copied(self) -> Paragraph:
        """A paragraph that grows by itself."""
        made = copy(self)
        made.spans = list(self.spans)
        return made

    def add(self, span: Span) -> None:
        self.spans.append(span)
        self.shown += len(span.text)
        self._text = None


class ParagraphMark(NamedTuple):
    """A mark: how far paragraphs were built."""

    paragraphs: int
    last: Paragraph  # a copy
    fence: str
    joined: int


class ParagraphBuilder:
    """Builds paragraphs while spans arrive, and recognises code fences."""

    def __init__(self, all_code: bool = False, fence: str = "") -> None:
        """`all_code` sets every line as code, for plain completions without fences. `fence` is the
        line that opened the code in which the text begins."""
        self._all_code = all_code
        self._fence = fence  # the line that opened the current code; "" in prose
        self._joined = 1  # paragraphs that share lines with the last one, itself included
        self.paragraphs = [self._open()]

    def mark(self) -> ParagraphMark:
        """A mark at the current end."""
        return ParagraphMark(len(self.paragraphs), self.paragraphs[-1].copied(), self._fence, self._joined)

    def cut_back(self, mark: ParagraphMark) -> None:
        """Go back to a mark."""
        self.paragraphs[mark.paragraphs - 1 :] = [mark.last.copied()]
        self._fence, self._joined = mark.fence, mark.joined

    def add(self, spans: Iterable[Span]) -> int:
        """Append spans; returns the index of the first paragraph that changed."""
        first = len(self.paragraphs) - 1
        last = self.paragraphs[-1]
        for span in spans:
            if len(span.text) + last.shown < MAX_LENGTH and "\n" not in span.text:  # nearly every token
                last.add(span)
                continue
            if "\n" not in span.text or not span.counts:
                self._put(span)
                last = self.paragraphs[-1]
                continue
            head, *tail = span.text.split("\n")
            self._put_part(span, head)
            for part in tail:
                self._break(span)
                self._put_part(span, part)
            last = self.paragraphs[-1]
        self._classify()
        return first

    def _put_part(self, span: Span, part: str) -> None:
        if part:
            self._put(msgspec.structs.replace(span, text=part))

    def _put(self, span: Span) -> None:
        text, at = span.text, 0
        while len(text) - at > MAX_LENGTH and span.counts:  # a pasted message is a single span
            space = text.rfind(" ", at + 1, at + MAX_LENGTH)
            cut = space if space > 0 else at + MAX_LENGTH
            self._append(msgspec.structs.replace(span, text=text[at:cut]))
            at = cut
        self._append(msgspec.structs.replace(span, text=text[at:]) if at else span)

    def _append(self, span: Span) -> None:
        last = self.paragraphs[-1]
        long = last.shown >= MAX_LENGTH and span.counts
        # Continue between words, unless a word is too long.
        if long and (span.text.startswith(" ") or last.shown >= MAX_LENGTH + _SLACK):
            last = self._continue()
        last.add(span)

    def _continue(self) -> Paragraph:
        self._classify()
        last = self.paragraphs[-1]
        last.cut = self._joined == MOST_JOINED
        last.continued = not last.cut
        self._joined = 1 if last.cut else self._joined + 1
        self.paragraphs.append(Paragraph(last.kind))
        return self.paragraphs[-1]

    def _break(self, span: Span) -> None:
        self._classify()
        self._joined = 1
        last = self.paragraphs[-1]
        last.end = span
        if last.kind is Kind.FENCE:
            self._fence = "" if self._fence else last.text.strip()
        self.paragraphs.append(self._open())

    def _open(self) -> Paragraph:
        return Paragraph(Kind.CODE if self._all_code or self._fence else Kind.PROSE)

    def _classify(self) -> None:
        """Set the kind of the last line, which may turn out to be a fence as it grows."""
        last = self.paragraphs[-1]
        if self._all_code or _continues(self.paragraphs):
            return
        if self._fence:
            last.kind = Kind.FENCE if closes_fence(last.text, self._fence) else Kind.CODE
        else:
            last.kind = Kind.FENCE if opens_fence(last.text) else Kind.PROSE


def open_fence(text: str) -> str:
    """The line that opened the code in which a text ends; "" if it ends in prose."""
    fence = ""
    for line in text.split("\n"):
        if not fence:
            fence = line.strip() if opens_fence(line) else ""
        elif closes_fence(line, fence):
            fence = ""
    return fence


def _continues(paragraphs: Sequence[Paragraph]) -> bool:
    return len(paragraphs) > 1 and (paragraphs[-2].continued or paragraphs[-2].cut)


def opens_fence(line: str) -> bool:
    """Whether a line opens code."""
    return _OPENS.fullmatch(line) is not None


def closes_fence(line: str, fence: str) -> bool:
    """Whether a line closes code: it has the mark of the opening fence, at least as often, and nothing
    else."""
    mark = fence[0]
    wanted = len(fence) - len(fence.lstrip(mark))
    stripped = line.strip()
    indented = len(line) - len(line.lstrip(" ")) > 3
    return not indented and len(stripped) >= wanted and not stripped.strip(mark)
