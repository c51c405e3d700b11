"""Acceptance against speed: a lane that accepts more is not always the faster one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen

from app.base import numbers
from app.lab.report.report import Report
from app.ui.compare.curves import PointedPlot
from app.ui.theme import Theme
from app.ui.widgets.plot import Cell, ChooseFile, choose_file

STEPS = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Point:
    """A lane in the plot."""

    name: str
    acceptance: float  # in [0, 1]
    factor: float
    low: float | None = None
    high: float | None = None
    whole: float | None = None  # the factor end to end

    @property
    def reading(self) -> str:
        bounds = "" if self.low is None or self.high is None else f" ({self.low:.2f} to {self.high:.2f})"
        return (
            f"{self.name}\nacceptance {numbers.percent(self.acceptance)}, "
            f"speed-up {numbers.factor(self.factor)}{bounds}, end to end {numbers.factor(self.whole)}"
        )


def points_of(report: Report) -> list[Point]:
    """The points of the lanes that drafted and have a speed-up."""
    found = []
    for summary, lane in zip(report.summary, report.lanes, strict=True):
        if summary.acceptance_rate is not None and summary.speedup is not None:
            speedup = summary.speedup
            rate, whole = summary.acceptance_rate, summary.whole_speedup
            found.append(Point(lane.name, rate, speedup.factor, speedup.low, speedup.high, whole))
    return found


class Scatter(PointedPlot):
    """A point per lane, with the interval of its speed-up; the baseline is the dashed line at 1."""

    file_stem = "acceptance-and-speed"

    def __init__(self, theme: Theme, choose: ChooseFile = choose_file) -> None:
        super().__init__(theme, "Acceptance against speed-up", choose)
        self._points: list[Point] = []

    @property
    def points(self) -> list[Point]:
        return self._points

    def set_points(self, points: Sequence[Point]) -> None:
        """Show these points."""
        self._points = list(points)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(480, 200)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, 120)

    # ------------------------------------------------------------------ where things are

    def _range(self) -> tuple[float, float, float]:
        """The bottom and the top of the speed axis, and the step of its ticks."""
        values = [1.0]
        for point in self._points:
            low, high = point.low or point.factor, point.high or point.factor
            values += [point.factor, low, min(high, 3 * point.factor)]
        low, high = min(values), max(values)
        step = next((size for size in STEPS if (high - low) / size <= MOST_TICKS - 2), STEPS[-1])
        bottom = max(0.0, (int(low / step + 1e-9) - (low < 1)) * step)
        top = bottom
        while top < high + step / 2:
            top += step
        return bottom, top, step

    def _plot(self) -> QRectF:
        metrics = QFontMetricsF(self._theme.sans(-1))
        left = 24 + metrics.horizontalAdvance("0.00×") + 8
        return QRectF(
            left, metrics.height() + 14, self.width() - left - 32, self.height() - 3 * metrics.height() - 26
        )

    def _at(self, acceptance: float, factor: float) -> QPointF:
        plot, (bottom, top, _) = self._plot(), self._range()
        return QPointF(
            plot.left() + acceptance * plot.width(),
            plot.bottom() - (factor - bottom) / (top - bottom) * plot.height(),
        )

    def marks(self) -> Iterator[tuple[int, QPointF]]:
        return ((at, self._at(point.acceptance, point.factor)) for at, point in enumerate(self._points))

    def reading(self, place: QPointF) -> str:
        return "\n\n".join(self._points[at].reading for at in self.near(place))

    # ------------------------------------------------------------------ painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.sans(-1))
        colours = self._theme.palette
        if not self._points:
            painter.setPen(QColor(colours.secondary))
            words_shown = "Each lane that drafts becomes a point here once it is compared with its baseline."
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, words_shown)
            return
        self._draw_axes(painter)
        taken: list[QRectF] = []
        for index, point in enumerate(self._points):
            self._draw_point(painter, point, index in self._pointed[:1])
        for point in self._points:
            self._draw_name(painter, point, taken)

    def _draw_axes(self, painter: QPainter) -> None:
        plot = self._plot()
        bottom, top, step = self._range()
        height = QFontMetricsF(painter.font()).height()
        value = bottom
        while value <= top + 1e-9:
            self.draw_level(painter, plot, round(self._at(0, value).y()) + 0.5, numbers.factor(value))
            value += step
        for share in (0, 0.25, 0.5, 0.75, 1):
            x = self._at(share, bottom).x()
            box = QRectF(x - 40, plot.bottom() + 4, 80, height)
            painter.drawText(box, Qt.AlignmentFlag.AlignHCenter, numbers.percent(share, 0))
        title = QRectF(plot.left(), plot.bottom() + 4 + height, plot.width(), height)
        painter.drawText(title, Qt.AlignmentFlag.AlignHCenter, "acceptance: accepted / drafted tokens")
        painter.drawText(QRectF(24, 2, plot.width(), height), Qt.AlignmentFlag.AlignLeft, "speed-up")
        y = round(self._at(0, 1).y()) + 0.5
        self.draw_dashed(painter, plot, y)
        none = QRectF(plot.left() + 4, y - height - 1, 200, height)
        painter.drawText(none, Qt.AlignmentFlag.AlignLeft, "none")

    def _draw_point(self, painter: QPainter, point: Point, pointed: bool) -> None:
        colours = self._theme.palette
        place = self._at(point.acceptance, point.factor)
        painter.setPen(QPen(QColor(colours.secondary), 1.4))
        if point.low is not None and point.high is not None:
            plot = self._plot()
            ends = [self._at(point.acceptance, value).y() for value in (point.low, point.high)]
            low, high = (min(max(y, plot.top()), plot.bottom()) for y in ends)
            painter.drawLine(QPointF(place.x(), low), QPointF(place.x(), high))
            for y in (low, high):
                painter.drawLine(QPointF(place.x() - 4, y), QPointF(place.x() + 4, y))
        radius = 6.5 if pointed else 5.0
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.text))
        painter.drawEllipse(place, radius, radius)

    def _draw_name(self, painter: QPainter, point: Point, taken: list[QRectF]) -> None:
        """Write the name beside the point, on the side and at the height where there is room."""
        painter.setFont(self._theme.mono(-1.5))
        metrics = QFontMetricsF(painter.font())
        width, height = metrics.horizontalAdvance(point.name) + 2, metrics.height()
        place, plot = self._at(point.acceptance, point.factor), self._plot()
        right = place.x() + 10 + width <= self.width()
        x = place.x() + 10 if right else place.x() - 10 - width
        box = QRectF(max(x, plot.left()), place.y() - height / 2, width, height)
        for shift in (0, -1, 1, -2, 2, -3, 3):
            moved = box.translated(0, shift * height)
            if not any(moved.intersects(label) for label in taken):
                box = moved
                break
        taken.append(box)
        painter.setPen(QColor(self._theme.palette.text))
        painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, point.name)
        painter.setFont(self._theme.sans(-1))

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
        names = ("lane", "acceptance_rate", "speedup", "low", "high", "end_to_end_speedup")
        return names, [
            (point.name, point.acceptance, point.factor, point.low, point.high, point.whole)
            for point in self._points
        ]
