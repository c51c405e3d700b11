"""All lanes beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QWidget

from app.ui.compare.lane_card import LaneCard
from app.ui.theme import Theme

GAP = 12


class LanesView(QScrollArea):
    """As many cards as there are lanes; where the window is too narrow for them they scroll."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.cards: list[LaneCard] = []
        self._names: tuple[tuple[str, str], ...] = ()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._inner = QWidget()
        self._row = QHBoxLayout(self._inner)
        self._row.setContentsMargins(24, 16, 24, 4)
        self._row.setSpacing(GAP)
        self.setWidget(self._inner)

    def set_lanes(self, names: Sequence[tuple[str, str]]) -> None:
        """A card for each (name, whole of it); the same ones stay as they are."""
        if tuple(names) == self._names:
            return
        self._names = tuple(names)
        for card in self.cards:
            self._row.removeWidget(card)
            card.hide()
            card.deleteLater()
        self.cards = [LaneCard(self._theme, name, detail) for name, detail in names]
        for card in self.cards:
            self._row.addWidget(card, 1)
