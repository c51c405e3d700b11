"""A small plot of a lane's answer: its speed round by round, and the accepted share of each draft."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip

from app.base.numbers import ordinal
from app.engine.fates import Verdict
from app.engine.record.trace import Trace
from app.ui.state.folds import RATE_WINDOW, RoundSeries
from app.ui.theme import Theme
from app.ui.widgets.labels import as_text
from app.ui.widgets.plot import Cell, Plot
from app.ui.widgets.words import SPACE, count, per_second, significant

HEIGHT = 56  # pixels at text scale 1
_STRIP = 8
_BURST = 4.0  # times the speed of the whole answer
_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


class LanePlot(Plot):
    """Tokens/s over the answer's tokens, with the baseline's speed as a dashed line. Below is a strip of
    rounds, each filled by the accepted share of its draft. All lanes share their axes for comparison."""

    round_clicked = Signal(int)

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__(theme)
        self.file_stem = "tokens-per-second"
        self.setMouseTracking(True)
        self.setAccessibleName(f"Tokens per second and acceptance of {name}, round by round")
        self._across, self._top = 1, 1.0
        self._baseline: float | None = None
        self._forget(None)

    def _forget(self, trace: Trace | None) -> None:
        self._trace = trace
        self._shown = 0
        self._series = RoundSeries()
        self._ends: list[int] = []  # tokens of the answer after each round
        self._rates: list[float] = []
        self._shares: list[float] = []  # accepted / drafted, NaN where nothing was drafted
        self._peak = 0.0
        """The highest speed of the answer, tokens/s."""

    @property
    def tokens(self) -> int:
        """The known tokens of the answer."""
        return self._ends[-1] if self._ends else 0

    def show_trace(self, trace: Trace | None, rounds: int) -> None:
        """Show the answer up to a round; None shows nothing."""
        if trace is self._trace and rounds == self._shown:
            return
        if trace is not self._trace:
            self._forget(trace)
        new = trace.rounds[len(self._ends) :] if trace is not None else []
        self._series.add(new)
        for round in new:
            self._ends.append(self.tokens + len(round.emitted))
            rate = self._series.rate_at(len(self._rates)) or 0.0
            self._rates.append(rate)
            self._shares.append(round.accepted / len(round.drafted) if round.drafted else math.nan)
            # Before the window is full, a single fast round would set the peak.
            self._peak = max(self._peak, rate) if len(self._rates) > RATE_WINDOW else rate
        self._shown = rounds
        self.update()

    @property
    def peak(self) -> float:
        """The highest speed for the axis, in tokens/s. A server's tokens may arrive in bursts, which are cut:
        else the curves of all lanes would be flat."""
        last = self._trace.rounds[len(self._ends) - 1] if self._trace is not None and self._ends else None
        seconds = last.offset + last.seconds if last is not None else 0.0
        return min(self._peak, _BURST * self.tokens / seconds) if seconds > 0 else self._peak

    def set_axes(self, across: int, top: float, baseline: float | None) -> None:
        """Set the axes shared by all lanes, in tokens and tokens/s, and the speed of this lane's baseline."""
        axes = max(across, 1), _rounded_up(top), baseline
        if axes != (self._across, self._top, self._baseline):
            self._across, self._top, self._baseline = axes
            self.update()

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
        names = ("round", "tokens", "tokens_per_second", "drafted", "accepted")
        rounds = self._trace.rounds[: self._shown] if self._trace is not None else []
        rows = [
            (round.index, self._ends[at], self._rates[at], len(round.drafted), round.accepted)
            for at, round in enumerate(rounds)
        ]
        return names, rows

    def sizeHint(self) -> QSize:
        return QSize(120, round(HEIGHT * self._theme.scale))

    # ------------------------------------------------------------------ painting

    def _plot(self) -> QRectF:
        top = QFontMetricsF(self._theme.sans(-2)).height()  # the label is above the line
        return QRectF(0.5, top, self.width() - 1, self.height() - top - _STRIP - 5)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours, plot = self._theme.palette, self._plot()
        painter.fillRect(QRectF(0, plot.bottom(), self.width(), 1), QColor(colours.line))
        if not self._shown:
            return
        edges = 0.5 + (self.width() - 1) / self._across * np.array([0, *self._ends[: self._shown]])
        painter.fillRect(QRectF(0, plot.bottom() - 0.5, edges[-1], 2), QColor(colours.secondary))
        self._draw_baseline(painter, plot)
        self._draw_strip(painter, edges[:-1], edges[1:])
        painter.setPen(QPen(QColor(colours.text), 1.4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        heights = self._y(plot, np.array(self._rates[: self._shown]))
        painter.drawPath(pg.arrayToQPath((edges[:-1] + edges[1:]) / 2, heights))
        painter.setFont(self._theme.sans(-2))
        painter.setPen(QColor(colours.secondary))
        label = f"{significant(self._top)}{SPACE}tok/s"
        painter.drawText(QRectF(0, 0, self.width(), plot.top()), Qt.AlignmentFlag.AlignRight, label)

    def _y(self, plot: QRectF, rate: np.ndarray | float) -> np.ndarray:
        return plot.bottom() - plot.height() * np.minimum(rate / self._top, 1.0)

    def _draw_baseline(self, painter: QPainter, plot: QRectF) -> None:
        if self._baseline is None:
            return
        pen = QPen(QColor(self._theme.palette.secondary), 1)
        pen.setDashPattern([4, 3])
        painter.setPen(pen)
        y = round(float(self._y(plot, self._baseline))) + 0.5
        painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))

    def _draw_strip(self, painter: QPainter, left: np.ndarray, right: np.ndarray) -> None:
        shares = np.array(self._shares[: self._shown])
        drafted = ~np.isnan(shares)
        left, right, full = left[drafted], right[drafted], _STRIP * shares[drafted]
        right = np.maximum(right - 0.5 * (right - left > 2), left + 0.5)
        colours = self._theme.palette
        painter.setPen(Qt.PenStyle.NoPen)
        for height, colour in (
            (np.full_like(full, _STRIP), colours.tint(Verdict.REJECTED)),
            (full, colours.fate(Verdict.ACCEPTED)),
        ):
            bars = np.stack([left, self.height() - height, right - left, height], axis=1)
            painter.setBrush(QColor(colour))
            painter.drawRects([QRectF(*bar) for bar in bars.tolist()])  # a single call: each has a cost

    # ------------------------------------------------------------------ reading

    def round_at(self, x: float) -> int | None:
        """The round at `x`; None if there is none."""
        at = bisect_right(self._ends, x / max(self.width(), 1) * self._across)
        return at if self._trace is not None and at < self._shown else None

    def reading(self, x: float) -> str:
        """The numbers of the round at `x`; "" if there is none."""
        at = self.round_at(x)
        if self._trace is None or at is None:
            return ""
        round = self._trace.rounds[at]
        lines = [
            f"round {ordinal(round.index)}, up to token {count(self._ends[at])}",
            f"{per_second(self._rates[at])} over the last {RATE_WINDOW} rounds",
            f"{round.accepted} of {len(round.drafted)} drafted tokens accepted"
            if round.drafted
            else "no draft",
        ]
        if self._baseline is not None:
            lines.append(f"dashed: none, {per_second(self._baseline)}")
        return "\n".join(lines)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        text = self.reading(event.position().x())
        if text:
            QToolTip.showText(event.globalPosition().toPoint(), as_text(text), self)
        else:
            QToolTip.hideText()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        at = self.round_at(event.position().x())
        if event.button() is Qt.MouseButton.LeftButton and at is not None:
            self.round_clicked.emit(at)

    def leaveEvent(self, event: QEvent) -> None:
        QToolTip.hideText()


def _rounded_up(rate: float) -> float:
    """The top of an axis that does not move with every round."""
    ten = 1.0
    while rate > 10 * ten:
        ten *= 10
    while 0 < rate < ten:
        ten /= 10
    return next((step * ten for step in _STEPS if step * ten >= rate * 0.999999), 10 * ten)
