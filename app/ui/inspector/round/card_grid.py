"""The cards of a round in rows of equal columns."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.inspector.round.card import Card
from app.ui.inspector.round.content import CardContent
from app.ui.theme import Theme

_LEAST = 290  # pixels of a column at text scale 1
_GAP = 12


class CardGrid(QWidget):
    """Keeps its cards from round to round, so that the focus stays at its place of the draft."""

    card_focused = Signal(QWidget)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._made: list[Card] = []
        self._shown = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._place)

    @property
    def cards(self) -> Sequence[Card]:
        """The cards that are shown."""
        return self._made[: self._shown]

    def show_cards(self, contents: Sequence[CardContent]) -> None:
        """Show a card for each content."""
        had = self._focused
        for place, content in enumerate(contents):
            if place == len(self._made):
                self._made.append(self._make())
            self._made[place].show_content(content)
            self._made[place].show()
        if had is not None and had >= len(contents) and contents:
            self._made[len(contents) - 1].setFocus(Qt.FocusReason.OtherFocusReason)
        for card in self._made[len(contents) :]:
            card.hide()
        self._shown = len(contents)
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._place()

    def _place(self) -> None:
        columns = max(int((self.width() + _GAP) // (_LEAST * self._theme.scale + _GAP)), 1)
        width = (self.width() - (columns - 1) * _GAP) // columns
        top = 0
        row: list[tuple[Card, QRect]] = []
        used = 0
        for card in self.cards:
            wide = card.content is not None and card.content.instead is not None
            if used + (2 if wide else 1) > columns and used:
                top = _finish(row, top)
                row, used = [], 0
            span = columns - used if wide else 1  # the rest of the row
            across = span * width + (span - 1) * _GAP
            row.append((card, QRect(used * (width + _GAP), top, across, card.height_for(across))))
            used += span
        bottom = _finish(row, top)
        self.setFixedHeight(max(bottom - _GAP, 0))

    def sizeHint(self) -> QSize:
        return QSize(_LEAST, self.height())


def _finish(row: list[tuple[Card, QRect]], top: int) -> int:
    """Give the cards of a row the same height; returns the top of the next row."""
    height = max((rect.height() for _, rect in row), default=0)
    for card, rect in row:
        rect.setHeight(height)
        card.setGeometry(rect)
    return top + height + _GAP if row else top
