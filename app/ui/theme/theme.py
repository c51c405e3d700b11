"""The theme in use, and themes that follow it with letters of a different size. It follows the system's light
or dark and its motion, unless the settings say otherwise, and provides fonts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QFont, QFontDatabase, QGuiApplication

from app.ui.theme.palette import PALETTES, STANDARD, Palette

MODES = ("system", "light", "dark")
_LEAST = 8.25  # points of the smallest letters: 11 pixels on most screens
MOTIONS = ("system", "full", "less")


@functools.cache  # Qt would keep every file as often as it is added, and forget all measured text each time
def _add_fonts(folder: Path) -> None:
    for file in sorted([*folder.glob("*.ttf"), *folder.glob("*.otf")]):
        QFontDatabase.addApplicationFont(str(file))


class Theme(QObject):
    """The one source of colours, fonts and motion; widgets repaint on `changed`."""

    changed = Signal()

    def __init__(
        self,
        fonts: Path,
        mode: str = "system",
        scale: float = 1.0,
        palette: str = STANDARD,
        motion: str = "system",
    ) -> None:
        """`fonts` is the folder with the bundled font files; `scale` multiplies the system's size; `palette`
        is a name in PALETTES, `motion` one of MOTIONS."""
        super().__init__()
        _add_fonts(fonts)
        self._mode = mode
        self._scale = scale
        self._palette = palette
        self._motion = motion
        self._system_motion_less = False
        self._colours = self._choose_colours()
        self._system_size = QGuiApplication.font().pointSizeF()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._system_changed)

    def follow(self, restyle: Callable[[], object]) -> None:
        """Call `restyle` now, and after every change."""
        self.changed.connect(restyle)
        restyle()

    @property
    def mode(self) -> str:
        return self._mode

    @property
    def scale(self) -> float:
        return self._scale

    @property
    def palette(self) -> Palette:
        return self._colours

    def _choose_colours(self) -> Palette:
        dark = self._mode == "dark"
        if self._mode == "system":
            scheme = QGuiApplication.styleHints().colorScheme()
            dark = scheme == Qt.ColorScheme.Dark
        return PALETTES[self._palette][dark]

    @property
    def motion(self) -> str:
        """The chosen motion, one of MOTIONS."""
        return self._motion

    @property
    def less_motion(self) -> bool:
        """Whether animation is off: nothing may glide, fade or fall by itself."""
        return self._motion == "less" or (self._motion == "system" and self._system_motion_less)

    def set_mode(self, mode: str) -> None:
        if mode != self._mode:
            self._mode = mode
            self._colours = self._choose_colours()
            self.changed.emit()

    def set_scale(self, scale: float) -> None:
        if scale != self._scale:
            self._scale = scale
            self.changed.emit()

    def set_palette(self, palette: str) -> None:
        """Use the palette of that name."""
        if palette != self._palette:
            self._palette = palette
            self._colours = self._choose_colours()
            self.changed.emit()

    def set_motion(self, motion: str) -> None:
        if motion != self._motion:
            self._motion = motion
            self.changed.emit()

    def set_system_motion(self, *, less: bool) -> None:
        """Set whether the system asks for less motion."""
        if less != self._system_motion_less:
            self._system_motion_less = less
            if self._motion == "system":
                self.changed.emit()

    def sans(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        """The interface font; `step` is added to the base size in points."""
        return self._font("Inter", step, weight)

    def mono(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        """The font for code and for numbers in columns."""
        return self._font("JetBrains Mono", step, weight)

    def _font(self, family: str, step: float, weight: QFont.Weight) -> QFont:
        font = QFont(family)
        font.setPointSizeF(max(self._system_size + step, _LEAST) * self._scale)
        font.setWeight(weight)
        # Tabular figures: numbers keep their width while they change.
        font.setFeature(QFont.Tag("tnum"), 1)
        if family == "JetBrains Mono":
            # Ligatures would join characters of different tokens.
            font.setFeature(QFont.Tag("calt"), 0)
            font.setFeature(QFont.Tag("liga"), 0)
        return font

    def _system_changed(self) -> None:
        if self._mode == "system":
            self._colours = self._choose_colours()
            self.changed.emit()


class FollowingTheme(Theme):
    """A theme that follows a base theme in everything; derived classes change the letters."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        QObject.__init__(self, parent)
        self._theme = theme
        theme.changed.connect(self.changed)

    def __getattr__(self, name: str) -> Any:
        """What this theme does not hold: fonts, colours and motion are those of the other theme."""
        return getattr(self.__dict__.get("_theme"), name)


class LargeTheme(FollowingTheme):
    """A theme for a projector: letters have a size in pixels, independent of the text size in the
    settings."""

    def __init__(self, theme: Theme, parent: QObject, least: float) -> None:
        """`least` is the smallest step of letters that is used."""
        super().__init__(theme, parent)
        self._least = least
        self._factor = 1.0

    def set_pixels(self, pixels: float) -> None:
        """Set the size of the smallest letters in use."""
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
