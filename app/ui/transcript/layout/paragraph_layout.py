"""One paragraph laid out: its runs of UTF-16 units, its lines, the places of its tokens, and the token at a
point.

Qt counts UTF-16 units of the displayed text, struck tokens included; all other code counts characters of the
text without them. The runs carry both offsets."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from math import ceil
from typing import NamedTuple, cast

import msgspec
from PySide6.QtCore import QPointF, QRectF, Qt, QTextBoundaryFinder
from PySide6.QtGui import QColor, QFont, QTextCharFormat, QTextLayout, QTextLine, QTextOption

from app.ui.theme import LOOKS
from app.ui.transcript.layout.styles import FateShapes, Setting
from app.ui.transcript.text.paragraphs import Kind, Paragraph, from_utf16, to_utf16, utf16_length
from app.ui.transcript.text.spans import NEWLINE_MARK, Span

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
    """Ranges in which no line may end: before and inside a control token, and at struck tokens inside a word
    (or before its full stop)."""
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
    """Smaller letters for struck tokens, grey ones for neutral fates and control tokens; the code font for
    `inline code`."""
    styles, style = setting.styles, setting.styles.texts[kind]
    grey = QColor(styles.palette.secondary)
    if kind is Kind.FENCE and runs:
        yield text_format(0, runs[-1].end, style.font, grey)
    if kind is Kind.PROSE:
        yield from _inline_code(runs, styles.inline_code)
    for run in runs:
        if run.span.struck:
            ink = grey if LOOKS[run.span.fate].neutral else None
            yield text_format(run.start, run.end, style.small, ink)
            for at, character in enumerate(run.span.text):
                if character == NEWLINE_MARK:  # the code font lacks this character
                    start = run.start + to_utf16(run.span.text, at)
                    yield text_format(start, start + 1, setting.styles.mark, ink)
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


_HANG = 2  # indentation of wrapped lines of code, in characters
_NEWLINE_WIDTH = 8


class Line(NamedTuple):
    top: float
    bottom: float
    baseline: float
    first: int  # UTF-16 units
    end: int  # the offset after the last visible unit
    wrapped: bool  # more lines follow
    line: QTextLine


class ParagraphLayout:
    """The lines of a paragraph in a setting; coordinates start at its upper left corner."""

    def __init__(self, paragraph: Paragraph, setting: Setting, lead: QPointF | None = None) -> None:
        """`lead` is the end of the line that this paragraph continues (see Paragraph.continued)."""
        self._style = setting.styles.texts[paragraph.kind]
        self._end = paragraph.end
        self._shapes: FateShapes | None = None
        self._ratio = setting.pixel_ratio
        self.runs, text = runs_of(paragraph, setting.drafts_shown)
        self._starts = [run.start for run in self.runs]
        self._glued = glued(self.runs)
        self._text = text
        self._units = utf16_length(text)
        self._indent = 0 if lead is not None else _indent(self.runs, text)
        self.layout = QTextLayout(text, self._style.font)
        self.layout.setCacheEnabled(True)
        self.layout.setTextOption(self._option(paragraph.kind))
        self.layout.setFormats(list(formats_of(self.runs, paragraph.kind, setting)))
        self.lines: list[Line] = []
        self._break_lines(paragraph.kind, setting, lead)
        bottom = self.lines[-1].bottom if self.lines else 0.0
        empty = not text and not paragraph.continued and lead is None
        if empty:
            prose = paragraph.kind is Kind.PROSE
            bottom = setting.styles.empty_line if prose else self._style.pitch
        self.height = ceil(bottom)

    @property
    def tail(self) -> QPointF:
        """Where the last line ends: the right edge, and its top measured from the paragraph's bottom."""
        if not self.lines:
            return QPointF(0, 0)
        last = self.lines[-1]
        return QPointF(self._x(last, self._units), last.top - self.height)

    def _option(self, kind: Kind) -> QTextOption:
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        option.setTabStopDistance(self._style.space * 4)
        if kind is not Kind.PROSE:
            option.setTextDirection(Qt.LayoutDirection.LeftToRight)
        return option

    def _break_lines(self, kind: Kind, setting: Setting, lead: QPointF | None) -> None:
        hang = 0.0
        if kind is Kind.CODE:
            hang = min((self._indent + _HANG) * self._style.space, setting.width / 2)
        x, y = (lead.x(), lead.y()) if lead is not None else (0.0, 0.0)
        self.layout.beginLayout()
        line = self.layout.createLine()
        while line.isValid():
            room = max(setting.width - x, self._style.space)
            line.setLineWidth(room)
            if not self.lines and lead is not None and self._tears(line):
                # The first word does not fit: it begins the next line, without the space before it.
                self._indent = _indent(self.runs, self._text)
                x, y = hang - self._indent * self._style.space, 0.0
                room = setting.width - x
                line.setLineWidth(room)
            earlier = self._earlier_end(line.textStart(), line.textStart() + line.textLength())
            if earlier is not None:
                line.setNumColumns(earlier, room)
            # Letters of another font may be taller than this one's.
            above = max(self._style.above, ceil(line.ascent()))
            below = max(self._style.below, ceil(line.descent()))
            baseline = y + above
            line.setPosition(QPointF(x, baseline - line.ascent()))
            first, end = line.textStart(), line.textStart() + line.textLength()
            wrapped = end < self._units
            visible = self._without_spaces(first, end) if wrapped else end
            self.lines.append(Line(y, baseline + below, baseline, first, visible, wrapped, line))
            x, y = hang, baseline + below
            line = self.layout.createLine()
        self.layout.endLayout()

    def _tears(self, line: QTextLine) -> bool:
        """Whether a line that begins with a space ends within its first word."""
        end = line.textStart() + line.textLength()
        text = self._text[: from_utf16(self._text, end)]
        return end < self._units and text.startswith(" ") and " " not in text.strip(" ") and text[-1:] != " "

    def _earlier_end(self, first: int, end: int) -> int | None:
        """If a line ends where no line may end, the number of characters to keep on it. None if it ends well,
        or if there is no better place."""
        at = next((low for low, high in self._glued if low <= end <= high), None)
        if end >= self._units or at is None:
            return None
        places = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Line, self._text)
        places.setPosition(at + 1)
        while (at := places.toPreviousBoundary()) > first:
            if not any(low <= at <= high for low, high in self._glued):
                # Qt does not count spaces at the end.
                kept = self._text[: from_utf16(self._text, at)].rstrip(" ")
                letters = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, kept)
                letters.setPosition(first)
                return sum(1 for _ in iter(letters.toNextBoundary, -1)) or None
        return None

    def _without_spaces(self, first: int, end: int) -> int:
        """The end of a line, without the spaces beyond its edge."""
        a, b = from_utf16(self._text, first), from_utf16(self._text, end)
        return first + utf16_length(self._text[a:b].rstrip(" "))

    def shapes(self) -> FateShapes:
        """Tints and cues of all tokens."""
        if self._shapes is None:
            self._shapes = FateShapes(self._ratio)
            for line in self.lines:
                for run, left, right in self._boxes(line):
                    self._shapes.add(run.span.fate, left, right, line.baseline, self._style)
            self._add_newline(self._shapes)
        return self._shapes

    def _add_newline(self, shapes: FateShapes) -> None:
        """Put the cue of a token that is only a newline after the end of the line."""
        if self._end is None or not self._text or self._end.text.strip():
            return
        line = self.lines[-1]
        left = self._x(line, self._units)
        shapes.add(self._end.fate, left, left + _NEWLINE_WIDTH - 2, line.baseline, self._style)

    def _boxes(self, line: Line) -> Iterator[tuple[TextRun, float, float]]:
        """The runs on a line with their left and right edges; indentation has no box."""
        index = max(bisect_right(self._starts, line.first) - 1, 0)
        for run in self.runs[index:]:
            if run.start >= line.end:
                return
            start = max(run.start, line.first)
            if not run.span.struck:
                start = max(start, self._indent)
            end = min(run.end, line.end)
            if start < end:
                left, right = self._x(line, start), self._x(line, end)
                yield run, min(left, right), max(left, right)

    def _x(self, line: Line, units: int) -> float:
        x, _ = cast(tuple[float, int], line.line.cursorToX(units))  # the type stubs declare object
        return x

    # ------------------------------------------------------------------------- from text to places

    def rects(self, first: int, end: int) -> list[QRectF]:
        """The rectangles of the characters [first, end), struck tokens not counted, one per line."""
        pieces = [self._piece(run, first, end) for run in self.runs if run.span.counts]
        return self._rects([(a, b) for a, b in pieces if a < b])

    def ranges(self, first: int, end: int, ink: QColor) -> Iterator[QTextLayout.FormatRange]:
        """Formats that give the characters [first, end) a different colour."""
        for run in self.runs:
            a, b = self._piece(run, first, end)
            if run.span.counts and a < b:
                yield text_format(a, b, None, ink)

    def end_rect(self) -> QRectF:
        """The rectangle of the newline, after the last line."""
        if not self.lines:
            return QRectF(0, 0, _NEWLINE_WIDTH, self.height)
        line = self.lines[-1]
        return self._box(line, self._x(line, self._units), _NEWLINE_WIDTH)

    def token_rects(self, span: Span) -> list[QRectF]:
        """The rectangles of a token, one per line; a newline is after the end of its line."""
        pieces = [(run.start, run.end) for run in self.runs if run.span.same_token(span)]
        found = self._rects(pieces)
        if not found and self._end is not None and self._end.same_token(span):
            box = self.end_rect()
            box.setBottom(min(box.bottom(), self.height))  # an empty line is low
            return [box]
        return found

    def _piece(self, run: TextRun, first: int, end: int) -> tuple[int, int]:
        """The displayed part of a run in [first, end)."""
        text = run.span.text
        a = min(max(first - run.offset, 0), len(text))
        b = min(max(end - run.offset, 0), len(text))
        return run.start + to_utf16(text, a), run.start + to_utf16(text, b)

    def _rects(self, pieces: list[tuple[int, int]]) -> list[QRectF]:
        found: list[QRectF] = []
        for line in self.lines:
            for first, end in pieces:
                a, b = max(first, line.first), min(end, line.end)
                if a >= b:
                    continue
                left, right = sorted((self._x(line, a), self._x(line, b)))
                box = self._box(line, left, right - left)
                last = found[-1] if found else None
                if last is not None and last.top() == box.top() and abs(last.right() - left) < 0.6:
                    last.setRight(right)
                else:
                    found.append(box)
        return found

    def _box(self, line: Line, left: float, width: float) -> QRectF:
        top = line.baseline - self._style.box_above
        return QRectF(left, top, width, self._style.box_above + self._style.box_below)

    # ------------------------------------------------------------------------- from places to text

    def offset_at(self, point: QPointF) -> int:
        """The character after a caret that is put at `point`."""
        line = self._line_at(point.y())
        if line is None:
            return 0
        units = line.line.xToCursor(point.x(), QTextLine.CursorPosition.CursorBetweenCharacters)
        run = self._run_at(min(units, line.end))
        if run is None:
            return 0
        if not run.span.counts:
            return run.offset
        inside = min(units, line.end) - run.start
        return run.offset + min(from_utf16(run.span.text, inside), len(run.span.text))

    def token_at(self, point: QPointF) -> Span | None:
        """The token under a point; just after the end of a line, the token of its newline."""
        line = self._line_at(point.y())
        if line is None:
            near = self._end is not None and point.x() <= _NEWLINE_WIDTH
            return self._end if near else None
        if not line.top <= point.y() < line.bottom:
            return None
        edges = sorted((self._x(line, line.first), self._x(line, line.end)))
        if edges[0] <= point.x() < edges[1]:
            on = line.line.xToCursor(point.x(), QTextLine.CursorPosition.CursorOnCharacter)
            run = self._run_at(on)
            return run.span if run is not None else None
        newline = not line.wrapped and 0 <= point.x() - edges[1] <= _NEWLINE_WIDTH + 2
        return self._end if newline else None

    def _line_at(self, y: float) -> Line | None:
        """The line at y; beyond the edges the first or the last one."""
        for line in self.lines:
            if y < line.bottom:
                return line
        return self.lines[-1] if self.lines else None

    def _run_at(self, units: int) -> TextRun | None:
        index = bisect_right(self._starts, units) - 1
        return self.runs[max(index, 0)] if self.runs else None


def _indent(runs: list[TextRun], text: str) -> int:
    """The number of spaces at the start of the line, up to the first struck token."""
    limit = next((run.start for run in runs if run.span.struck), len(text))
    return min(len(text) - len(text.lstrip(" \t")), limit)
