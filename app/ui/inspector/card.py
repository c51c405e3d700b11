"""A card: a token, both models' probabilities, the draws on their lines, the arithmetic; and the grid of a
round's cards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from PySide6 import QtGui
from PySide6.QtCore import QRect, QRectF, QSize, QSizeF, Qt, QTimer, Signal
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from app.engine.explain.decision import PlaceLaw, Tally
from app.ui.inspector import painting
from app.ui.inspector.content import DRAWS, CardContent, Instead
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring
from app.ui.widgets.access import announce
from app.ui.widgets.labels import as_text

_MILLISECONDS = 33  # between two frames
_AT_ONCE = 20  # draws a frame: the whole takes 1.7 s
_FIRST = f"Draw {DRAWS:,}"


class DrawButton(QPushButton):
    """Draws from a distribution again and again; with less motion, all at once. Every press starts over."""

    drew = Signal()
    """The tally has other numbers, or is gone."""

    def __init__(self, theme: Theme, parent: QWidget, key: str = "") -> None:
        """`key` is the name of a key that presses it too."""
        super().__init__(parent)
        self.setProperty("kind", "small")
        self._theme = theme
        self._law: PlaceLaw | None = None
        self._seeds = count(1)
        self._key = f" ({key})" if key else ""
        self.tally: Tally | None = None
        self._timer = QTimer(self, interval=_MILLISECONDS)
        self._timer.timeout.connect(self._go_on)
        self.setToolTip(
            "Draw a token from q, accept or replace it, and repeat at this place: the counts converge to p"
        )
        self.setAccessibleName(f"Draw {DRAWS:,} times")
        self.clicked.connect(self.start)
        theme.follow(self._restyle)
        self.set_law(None)

    def set_law(self, law: PlaceLaw | None) -> None:
        """Draw from a different distribution, or from none. The tally is cleared."""
        self._timer.stop()
        self._law, self.tally = law, None
        self.setVisible(law is not None)
        self._show()

    def start(self) -> None:
        """Draw a thousand times."""
        if self._law is None:
            return
        self.tally = self._law.tally(next(self._seeds))
        if self._theme.less_motion:
            self.tally.draw(DRAWS)
            self._end()
        else:
            self._timer.start()
            self._go_on()

    def _go_on(self) -> None:
        assert self.tally is not None
        self.tally.draw(min(_AT_ONCE, DRAWS - self.tally.total))
        if self.tally.total == DRAWS:
            self._end()
        else:
            self._show()

    def _end(self) -> None:
        self._timer.stop()
        self._show()
        announce(self, self.accessibleDescription())

    def _show(self) -> None:
        tally = self.tally
        if tally is None:
            self.setText(_FIRST + self._key)
            self.setAccessibleDescription("")
        else:
            running = tally.total < DRAWS
            self.setText(f"{tally.total:,} of {DRAWS:,}" if running else f"Draw again{self._key}")
            accepted = int(tally.accepted.sum())
            said = f"{tally.total:,} drawn: {accepted:,} accepted, {tally.total - accepted:,} replaced."
            self.setAccessibleDescription(said)
        self.drew.emit()

    def _restyle(self) -> None:
        font = self._theme.sans(-1)
        # Not by setFont: Qt takes that back where the cards move to a different parent.
        self.setStyleSheet(f"font-size: {font.pointSizeF():.2f}pt")
        metrics = QtGui.QFontMetrics(font, self)
        self.setFixedSize(
            metrics.horizontalAdvance(_FIRST + self._key) + round(24 * self._theme.scale),
            metrics.height() + 8,
        )


_ROUND = 8.0
_STEPS = "1  Is it accepted?", "2  What replaces it?", "3  So the output follows the target"
_WIDE = 480  # pixels at text scale 1: from here on the token that came instead has a column of its own


class Card(QWidget):
    """Paints the content of a card. Its height follows from its width."""

    focused = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None, key: str = "") -> None:
        """`key` is the name of a key that draws a thousand times."""
        super().__init__(parent)
        self._theme = theme
        self.content: CardContent | None = None
        self._chosen = False
        self._meanings = ""  # of the letters
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.draws = DrawButton(theme, self, key)
        self.draws.drew.connect(self._drew)
        theme.follow(self._take_fonts)

    def show_content(self, content: CardContent, chosen: bool = False) -> None:
        """Show a different content; `chosen` gives it a strong edge."""
        self._chosen = chosen
        if content != self.content:
            self.content = content
            self.setAccessibleName(content.name)
            self._meanings = "\n".join(content.letters)
            self.setToolTip(as_text(self._meanings))
            self.draws.set_law(content.law if content.law is not None and content.law.draws else None)
        self._place_button()
        self.update()

    def height_for(self, width: int) -> int:
        """The height that the content needs."""
        return round(self._flow(None, width)[1])

    def _take_fonts(self) -> None:
        self._ink = painting.Ink(self._theme)
        self._place_button()
        self.update()

    def _drew(self) -> None:
        """Describe the present bars to screen readers."""
        content, drawn = self.content, self._drawn
        if content is not None:
            bars = [drawn.said(bar) for bar in drawn.bars] if drawn is not None else []
            self.setAccessibleDescription(" ".join([content.spoken(), *bars]))
        self.update()

    @property
    def _drawn(self) -> CardContent | None:
        tally = self.draws.tally
        return self.content.drawn(tally) if self.content is not None and tally is not None else None

    # ------------------------------------------------------------------ painting

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        content, palette = self.content, self._theme.palette
        if content is None:
            return
        painter = QtGui.QPainter(self)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        edge = palette.fate(content.fate) if content.instead is not None else palette.line
        if self._chosen:
            edge = palette.text
        ring = ring_shown(self)
        strong = ring or self._chosen
        painter.setPen(QtGui.QPen(QtGui.QColor(focus_ring(palette) if ring else edge), 2 if strong else 1))
        painter.setBrush(QtGui.QColor(palette.ground))
        inset = 1.0 if strong else 0.5
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), _ROUND, _ROUND)
        self._flow(painter, self.width())

    def _flow(self, painter: QtGui.QPainter | None, width: float) -> tuple[float, float]:
        """Lay the content out, and paint it if there is a painter; returns the top of the bars, where the
        button is, and the height of the card."""
        content, ink = self.content, self._ink
        assert content is not None
        inner = QRectF(ink.pad, ink.pad * 0.8, width - 2 * ink.pad, painting.TALL)
        bars = self._head(painter, inner, content)
        instead, first = content.instead, QRectF(inner.left(), bars, inner.width(), painting.TALL)
        beside = instead is not None and inner.width() >= _WIDE * self._theme.scale
        if beside:
            first.setWidth((inner.width() - 2 * ink.pad) / 2)
        y = self._judged(painter, first, content)
        if instead is not None:
            second = first.translated(first.width() + 2 * ink.pad, 0) if beside else QRectF(first)
            if not beside:
                second.moveTop(y + ink.pad)
            y = max(self._instead(painter, second, instead), y)
        return bars, y + ink.pad

    def _head(self, painter: QtGui.QPainter | None, inner: QRectF, content: CardContent) -> float:
        ink, palette = self._ink, self._theme.palette
        metrics, word = QtGui.QFontMetricsF(ink.token), QtGui.QFontMetricsF(ink.word)
        line = QRectF(inner.left(), inner.top(), inner.width(), metrics.height() * 1.3)
        if painter is not None:
            painting.paint_text(
                painter, line, painting.RIGHT, content.word, ink.word, palette.fate(content.fate)
            )
            room = line.adjusted(0, 0, -word.horizontalAdvance(content.word) - 8, 0)
            painting.paint_text(painter, room, painting.LEFT, content.title, ink.token, palette.text)
        return line.bottom() + 2

    def _judged(self, painter: QtGui.QPainter | None, room: QRectF, content: CardContent) -> float:
        """The bars, and whether the drafted token is accepted."""
        ink, gap = self._ink, 4 * self._ink.unit
        y = painting.paint_bars(painter, room, content, self._drawn, ink, self._button_room)
        room = _from(room, y)
        painting.paint_legend(painter, room, (self._drawn or content).legend, ink)
        y = max(painting.paint_legend(None, room, legend, ink) for legend in content.legends)
        if content.instead is not None:
            y = painting.paint_note(painter, _from(room, y + gap), _STEPS[0], ink, strong=True)
        return self._decided(painter, _from(room, y), content)

    @property
    def _button_room(self) -> QSizeF:
        size = self.draws.size()
        return QSizeF(0, 0) if self.draws.isHidden() else QSizeF(size) + QSizeF(0, 4 * self._ink.unit)

    def _decided(self, painter: QtGui.QPainter | None, room: QRectF, content: CardContent | Instead) -> float:
        """The draw, the arithmetic and the notes."""
        y = painting.paint_line(painter, room, content.line, self._ink)
        for line in content.sums:
            y = painting.paint_sum(painter, _from(room, y), line, content.fate, self._ink)
        for note in content.notes:
            y = painting.paint_note(painter, _from(room, y + 2), note, self._ink)
        return y

    def _instead(self, painter: QtGui.QPainter | None, room: QRectF, content: Instead) -> float:
        """The token that was drawn in place of the rejected one, and why it keeps its probability."""
        ink, gap = self._ink, 4 * self._ink.unit
        y = painting.paint_note(painter, room, f"{_STEPS[1]} {content.title}", ink, strong=True)
        y = painting.paint_note(painter, _from(room, y), content.words, ink)
        y = self._decided(painter, _from(room, y), content)
        if content.proof:
            y = painting.paint_note(painter, _from(room, y + 2 * gap), _STEPS[2], ink, strong=True)
            y = painting.paint_proof(painter, _from(room, y), content.proof, ink)
        return y

    def _place_button(self) -> None:
        if self.content is not None and not self.draws.isHidden():
            self.draws.move(round(self._ink.pad), round(self._flow(None, self.width())[0]))

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_button()

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:
        """Show the repeated draws of the token under the pointer as its tooltip."""
        super().mouseMoveEvent(event)
        drawn, words = self._drawn, self._meanings
        if drawn is not None:
            top = painting.bars_top(self._flow(None, self.width())[0], self._ink, self._button_room.height())
            at = int((event.position().y() - top) // self._ink.row)
            words = drawn.said(drawn.bars[at]) if 0 <= at < len(drawn.bars) else words
        self.setToolTip(as_text(words))

    # ------------------------------------------------------------------ focus

    def focusInEvent(self, event: QtGui.QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit()

    def sizeHint(self) -> QSize:
        width = round(240 * self._theme.scale)
        return QSize(width, self.height_for(width) if self.content is not None else 0)


def _from(room: QRectF, y: float) -> QRectF:
    """The room from a height on."""
    return QRectF(room.left(), y, room.width(), painting.TALL)


_LEAST = 290  # pixels of a column at text scale 1
_GAP = 12


class CardGrid(QWidget):
    """Keeps its cards from round to round, so that the focus stays at its place in the draft."""

    card_focused = Signal(QWidget)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._made: list[Card] = []
        self.chosen: Card | None = None
        self._shown = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._place)

    @property
    def cards(self) -> Sequence[Card]:
        """The cards that are shown."""
        return self._made[: self._shown]

    def show_cards(self, contents: Sequence[CardContent], chosen: int | None = None) -> None:
        """Show a card for each content; `chosen` is the index of one that was asked for."""
        at = min(chosen, len(contents) - 1) if chosen is not None and contents else None
        had = self._focused
        for place, content in enumerate(contents):
            if place == len(self._made):
                self._made.append(self._make())
            self._made[place].show_content(content, place == at)
            self._made[place].show()
        if had is not None and had >= len(contents) and contents:
            self._made[len(contents) - 1].setFocus(Qt.FocusReason.OtherFocusReason)
        for card in self._made[len(contents) :]:
            card.hide()
        self._shown = len(contents)
        self.chosen = self._made[at] if at is not None else None
        self._place()

    def _make(self) -> Card:
        card = Card(self._theme, self)
        before = self._made[-1].draws if self._made else self.parentWidget() or self
        QWidget.setTabOrder(before, card)  # a widget that is made late would come behind all others
        QWidget.setTabOrder(card, card.draws)
        card.focused.connect(lambda: self.card_focused.emit(card))
        return card

    @property
    def _focused(self) -> int | None:
        """The card that has the focus, or whose button has it."""
        cards = enumerate(self.cards)
        return next((place for place, card in cards if card.hasFocus() or card.draws.hasFocus()), None)

    def step(self, by: int) -> None:
        """Give the focus to the next card, or to the one before."""
        had = self._focused
        if self._shown:
            place = (0 if by > 0 else self._shown - 1) if had is None else had + by
            self._made[min(max(place, 0), self._shown - 1)].setFocus(Qt.FocusReason.TabFocusReason)

    # ------------------------------------------------------------------ where the cards stand

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._place()

    def _place(self) -> None:
        columns = max(int((self.width() + _GAP) // (_LEAST * self._theme.scale + _GAP)), 1)
        width = (self.width() - (columns - 1) * _GAP) // columns
        top = used = 0
        row: list[tuple[Card, QRect]] = []
        for card in self.cards:
            wide = card.content is not None and card.content.instead is not None
            if used + (2 if wide else 1) > columns and used:
                top = _finish(row, top)
                row, used = [], 0
            span = columns - used if wide else 1  # the rest of the row
            across = span * width + (span - 1) * _GAP
            row.append((card, QRect(used * (width + _GAP), top, across, card.height_for(across))))
            used += span
        self.setFixedHeight(max(_finish(row, top) - _GAP, 0))

    def sizeHint(self) -> QSize:
        return QSize(_LEAST, self.height())


def _finish(row: list[tuple[Card, QRect]], top: int) -> int:
    """Give the cards of a row the same height; returns the top of the next row."""
    height = max((rect.height() for _, rect in row), default=0)
    for card, rect in row:
        rect.setHeight(height)
        card.setGeometry(rect)
    return top + height + _GAP if row else top
