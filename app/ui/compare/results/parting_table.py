"""Divergences: where answers leave their baseline's, both tokens there, and how close their probabilities
were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QAbstractItemView, QTableWidget, QTableWidgetItem

from app.base import numbers
from app.lab.experiment import Experiment, Job
from app.lab.lanes import lane_names
from app.lab.report.compare import keeps_text
from app.lab.runs.journal.run_record import RunRecord
from app.ui.compare.words import token_words
from app.ui.theme import Theme
from app.ui.widgets.data.quiet_table import alignment, fit_rows, quiet_table

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
RIGHT = (1, 2, 3, 6, 7)


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


class PartingTable(QTableWidget):
    """A row per divergence; choosing a row shows it in the lanes."""

    chosen = Signal(object)
    """The Job of the row."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(0, len(TITLES))
        self._theme = theme
        self._partings: list[Parting] = []
        self.setAccessibleName("Divergences")
        quiet_table(self)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.horizontalHeader().setStretchLastSection(True)
        for column, (title, definition) in enumerate(TITLES):
            item = QTableWidgetItem(title)
            item.setToolTip(definition)
            item.setTextAlignment(alignment(right=column in RIGHT))
            self.setHorizontalHeaderItem(column, item)
        self.itemSelectionChanged.connect(self._choose)
        theme.changed.connect(self._fit)
        self._fit()

    def set_partings(self, found: list[Parting]) -> None:
        """Show these divergences."""
        if found == self._partings:
            return
        self._partings = found
        self.blockSignals(True)
        self.setRowCount(len(found))
        for row, parting in enumerate(found):
            for column, text in enumerate(parting.cells):
                item = QTableWidgetItem(text)
                item.setTextAlignment(alignment(right=column in RIGHT))
                if column in (0, 4, 5):
                    item.setFont(self._theme.mono(-0.5))
                self.setItem(row, column, item)
        self.blockSignals(False)

    @Slot()
    def _choose(self) -> None:
        rows = self.selectionModel().selectedRows()
        if rows:
            self.chosen.emit(self._partings[rows[0].row()].job)

    @Slot()
    def _fit(self) -> None:
        fit_rows(self, self._theme)
