"""Fonts and measures of the transcript, all taken from the theme's type sizes; how fates and marks are
painted.

Shapes are gathered by fate, so that a screen full of tokens costs a handful of painter calls. All edges are
on device pixels and are drawn without smoothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QPainter, QPen

from app.engine.fates import STRUCK
from app.ui.theme import LOOKS, Palette, Theme
from app.ui.transcript.text.paragraphs import Kind
from app.ui.transcript.text.spans import UNKNOWN, Span


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
    """Everything that depends on the theme; made again when the theme changes."""

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
        self.label_middle = QFontMetricsF(self.label).height() / 2
        self.empty_line = round(size)  # between paragraphs of prose

    def column_width(self, room: int) -> int:
        """The width of the column in a viewport `room` pixels wide."""
        return max(80, min(self.column, room - 2 * self.margin))


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that a layout depends on; a layout made for a different setting is out of date."""

    styles: Styles
    width: int
    drafts_shown: bool
    pixel_ratio: float


def _plain(font: QFont) -> QFont:
    """The font without ligatures: they would join characters of different tokens ("->" into an arrow)."""
    for feature in ("calt", "liga", "clig"):
        font.setFeature(QFont.Tag(feature), 0)
    return font


_THICK = 2.0
_THIN = 1.0


class FateShapes:
    """The tints and cues of a piece of text."""

    def __init__(self, pixel_ratio: float) -> None:
        self._ratio = pixel_ratio
        self._tints: defaultdict[str, list[QRectF]] = defaultdict(list)
        self._bars: defaultdict[str, list[QRectF]] = defaultdict(list)
        self._dots: defaultdict[str, list[QLineF]] = defaultdict(list)
        self._dashes: defaultdict[str, list[QLineF]] = defaultdict(list)

    def add(self, fate: str, left: float, right: float, baseline: float, style: TextStyle) -> None:
        """Add one token's extent on one line."""
        left, right, baseline = self._snap(left), self._snap(right), self._snap(baseline)
        if right <= left or fate == UNKNOWN:
            return
        struck = fate in STRUCK
        top = baseline - (style.small_above if struck else style.box_above)
        bottom = baseline + (style.small_below if struck else style.box_below)
        if not LOOKS[fate].neutral:
            self._tint(fate, left, right, top, bottom)
        self._cue(fate, left, right, bottom, self._snap(baseline - style.strike))

    def paint_tints(self, painter: QPainter, palette: Palette) -> None:
        """Paint the background of the letters. Lines through them are part of it: letters over their line can
        be read."""
        painter.setPen(Qt.PenStyle.NoPen)
        for fate, rects in self._tints.items():
            painter.setBrush(_tint(palette, fate))
            painter.drawRects(rects)
        self._paint_bars(painter, palette, STRUCK)
        for fate, lines in self._dashes.items():
            painter.setPen(_dashed(palette, fate, _THIN, 4, 2))
            painter.drawLines(lines)

    def paint_cues(self, painter: QPainter, palette: Palette) -> None:
        """Paint the lines below the letters."""
        self._paint_bars(painter, palette, self._bars.keys() - STRUCK)
        for fate, lines in self._dots.items():
            painter.setPen(_dashed(palette, fate, _THICK, 1, 1))
            painter.drawLines(lines)

    def _paint_bars(self, painter: QPainter, palette: Palette, fates: Iterable[str]) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        for fate in fates:
            painter.setBrush(_line(palette, fate))
            painter.drawRects(self._bars.get(fate, []))

    def _snap(self, value: float) -> float:
        return round(value * self._ratio) / self._ratio

    def _tint(self, fate: str, left: float, right: float, top: float, bottom: float) -> None:
        """A rectangle without some pixels in its upper corners, so that the edge of a token is a notch that
        does not separate it from its neighbours."""
        rects = self._tints[fate]
        pixel = 1 / self._ratio
        steps = _corner(self._ratio)
        for row, inset in enumerate(steps):
            if right - left > 4 * pixel * inset:
                y = top + row * pixel
                rects.append(QRectF(left + inset * pixel, y, right - left - 2 * inset * pixel, pixel))
        rects.append(QRectF(left, top + len(steps) * pixel, right - left, bottom - top - len(steps) * pixel))

    def _cue(self, fate: str, left: float, right: float, bottom: float, middle: float) -> None:
        # Half a pixel short on both sides: the edges of tokens stay visible in the line below them.
        gap = max(round(self._ratio / 2), 1) / self._ratio
        width = max(right - left - gap, gap)
        match LOOKS[fate].cue:
            case "line":
                self._bars[fate].append(QRectF(left, bottom - _THICK, width, _THICK))
            case "double line":
                self._bars[fate].append(QRectF(left, bottom - _THICK, width, _THIN))
                self._bars[fate].append(QRectF(left, bottom, width, _THIN))
            case "dots":
                y = bottom - _THICK / 2
                self._dots[fate].append(QLineF(left, y, left + width, y))
            case "strike":
                self._bars[fate].append(QRectF(left, middle - _THIN, right - left, _THIN))
            case "dashed strike":
                y = middle - _THIN / 2
                self._dashes[fate].append(QLineF(left, y, right - 1, y))


@cache
def _corner(ratio: float) -> tuple[int, ...]:
    """For each pixel row from the top: how many pixels to leave out. A radius of two pixels."""
    if ratio < 1.5:
        return (1,)
    if ratio < 2.5:
        return (2, 1)
    return (3, 2, 1)


@cache
def _tint(palette: Palette, fate: str) -> QColor:
    return QColor(palette.tint(fate))


@cache
def _line(palette: Palette, fate: str) -> QColor:
    return QColor(palette.fate(fate))


@cache
def _dashed(palette: Palette, fate: str, width: float, on: float, off: float) -> QPen:
    pen = QPen(_line(palette, fate), width)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    pen.setDashPattern([on, off])
    return pen


@dataclass(frozen=True, slots=True)
class Marks:
    """What is marked in one block; ranges count characters of its text."""

    selected: tuple[int, int] | None = None  # its end is one behind the text where the newline is selected
    found: tuple[tuple[int, int], ...] = ()
    current: tuple[int, int] | None = None  # the current match
    token: Span | None = None


NO_MARKS = Marks()


def wash(palette: Palette) -> QColor:
    """A translucent veil in the text's colour."""
    colour = QColor(palette.text)
    colour.setAlphaF(palette.wash_share)
    return colour


def fill(painter: QPainter, rects: Sequence[QRectF], colour: QColor) -> None:
    if rects:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawRects(rects)


def outline(
    painter: QPainter,
    rects: Sequence[QRectF],
    colour: str,
    radius: float = 2.5,
    style: Qt.PenStyle = Qt.PenStyle.SolidLine,
) -> None:
    """A thin rounded line around each rectangle."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(colour), 1, style))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for rect in rects:
        # On pixel centres, so that a line one pixel wide stays one pixel wide.
        left, top = round(rect.left()) - 0.5, round(rect.top()) - 0.5
        right, bottom = round(rect.right()) + 0.5, round(rect.bottom()) + 0.5
        painter.drawRoundedRect(QRectF(left, top, right - left, bottom - top), radius, radius)
    painter.restore()
