"""The results below the lanes: two tables, acceptance against speed, and divergences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, QSize, Signal
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QAbstractItemView, QWidget

from app.base import numbers
from app.lab.experiment import Experiment, Job
from app.lab.lanes import lane_names
from app.lab.report.columns import SHAPE
from app.lab.report.report import Report
from app.lab.runs.compare import keeps_text
from app.lab.runs.record import RunRecord
from app.ui.compare.summary_table import SummaryTable
from app.ui.compare.words import token_words
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.chart import Axes, Chart
from app.ui.widgets.field import combo
from app.ui.widgets.notice import Placeholder
from app.ui.widgets.plot import Cell
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.tables import TextTable, selected_rows


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
    def drawn(self) -> tuple[float, float, float, float]:
        """Acceptance, speed-up, and the ends of its interval."""
        return self.acceptance, self.factor, self.low or self.factor, self.high or self.factor

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


_EDGE = 4  # pixels around the text of a TextItem


class Scatter(Chart):
    """A point per lane, with the interval of its speed-up; the baseline is the dashed line at 1."""

    file_stem = "acceptance-and-speed"
    empty = "Each lane that drafts becomes a point here once it is compared with its baseline."

    def __init__(self, theme: Theme) -> None:
        self.points: Sequence[Point] = ()
        super().__init__(theme, "Acceptance against speed-up")

    def set_points(self, points: Sequence[Point]) -> None:
        """Show these points."""
        self.points = points
        self.draw()

    def sizeHint(self) -> QSize:
        return QSize(480, 200)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, 120)

    def marks(self) -> Iterator[tuple[Point, QPointF]]:
        for axes in self.axes:
            yield from ((point, axes.pixel(point.acceptance, point.factor)) for point in self.points)

    def words_of(self, mark: Point) -> str:
        return mark.reading

    def draw(self) -> None:
        self.arrange(min(len(self.points), 1), 1)
        for axes in self.axes:
            theme, colours = self._theme, self._theme.palette
            x, y, bottom, top = np.array([point.drawn for point in self.points]).T
            low, high = min(1.0, *bottom), max(1.0, *np.minimum(top, 3 * y))
            edge = max(0.1, 0.12 * (high - low))
            axes.left.words, axes.below.words = numbers.factor, lambda share: numbers.percent(share, 0)
            axes.start(
                theme, "speed-up", "acceptance: accepted / drafted tokens", (0, 1),
                (max(low - edge, 0.0), high + edge),
            )  # fmt: skip
            axes.add_level(1.0, theme, "none")
            axes.add(
                pg.ErrorBarItem(
                    x=x, y=y, bottom=y - bottom, top=top - y, beam=0.008,
                    pen=pg.mkPen(colours.secondary, width=1.4),
                )
            )  # fmt: skip
            sizes = [13 if point in self.pointed[:1] else 10 for point in self.points]
            axes.add(pg.ScatterPlotItem(x, y, size=sizes, pen=None, brush=colours.text))
            self._write_names(axes)

    def _write_names(self, axes: Axes) -> None:
        """Write the name of each point beside it, on the side and at the height where there is room."""
        font = self._theme.mono(-1.5)
        metrics = QFontMetricsF(font)
        taken = [QRectF(0, axes.pixel(0, 1).y(), self.width(), 1)]  # the baseline
        for point in self.points:
            place = axes.pixel(point.acceptance, point.factor)
            width, height = metrics.horizontalAdvance(point.name) + 2, metrics.height()
            right = place.x() + 10 + width <= self.width()
            left = place.x() + 10 if right else max(place.x() - 10 - width, 0)
            box = QRectF(left, place.y() - height / 2, width, height)
            for shift in (0, -1, 1, -2, 2, -3, 3):
                moved = box.translated(0, shift * height)
                if not any(moved.intersects(label) for label in taken):
                    box = moved
                    break
            taken.append(box)
            # An offset in pixels: it stays right if the numbers beside the plot change their width.
            away = place - box.topLeft() + QPointF(_EDGE, _EDGE)
            anchor = away.x() / (width + 2 * _EDGE), away.y() / (height + 2 * _EDGE)
            colour = self._theme.palette.text
            axes.add_words(point.name, point.acceptance, point.factor, font, colour, anchor)

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
        names = ("lane", "acceptance_rate", "speedup", "low", "high", "end_to_end_speedup")
        return names, [
            (point.name, point.acceptance, point.factor, point.low, point.high, point.whole)
            for point in self.points
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
        why = "different text"
        if not keeps_text(run.strategy, experiment.sampling_of(run.lane).temperature):
            why = "the rule keeps the distribution, not the text"
        elif parting.near_tie:
            why = "rounding tie"
        elif parting.perhaps_tie:
            why = "possibly rounding"
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


class PartingTable(TextTable[PartedRow]):
    """A row per divergence; choosing a row shows it in the lanes."""

    chosen = Signal(object)
    """The Job of the row."""

    def __init__(self, theme: Theme) -> None:
        titles, definitions = zip(*TITLES, strict=True)
        super().__init__(theme, "Divergences", titles, left=LEFT, mono=(0, 4, 5))
        self.explain(definitions)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.itemSelectionChanged.connect(self._choose)
        self.restyle()

    def cells(self, row: PartedRow) -> Sequence[str]:
        return row.cells

    def identity(self, row: PartedRow) -> object:
        return row.job

    def _choose(self) -> None:
        if rows := selected_rows(self):
            self.chosen.emit(self.rows[rows[0]].job)


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
        self.category = combo("Prompts that the table covers", act=self._show_table)
        self._note = kit.label("", "caption")
        self.table = SummaryTable(theme)
        self.shape = SummaryTable(theme, SHAPE, "How the drafts of each lane fared")
        self.scatter = Scatter(theme)
        self.partings = PartingTable(theme)
        self.partings.chosen.connect(self.job_chosen)
        self.same = Placeholder()
        self._parting_pages = kit.stack(self.same, self.partings)
        self._pages = kit.stack(self.table, self.shape, self.scatter, self._parting_pages)
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
        self.partings.set_rows(found)
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
        return max(self._height(lanes), self._height(0) + round(126 * self._theme.scale))

    def minimumSizeHint(self) -> QSize:
        """The height of a table of four lanes, as many as are suggested: with less, the place scrolls."""
        return QSize(super().minimumSizeHint().width(), self._height(4))

    def _height(self, lanes: int) -> int:
        """The height in pixels for a table of this many lanes."""
        rows = lanes * self.table.verticalHeader().defaultSectionSize()
        head = self.table.horizontalHeader().sizeHint().height()
        return self.views.sizeHint().height() + head + rows + 48

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
