"""Fonts and measures of the transcript, all taken from the theme's type sizes."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QFont, QFontInfo, QFontMetricsF

from app.ui.theme import Palette, Theme
from app.ui.transcript.text.paragraphs import Kind


class TextStyle:
    """The measures of the lines of a kind of paragraph, in pixels from the baseline."""

    def __init__(self, font: QFont, small: QFont, pitch: float) -> None:
        """`small` is for struck tokens; `pitch` is the line height as a multiple of the font's size."""
        self.font = font
        self.small = small
        size = QFontInfo(font).pixelSize()
        metrics = QFontMetricsF(font)
        self.character = metrics.averageCharWidth()
        self.space = metrics.horizontalAdvance(" ")
        self.pitch = round(size * pitch)
        self.box_above = round(size * 1.1)  # the tint's top
        self.box_below = round(size * 0.44)  # the bottom of the tint and of the underline
        self.below = (self.pitch - self.box_above - self.box_below) // 2 + self.box_below
        self.above = self.pitch - self.below
        small_size = QFontInfo(small).pixelSize()
        self.strike = round(small_size * 0.32)
        self.small_above = round(small_size * 0.98)
        self.small_below = round(small_size * 0.3)


class Styles:
    """Everything that depends on the theme; made anew when the theme changes."""

    def __init__(self, theme: Theme) -> None:
        self.palette: Palette = theme.palette
        prose = _plain(theme.sans(2))
        self.texts = {
            Kind.PROSE: TextStyle(prose, _plain(theme.sans(1)), 1.78),
            Kind.CODE: TextStyle(theme.mono(1), theme.mono(0), 1.85),
            Kind.FENCE: TextStyle(theme.mono(-0.5), theme.mono(-0.5), 1.9),
        }
        self.inline_code = theme.mono(1)
        self.control = theme.mono(-1)
        self.mark = theme.sans(1)  # the font of the mark for a newline
        self.label = theme.sans(0)
        self.small = theme.sans(-0.5)
        size = QFontInfo(prose).pixelSize()
        self.column = round(size * 51.8)  # about 95 characters
        self.margin = round(size * 1.65)
        self.turn_gap = round(size * 1.65)
        self.label_height = round(size * 1.6)
        self.empty_line = round(size)  # between paragraphs of prose

    def column_width(self, room: int) -> int:
        """The width of the column in a viewport `room` pixels wide."""
        return max(80, min(self.column, room - 2 * self.margin))


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that a layout depends on; a layout made for another setting is out of date."""

    styles: Styles
    width: int
    drafts_shown: bool
    pixel_ratio: float


def _plain(font: QFont) -> QFont:
    """The font without ligatures: they would join characters of different tokens ("->" into an arrow)."""
    for feature in ("calt", "liga", "clig"):
        font.setFeature(QFont.Tag(feature), 0)
    return font
