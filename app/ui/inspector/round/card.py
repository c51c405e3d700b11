"""A card: a token, both models' probabilities, the draw on its interval, the arithmetic, the verdict."""

from __future__ import annotations

import re
from itertools import accumulate

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFocusEvent, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.ui.inspector.round.content import CardContent, Sum, TokenBars
from app.ui.inspector.round.sums import written
from app.ui.theme import Theme
from app.ui.theme.palette import blend
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.words.numbers import probability

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
_CENTRE = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
_ROUND = 8.0
_TALL = 10_000.0


class Card(QWidget):
    """Paints the content of a card. Its height follows from its width."""

    focused = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._content: CardContent | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._take_fonts()
        theme.changed.connect(self._take_fonts)

    @property
    def content(self) -> CardContent | None:
        return self._content

    def show_content(self, content: CardContent) -> None:
        """Show another content."""
        self._content = content
        self.setAccessibleName(content.name)
        self.setAccessibleDescription(content.spoken())
        self.setToolTip(as_text("\n".join(content.letters)))
        self.update()

    def height_for(self, width: int) -> int:
        """The height that the content needs."""
        return round(self._flow(None, width))

    @Slot()
    def _take_fonts(self) -> None:
        theme = self._theme
        self._token, self._mono = theme.mono(0.5), theme.mono(-1)
        self._sans, self._small = theme.sans(-1), theme.sans(-1.5)
        self._word = theme.sans(-1, QFont.Weight.Medium)
        self._pad = 12 * theme.scale
        mono = QFontMetricsF(self._mono)
        self._row, self._digit = mono.height() * 1.25, mono.horizontalAdvance("0")
        self.update()

    # ------------------------------------------------------------------ painting

    def paintEvent(self, event: QPaintEvent) -> None:
        content, palette = self._content, self._theme.palette
        if content is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        edge = palette.fate(content.fate) if content.wide else palette.line
        ring = ring_shown(self)
        painter.setPen(QPen(QColor(focus_ring(palette) if ring else edge), 2 if ring else 1))
        painter.setBrush(QColor(palette.ground))
        inset = 1.0 if ring else 0.5
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), _ROUND, _ROUND)
        self._flow(painter, self.width())
        painter.end()

    def _flow(self, painter: QPainter | None, width: float) -> float:
        """Lay the content out, and paint it where there is a painter; returns the height."""
        content = self._content
        assert content is not None
        inner = QRectF(self._pad, self._pad * 0.8, width - 2 * self._pad, _TALL)
        y = self._head(painter, inner, content)
        if content.wide:
            half = (inner.width() - 2 * self._pad) / 2
            left = QRectF(inner.left(), y, half, _TALL)
            right = QRectF(inner.right() - half, y, half, _TALL)
            below = self._bars(painter, left, content)
            y = max(below, self._reasons(painter, right, content))
        else:
            y = self._bars(painter, QRectF(inner.left(), y, inner.width(), _TALL), content)
            y = self._reasons(painter, QRectF(inner.left(), y, inner.width(), _TALL), content)
        return y + self._pad

    def _head(self, painter: QPainter | None, inner: QRectF, content: CardContent) -> float:
        metrics, word = QFontMetricsF(self._token), QFontMetricsF(self._word)
        line = QRectF(inner.left(), inner.top(), inner.width(), metrics.height() * 1.5)
        if painter is not None:
            palette = self._theme.palette
            painter.setFont(self._word)
            painter.setPen(QColor(palette.fate(content.fate)))
            painter.drawText(line, _RIGHT, content.word)
            room = line.adjusted(0, 0, -word.horizontalAdvance(content.word) - 8, 0)
            self._text(painter, room, _LEFT, content.title, self._token, palette.text)
        return line.bottom() + 2

    # ------------------------------------------------------------------ the bars

    def _bars(self, painter: QPainter | None, room: QRectF, content: CardContent) -> float:
        """The tokens that were probable here, with a bar for each model."""
        if not content.bars:
            return room.top()
        number = len(">.999") * self._digit + 8 * self._theme.scale
        columns = [*filter(None, [content.draft_heading]), content.target_heading]
        if content.wide:
            columns = ["p − q"]
        heading = QFontMetricsF(self._small)
        widths = [max(number, heading.horizontalAdvance(name) + 8) for name in columns]
        bar = max(room.width() * (0.4 if content.wide else 0.24), 30 * self._theme.scale)
        bars = QRectF(room.right() - sum(widths) - bar, room.top(), bar, self._row)
        top = room.top() + heading.height() * 1.3
        if painter is not None:
            self._paint_headings(painter, room, columns, widths)
            self._paint_rows(painter, room.left(), bars.translated(0, top - room.top()), widths, content)
        return top + len(content.bars) * self._row + 4 * self._theme.scale

    def _paint_rows(
        self, painter: QPainter, left: float, bars: QRectF, widths: list[float], content: CardContent
    ) -> None:
        """Each token with its numbers and its bars: `bars` is the place of the first row's, between token and
        numbers. These are most of the words of a round, so each is placed without laying it out in a box."""
        palette, metrics = self._theme.palette, QFontMetricsF(self._mono)
        chosen, other = QColor(palette.text), QColor(palette.secondary)
        rights = list(accumulate(widths, initial=bars.right()))[1:]
        base = bars.top() + (self._row + metrics.ascent() - metrics.descent()) / 2
        painter.setFont(self._mono)
        for at, row in enumerate(content.bars):
            y = base + at * self._row
            painter.setPen(chosen if row.chosen else other)
            token = metrics.elidedText(row.token, Qt.TextElideMode.ElideRight, bars.left() - left - 7)
            painter.drawText(QPointF(left, y), token)
            values = [row.rest] if content.wide else [row.draft, row.p][-len(widths) :]
            for value, right in zip(values, rights, strict=True):
                number = probability(value)
                painter.drawText(QPointF(right - len(number) * self._digit, y), number)
            self._paint_bars(painter, bars.translated(0, at * self._row), row, content)

    def _paint_headings(
        self, painter: QPainter, room: QRectF, columns: list[str], widths: list[float]
    ) -> None:
        palette, right = self._theme.palette, room.right() - sum(widths)
        height = QFontMetricsF(self._small).height()
        for name, width in zip(columns, widths, strict=True):
            right += width
            cell = QRectF(right - width, room.top(), width, height)
            self._text(painter, cell, _RIGHT, name, self._small, palette.secondary)

    def _paint_bars(self, painter: QPainter, room: QRectF, row: TokenBars, content: CardContent) -> None:
        """The draft's bar above the target's. On a residual's card p shows what lies beyond q darker."""
        palette, scale = self._theme.palette, self._theme.scale
        thick, middle = 4 * scale, room.center().y()
        strong = palette.area(content.fate) if row.chosen or content.wide else palette.faint
        first = QRectF(room.left(), middle - thick - 0.5, room.width(), thick)
        second = first.translated(0, thick + 1)
        target, draft = (first, second) if content.wide else (second, first)
        if row.p:
            shade = blend(strong, palette.ground, 0.4) if content.wide else strong
            self._bar(painter, target, 0, row.p, shade)
            if row.rest:
                self._bar(painter, target, max(row.p - row.rest, 0), row.p, strong)
        if row.draft:
            self._bar(painter, draft, 0, row.draft, palette.secondary)

    def _bar(self, painter: QPainter, track: QRectF, low: float, high: float, colour: str) -> None:
        low, high = min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)
        left = track.left() + low * track.width()
        width = max((high - low) * track.width(), 1.0)
        painter.fillRect(QRectF(left, track.top(), width, track.height()), QColor(colour))

    # ------------------------------------------------------------------ interval, sums, notes

    def _reasons(self, painter: QPainter | None, room: QRectF, content: CardContent) -> float:
        y = self._interval(painter, room, content)
        if content.sums and painter is not None and not content.wide:
            painter.fillRect(QRectF(room.left(), round(y), room.width(), 1), QColor(self._theme.palette.line))
        y += 6 * self._theme.scale if content.sums else 0
        for line in content.sums:
            y = self._sum(painter, QRectF(room.left(), y, room.width(), self._row), line, content.fate)
        if content.notes:
            y += 2 * self._theme.scale
        for note in content.notes:
            box = QRectF(room.left(), y, room.width(), _TALL)
            wrap = Qt.TextFlag.TextWordWrap
            if painter is not None:
                painter.setFont(self._small)
                painter.setPen(QColor(self._theme.palette.secondary))
                painter.drawText(box, wrap, note)
            y += QFontMetricsF(self._small).boundingRect(box, wrap, note).height() + 3
        return y

    def _interval(self, painter: QPainter | None, room: QRectF, content: CardContent) -> float:
        """The unit interval, the zone that decides, and the draw."""
        interval = content.interval
        if interval is None:
            return room.top()
        scale, palette = self._theme.scale, self._theme.palette
        label = QFontMetricsF(self._mono).height()
        track = QRectF(room.left(), room.top() + label + 4 * scale, room.width(), 8 * scale)
        if painter is not None:
            colour = palette.area(content.fate)
            painter.fillRect(track, QColor(blend(palette.text, palette.ground, 0.09)))
            self._bar(painter, track, interval.low, interval.high, blend(colour, palette.ground, 0.62))
            x = track.left() + min(max(interval.draw, 0.0), 1.0) * track.width()
            painter.setPen(QPen(QColor(palette.text), 1.5))
            painter.drawLine(QPointF(x, track.top() - 4 * scale), QPointF(x, track.bottom() + 4 * scale))
            text = f"{interval.name} {written(interval.draw)}"
            width = QFontMetricsF(self._mono).horizontalAdvance(text) + 4
            left = min(max(x - width / 2, track.left()), track.right() - width)
            self._text(
                painter, QRectF(left, room.top(), width, label), _CENTRE, text, self._mono, palette.text
            )
            ends = QRectF(track.left(), track.bottom() + 2 * scale, track.width(), label)
            self._text(painter, ends, _LEFT, "0", self._mono, palette.secondary)
            self._text(painter, ends, _RIGHT, "1", self._mono, palette.secondary)
        return track.bottom() + label + 6 * scale

    def _sum(self, painter: QPainter | None, line: QRectF, content: Sum, fate: str) -> float:
        """A sum on a line; where it is too long for that, below its name, on as many lines as it needs."""
        palette = self._theme.palette
        sans, mono = QFontMetricsF(self._sans), QFontMetricsF(self._mono)
        free = line.width() - sans.horizontalAdvance(content.name) - 10
        verdict = sans.horizontalAdvance(content.verdict) + 12 if content.verdict else 0
        if mono.horizontalAdvance(content.text) + verdict > free:
            verdict = 0  # the head of the card has it too
        parts = [content.text]
        if mono.horizontalAdvance(content.text) > free:
            parts = broken(content.text, int(line.width() / mono.horizontalAdvance("0")))
        if painter is not None:
            self._text(painter, line, _LEFT, content.name, self._sans, palette.secondary)
            if verdict:
                self._text(painter, line, _RIGHT, content.verdict, self._word, palette.fate(fate))
        if mono.horizontalAdvance(parts[0]) > free:
            line = line.translated(0, self._row)
        for part in parts:
            if painter is not None:
                room = line.adjusted(0, 0, -verdict, 0)
                self._text(painter, room, _RIGHT, part, self._mono, palette.text)
            line = line.translated(0, self._row)
        return line.top()

    def _text(
        self, painter: QPainter, room: QRectF, align: Qt.AlignmentFlag, text: str, font: QFont, colour: str
    ) -> None:
        painter.setFont(font)
        painter.setPen(QColor(colour))
        cut = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, room.width() + 1)
        painter.drawText(room, align, cut)

    # ------------------------------------------------------------------ focus

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def sizeHint(self) -> QSize:
        width = round(240 * self._theme.scale)
        return QSize(width, self.height_for(width) if self._content is not None else 0)


def broken(text: str, most: int) -> list[str]:
    """A sum in lines of at most `most` characters, broken before its signs."""
    lines: list[str] = []
    for part in re.split(r" (?=[=≠<≥/×+−-] |in )", text):
        if lines and len(lines[-1]) + 1 + len(part) <= most:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines
