"""The theme with smaller letters, for several answers side by side."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QFont

from app.ui.theme import Palette, Theme

STEP = 1.5  # points


class SmallTheme(Theme):
    """A theme with smaller letters that follows another theme in everything else."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        QObject.__init__(self, parent)  # fonts and mode are those of the other theme
        self._theme = theme
        theme.changed.connect(self.changed)

    @property
    def mode(self) -> str:
        return self._theme.mode

    @property
    def scale(self) -> float:
        return self._theme.scale

    @property
    def palette(self) -> Palette:
        return self._theme.palette

    def sans(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        return self._theme.sans(step - STEP, weight)

    def mono(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        return self._theme.mono(step - STEP, weight)
