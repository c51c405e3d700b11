"""A displayed paragraph: its spans as runs of UTF-16 units, and the formats of those with another font."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from PySide6.QtGui import QColor, QFont, QTextCharFormat, QTextLayout

from app.ui.transcript.layout.styles import Setting
from app.ui.transcript.text.paragraphs import Kind, Paragraph
from app.ui.transcript.text.spans import NEWLINE_MARK, Span
from app.ui.transcript.text.utf16 import to_utf16, utf16_length

_GLUED_MOST = 48  # characters; a longer one would leave a gap at the end of the line before

_INLINE_CODE = re.compile(r"`[^`]+`")

# Fonts have no glyphs for control characters; each is replaced by a single character, so offsets stay.
_PICTURES = {code: 0x2400 + code for code in range(32) if code != 9} | {13: 0x200B, 127: 0x2421}


class TextRun(msgspec.Struct, frozen=True, gc=False):
    """A span in the displayed text."""

    start: int  # UTF-16 units displayed
    end: int
    offset: int  # characters before it, struck ones not counted
    span: Span


def runs_of(paragraph: Paragraph, drafts_shown: bool) -> tuple[list[TextRun], str]:
    runs: list[TextRun] = []
    parts: list[str] = []
    units = offset = 0
    for span in paragraph.spans:
        if span.struck and not drafts_shown:
            continue
        length = utf16_length(span.text)
        runs.append(TextRun(units, units + length, offset, span))
        parts.append(span.text)
        units += length
        if span.counts:
            offset += len(span.text)
    text = "".join(parts)
    return runs, text if text.isprintable() else text.translate(_PICTURES)


def glued(runs: list[TextRun]) -> list[tuple[int, int]]:
    """Ranges in which no line may end: before and inside a control token, and at struck tokens between a word
    and its continuation, such as a full stop."""
    found: list[tuple[int, int]] = []
    in_word = False  # the text so far ends within a word
    begun: int | None = None  # start of the struck tokens after it
    for run in runs:
        if run.span.struck:
            begun = run.start if in_word and begun is None else begun
            continue
        goes_on = run.span.control or not run.span.text[:1].isspace()
        first = run.start if begun is None else begun
        if in_word and goes_on:
            found.append((first, run.start))
        if run.span.control:
            found.append((run.start + 1, run.end - 1))
        in_word = not run.span.text[-1:].isspace()
        begun = None
    return [(first, last) for first, last in found if last - first <= _GLUED_MOST]


def formats_of(runs: list[TextRun], kind: Kind, setting: Setting) -> Iterator[QTextLayout.FormatRange]:
    """Smaller grey letters for struck and control tokens; the code font for `inline code`."""
    styles, style = setting.styles, setting.styles.texts[kind]
    grey = QColor(styles.palette.secondary)
    if kind is Kind.FENCE and runs:
        yield text_format(0, runs[-1].end, style.font, grey)
    if kind is Kind.PROSE:
        yield from _inline_code(runs, styles.inline_code)
    for run in runs:
        if run.span.struck:
            yield text_format(run.start, run.end, style.small, grey)
            for at, character in enumerate(run.span.text):
                if character == NEWLINE_MARK:  # the code font lacks this character
                    start = run.start + to_utf16(run.span.text, at)
                    yield text_format(start, start + 1, setting.styles.mark, grey)
        elif run.span.control:
            yield text_format(run.start, run.end, styles.control, grey)


def _inline_code(runs: list[TextRun], font: QFont) -> Iterator[QTextLayout.FormatRange]:
    counted = [run for run in runs if run.span.counts]
    text = "".join(run.span.text for run in counted)
    if "`" not in text:
        return
    for match in _INLINE_CODE.finditer(text):
        for run in counted:
            first = max(match.start() - run.offset, 0)
            end = min(match.end() - run.offset, len(run.span.text))
            if first < end:
                start = run.start
                a, b = to_utf16(run.span.text, first), to_utf16(run.span.text, end)
                yield text_format(start + a, start + b, font, None)


def text_format(start: int, end: int, font: QFont | None, colour: QColor | None) -> QTextLayout.FormatRange:
    look = QTextCharFormat()
    if font is not None:
        look.setFont(font)
    if colour is not None:
        look.setForeground(colour)
    made = QTextLayout.FormatRange()
    made.start, made.length, made.format = start, end - start, look
    return made
