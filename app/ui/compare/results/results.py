"""The results below the lanes: two tables, acceptance against speed, and divergences."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from app.lab.experiment import Experiment
from app.lab.report.columns import SHAPE
from app.lab.report.report import Report
from app.ui.compare.results.parting_table import PartingTable, partings
from app.ui.compare.results.scatter import Scatter, points_of
from app.ui.compare.results.summary_table import SummaryTable
from app.ui.theme import Theme
from app.ui.widgets.fields.field import QuietCombo
from app.ui.widgets.fields.segmented import Segmented
from app.ui.widgets.text.placeholder import Placeholder

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
        self._note = QLabel()
        self._note.setProperty("role", "caption")
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
        head = QHBoxLayout()
        head.setContentsMargins(24, 4, 24, 4)
        head.setSpacing(12)
        head.addWidget(self.views)
        head.addWidget(self._note)
        head.addStretch(1)
        head.addWidget(self.category)
        body = QHBoxLayout()
        body.setContentsMargins(24, 0, 24, 8)
        body.addWidget(self._pages)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(head)
        column.addLayout(body, 1)
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

    @Slot(str)
    def _show_view(self, view: str) -> None:
        self._pages.setCurrentIndex(VIEWS.index(view))
        self._show_head()

    def _show_head(self) -> None:
        view = self.views.choice()
        self.category.setVisible(view in VIEWS[:2] and self.category.count() > 1)
        count = self.partings.rowCount()
        self._note.setText(f"in {count:,} runs" if view == VIEWS[3] and count else "")

    @Slot()
    def _show_table(self) -> None:
        report, rows = self._report, []
        if report is not None:
            name = self.category.currentText()
            chosen = [summary for summary in report.by_category if summary.category == name]
            rows = [(summary, report.lanes[summary.lane]) for summary in chosen or report.summary]
        for table in (self.table, self.shape):
            table.set_rows(rows)
