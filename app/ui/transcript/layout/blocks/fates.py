"""How fates are painted: a soft tint behind the letters and a line as a second cue.

Shapes are gathered by fate, so that a screen full of tokens costs a handful of painter calls. All edges
lie on device pixels and are drawn without smoothing.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app.engine.fates import STRUCK
from app.ui.theme import LOOKS, Palette
from app.ui.transcript.layout.styles import TextStyle
from app.ui.transcript.text.spans import UNKNOWN

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
        """Paint what lies behind the letters."""
        painter.setPen(Qt.PenStyle.NoPen)
        for fate, rects in self._tints.items():
            painter.setBrush(_tint(palette, fate))
            painter.drawRects(rects)

    def paint_cues(self, painter: QPainter, palette: Palette) -> None:
        """Paint the lines."""
        painter.setPen(Qt.PenStyle.NoPen)
        for fate, rects in self._bars.items():
            painter.setBrush(_line(palette, fate))
            painter.drawRects(rects)
        for fate, lines in self._dots.items():
            painter.setPen(_dashed(palette, fate, _THICK, 1, 1))
            painter.drawLines(lines)
        for fate, lines in self._dashes.items():
            painter.setPen(_dashed(palette, fate, _THIN, 4, 2))
            painter.drawLines(lines)

    def _snap(self, value: float) -> float:
        return round(value * self._ratio) / self._ratio

    def _tint(self, fate: str, left: float, right: float, top: float, bottom: float) -> None:
        """A rectangle whose upper corners are taken off pixel by pixel: the edge of a token shows as a
        notch without parting it from its neighbours."""
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
                self._bars[fate].append(QRectF(left, middle - _THICK / 2, right - left, _THICK))
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
