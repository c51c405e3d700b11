"""Divides spans into reasoning and answer, at <think> and </think>. No Qt here.

An opening tag counts only at the start of a line outside code, so that an answer may mention the tag. Where
the template has opened the reasoning already, the prompt ends with the tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from app.engine.fates import STRUCK
from app.ui.transcript.text.paragraphs import closes_fence, opens_fence
from app.ui.transcript.text.spans import Span

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
    """What a reader goes on from."""

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
        """How far it is."""
        held = tuple(self._held)
        return ReaderState(self._state, self._section, self._name, self._line, self._fence, held)

    def go_on_from(self, state: ReaderState) -> None:
        """Return to how far it was."""
        self._state, self._section, self._name, self._line, self._fence, held = state
        self._held = list(held)

    def add(self, spans: Iterable[Span]) -> list[Part]:
        """Add spans; returns the parts that are now known, those held back before included."""
        self._held += spans
        return self._read(final=False)

    def finish(self) -> list[Part]:
        """The parts that were still held back."""
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
        """Whether struck drafts here wait: they belong to the section of the text that follows, which is not
        yet known."""
        return self._state in (_Reading.START, _Reading.BEHIND)

    def _step(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Read on from `at`; returns where the section so far ends, and whether to continue from there."""
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
        """Divide the held spans into parts; those from `limit` on stay held, unless `whole`: then all are
        known."""
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
