"""Where a model thinks and where it answers: spans divided at <think> and </think>. No Qt here.

An opening tag counts at the beginning of a line and outside code, so that an answer may speak of the tag.
A template may have opened the block already; then the prompt ends with the tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from app.ui.transcript.text.paragraphs import closes_fence, opens_fence
from app.ui.transcript.text.spans import Span

_NAMES = ("think", "thinking")
_OPENERS = tuple(f"<{name}>" for name in _NAMES)
_TAGS = frozenset((*_OPENERS, *(f"</{name}>" for name in _NAMES)))
_OPENER = re.compile(r"<(think|thinking)>")
_PROMPT_END = re.compile(r"<(think|thinking)>\s*\Z")
_EDGES = re.compile(r"\A\s*<think(?:ing)?>|</think(?:ing)?>\s*\Z")
_LINE_KEPT = 200  # characters of a line that are looked at: a fence is shorter


class Part(NamedTuple):
    """A span, and the section that it stands in: even ones are answer, odd ones reasoning."""

    section: int
    span: Span


class _State(Enum):
    START = 1  # nothing but white space so far
    ANSWER = 2
    THINKING = 3
    BEHIND = 4  # behind a closing tag: white space there still belongs to the reasoning


class ReasoningReader:
    """Divides spans while they arrive; adding some costs these. What may turn out to be a part of a tag
    is held back until it is known."""

    def __init__(self, prompt: str = "") -> None:
        """`prompt` is what the answer goes on from."""
        opened = _PROMPT_END.search(prompt)
        self._state = _State.THINKING if opened else _State.START
        self._section = 1 if opened else 0
        self._name = opened[1] if opened else ""
        self._line = ""  # the answer's line so far
        self._fence = ""  # the marks that opened the code it is in
        self._held: list[Span] = []

    @property
    def closed(self) -> int:
        """Reasoning sections up to this one are over."""
        return self._section if self._state is not _State.THINKING else self._section - 1

    def add(self, spans: Iterable[Span]) -> list[Part]:
        """The parts that are known by now, those held back before included."""
        self._held += spans
        return self._read(final=False)

    def finish(self) -> list[Part]:
        """All that was still held back."""
        return self._read(final=True)

    def _read(self, final: bool) -> list[Part]:
        text = "".join(map(_read_as, self._held))
        ends: list[tuple[int, int]] = []  # up to this character, it is that section's
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
        """Drafts struck out here stand before whatever comes: not yet known what that is."""
        return self._state in (_State.START, _State.BEHIND)

    def _step(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Read on from `at`: how far the section goes that we were in, and whether to go on there."""
        if self._state is _State.THINKING:
            return self._think(text, at, final)
        if self._state is _State.ANSWER:
            return self._answer(text, at, final)
        begin = at + len(text[at:]) - len(text[at:].lstrip())
        # White space before the first word waits to learn whose it is.
        keep = at if self._state is _State.START else begin
        opened = _OPENER.match(text, begin)
        if opened is not None:
            self._open(opened)
            return keep, True
        if not final and (begin == len(text) or _may_open(text[begin:])):
            return keep, False
        if begin < len(text):
            self._section += self._section % 2
            self._state = _State.ANSWER
            return keep, True
        return begin, False

    def _think(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        tag = f"</{self._name}>"
        found = text.find(tag, at)
        if found >= 0:
            self._state = _State.BEHIND
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
        self._state = _State.THINKING
        self._name = opened[1]
        self._line = self._fence = ""

    def _divide(self, ends: Sequence[tuple[int, int]], limit: int, whole: bool) -> list[Part]:
        """Part the held spans; those from `limit` on stay held (all are known where `whole`)."""
        parts: list[Part] = []
        spans, self._held = self._held, []
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
                if span.control:  # a name is shown whole
                    break
                cut = ends[place][0] - start
                if cut > 0:
                    parts.append(Part(ends[place][1], _with(span, text[:cut])))
                    start, text = start + cut, text[cut:]
                if place + 1 == len(ends):
                    self._held = [_with(span, text), *spans[index + 1 :]]
                    return parts
                place += 1
                span = _with(span, text)  # noqa: PLW2901
            parts.append(Part(ends[place][1], span))
            start = end
        return parts


def inside(text: str) -> str:
    """Reasoning without its tags."""
    return _EDGES.sub("", text).strip()


def _read_as(span: Span) -> str:
    """What the reader makes of a span: a tag may be a control token."""
    return span.text if span.counts or (span.control and not span.struck and span.text in _TAGS) else ""


def _may_open(text: str) -> bool:
    """Whether this may be the beginning of an opening tag."""
    return any(tag.startswith(text) for tag in _OPENERS if text)


def _begun(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of `tag`."""
    most = min(len(tag) - 1, len(text))
    return next((length for length in range(most, 0, -1) if text.endswith(tag[:length])), 0)


def _with(span: Span, text: str) -> Span:
    return msgspec.structs.replace(span, text=text)
