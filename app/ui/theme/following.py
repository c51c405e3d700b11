"""Themes that follow another theme, with letters of another size."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QFont, QGuiApplication

from app.ui.theme.palette import Palette
from app.ui.theme.theme import Theme


class FollowingTheme(Theme):
    """A theme that follows another theme in everything; derived classes change the letters."""

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

    @property
    def motion(self) -> str:
        return self._theme.motion

    @property
    def less_motion(self) -> bool:
        return self._theme.less_motion


class LargeTheme(FollowingTheme):
    """A theme for a projector: letters have a size in pixels, whatever text size is set."""

    def __init__(self, theme: Theme, parent: QObject, least: float) -> None:
        """`least` is the smallest step of letters that is used."""
        super().__init__(theme, parent)
        self._least = least
        self._factor = 1.0

    def set_pixels(self, pixels: float) -> None:
        """Give the smallest letters that are used this size."""
        dots = QGuiApplication.primaryScreen().logicalDotsPerInchY()
        factor = (pixels + 0.5) * 72 / dots / self._theme.sans(self._least).pointSizeF()
        if factor != self._factor:
            self._factor = factor
            self.changed.emit()

    @property
    def scale(self) -> float:
        return self._theme.scale * self._factor

    def sans(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        return self._larger(self._theme.sans(step, weight))

    def mono(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        return self._larger(self._theme.mono(step, weight))

    def _larger(self, font: QFont) -> QFont:
        font.setPointSizeF(font.pointSizeF() * self._factor)
        return font
