"""The results below the lanes: two tables, acceptance against speed, and divergences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractItemView, QStackedWidget, QWidget

from app.base import numbers
from app.lab.experiment import Experiment, Job
from app.lab.lanes import lane_names
from app.lab.report.columns import SHAPE
from app.lab.report.report import Report
from app.lab.runs.compare import keeps_text
from app.lab.runs.record import RunRecord
from app.ui.compare.curves import PointedPlot
from app.ui.compare.summary_table import SummaryTable
from app.ui.compare.words import token_words
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.field import QuietCombo
from app.ui.widgets.notice import Placeholder
from app.ui.widgets.plot import Cell, ChooseFile, choose_file
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.tables import TextTable, selected_rows

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


TITLES = (
    ("lane", "The lane whose text differs from its baseline's"),
    ("prompt", "Number of the prompt"),
    ("repeat", "Number of the repeat"),
    ("token", "Position of the first token that differs, from 1"),
    ("baseline", "The baseline's token there"),
    ("this lane", "This lane's token there"),
    ("logit gap", "Difference between the baseline's logits of the two tokens"),
    (
        "moved by",
        "How much that gap differs in this lane's own pass, because batches of a different size round "
        "differently",
    ),
    ("why", "A rounding tie is a difference that rounding alone explains"),
)
LEFT = (0, 4, 5, 8)


class PartedRow(NamedTuple):
    """A divergence, as a row of the table."""

    job: Job
    cells: tuple[str, ...]


def partings(experiment: Experiment, runs: Sequence[RunRecord]) -> list[PartedRow]:
    """All divergences of all runs, lane by lane."""
    names = lane_names(experiment)
    found = []
    for run in sorted(runs, key=lambda run: (run.lane, run.prompt_index, run.repeat)):
        parting = run.first_divergence
        if parting is None:
            continue
        why = "another text"
        if not keeps_text(run.strategy, experiment.sampling_of(run.lane).temperature):
            why = "the rule keeps the distribution, not the text"
        elif parting.near_tie:
            why = "rounding tie"
        cells = (
            names[run.lane],
            str(run.prompt_index + 1),
            str(run.repeat + 1),
            str(parting.index + 1),
            token_words(parting, own=False),
            token_words(parting, own=True),
            numbers.digits(parting.logit_gap),
            numbers.digits(parting.difference),
            why,
        )
        found.append(PartedRow(Job(run.repeat, run.prompt_index, run.lane), cells))
    return found


class PartingTable(TextTable):
    """A row per divergence; choosing a row shows it in the lanes."""

    chosen = Signal(object)
    """The Job of the row."""

    def __init__(self, theme: Theme) -> None:
        titles, definitions = zip(*TITLES, strict=True)
        super().__init__(theme, "Divergences", titles, left=LEFT, mono=(0, 4, 5))
        self._partings: list[PartedRow] = []
        self.explain(definitions)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.horizontalHeader().setStretchLastSection(True)
        self.itemSelectionChanged.connect(self._choose)
        self.restyle()

    def set_partings(self, found: list[PartedRow]) -> None:
        """Show these divergences."""
        if found != self._partings:
            self._partings = found
            self.blockSignals(True)
            self.set_texts([parting.cells for parting in found])
            self.blockSignals(False)

    def _choose(self) -> None:
        if rows := selected_rows(self):
            self.chosen.emit(self._partings[rows[0]].job)


VIEWS = ("Table", "How drafts fared", "Acceptance is not speed", "Divergences")
ALL = "all prompts"


class Results(QWidget):
    """Shows one of VIEWS; the tables cover all prompts or those of a category."""

    job_chosen = Signal(object)
    """The run that the user chose to see."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._report: Report | None = None
        self.views = Segmented(theme, "Results", VIEWS)
        self.views.picked.connect(self._show_view)
        self.category = QuietCombo()
        self.category.setAccessibleName("Prompts that the table is about")
        self.category.activated.connect(self._show_table)
        self._note = kit.label("", "caption")
        self.table = SummaryTable(theme)
        self.shape = SummaryTable(theme, SHAPE, "How the drafts of each lane fared")
        self.scatter = Scatter(theme)
        self.partings = PartingTable(theme)
        self.partings.chosen.connect(self.job_chosen)
        self.same = Placeholder()
        self._parting_pages = QStackedWidget()
        self._parting_pages.addWidget(self.same)
        self._parting_pages.addWidget(self.partings)
        self._pages = QStackedWidget()
        for page in (self.table, self.shape, self.scatter, self._parting_pages):
            self._pages.addWidget(page)
        head = kit.row(
            self.views, self._note, kit.Spring(1), self.category, margins=(24, 4, 24, 4), spacing=12
        )
        kit.column(head, (kit.row(self._pages, margins=(24, 0, 24, 8)), 1), spacing=4, on=self)
        self._show_view(VIEWS[0])

    def set_report(self, report: Report | None, experiment: Experiment | None) -> None:
        """Show the results so far."""
        self._report = report
        names = [ALL, *(report.categories if report is not None else ())]
        if [self.category.itemText(at) for at in range(self.category.count())] != names:
            self.category.clear()
            self.category.addItems(names)
        self._show_table()
        self.scatter.set_points(points_of(report) if report is not None else ())
        found = partings(experiment, report.runs) if report is not None and experiment is not None else []
        self.partings.set_partings(found)
        compared = sum(summary.compared for summary in report.summary) if report is not None else 0
        if compared:
            self.same.say("No divergences", "Every answer has exactly the baseline's tokens.")
        else:
            self.same.say(
                "Nothing is compared yet", "Answers are compared with the baseline's, token by token."
            )
        self._parting_pages.setCurrentIndex(1 if found else 0)
        self._show_head()

    def wanted_height(self, lanes: int) -> int:
        """The height in pixels for a table of this many lanes, enough for a plot as well."""
        row = self.table.verticalHeader().defaultSectionSize()
        table = self.table.horizontalHeader().sizeHint().height() + lanes * row + 24
        return self.views.sizeHint().height() + max(table, round(180 * self._theme.scale)) + 24

    def _show_view(self, view: str) -> None:
        self._pages.setCurrentIndex(VIEWS.index(view))
        self._show_head()

    def _show_head(self) -> None:
        view = self.views.choice()
        self.category.setVisible(view in VIEWS[:2] and self.category.count() > 1)
        count = self.partings.rowCount()
        self._note.setText(f"in {count:,} runs" if view == VIEWS[3] and count else "")

    def _show_table(self) -> None:
        report, rows = self._report, []
        if report is not None:
            name = self.category.currentText()
            chosen = [summary for summary in report.by_category if summary.category == name]
            rows = [(summary, report.lanes[summary.lane]) for summary in chosen or report.summary]
        for table in (self.table, self.shape):
            table.set_rows(rows)
