"""The lanes side by side."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QWidget

from app.ui.compare.lanes.lane_card import LaneCard
from app.ui.theme import Theme

GAP = 12


class LanesView(QScrollArea):
    """A card per lane; they scroll where the window is too narrow for them."""

    inspect_requested = Signal(object, int, str)  # answer, round, name of the lane
    failed = Signal(object)
    """The UserError of a plot that could not be saved."""

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
        """Make a card for each (name, detail); unchanged lanes keep their cards."""
        if tuple(names) == self._names:
            return
        self._names = tuple(names)
        for card in self.cards:
            self._row.removeWidget(card)
            card.hide()
            card.deleteLater()
        self.cards = [LaneCard(self._theme, name, detail) for name, detail in names]
        for card in self.cards:
            card.plot.failed.connect(self.failed)
            card.inspect_requested.connect(self.inspect_requested)
            self._row.addWidget(card, 1)

    def minimumSizeHint(self) -> QSize:
        """Narrow, since cards scroll sideways, but as high as a card, which is not cut."""
        return QSize(super().minimumSizeHint().width(), self._inner.minimumSizeHint().height())

    def share_axes(self, across: int, baselines: Sequence[float | None]) -> None:
        """Give all plots the same axes, over `across` tokens and up to the highest speed; `baselines` are
        tokens/s."""
        plots = [card.plot for card in self.cards]
        known = [speed for speed in baselines if speed is not None]
        top = max([*known, *(plot.peak for plot in plots)], default=0.0)
        for plot, baseline in zip(plots, baselines, strict=True):
            plot.set_axes(across, top, baseline)
