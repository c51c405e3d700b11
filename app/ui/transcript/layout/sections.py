"""Sections of an answer: stretches of answer text or of reasoning, divided at <think> and </think>.

An opening tag counts only at the start of a line outside code, so that an answer may mention the tag. If the
template has opened the reasoning already, the prompt ends with the tag."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from app.engine.fates import STRUCK
from app.ui.transcript.layout.block import Block, Heights
from app.ui.transcript.text.folds import ReasoningFold
from app.ui.transcript.text.paragraphs import (
    Paragraph,
    ParagraphBuilder,
    ParagraphMark,
    closes_fence,
    opens_fence,
)
from app.ui.transcript.text.spans import BuilderState, Span, SpanList

if TYPE_CHECKING:
    from app.ui.transcript.layout.rendered import RenderedText


class SectionMark(NamedTuple):
    """How far a section had grown."""

    first: Span | None
    last: Span | None
    texts: int
    paragraphs: ParagraphMark


class SectionText(NamedTuple):
    """The text of a section, as far as it has grown."""

    texts: list[str]
    paragraphs: list[Paragraph]


class Section:
    """A section: its text as paragraphs of tokens and, on demand, rendered."""

    def __init__(
        self, row: int, fold: ReasoningFold | None, all_code: bool, rendered: bool, fence: str = ""
    ) -> None:
        """`row` is the index of its first block in the answer. `fold` is given for reasoning. `fence` is the
        line that opened the code in which it begins."""
        self.row = row
        self.fold = fold
        self.paragraphs = ParagraphBuilder(all_code, fence)
        self._fence = f"{fence}\n" if fence else ""
        self.rendered = _rendered_text(fold) if rendered else None
        self.first: Span | None = None  # the first and the last token emitted in it
        self.last: Span | None = None
        self._texts: list[str] = []

    @property
    def base(self) -> int:
        """The row of its first text block, after the fold line."""
        return self.row + (self.fold is not None)

    @property
    def text(self) -> str:
        """The emitted text."""
        return "".join(self._texts)

    def note(self, spans: Sequence[Span]) -> None:
        """Add spans."""
        emitted = [span for span in spans if span.fate not in STRUCK]
        known = next((span for span in emitted if span.fate), None)
        if known is not None:
            self.first = self.first or known
            self.last = next(span for span in reversed(emitted) if span.fate)
        self._texts.append("".join([span.text for span in emitted if not span.control]))

    def mark(self) -> SectionMark:
        """How far it has grown."""
        return SectionMark(self.first, self.last, len(self._texts), self.paragraphs.mark())

    def copied(self) -> SectionText:
        """A copy of its text, which does not change when the section is cut."""
        return SectionText(list(self._texts), list(self.paragraphs.paragraphs))

    def go_on_to(self, text: SectionText, mark: SectionMark) -> None:
        """Restore the text up to a mark, from the text before the cut."""
        self._texts, self.paragraphs.paragraphs = list(text.texts), list(text.paragraphs)
        self.cut_back(mark)

    def cut_back(self, mark: SectionMark) -> None:
        """Cut it back to a mark; the rendered text stays as it is."""
        self.first, self.last = mark.first, mark.last
        del self._texts[mark.texts :]
        self.paragraphs.cut_back(mark.paragraphs)

    def render(self) -> int:
        """Update the rendered text; returns how many of its blocks stayed."""
        if self.rendered is None:
            return 0
        return self.rendered.update(self._fence + self.text if self.fold is None else inside(self.text))


def _rendered_text(fold: ReasoningFold | None) -> RenderedText:
    """An empty rendered text. Its modules, which read Markdown and colour code, are imported only when one is
    needed."""
    from app.ui.transcript.layout.rendered import RenderedText

    return RenderedText(fold)


_NAMES = ("think", "thinking")
_OPENERS = tuple(f"<{name}>" for name in _NAMES)
_TAGS = frozenset((*_OPENERS, *(f"</{name}>" for name in _NAMES)))
_OPENER = re.compile(r"<(think|thinking)>")
_PROMPT_END = re.compile(r"<(think|thinking)>\s*\Z")
_EDGES = re.compile(r"\A\s*<think(?:ing)?>|</think(?:ing)?>\s*\Z")
_LINE_KEPT = 200  # characters of a line that are kept: a fence is shorter


class Part(NamedTuple):
    """Successive spans of a section: even sections are answer, odd ones reasoning."""

    section: int
    spans: list[Span]


class _Reading(Enum):
    START = 1  # nothing but white space so far
    ANSWER = 2
    THINKING = 3
    BEHIND = 4  # after a closing tag, where white space still belongs to the reasoning


class ReaderState(NamedTuple):
    """What a reader continues from."""

    reading: _Reading
    section: int
    name: str
    line: str
    fence: str
    held: tuple[Span, ...]


class ReasoningReader:
    """Divides spans while they arrive, at a cost that depends on the new ones only. Text that may be part of
    a tag is held back until that is known."""

    def __init__(self, prompt: str = "") -> None:
        """`prompt` is the prompt that the answer continues."""
        opened = _PROMPT_END.search(prompt)
        self._state = _Reading.THINKING if opened else _Reading.START
        self._section = 1 if opened else 0
        self._name = opened[1] if opened else ""
        self._line = ""  # the answer's line so far
        self._fence = ""  # the line that opened the code that it is in
        self._held: list[Span] = []

    @property
    def closed(self) -> int:
        """The last section up to which reasoning is over."""
        return self._section if self._state is not _Reading.THINKING else self._section - 1

    @property
    def state(self) -> ReaderState:
        """The state to continue from."""
        held = tuple(self._held)
        return ReaderState(self._state, self._section, self._name, self._line, self._fence, held)

    def go_on_from(self, state: ReaderState) -> None:
        """Return to an earlier state."""
        self._state, self._section, self._name, self._line, self._fence, held = state
        self._held = list(held)

    def add(self, spans: Iterable[Span]) -> list[Part]:
        """Add spans; returns the parts that are now known, including those that were withheld before."""
        self._held += spans
        return self._read(final=False)

    def finish(self) -> list[Part]:
        """The parts that were still withheld."""
        return self._read(final=True)

    def _read(self, final: bool) -> list[Part]:
        text = "".join([_read_as(span) for span in self._held])
        ends: list[tuple[int, int]] = []  # (end, section): the section of the text up to `end`
        at = 0
        while True:
            was = self._section
            at, more = self._step(text, at, final)
            if ends and ends[-1][1] == was:
                ends[-1] = (at, was)
            else:
                ends.append((at, was))
            if not more:
                return self._divide(ends, at, final or (at == len(text) and not self._waits))

    @property
    def _waits(self) -> bool:
        """Whether struck drafts are withheld here: they belong to the section of the following text, which is
        not known yet."""
        return self._state in (_Reading.START, _Reading.BEHIND)

    def _step(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Read on from `at`; returns the end of the present section so far, and whether to continue from
        there."""
        if self._state is _Reading.THINKING:
            return self._think(text, at, final)
        if self._state is _Reading.ANSWER:
            return self._answer(text, at, final)
        begin = at + len(text[at:]) - len(text[at:].lstrip())
        # White space before the first word waits until its section is known.
        keep = at if self._state is _Reading.START else begin
        opened = _OPENER.match(text, begin)
        if opened is not None:
            self._open(opened)
            return keep, True
        if not final and (begin == len(text) or _may_open(text[begin:])):
            return keep, False
        if begin < len(text):
            self._section += self._section % 2
            self._state = _Reading.ANSWER
            return keep, True
        return begin, False

    def _think(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        tag = f"</{self._name}>"
        found = text.find(tag, at)
        if found >= 0:
            self._state = _Reading.BEHIND
            return found + len(tag), True
        return len(text) if final else len(text) - _begun(text[at:], tag), False

    def _answer(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        while True:
            if not self._fence and not self._line.strip():
                begin = at + len(text[at:]) - len(text[at:].lstrip(" "))
                opened = _OPENER.match(text, begin)
                if opened is not None:
                    self._open(opened)
                    return begin, True
                if not final and _may_open(text[begin:]):
                    return begin, False
            newline = text.find("\n", at)
            end = newline if newline >= 0 else len(text)
            self._line = (self._line + text[at:end])[:_LINE_KEPT]
            if newline < 0:
                return end, False
            if self._fence:
                self._fence = "" if closes_fence(self._line, self._fence) else self._fence
            elif opens_fence(self._line):
                self._fence = self._line.strip()
            self._line = ""
            at = newline + 1

    def _open(self, opened: re.Match[str]) -> None:
        self._section += 1 if self._section % 2 == 0 else 2
        self._state = _Reading.THINKING
        self._name = opened[1]
        self._line = self._fence = ""

    def _divide(self, ends: Sequence[tuple[int, int]], limit: int, whole: bool) -> list[Part]:
        """Divide the withheld spans into parts. Those from `limit` on stay withheld, unless `whole` says that
        all are known."""
        spans, self._held = self._held, []
        if whole and len(ends) == 1:
            return [Part(ends[0][1], spans)] if spans else []
        parts: list[Part] = []

        def put(section: int, span: Span) -> None:
            if parts and parts[-1].section == section:
                parts[-1].spans.append(span)
            else:
                parts.append(Part(section, [span]))

        start = place = 0
        for index, span in enumerate(spans):
            text = _read_as(span)
            if start >= limit and not whole:
                self._held = spans[index:]
                break
            while place + 1 < len(ends) and start >= ends[place][0]:
                place += 1
            end = start + len(text)
            while text and end > ends[place][0]:
                if span.control:  # the name of a control token is not divided
                    break
                cut = ends[place][0] - start
                if cut > 0:
                    put(ends[place][1], _with(span, text[:cut]))
                    start, text = start + cut, text[cut:]
                if place + 1 == len(ends):
                    self._held = [_with(span, text), *spans[index + 1 :]]
                    return parts
                place += 1
                span = _with(span, text)  # noqa: PLW2901
            put(ends[place][1], span)
            start = end
        return parts


def inside(text: str) -> str:
    """Reasoning without its tags."""
    return _EDGES.sub("", text).strip()


def _read_as(span: Span) -> str:
    """The text of a span as it is read here: a tag may be a control token."""
    if span.fate in STRUCK or (span.control and span.text not in _TAGS):
        return ""
    return span.text


def _may_open(text: str) -> bool:
    """Whether this may be the beginning of an opening tag."""
    return any(tag.startswith(text) for tag in _OPENERS if text)


def _begun(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of `tag`."""
    most = min(len(tag) - 1, len(text))
    return next((length for length in range(most, 0, -1) if text.endswith(tag[:length])), 0)


def _with(span: Span, text: str) -> Span:
    return msgspec.structs.replace(span, text=text)


class Mark(NamedTuple):
    """A mark: how far an answer was laid out."""

    rounds: int
    spans: int
    builder: BuilderState
    reader: ReaderState
    section: SectionMark


class LaidOutText(NamedTuple):
    """The text of a single section of tokens. Nothing in it changes."""

    spans: SpanList
    section: SectionText
    blocks: list[Block]
    heights: Heights


class Reached(NamedTuple):
    """The text up to a round, before the cursor went back from there, and the marks in it."""

    rounds: int
    text: LaidOutText
    marks: list[Mark]

    def mark_before(self, cursor: int) -> Mark | None:
        """The last mark up to a cursor."""
        at = bisect_right(self.marks, cursor, key=lambda mark: mark.rounds)
        return self.marks[at - 1] if at else None
