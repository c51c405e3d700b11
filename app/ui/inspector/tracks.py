"""The tracks of the timeline: which rounds they show, their bars on whole pixels, and the picture that a
step reuses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPixmap

from app.engine.types import Round
from app.ui.state.folds import Bins
from app.ui.theme import Palette
from app.ui.widgets.words import duration

if TYPE_CHECKING:
    from app.ui.state.folds import Floats

_STEPS = (32, 24, 16, 12, 8, 6, 4)  # pixels a round while all rounds fit: bars keep their place for a while
_FOLLOWING = 8  # pixels a round where not all fit
_WIDEST = 48
TIME_NAMES = ("draft", "verify", "sampling")


class RoundAxis:
    """Places rounds in a width: round i covers `pitch` pixels from `x_of(i)` on.

    Until the user zooms, all rounds are shown if they fit, otherwise those around the requested round."""

    def __init__(self) -> None:
        self.width = 1.0  # pixels
        self.scale = 1.0  # of text
        self.rounds = 0
        self._zoomed: float | None = None  # the pitch that someone chose
        self._first = 0.0  # the round at the left edge, with its fraction

    @property
    def pitch(self) -> float:
        """Pixels per round."""
        whole = self.width / max(self.rounds, 1)
        if self._zoomed is not None:
            return min(max(self._zoomed, min(whole, _STEPS[0] * self.scale)), _WIDEST * self.scale)
        return next(
            (step * self.scale for step in _STEPS if step * self.scale <= whole), _FOLLOWING * self.scale
        )

    @property
    def shown(self) -> float:
        """How many rounds have room."""
        return self.width / self.pitch

    @property
    def first(self) -> float:
        """The round at the left edge, with its fraction."""
        return min(max(self._first, 0.0), max(self.rounds - self.shown, 0.0))

    @property
    def whole(self) -> bool:
        """Whether all rounds are in sight."""
        return self.shown >= self.rounds

    def x_of(self, index: float) -> float:
        """Pixel of a round's left edge."""
        return (index - self.first) * self.pitch

    def round_at(self, x: float) -> float:
        """The round at a pixel, with its fraction."""
        return self.first + x / self.pitch

    def zoom(self, factor: float, x: float) -> None:
        """Give each round `factor` times as many pixels; the round at pixel `x` keeps its place."""
        index = self.round_at(x)
        self._zoomed = self.pitch * factor
        self._zoomed = self.pitch  # within its bounds
        self._first = index - x / self.pitch
        self._first = self.first

    def pan(self, pixels: float) -> None:
        """Scroll right by this many pixels."""
        self._first = self.first + pixels / self.pitch

    def show(self, index: int) -> None:
        """Bring a round into sight: by as little as it takes, or into the middle if it is far away."""
        shown = self.shown
        if self.first <= index and index + 1 <= self.first + shown:
            return
        if not self.first - shown < index < self.first + 2 * shown:
            self._first = index - shown / 2
        else:
            self._first = float(index) if index < self.first else index + 1 - shown

    def show_all(self) -> None:
        """Show as many rounds as have room: all of them, however narrow their bars."""
        self._zoomed, self._first = 0.0, 0.0

    def reset(self) -> None:
        """Start again, for a different answer."""
        self._zoomed, self._first = None, 0.0


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
            track, [(mean * unit, self._palette.area(origin)) for origin, mean in self._bins.origins.items()]
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
        """A bar for each share in [0, 1]; none if it is not known."""
        self._stack(track, [(np.nan_to_num(shares) * track.height(), colour)])

    def steps(self, track: QRectF, values: Floats, top: float, colour: str) -> None:
        """A stepped line through the values; `top` is the value at the upper edge. A smooth line would take
        ten times as long to paint."""
        known = np.flatnonzero(np.isfinite(values))  # not if no time passed
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
    """Whole pixels. Halves always go up, or bars would change by a pixel where the axis continues."""
    whole: Floats = np.floor(x + (0.5 + 1e-6))
    return whole


def time_colours(palette: Palette) -> Sequence[str]:
    """The colours of drafting, verifying and sampling."""
    return palette.faint, palette.secondary, palette.text


PaintRounds = Callable[[QPainter, int, int], None]
"""Paints a range of rounds: (painter, first round, the round after the last)."""


class TrackPicture:
    """Keeps what was painted, from the left edge of the axis on."""

    def __init__(self) -> None:
        self._pixels = QPixmap()
        self._look: Hashable = None
        self._first = 0.0  # of the axis
        self._end = 0  # the round behind the last painted one

    def forget(self) -> None:
        """Discard the picture: the rounds changed."""
        self._look = None

    def pixels(
        self, look: Hashable, ground: str, size: QSize, ratio: float, axis: RoundAxis, group: int, end: int,
        paint: PaintRounds,
    ) -> QPixmap:  # fmt: skip
        """The visible rounds before `end`. A bar represents `group` rounds; the bar of a whole group never
        changes. `look` is everything else that the bars depend on, except the position of the axis."""
        look = look, ground, size, ratio, axis.pitch, group
        whole = QRect(0, 0, size.width(), size.height())
        shift = round((axis.first - self._first) * axis.pitch, 6)
        scrolls = shift.is_integer() and (shift * ratio).is_integer() and abs(shift) < size.width()
        changed = []
        if look != self._look or not scrolls:
            self._pixels = QPixmap(size * ratio)
            self._pixels.setDevicePixelRatio(ratio)
            changed = [whole]
        else:
            if shift:
                self._pixels.scroll(-round(shift * ratio), 0, self._pixels.rect())
                beyond = size.width() if shift > 0 else -size.width()
                changed = [whole.translated(beyond - round(shift), 0)]
            if end != self._end:
                left = round(axis.x_of(min(end, self._end) // group * group) - 0.5)
                right = ceil(axis.x_of(max(end, self._end)) + 0.5)
                part = QRect(left, 0, right - left, size.height())
                changed = [part.united(rect) for rect in changed if part.intersects(rect)] or [*changed, part]
        self._look, self._first, self._end = look, axis.first, end
        for part in (rect & whole for rect in changed):
            if not part.isEmpty():
                painter = QPainter(self._pixels)
                painter.setClipRect(part)
                painter.fillRect(part, QColor(ground))
                last = axis.round_at(part.left() + part.width())
                paint(painter, max(int(axis.round_at(part.left())), 0), min(ceil(last), end))
                painter.end()
        return self._pixels


def bar_facts(round: Round) -> str:
    """A round in one line."""
    drafted = len(round.drafted)
    draft = f"{round.accepted} of {drafted} accepted" if drafted else "no draft"
    tokens = f"{len(round.emitted)} token{'' if len(round.emitted) == 1 else 's'}"
    seconds = (round.draft_seconds, round.verify_seconds, round.sample_seconds)
    times = zip(TIME_NAMES, seconds, strict=True) if round.verify_seconds else ()  # a server tells the whole
    return " · ".join(
        (draft, tokens, duration(round.seconds), *(f"{name} {duration(seconds)}" for name, seconds in times))
    )
