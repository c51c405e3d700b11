"""All lanes beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QWidget

from app.ui.compare.lanes.lane_card import LaneCard
from app.ui.theme import Theme
from app.ui.widgets.export import ChooseFile

GAP = 12


class LanesView(QScrollArea):
    """As many cards as there are lanes; where the window is too narrow for them they scroll."""

    failed = Signal(object)
    """The UserError of a plot that could not be saved."""

    def __init__(self, theme: Theme, choose: ChooseFile) -> None:
        super().__init__()
        self._theme = theme
        self._choose = choose
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
        self.cards = [LaneCard(self._theme, name, detail, self._choose) for name, detail in names]
        for card in self.cards:
            card.plot.failed.connect(self.failed)
            self._row.addWidget(card, 1)

    def minimumSizeHint(self) -> QSize:
        """Cards that do not fit beside each other are scrolled; they are not cut below."""
        return QSize(super().minimumSizeHint().width(), self._inner.minimumSizeHint().height())

    def share_axes(self, across: int, baselines: Sequence[float | None]) -> None:
        """Draw all plots over so many tokens, and as high as the highest; `baselines` are tokens/s."""
        plots = [card.plot for card in self.cards]
        known = [speed for speed in baselines if speed is not None]
        top = max([*known, *(plot.peak for plot in plots)], default=0.0)
        for plot, baseline in zip(plots, baselines, strict=True):
            plot.set_axes(across, top, baseline)
