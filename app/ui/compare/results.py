"""The results below the lanes: two tables, acceptance against speed, and divergences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QAbstractItemView, QStackedWidget, QWidget

from app.base import numbers
from app.lab.experiment import Experiment, Job
from app.lab.lanes import lane_names
from app.lab.report.columns import SHAPE
from app.lab.report.report import Report
from app.lab.runs.compare import keeps_text
from app.lab.runs.record import RunRecord
from app.ui.compare.scatter import Scatter, points_of
from app.ui.compare.summary_table import SummaryTable
from app.ui.compare.words import token_words
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.field import QuietCombo
from app.ui.widgets.notice import Placeholder
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.tables import TextTable, selected_rows

TITLES = (
    ("lane", "The lane whose text differs from its baseline's"),
    ("prompt", "Number of the prompt"),
    ("repeat", "Number of the repeat"),
    ("token", "Place of the first token that differs, from 1"),
    ("baseline", "The baseline's token there"),
    ("this lane", "This lane's token there"),
    ("logit gap", "Between the baseline's logits of the two tokens"),
    (
        "moved by",
        "The difference from that gap in this lane's own pass, caused by rounding in another batch size",
    ),
    ("why", "A near-tie is a difference that rounding alone explains"),
)
LEFT = (0, 4, 5, 8)


class Parting(NamedTuple):
    """A divergence, as a row of the table."""

    job: Job
    cells: tuple[str, ...]


def partings(experiment: Experiment, runs: Sequence[RunRecord]) -> list[Parting]:
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
            why = "near-tie: rounding"
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
        found.append(Parting(Job(run.repeat, run.prompt_index, run.lane), cells))
    return found


class PartingTable(TextTable):
    """A row per divergence; choosing a row shows it in the lanes."""

    chosen = Signal(object)
    """The Job of the row."""

    def __init__(self, theme: Theme) -> None:
        titles, definitions = zip(*TITLES, strict=True)
        super().__init__(theme, "Divergences", titles, left=LEFT, mono=(0, 4, 5))
        self._partings: list[Parting] = []
        self.explain(definitions)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.horizontalHeader().setStretchLastSection(True)
        self.itemSelectionChanged.connect(self._choose)
        self.restyle()

    def set_partings(self, found: list[Parting]) -> None:
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
                "Nothing is compared yet", "Each answer is compared with its baseline's, token by token."
            )
        self._parting_pages.setCurrentIndex(1 if found else 0)
        self._show_head()

    def wanted_height(self, lanes: int) -> int:
        """The height in pixels for a table of so many lanes, enough for a plot as well."""
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
