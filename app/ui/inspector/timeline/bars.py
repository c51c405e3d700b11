"""The pictures of a timeline's tracks: bars on whole pixels, one for each group of rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from app.ui.inspector.timeline.axis import RoundAxis
from app.ui.state.series import Bins
from app.ui.theme import Palette

if TYPE_CHECKING:
    from app.ui.state.series import Floats

_LINE = 2  # pixels
_CUT = 2  # pixels: the gap in a bar that is higher than its track


class BarPainter:
    """Paints the groups of one frame. Every track is a rectangle whose left edge is that of the axis."""

    def __init__(self, painter: QPainter, axis: RoundAxis, bins: Bins, palette: Palette) -> None:
        self._painter = painter
        self._bins = bins
        self._palette = palette
        left = _pixels((bins.left - axis.first) * axis.pitch)
        room = _pixels((bins.right - axis.first) * axis.pitch) - left
        self._left = left.astype(int)
        self._room = np.maximum(room, 1).astype(int)
        self._width = np.maximum(room - np.maximum(np.rint(room * 0.25), 1), 1).astype(int)

    @property
    def bars(self) -> int:
        """How many bars it paints in a track."""
        return len(self._left)

    def tokens(self, track: QRectF, top: float) -> None:
        """Emitted tokens by fate, before the length of the draft; `top` is the number at the upper edge."""
        unit = track.height() / top
        self._stack(track, [(self._bins.drafted * unit, self._palette.line)])
        self._stack(
            track,
            [(mean * unit, self._palette.area(origin)) for origin, mean in self._bins.origins.items()],
        )

    def times(self, track: QRectF, top: float) -> None:
        """Draft, verify and sampling from the upper edge down; `top` is the seconds of the whole height. A
        higher bar has a gap at its end."""
        unit = track.height() / top
        colours = time_colours(self._palette)
        self._stack(
            track,
            [(seconds * unit, colour) for seconds, colour in zip(self._bins.times, colours, strict=True)],
            down=True,
        )
        cut = np.flatnonzero(sum(self._bins.times) * unit > track.height() + 1)
        gap = round(track.bottom()) - 2 * _CUT
        self._painter.setBrush(QColor(self._palette.ground))
        self._painter.drawRects([QRect(int(self._left[at]), gap, int(self._width[at]), _CUT) for at in cut])

    def shares(self, track: QRectF, shares: Floats, colour: str) -> None:
        """A bar for each share in [0, 1]; none where it is not known."""
        self._stack(track, [(np.nan_to_num(shares) * track.height(), colour)])

    def steps(self, track: QRectF, values: Floats, top: float, colour: str) -> None:
        """A stepped line through the values; `top` is the value at the upper edge. A smooth line would take
        ten times as long to paint."""
        known = np.flatnonzero(np.isfinite(values))  # not where no time passed
        heights = np.clip(values[known] / top, 0, 1) * (track.height() - _LINE)
        y = np.rint(track.bottom() - _LINE - heights).astype(int)
        x, room = self._left[known] + round(track.left()), self._room[known]
        before = np.concatenate((y[:1], y[:-1]))
        level = np.stack((x, y, room, np.full(len(y), _LINE)), axis=1)
        upright = np.stack((x, np.minimum(y, before), np.ones_like(y), abs(y - before) + _LINE), axis=1)
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(QColor(colour))
        self._painter.drawRects([QRect(*row) for row in (*level.tolist(), *upright.tolist())])

    def _stack(self, track: QRectF, layers: Iterable[tuple[Floats, str]], *, down: bool = False) -> None:
        """Paint layers on top of each other, up from the lower edge or down from the upper one."""
        painter, height = self._painter, round(track.height())
        edge = round(track.top()) if down else round(track.bottom())
        painter.setPen(Qt.PenStyle.NoPen)
        total = np.zeros(len(self._left))
        for layer, colour in layers:
            low = np.minimum(np.rint(total), height).astype(int)
            total = total + layer
            high = np.minimum(np.rint(total), height).astype(int)
            top = edge + low if down else edge - high
            rects = np.stack((self._left + round(track.left()), top, self._width, high - low), axis=1)
            painter.setBrush(QColor(colour))
            painter.drawRects([QRect(*row) for row in rects[rects[:, 3] > 0].tolist()])


def _pixels(x: Floats) -> Floats:
    """Whole pixels. Halves always go up, or bars would change by a pixel where the axis goes on."""
    whole: Floats = np.floor(x + (0.5 + 1e-6))
    return whole


def time_colours(palette: Palette) -> Sequence[str]:
    """The colours of drafting, verifying and sampling."""
    return palette.faint, palette.secondary, palette.text
