"""The page of a measurement against a number: curves, every number below, and what was left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QLabel, QSplitter, QToolTip, QWidget

from app.lab.report.charts import Scale, ticks
from app.lab.report.plots import CurvePlot, Curves, place_words
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.labels import as_text
from app.ui.widgets.plot import Cell, ChooseFile, Plot, choose_file
from app.ui.widgets.tables import TextTable, selected_rows

NEAR = 14  # pixels within which the mouse points at a point
_SAME = 4  # pixels within which points cover each other
_NARROWEST = 210  # pixels of a plot at text scale 1; if they would be narrower, they stand in two rows
_LOWEST = 120
_INSIDE = 18  # pixels between the frame of a plot and its outermost places
_SAMPLE = 34  # pixels of a line in the legend

_TRIANGLE = ((0.0, -1.25), (1.15, 0.85), (-1.15, 0.85))
_SQUARE = ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9))
_DIAMOND = ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0))
_UPSIDE_DOWN = tuple((x, -y) for x, y in _TRIANGLE)
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = ((), _SQUARE, _DIAMOND, _TRIANGLE, _UPSIDE_DOWN)
"""Corners of the markers; without corners, a circle. Lanes differ by them: colours belong to fates."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A plot and where it is drawn."""

    plot: CurvePlot
    frame: QRectF  # of the data
    x: Scale
    y: Scale

    def point(self, at: float, value: float) -> QPointF:
        return QPointF(self.x(at), self.y(value))


class PointedPlot(Plot):
    """A plot of points that are read out under the mouse."""

    def __init__(self, theme: Theme, name: str, choose: ChooseFile) -> None:
        super().__init__(theme, choose)
        self._pointed: tuple[Any, ...] = ()  # what is under the mouse, the nearest first
        self.setMouseTracking(True)
        self.setAccessibleName(name)

    def marks(self) -> Iterator[tuple[Any, QPointF]]:
        """(what it is, pixel) of every point."""
        raise NotImplementedError

    def reading(self, place: QPointF) -> str:
        """The numbers of the points near a place; "" if there are none."""
        raise NotImplementedError

    def near(self, place: QPointF) -> tuple[Any, ...]:
        """The nearest point, and those that it covers."""
        away = sorted(((point - place).manhattanLength(), mark) for mark, point in self.marks())
        limit = min(NEAR, away[0][0] + _SAME) if away else 0.0
        return tuple(mark for distance, mark in away if distance <= limit)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        pointed = self.near(event.position())
        if pointed != self._pointed:
            self._pointed = pointed
            self.update()
            if pointed:
                reading = as_text(self.reading(event.position()))
                QToolTip.showText(event.globalPosition().toPoint(), reading, self)
            else:
                QToolTip.hideText()

    def leaveEvent(self, event: QEvent) -> None:
        self._pointed = ()
        self.update()

    def draw_level(self, painter: QPainter, frame: QRectF, y: float, text: str) -> None:
        """A line of the grid, with its number at the left."""
        height = QFontMetricsF(painter.font()).height()
        painter.setPen(QColor(self._theme.palette.line))
        painter.drawLine(QPointF(frame.left(), y), QPointF(frame.right(), y))
        painter.setPen(QColor(self._theme.palette.secondary))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRectF(frame.left() - 208, y - height / 2, 200, height), right, text)

    def draw_dashed(self, painter: QPainter, frame: QRectF, y: float) -> None:
        pen = QPen(QColor(self._theme.palette.secondary), 1)
        pen.setDashPattern([4, 3])
        painter.setPen(pen)
        painter.drawLine(QPointF(frame.left(), y), QPointF(frame.right(), y))


class CurvesView(PointedPlot):
    """Hovering reads out a point; one lane may stand out."""

    def __init__(self, theme: Theme, name: str, file_stem: str, choose: ChooseFile = choose_file) -> None:
        super().__init__(theme, name, choose)
        self.file_stem = file_stem
        self.curves: Curves | None = None
        self._chosen: int | None = None  # the lane that stands out

    def set_curves(self, curves: Curves | None) -> None:
        """Show these curves; None shows what will come."""
        if curves is None or self.curves is None or curves.lanes != self.curves.lanes:
            self._pointed, self._chosen = (), None
        self.curves = curves
        self.update()

    def stand_out(self, lane: int | None) -> None:
        """Draw this lane in front of the others, which fade; None draws all alike."""
        if lane != self._chosen:
            self._chosen = lane
            self.update()

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
        return self.curves.table() if self.curves is not None else ((), ())

    def sizeHint(self) -> QSize:
        return QSize(640, round(300 * self._theme.scale))

    def minimumSizeHint(self) -> QSize:
        return QSize(280, round(1.4 * _LOWEST * self._theme.scale))

    def reading(self, place: QPointF) -> str:
        near = self.near(place)
        return "\n\n".join(self.curves.reading(*each) for each in near) if self.curves is not None else ""

    # ------------------------------------------------------------------ where things are

    def points(self) -> Iterator[tuple[int, int, QPointF]]:
        """(lane, index of the place, pixel) of every point."""
        if (curves := self.curves) is None:
            return
        for drawn in self._drawn(curves):
            for (lane, at), value in drawn.plot.values.items():
                yield lane, at, drawn.point(at, value)

    def marks(self) -> Iterator[tuple[tuple[int, int], QPointF]]:
        return (((lane, at), point) for lane, at, point in self.points())

    def _drawn(self, curves: Curves) -> list[_Drawn]:
        """The plots that have values, where they are drawn."""
        shown = list(curves.shown())
        if not shown:
            return []
        metrics = QFontMetricsF(self._theme.sans(-1))
        line = metrics.height()
        across = len(shown)
        if self.width() / across < _NARROWEST * self._theme.scale:
            across = math.ceil(across / 2)
        down = math.ceil(len(shown) / across)
        wide, high = self.width() / across, (self.height() - self._legend_height(curves)) / down
        found = []
        for index, plot in enumerate(shown):
            row, column = divmod(index, across)
            scale = Scale(0.0, plot.top * 1.1, 0.0, 1.0)
            labels = [metrics.horizontalAdvance(plot.text(tick)) for tick in ticks(0, scale.high, 4)]
            left = max(labels) + 10
            frame = QRectF(
                column * wide + left, row * high + line + 8, wide - left - 14, high - 3 * line - 18
            )
            x = Scale(0, max(1, len(curves.places) - 1), frame.left() + _INSIDE, frame.right() - _INSIDE)
            found.append(_Drawn(plot, frame, x, Scale(0.0, scale.high, frame.bottom(), frame.top())))
        return found

    def _legend(self, curves: Curves) -> Iterator[tuple[int, float, int]]:
        """(lane, left edge, row) of every name of the legend."""
        metrics = QFontMetricsF(self._theme.mono(-1))
        left, row = 0.0, 0
        for lane, name in enumerate(curves.lanes):
            width = _SAMPLE + 8 + metrics.horizontalAdvance(name) + 24
            if left and left + width > self.width():
                left, row = 0.0, row + 1
            yield lane, left, row
            left += width

    def _legend_height(self, curves: Curves) -> float:
        rows = max((row for _, _, row in self._legend(curves)), default=0) + 1
        return rows * (QFontMetricsF(self._theme.mono(-1)).height() + 4) + 4

    # ------------------------------------------------------------------ painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.sans(-1))
        curves = self.curves
        drawn = self._drawn(curves) if curves is not None else []
        if curves is None or not drawn:
            painter.setPen(QColor(self._theme.palette.secondary))
            words = "Each lane becomes a line here once its first answers are measured."
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, words)
            return
        front = self._front()
        order = sorted(range(len(curves.lanes)), key=lambda lane: (lane == front, lane))
        for part in drawn:
            self._draw_axes(painter, curves, part)
            for lane in order:
                self._draw_lane(painter, curves, part, lane)
            self._draw_marks(painter, part)
        self._draw_legend(painter, curves)

    def _front(self) -> int | None:
        """The lane that stands out at the moment."""
        return self._pointed[0][0] if self._pointed else self._chosen

    def _draw_axes(self, painter: QPainter, curves: Curves, drawn: _Drawn) -> None:
        colours, frame = self._theme.palette, drawn.frame
        height = QFontMetricsF(painter.font()).height()
        centre = Qt.AlignmentFlag.AlignHCenter
        for tick in ticks(0, drawn.y.high, 4):
            self.draw_level(painter, frame, round(drawn.y(tick)) + 0.5, drawn.plot.text(tick))
        used = -math.inf
        for at, place in enumerate(curves.places):
            width = QFontMetricsF(painter.font()).horizontalAdvance(place_words(place)) + 8
            x = drawn.x(at)
            if x - width / 2 >= used:
                painter.drawText(QRectF(x - 60, frame.bottom() + 4, 120, height), centre, place_words(place))
                used = x + width / 2
        below = QRectF(frame.left(), frame.bottom() + 4 + height, frame.width(), height)
        painter.drawText(below, centre, curves.axis)
        painter.setPen(QColor(colours.text))
        above = QRectF(frame.left(), frame.top() - height - 6, frame.width(), height)
        painter.drawText(above, Qt.AlignmentFlag.AlignLeft, drawn.plot.title)
        if drawn.plot.level is not None:
            self.draw_dashed(painter, frame, round(drawn.y(drawn.plot.level)) + 0.5)

    def _draw_lane(self, painter: QPainter, curves: Curves, drawn: _Drawn, lane: int) -> None:
        points = [drawn.point(at, value) for at, value in drawn.plot.line(lane, len(curves.places))]
        painter.setPen(self._pen(curves, lane))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(points)
        for point in points:
            self._draw_marker(painter, curves, lane, point)

    def _pen(self, curves: Curves, lane: int) -> QPen:
        front = self._front()
        colours = self._theme.palette
        plain = colours.secondary if lane in curves.baselines else colours.text
        colour = plain if front is None else colours.text if lane == front else colours.faint
        pen = QPen(QColor(colour), 2.2 if lane == front else 1.4)
        if lane in curves.baselines:
            pen.setDashPattern([4, 3])
        return pen

    def _draw_marker(self, painter: QPainter, curves: Curves, lane: int, point: QPointF) -> None:
        """The second half of the shapes is hollow."""
        colour = self._pen(curves, lane).color()
        hollow = lane in curves.baselines or lane // len(_SHAPES) % 2 == 1
        painter.setPen(QPen(colour, 1.4))
        painter.setBrush(QColor(self._theme.palette.ground) if hollow else colour)
        size = 5.5 if lane == self._front() else 4.0
        corners = _SHAPES[lane % len(_SHAPES)]
        if corners:
            moved = [QPointF(point.x() + x * size, point.y() + y * size) for x, y in corners]
            painter.drawPolygon(QPolygonF(moved))
        else:
            painter.drawEllipse(point, size, size)

    def _draw_marks(self, painter: QPainter, drawn: _Drawn) -> None:
        colours = self._theme.palette
        height = QFontMetricsF(painter.font()).height()
        painter.setPen(QPen(QColor(colours.text), 1.4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for mark in drawn.plot.marks:
            place = drawn.point(mark.at, mark.value)
            painter.drawEllipse(place, 8, 8)
            box = QRectF(place.x() + 10, place.y() - height - 4, 80, height)
            painter.drawText(box, Qt.AlignmentFlag.AlignLeft, mark.text)

    def _draw_legend(self, painter: QPainter, curves: Curves) -> None:
        painter.setFont(self._theme.mono(-1))
        line = QFontMetricsF(painter.font()).height() + 4
        top = self.height() - self._legend_height(curves) + 4
        for lane, left, row in self._legend(curves):
            y = top + row * line + line / 2 - 2
            pen = self._pen(curves, lane)
            painter.setPen(pen)
            painter.drawLine(QPointF(left, y), QPointF(left + _SAMPLE, y))
            self._draw_marker(painter, curves, lane, QPointF(left + _SAMPLE / 2, y))
            painter.setPen(pen.color())
            box = QRectF(left + _SAMPLE + 8, top + row * line - 2, self.width(), line)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, curves.lanes[lane])


class CurvesPage(QWidget):
    """Shows what the lab has folded so far."""

    closed = Signal()

    def __init__(self, theme: Theme, name: str, file_stem: str, titles: Sequence[str], about: str) -> None:
        """`name` says what the curves are, `titles` are the table's, `about` defines its columns."""
        super().__init__()
        self.view = CurvesView(theme, name, file_stem)
        self.table = TextTable(theme, f"{name}, in numbers", titles)
        self.table.restyle()
        self.table.itemSelectionChanged.connect(self._choose)
        self._left_out = _caption()
        definition = _caption()
        definition.setText(about)
        self.close_button = kit.button("Back to the lanes", self.closed)
        top = kit.row((kit.label(name, "title"), 1), self.close_button)
        parts = QSplitter(Qt.Orientation.Vertical)
        parts.setChildrenCollapsible(False)
        parts.addWidget(self.view)
        parts.addWidget(self.table)
        parts.setStretchFactor(0, 3)
        parts.setStretchFactor(1, 2)
        kit.column(top, (parts, 1), self._left_out, definition, margins=(24, 16, 24, 12), spacing=10, on=self)

    @property
    def left_out(self) -> str:
        """What could not be measured, a line for each."""
        return self._left_out.text()

    def set_content(
        self, curves: Curves | None, lines: Sequence[Sequence[str]], left_out: Sequence[str], *, at_work: bool
    ) -> None:
        """Show the numbers so far; `lines` are the table's, `left_out` says what is missing and why."""
        self.view.set_curves(curves)
        self.table.set_texts(lines)
        self._left_out.setText("\n".join(left_out))
        self._left_out.setVisible(bool(left_out))
        self.close_button.setVisible(not at_work)

    def _choose(self) -> None:
        """Let the lane of the selected row stand out."""
        rows, curves = selected_rows(self.table), self.view.curves
        name = self.table.texts_shown[rows[0]][0] if rows else None
        known = curves is not None and name in curves.lanes
        self.view.stand_out(curves.lanes.index(name) if curves is not None and known and name else None)


def _caption() -> QLabel:
    return kit.label("", "caption", wrap=True, plain=True, selectable=True)
