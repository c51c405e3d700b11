"""A card: a token, both models' probabilities, the draws on their lines, the arithmetic, the verdict."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFocusEvent, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.ui.inspector.round.content import CardContent, Instead
from app.ui.inspector.round.draw_button import DrawButton
from app.ui.inspector.round.painting import (
    LEFT,
    RIGHT,
    TALL,
    Ink,
    paint_bars,
    paint_legend,
    paint_line,
    paint_note,
    paint_proof,
    paint_sum,
    paint_text,
)
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring
from app.ui.widgets.text.tips import as_text

_ROUND = 8.0
_STEPS = "1  Does it pass?", "2  What comes instead?", "3  So the text keeps the target's law"
_WIDE = 480  # pixels at text scale 1: from here on the token that came instead has a column of its own


class Card(QWidget):
    """Paints the content of a card. Its height follows from its width."""

    focused = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None, key: str = "") -> None:
        """`key` is the name of a key that draws a thousand times."""
        super().__init__(parent)
        self._theme = theme
        self._content: CardContent | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.draws = DrawButton(theme, self, key)
        self.draws.drew.connect(self._drew)
        self._take_fonts()
        theme.changed.connect(self._take_fonts)

    @property
    def content(self) -> CardContent | None:
        return self._content

    def show_content(self, content: CardContent) -> None:
        """Show another content."""
        if content != self._content:
            self._content = content
            self.setAccessibleName(content.name)
            self.setToolTip(as_text("\n".join(content.letters)))
            self.draws.set_law(content.law if content.law is not None and content.law.draws else None)
        self._place_button()
        self.update()

    def height_for(self, width: int) -> int:
        """The height that the content needs."""
        return round(self._flow(None, width)[1])

    @Slot()
    def _take_fonts(self) -> None:
        self._ink = Ink(self._theme)
        self._place_button()
        self.update()

    @Slot()
    def _drew(self) -> None:
        """Say the bars as they are now."""
        content, drawn = self._content, self._drawn
        if content is not None:
            bars = [drawn.said(bar) for bar in drawn.bars] if drawn is not None else []
            self.setAccessibleDescription(" ".join([content.spoken(), *bars]))
        self.update()

    @property
    def _drawn(self) -> CardContent | None:
        tally = self.draws.tally
        return self._content.drawn(tally) if self._content is not None and tally is not None else None

    # ------------------------------------------------------------------ painting

    def paintEvent(self, event: QPaintEvent) -> None:
        content, palette = self._content, self._theme.palette
        if content is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        edge = palette.fate(content.fate) if content.instead is not None else palette.line
        ring = ring_shown(self)
        painter.setPen(QPen(QColor(focus_ring(palette) if ring else edge), 2 if ring else 1))
        painter.setBrush(QColor(palette.ground))
        inset = 1.0 if ring else 0.5
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), _ROUND, _ROUND)
        self._flow(painter, self.width())
        painter.end()

    def _flow(self, painter: QPainter | None, width: float) -> tuple[float, float]:
        """Lay the content out, and paint it where there is a painter; returns the top of the bars, where the
        button is, and the height of the card."""
        content, ink = self._content, self._ink
        assert content is not None
        inner = QRectF(ink.pad, ink.pad * 0.8, width - 2 * ink.pad, TALL)
        y = self._head(painter, inner, content)
        instead, first = content.instead, QRectF(inner.left(), y, inner.width(), TALL)
        beside = instead is not None and inner.width() >= _WIDE * self._theme.scale
        if beside:
            first.setWidth((inner.width() - 2 * ink.pad) / 2)
        bars = y
        y = self._judged(painter, first, content)
        if instead is not None:
            second = first.translated(first.width() + 2 * ink.pad, 0) if beside else QRectF(first)
            if not beside:
                second.moveTop(y + ink.pad)
            y = max(self._instead(painter, second, instead), y)
        return bars, y + ink.pad

    def _head(self, painter: QPainter | None, inner: QRectF, content: CardContent) -> float:
        ink, palette = self._ink, self._theme.palette
        metrics, word = QFontMetricsF(ink.token), QFontMetricsF(ink.word)
        line = QRectF(inner.left(), inner.top(), inner.width(), metrics.height() * 1.3)
        if painter is not None:
            paint_text(painter, line, RIGHT, content.word, ink.word, palette.fate(content.fate))
            room = line.adjusted(0, 0, -word.horizontalAdvance(content.word) - 8, 0)
            paint_text(painter, room, LEFT, content.title, ink.token, palette.text)
        return line.bottom() + 2

    def _judged(self, painter: QPainter | None, room: QRectF, content: CardContent) -> float:
        """The bars, and whether the drafted token passes."""
        ink, gap = self._ink, 4 * self._ink.unit
        button = 0 if self.draws.isHidden() else self.draws.height() + gap
        y = paint_bars(painter, room, content, self._drawn, ink, button)
        y = paint_legend(painter, _from(room, y), content.legend, ink)
        if content.instead is not None:
            y = paint_note(painter, _from(room, y + gap), _STEPS[0], ink, strong=True)
        y = paint_line(painter, _from(room, y), content.line, ink)
        for line in content.sums:
            y = paint_sum(painter, _from(room, y), line, content.fate, ink)
        for note in content.notes:
            y = paint_note(painter, _from(room, y + 2), note, ink)
        return y

    def _instead(self, painter: QPainter | None, room: QRectF, content: Instead) -> float:
        """The token that was drawn in place of the rejected one, and why it keeps its probability."""
        ink, gap = self._ink, 4 * self._ink.unit
        y = paint_note(painter, room, f"{_STEPS[1]} {content.title}", ink, strong=True)
        y = paint_note(painter, _from(room, y), content.words, ink)
        y = paint_line(painter, _from(room, y), content.line, ink)
        for line in content.sums:
            y = paint_sum(painter, _from(room, y), line, content.fate, ink)
        for note in content.notes:
            y = paint_note(painter, _from(room, y + 2), note, ink)
        if content.proof:
            y = paint_note(painter, _from(room, y + 2 * gap), _STEPS[2], ink, strong=True)
            y = paint_proof(painter, _from(room, y), content.proof, ink)
        return y

    def _place_button(self) -> None:
        if self._content is not None and not self.draws.isHidden():
            self.draws.move(round(self._ink.pad), round(self._flow(None, self.width())[0]))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_button()

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


def _from(room: QRectF, y: float) -> QRectF:
    """The room from a height on."""
    return QRectF(room.left(), y, room.width(), TALL)
