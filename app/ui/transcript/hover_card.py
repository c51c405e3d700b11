"""The card beside the token pointed at: the token, where it came from, and its verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil

from PySide6.QtCore import QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.theme.palette import blend
from app.ui.transcript.layout.stack import Stack, Token
from app.ui.transcript.text.facts import Alternative, TokenFacts, facts_of
from app.ui.widgets.words import probability

_SHADOW = 18  # pixels around the card
_GAP = 8  # between the token and the card


class HoverCard(QWidget):
    """Shows TokenFacts; mouse events pass through it."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._area = parent
        self._theme = theme
        self._facts: TokenFacts | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Token")
        self.hide()
        self._take_fonts()
        theme.changed.connect(self._theme_changed)

    @property
    def facts(self) -> TokenFacts | None:
        """The facts that are shown; None while hidden."""
        return self._facts if not self.isHidden() else None

    def show_facts(self, facts: TokenFacts, token: QRectF) -> None:
        """Show the card below `token` (a rectangle of the text's widget), or above it, or beside it. If the
        text's widget is only a strip, the card may extend beyond it. If it would cover the token even so, it
        has no list of alternatives."""
        self.setAccessibleDescription(facts.spoken())
        for self._facts in (facts, replace(facts, target=(), draft=())):
            size = self._card_size()
            area = room = self._area
            around = area.parentWidget()
            if around is not None and size.height() > area.height() - 2 * _GAP:
                room = around
            placed = token.translated(QPointF(area.mapTo(room, QPoint(0, 0))))
            card = self._place(size, placed, room.rect())
            if not card.intersects(placed.toAlignedRect()):
                break
        if self.parentWidget() is not room:
            self.setParent(room)
        self.setGeometry(card.adjusted(-_SHADOW, -_SHADOW, _SHADOW, _SHADOW))
        self.update()
        self.show()
        self.raise_()

    def _theme_changed(self) -> None:
        self._take_fonts()
        self.hide()

    def _take_fonts(self) -> None:
        theme = self._theme
        self._sans = theme.sans(-0.5)
        self._fate = theme.sans(-0.5, QFont.Weight.Medium)
        self._mono = theme.mono(-0.5)
        self._token = theme.mono(0.5)
        self._small = theme.mono(-1)
        self._padding = round(14 * theme.scale)
        self._row = round(QFontMetricsF(self._sans).height() * 1.42)
        self._head = round(QFontMetricsF(self._token).height() * 1.75)
        self._section = round(8 * theme.scale)

    # ------------------------------------------------------------------------------------- geometry

    def _place(self, size: QSize, token: QRectF, room: QRect) -> QRect:
        x = max(_GAP, min(token.left() - self._padding, room.width() - size.width() - _GAP))
        below, above = token.bottom() + _GAP, token.top() - _GAP - size.height()
        fits_below = below + size.height() <= room.height() - _GAP
        y = below if fits_below or above < _GAP else above
        if not fits_below and above < _GAP:  # beside the token, so that the card does not cover it
            left, right = token.left() - _GAP - size.width(), token.right() + _GAP
            x = right if right + size.width() <= room.width() - _GAP else max(_GAP, left)
        y = max(_GAP, min(y, room.height() - size.height() - _GAP))
        return QRect(round(x), round(y), size.width(), size.height())

    def _card_size(self) -> QSize:
        facts = self._facts
        assert facts is not None
        sans, mono = QFontMetricsF(self._sans), QFontMetricsF(self._mono)
        gap = 24 * self._theme.scale
        widths = [sans.horizontalAdvance(a) + gap + mono.horizontalAdvance(b) for a, b in facts.rows]
        widths += [sans.horizontalAdvance(sentence) + 2 for sentence in facts.verdict]
        least = (300 if facts.target or facts.draft else 240) * self._theme.scale
        most = 400 * self._theme.scale
        width = ceil(min(max([least, *widths]), most))
        height: float = self._head + len(facts.rows) * self._row
        said, behind = facts.verdict[:1], facts.verdict[1:]
        height += self._sentences_height(said, width) + self._section
        if behind:
            height += self._section * 2 + self._sentences_height(behind, width)
        if facts.target or facts.draft:
            rows = max(len(facts.target), len(facts.draft)) + 1
            height += self._section * 2 + rows * self._row
        return QSize(width + 2 * self._padding, round(height) + 2 * self._padding - 4)

    def _sentences_height(self, sentences: Sequence[str], width: float) -> float:
        metrics = QFontMetricsF(self._sans)
        room = QRectF(0, 0, width, 10_000)
        wrap = Qt.TextFlag.TextWordWrap
        return sum(metrics.boundingRect(room, wrap, sentence).height() + 3 for sentence in sentences)

    # ------------------------------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        facts = self._facts
        if facts is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        card = QRectF(self.rect()).adjusted(_SHADOW, _SHADOW, -_SHADOW, -_SHADOW)
        self._paint_ground(painter, card)
        inner = card.adjusted(self._padding, self._padding - 4, -self._padding, -self._padding)
        y = self._paint_head(painter, inner, facts)
        y = self._paint_sentences(painter, inner, y, facts.verdict[:1]) + self._section
        for name, value in facts.rows:
            self._paint_row(painter, QRectF(inner.left(), y, inner.width(), self._row), name, value)
            y += self._row
        if facts.verdict[1:]:
            y = self._paint_line(painter, inner, y)
            y = self._paint_sentences(painter, inner, y, facts.verdict[1:])
        if facts.target or facts.draft:
            self._paint_alternatives(painter, inner, y, facts)
        painter.end()

    def _paint_ground(self, painter: QPainter, card: QRectF) -> None:
        palette = self._theme.palette
        painter.setPen(Qt.PenStyle.NoPen)
        strength = 9 if palette.dark else 3
        for spread in range(_SHADOW, 0, -2):
            shadow = QColor(0, 0, 0, strength)
            painter.setBrush(shadow)
            grown = card.adjusted(-spread, -spread + 4, spread, spread).intersected(QRectF(self.rect()))
            painter.drawRoundedRect(grown, 8 + spread, 8 + spread)
        painter.setPen(QPen(QColor(palette.line), 1))
        painter.setBrush(QColor(palette.raised))
        painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)

    def _paint_head(self, painter: QPainter, inner: QRectF, facts: TokenFacts) -> float:
        palette = self._theme.palette
        head = QRectF(inner.left(), inner.top(), inner.width(), self._head)
        painter.setFont(self._fate)
        painter.setPen(QColor(palette.fate(facts.fate)))
        painter.drawText(head, _RIGHT, facts.word)
        taken = QFontMetricsF(self._fate).horizontalAdvance(facts.word) + 16
        painter.setPen(QColor(palette.text))
        self._draw(painter, head.adjusted(0, 0, -taken, 0), _LEFT, facts.token, self._token)
        return head.bottom()

    def _paint_row(self, painter: QPainter, row: QRectF, name: str, value: str) -> None:
        palette = self._theme.palette
        taken = QFontMetricsF(self._mono).horizontalAdvance(value)
        painter.setPen(QColor(palette.secondary))
        self._draw(painter, row.adjusted(0, 0, -taken - 12, 0), _LEFT, name, self._sans)
        painter.setPen(QColor(palette.text))
        self._draw(painter, row, _RIGHT, value, self._mono)

    def _paint_sentences(self, painter: QPainter, inner: QRectF, y: float, sentences: Sequence[str]) -> float:
        painter.setFont(self._sans)
        painter.setPen(QColor(self._theme.palette.text))
        for sentence in sentences:
            room = QRectF(inner.left(), y, inner.width(), 1000)
            used = painter.drawText(room, Qt.TextFlag.TextWordWrap, sentence)
            y += used.height() + 3
        return y

    def _paint_alternatives(self, painter: QPainter, inner: QRectF, y: float, facts: TokenFacts) -> None:
        y = self._paint_line(painter, inner, y)
        gap = 20 * self._theme.scale
        width = (inner.width() - gap) / 2
        drafted = "draft q" if facts.draft_heading == "q" else facts.draft_heading
        columns = (("target p", facts.target), (drafted, facts.draft))
        for place, (name, rows) in enumerate((name, rows) for name, rows in columns if rows):
            column = QRectF(inner.left() + place * (width + gap), y, width, self._row)
            painter.setPen(QColor(self._theme.palette.secondary))
            self._draw(painter, column, _LEFT, name, self._sans)
            self._paint_bars(painter, column, rows, facts.fate)

    def _paint_bars(self, painter: QPainter, column: QRectF, rows: Sequence[Alternative], fate: str) -> None:
        palette = self._theme.palette
        number = QFontMetricsF(self._small).horizontalAdvance("0.000")
        bar = column.width() * 0.24
        for alternative in rows:
            column = column.translated(0, self._row)
            ink = palette.text if alternative.chosen else palette.secondary
            painter.setPen(QColor(ink))
            self._draw(painter, column, _RIGHT, probability(alternative.p), self._small)
            text = column.adjusted(0, 0, -number - bar - 16, 0)
            self._draw(painter, text, _LEFT, alternative.token, self._small)
            left = column.right() - number - 8 - bar
            track = QRectF(left, column.center().y() - 3, bar, 6)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(blend(palette.text, palette.raised, 0.09)))
            painter.drawRoundedRect(track, 1.5, 1.5)
            colour = palette.fate(fate) if alternative.chosen else palette.faint
            painter.setBrush(QColor(colour))
            track.setWidth(max(1.0, bar * alternative.p))
            painter.drawRoundedRect(track, 1.5, 1.5)

    def _paint_line(self, painter: QPainter, inner: QRectF, y: float) -> float:
        painter.setPen(QPen(QColor(self._theme.palette.line), 1))
        at = round(y + self._section) + 0.5
        painter.drawLine(QPointF(inner.left(), at), QPointF(inner.right(), at))
        return y + 2 * self._section

    def _draw(self, painter: QPainter, room: QRectF, align: Qt.AlignmentFlag, text: str, font: QFont) -> None:
        painter.setFont(font)
        metrics = QFontMetricsF(font)
        elided = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width() + 1)
        painter.drawText(room, align | Qt.TextFlag.TextSingleLine, elided)


_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


_DELAY_MS = 120  # a pointer that only crosses the text shows no card


class Hover(QObject):
    """The token pointed at, if any, and its card."""

    changed = Signal()

    def __init__(
        self, theme: Theme, area: QWidget, stack: Stack, to_viewport: Callable[[QRectF], QRectF]
    ) -> None:
        super().__init__(area)
        self._stack = stack
        self._to_viewport = to_viewport
        self.card = HoverCard(theme, area)
        self.token: Token | None = None
        self._answer: AnswerModel | None = None  # the answer whose round is pointed at
        self._timer = QTimer(self, singleShot=True, interval=_DELAY_MS)
        self._timer.timeout.connect(self._show_card)

    def point(self, token: Token | None) -> None:
        """Point at a token, or at none. The card appears after a delay; once visible, it follows without
        one."""
        if token == self.token or (
            token is not None
            and self.token is not None
            and token.item == self.token.item
            and token.span.same_token(self.token.span)
        ):
            return
        self._set(token)
        if token is None:
            self._hide_card()
        elif self.card.isVisible():
            self._show_card()
        else:
            self._timer.start()

    def choose(self, token: Token) -> None:
        """Point at a token chosen by the keyboard, and show its card at once."""
        self._set(token)
        self._show_card()

    def clear(self) -> bool:
        """Point at nothing; False if nothing was pointed at."""
        was = self.token is not None
        self._set(None)
        self._hide_card()
        return was

    def place_card(self) -> None:
        """Move the card after its text moved."""
        if self.card.isVisible():
            self._show_card()

    def _set(self, token: Token | None) -> None:
        if token == self.token:
            return
        self.token = token
        item = self._stack.answer(token.item) if token is not None else None
        answer = item.answer if item is not None else None
        if self._answer is not None and self._answer is not answer:
            self._answer.point(None)
        self._answer = answer
        if answer is not None and token is not None:
            answer.point(token.span.round)
        self.changed.emit()

    def _hide_card(self) -> None:
        self._timer.stop()
        self.card.hide()

    def _show_card(self) -> None:
        self._timer.stop()
        token = self.token
        answer = self._stack.answer(token.item) if token is not None else None
        if token is None or answer is None:
            return
        round = answer.round(token.span.round)
        rects = self._stack.token_rects(token)
        if round is None or answer.answer.header is None or not rects:
            self.card.hide()
            return
        facts = facts_of(round, token.span, answer.answer.header)
        self.card.show_facts(facts, self._to_viewport(rects[-1]))
