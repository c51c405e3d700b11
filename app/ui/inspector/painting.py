"""How the parts of a card are painted: bars, their legend, the line that a draw falls onto, sums, notes.

Every function lays its part out below the top of `room` and returns where it ends; without a painter it
paints nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen

from app.engine.fates import Verdict
from app.engine.rules.formula import Sum, signed, written
from app.ui.inspector.content import CardContent, DrawLine, RaceBars, TokenBar
from app.ui.theme import Theme
from app.ui.theme.palette import blend
from app.ui.widgets.words import probability

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
TALL = 10_000.0
_FULL, _PALE = 0.85, 0.25  # of a colour; pale is what did not come, or not yet
_KNOWN = 0.55  # of a colour: the part of a score that is no luck
_NUMBER = len(">.999")
_LABEL = 0.6  # of the room without numbers, at most, for a token; longer ones are cut
_HEADINGS = {"q": "draft q", "p": "target p"}


class Ink:
    """The letters and measures of a card."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.token, self.mono = theme.mono(0.5), theme.mono(-1)
        self.sans, self.small = theme.sans(-1), theme.sans(-1.5)
        self.word = theme.sans(-1, QFont.Weight.Medium)
        self.unit = min(theme.scale, 1.25)  # of gaps: large letters need the room
        self.pad = 12 * self.unit
        mono = QFontMetricsF(self.mono)
        self.row, self.digit = mono.height() * 1.25, mono.horizontalAdvance("0")

    def colour(self, fate: str, pale: bool = False) -> QColor:
        """The colour of the area of a fate, or of none."""
        palette = self.theme.palette
        colour = palette.area(fate) if fate else palette.faint
        return QColor(blend(colour, palette.ground, _PALE if pale else _FULL))


def paint_text(
    painter: QPainter, room: QRectF, align: Qt.AlignmentFlag, text: str, font: QFont, colour: str
) -> None:
    """Write a text on one line, cut if it is too long."""
    painter.setFont(font)
    painter.setPen(QColor(colour))
    cut = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, room.width() + 1)
    painter.drawText(room, align, cut)


def paint_note(painter: QPainter | None, room: QRectF, text: str, ink: Ink, strong: bool = False) -> float:
    """Write a text on as many lines as it needs."""
    font = ink.word if strong else ink.small
    box = QRectF(room.left(), room.top(), room.width(), TALL)
    if painter is not None:
        palette = ink.theme.palette
        painter.setFont(font)
        painter.setPen(QColor(palette.text if strong else palette.secondary))
        painter.drawText(box, Qt.TextFlag.TextWordWrap, text)
    used = QFontMetricsF(font).boundingRect(box, Qt.TextFlag.TextWordWrap, text)
    return room.top() + used.height() + 3


# ------------------------------------------------------------------------------------------------- the bars


def paint_bars(
    painter: QPainter | None,
    room: QRectF,
    content: CardContent,
    drawn: CardContent | None,
    ink: Ink,
    button: QSizeF,
) -> float:
    """The tokens that were probable here, each with its bar and its numbers. `drawn` has the bars of repeated
    draws: they grow over those of the card. In little room the headings are letters. The line of headings
    starts with a button of the given size, empty for none, which covers no heading."""
    if not content.bars:
        return room.top()
    shown, small = drawn or content, QFontMetricsF(ink.small)
    number = _NUMBER * ink.digit + 8 * ink.unit
    top = bars_top(room.top(), ink, button.height())
    if painter is not None:
        longest = max(QFontMetricsF(ink.mono).horizontalAdvance(bar.token) for bar in content.bars)
        for headings in (tuple(_HEADINGS.get(name, name) for name in shown.headings), shown.headings):
            names = [small.horizontalAdvance(f"  {name}") for name in headings]
            widths = [max(number, name) for name in names]
            free = room.width() - sum(widths)
            if longest <= free * _LABEL and free + widths[0] - names[0] >= button.width():
                break
        label = min(longest, free * _LABEL) + 8 * ink.unit
        right = room.left() + free
        for name, width in zip(headings, widths, strict=True):
            cell = QRectF(right, room.top(), width, top - room.top())
            paint_text(painter, cell, RIGHT, name, ink.small, ink.theme.palette.secondary)
            right += width
        bars = QRectF(room.left() + label, top, free - label, ink.row)
        lines = any(bar.mark is not None and not bar.spread for bar in shown.bars)
        edge = 8 * ink.unit if lines else 0.0  # a line next to a number looks like a digit
        scale = (bars.width() - edge) / (max(bar.length for bar in (*content.bars, *shown.bars)) or 1.0)
        for at, bar in enumerate(shown.bars):
            place = bars.translated(0, at * ink.row)
            if drawn is not None:
                _paint_bar(painter, place, content.bars[at], scale, ink, pale=True)
            _paint_bar(painter, place, bar, scale, ink)
        _paint_words(painter, room.left(), bars, widths, shown, ink)
    return top + len(content.bars) * ink.row + 2 * ink.unit


def bars_top(above: float, ink: Ink, least: float) -> float:
    """Where the bars begin, below their headings."""
    return above + max(QFontMetricsF(ink.small).height() * 1.2, least)


def _paint_words(
    painter: QPainter, left: float, bars: QRectF, widths: list[float], content: CardContent, ink: Ink
) -> None:
    """Tokens and numbers beside the bars; `bars` is the place of the first. These are most of the words of a
    round, so each is placed without laying it out in a box."""
    palette, metrics = ink.theme.palette, QFontMetricsF(ink.mono)
    chosen, other = QColor(palette.text), QColor(palette.secondary)
    rights = list(accumulate(widths, initial=bars.right()))[1:]
    base = bars.top() + (ink.row + metrics.ascent() - metrics.descent()) / 2
    painter.setFont(ink.mono)
    for at, bar in enumerate(content.bars):
        y = base + at * ink.row
        painter.setPen(chosen if bar.chosen else other)
        room = bars.left() - left - 8 * ink.unit
        painter.drawText(
            QPointF(left, y), metrics.elidedText(bar.token, Qt.TextElideMode.ElideRight, room + 1)
        )
        for value, right in zip(bar.values, rights, strict=True):
            number = probability(value)
            painter.drawText(QPointF(right - len(number) * ink.digit, y), number)


def _paint_bar(
    painter: QPainter, room: QRectF, bar: TokenBar, scale: float, ink: Ink, pale: bool = False
) -> None:
    thick = ink.row * 0.6
    top, left = round(room.center().y() - thick / 2), room.left()
    end = room.right()
    for length, fate in bar.parts:
        width = min(length * scale, end - left)
        if width > 0:
            part = QRectF(left, top, max(width, 1.0), thick)
            if fate == Verdict.REJECTED and len(bar.parts) > 1:
                hatch(painter, part, ink.colour(fate, pale), ink)
            else:
                painter.fillRect(part, ink.colour(fate, pale))
            left += width
    if bar.mark is not None:
        left = room.left() + max(bar.mark - bar.spread, 0.0) * scale
        right = min(room.left() + (bar.mark + bar.spread) * scale, end)
        x = min(room.left() + bar.mark * scale, end)
        _paint_mark(painter, x, QRectF(left, top, right - left, thick), ink)


def _paint_mark(painter: QPainter, x: float, room: QRectF, ink: Ink) -> None:
    """A line across a bar at x, and a range, if it has a width, with an end at each side of `room`."""
    painter.setPen(QPen(QColor(ink.theme.palette.text), 1.5 * max(ink.unit, 1)))
    painter.drawLine(QPointF(x, room.top() - 2), QPointF(x, room.bottom() + 2))
    if room.width() > 0:
        middle, cap = room.center().y(), room.height() / 4
        painter.drawLine(QPointF(room.left(), middle), QPointF(room.right(), middle))
        for at in (room.left(), room.right()):
            painter.drawLine(QPointF(at, middle - cap), QPointF(at, middle + cap))


def hatch(painter: QPainter, part: QRectF, colour: QColor, ink: Ink) -> None:
    """What did not pass: an edge, and lines across, so that colour is never alone."""
    painter.save()
    painter.setClipRect(part)
    painter.setPen(QPen(colour, max(ink.unit, 1)))
    step, height = 5 * ink.unit, part.height()
    at = part.left() - height
    while at < part.right():
        painter.drawLine(QPointF(at, part.bottom()), QPointF(at + height, part.top()))
        at += step
    painter.restore()
    painter.setPen(QPen(colour, 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(part.adjusted(0.5, 0.5, -0.5, -0.5))


def paint_legend(
    painter: QPainter | None, room: QRectF, entries: Sequence[tuple[str, str]], ink: Ink
) -> float:
    """A swatch and words for each part of a bar, on as many lines as they need."""
    if not entries:
        return room.top()
    metrics = QFontMetricsF(ink.small)
    side, line = metrics.ascent() * 0.85, metrics.height() * 1.15
    x, y = room.left(), room.top()
    for fate, words in entries:
        width = side + 6 * ink.unit + metrics.horizontalAdvance(words)
        if x > room.left() and x + width > room.right():
            x, y = room.left(), y + line
        if painter is not None:
            swatch = QRectF(x, round(y + (line - side) / 2), side, side)
            if fate == Verdict.REJECTED:
                hatch(painter, swatch, ink.colour(fate), ink)
            elif not fate:
                _paint_mark(painter, swatch.center().x(), swatch, ink)
            else:
                painter.fillRect(swatch, ink.colour(fate))
            words_room = QRectF(x + side + 6 * ink.unit, y, width, line)
            paint_text(painter, words_room, LEFT, words, ink.small, ink.theme.palette.secondary)
        x += width + 14 * ink.unit
    return y + line + 2 * ink.unit


# ------------------------------------------------------------------------------------- the line of a draw


def paint_race(painter: QPainter | None, room: QRectF, race: RaceBars, ink: Ink) -> float:
    """A bar for each token, as long as its score: from the left up to log p, and on, or back, by its luck.
    The longest wins."""
    palette, metrics = ink.theme.palette, QFontMetricsF(ink.mono)
    heading = QFontMetricsF(ink.small).height() * 1.3
    if painter is not None:
        longest = max(metrics.horizontalAdvance(each.token) for each in race.contenders)
        name, score = min(room.width() * 0.34, longest), metrics.horizontalAdvance("−0.00000")
        track = QRectF(room.left() + name + 8, 0, room.width() - name - score - 16, ink.row * 0.5)
        ends = [end for each in race.contenders for end in (each.log_p, each.score)]
        low = min(ends) - 0.06 * (max(ends) - min(ends)) - 0.01
        top = QRectF(room.left(), room.top(), room.width(), heading)
        _paint_score(painter, top, race.name, ink)
        for at, each in enumerate(race.contenders):
            line = QRectF(room.left(), room.top() + heading + at * ink.row, room.width(), ink.row)
            shade = palette.text if each.won else palette.secondary
            paint_text(
                painter, line.adjusted(0, 0, name - line.width(), 0), LEFT, each.token, ink.mono, shade
            )
            paint_text(painter, line, RIGHT, signed(each.score), ink.mono, shade)
            end, known = (
                (value - low) * track.width() / (max(ends) - low) for value in (each.score, each.log_p)
            )
            bar = track.translated(0, line.top() + ink.row * 0.25)
            solid = QRectF(bar.left(), bar.top(), min(end, known), bar.height())
            lucky = QRectF(bar.left() + min(end, known), bar.top(), abs(end - known), bar.height())
            colour = palette.area(race.fate) if each.won else palette.secondary
            pale = QColor(blend(colour, palette.ground, _KNOWN))
            painter.fillRect(solid, pale)
            if each.luck > 0:
                painter.fillRect(lucky, QColor(colour))
            else:
                painter.setPen(QPen(pale, 1))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(lucky.adjusted(0.5, 0.5, -0.5, -0.5))
    return room.top() + heading + len(race.contenders) * ink.row + 4 * ink.unit


def _paint_score(painter: QPainter, line: QRectF, name: str, ink: Ink) -> None:
    """The name of a score at the right of a line, each of its two parts after the shade of its bar."""
    palette, metrics = ink.theme.palette, QFontMetricsF(ink.small)
    side, right = metrics.ascent() * 0.85, line.right()
    known, luck = name.split(" + ")
    for words, share in ((luck, 1.0), (f"{known} +", _KNOWN)):
        left = right - metrics.horizontalAdvance(words)
        paint_text(
            painter,
            QRectF(left, line.top(), right - left, line.height()),
            LEFT,
            words,
            ink.small,
            palette.secondary,
        )
        swatch = QRectF(left - side - 5 * ink.unit, round(line.center().y() - side / 2), side, side)
        painter.fillRect(swatch, QColor(blend(palette.secondary, palette.ground, share)))
        right = swatch.left() - 6 * ink.unit


def paint_line(painter: QPainter | None, room: QRectF, line: DrawLine | RaceBars | None, ink: Ink) -> float:
    """The race that drew a token, or the line from 0 to 1 with its meaningful parts and the draw."""
    if line is None:
        return room.top()
    if isinstance(line, RaceBars):
        return paint_race(painter, room, line, ink)
    scale, palette, metrics = ink.unit, ink.theme.palette, QFontMetricsF(ink.mono)
    label, thick = metrics.height(), metrics.height() * 1.1
    track = QRectF(room.left(), room.top() + label + 5 * scale, room.width(), thick)
    x = track.left() + min(max(line.draw, 0.0), 1.0) * track.width()
    if painter is not None:
        painter.fillRect(track, QColor(blend(palette.text, palette.ground, 0.09)))
        for each in line.stretches:
            low, high = (min(max(at, 0.0), 1.0) * track.width() for at in (each.low, each.high))
            part = QRectF(track.left() + low, track.top(), max(high - low, 1.0), thick)
            if each.fate == Verdict.REJECTED:
                hatch(painter, part, ink.colour(each.fate), ink)
                continue
            if each.fate:
                share = 0.22 if each.pale else 0.55
                painter.fillRect(part, QColor(blend(palette.area(each.fate), palette.ground, share)))
            painter.fillRect(QRectF(part.right() - 1, part.top(), 1, thick), QColor(palette.ground))
            wide = metrics.horizontalAdvance(each.label) + 8
            crossed = part.left() <= x <= part.left() + wide
            label_room = part.adjusted(4 + (x - part.left() if crossed else 0), 0, 0, 0)
            if wide <= label_room.width() + 4:
                paint_text(painter, label_room, LEFT, each.label, ink.mono, palette.text)
        painter.setPen(QPen(QColor(palette.text), 2 * max(scale, 1)))
        painter.drawLine(QPointF(x, track.top() - 4 * scale), QPointF(x, track.bottom() + 4 * scale))
        text = f"{line.name} {written(line.draw)}"
        width = metrics.horizontalAdvance(text) + 4
        left = min(max(x - width / 2, track.left()), track.right() - width)
        paint_text(painter, QRectF(left, room.top(), width, label), LEFT, text, ink.mono, palette.text)
    return track.bottom() + 8 * scale


# ------------------------------------------------------------------------------------------------- the sums


def paint_sum(painter: QPainter | None, line: QRectF, content: Sum, fate: str, ink: Ink) -> float:
    """A sum on a line; if it is too long for that, below its name, on as many lines as it needs."""
    palette = ink.theme.palette
    sans, mono = QFontMetricsF(ink.sans), QFontMetricsF(ink.mono)
    line = QRectF(line.left(), line.top(), line.width(), mono.height() * 1.2)
    free = line.width() - sans.horizontalAdvance(content.name) - 10
    verdict = sans.horizontalAdvance(content.verdict) + 12 if content.verdict else 0
    if mono.horizontalAdvance(content.text) + verdict > free:
        verdict = 0  # the head of the card has it too
    parts = [content.text]
    if mono.horizontalAdvance(content.text) > free:
        parts = broken(content.text, int(line.width() / ink.digit))
    if painter is not None:
        paint_text(painter, line, LEFT, content.name, ink.sans, palette.secondary)
        if verdict:
            paint_text(painter, line, RIGHT, content.verdict, ink.word, palette.fate(fate))
    if mono.horizontalAdvance(parts[0]) > free:
        line = line.translated(0, line.height())
    for part in parts:
        if painter is not None:
            paint_text(painter, line.adjusted(0, 0, -verdict, 0), RIGHT, part, ink.mono, palette.text)
        line = line.translated(0, line.height())
    return line.top()


def paint_proof(painter: QPainter | None, room: QRectF, lines: Sequence[str], ink: Ink) -> float:
    """A formula and its numbers."""
    height, y = QFontMetricsF(ink.mono).height() * 1.25, room.top()
    for line in lines:
        for part in broken(line, int(room.width() / ink.digit)):
            if painter is not None:
                row = QRectF(room.left(), y, room.width(), height)
                paint_text(painter, row, LEFT, part, ink.mono, ink.theme.palette.text)
            y += height
    return y


def broken(text: str, most: int) -> list[str]:
    """A sum in lines of at most `most` characters, broken before its signs."""
    lines: list[str] = []
    for part in re.split(r" (?=[=≠<≥/×+−-] |in )", text):
        if lines and len(lines[-1]) + 1 + len(part) <= most:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines
