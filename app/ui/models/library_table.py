"""The models on this machine, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app.hub.library.model import LocalModel, names_apart
from app.ui.models.words import ORIGINS
from app.ui.theme import Theme
from app.ui.widgets.labels import as_text
from app.ui.widgets.tables import alignment, quiet_table
from app.ui.widgets.words import NONE, count, file_size

Index = QModelIndex | QPersistentModelIndex

COLUMNS = (
    ("Name", "The name in the file"),
    ("Architecture", "The kind of model, as llama.cpp calls it"),
    ("Parameters", "How many weights it has"),
    ("Quantisation", "The number format of its weights"),
    ("Context", "The context it was trained for, in tokens"),
    ("Size", "All of its files on the disk"),
    ("From", "Hub: the Hugging Face cache. Added: a file or folder of yours. Bundled: part of Draftscope"),
)
NAME, ARCHITECTURE, PARAMETERS, QUANTISATION, CONTEXT, SIZE, ORIGIN = range(len(COLUMNS))
RIGHT = (PARAMETERS, CONTEXT, SIZE)
# Hidden first where there is no room; the details beside the table show all of them.
GIVING_WAY = (ORIGIN, ARCHITECTURE, CONTEXT, QUANTISATION)
MEASURED = 50  # the longest texts of a column, whose width is measured
NAME_WIDTH = 180  # pixels at text scale 1, at least


class LibraryRows(QAbstractTableModel):
    """Models in the order of a column; each model's sort key is computed once."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.models: tuple[LocalModel, ...] = ()
        self.names: tuple[str, ...] = ()  # distinct, also where two models have one name
        self._by = NAME, Qt.SortOrder.AscendingOrder

    def set_models(self, models: Sequence[LocalModel]) -> None:
        """Show these models; the selection stays where the same files are listed."""
        given = tuple(models)
        places = self._order(given)
        named = names_apart(given)
        new, names = tuple(given[place] for place in places), tuple(named[place] for place in places)
        if [model.path for model in new] == [model.path for model in self.models]:
            self.models, self.names = new, names
            if new:
                self.dataChanged.emit(self.index(0, 0), self.index(len(new) - 1, len(COLUMNS) - 1))
            return
        self.beginResetModel()
        self.models, self.names = new, names
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; the selection stays."""
        self.layoutAboutToBeChanged.emit()
        self._by = column, order
        places = self._order(self.models)
        moved = {before: after for after, before in enumerate(places)}
        kept = self.persistentIndexList()
        self.models = tuple(self.models[place] for place in places)
        self.names = tuple(self.names[place] for place in places)
        self.changePersistentIndexList(
            kept, [self.index(moved[index.row()], index.column()) for index in kept]
        )
        self.layoutChanged.emit()

    def _order(self, models: Sequence[LocalModel]) -> list[int]:
        """The models' indices in the order of the column; models with equal keys keep their order."""
        column, order = self._by
        keys = [_sort_key(model, column) for model in models]
        return sorted(range(len(models)), key=keys.__getitem__, reverse=order is Qt.SortOrder.DescendingOrder)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.models)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section][0]
        if role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section][1]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=section in RIGHT)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        model, column = self.models[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self.names[index.row()] if column == NAME else cell(model, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=column in RIGHT)
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_text(f"{model.path}\n{model.refusal}".strip())
        if role == Qt.ItemDataRole.ForegroundRole and (model.refusal or column != NAME):
            return QColor(self._theme.palette.secondary)
        if role == Qt.ItemDataRole.FontRole and model.refusal:
            font = QFont(self._theme.sans())
            font.setItalic(True)
            return font
        return None


class LibraryTable(QTableView):
    """One row per model; columns are hidden where there is no room for all."""

    chosen = Signal()
    """A different model is selected, or none."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows = LibraryRows(theme, self)
        self.setModel(self.rows)
        self.setAccessibleName("Models that are here")
        quiet_table(self)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setSortingEnabled(True)
        self.sortByColumn(NAME, Qt.SortOrder.AscendingOrder)
        head = self.horizontalHeader()
        head.setMinimumSectionSize(24)
        # Not by their contents: Qt would measure a thousand rows whenever the window is resized.
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        self.selectionModel().selectionChanged.connect(self.chosen)
        theme.changed.connect(self._measure)
        self._measure()

    def set_models(self, models: Sequence[LocalModel]) -> None:
        """Show these models, and keep the selection."""
        before = self.current.path if self.current else None
        self.rows.set_models(models)
        if before is not None and self.current is None:
            self.select(before)
        self._measure()

    @property
    def current(self) -> LocalModel | None:
        """The selected model."""
        rows = self.selectionModel().selectedRows()
        return self.rows.models[rows[0].row()] if rows else None

    def select(self, path: Path) -> bool:
        """Select the model that has this file; False where there is none."""
        for row, model in enumerate(self.rows.models):
            if path in model.files:
                index = self.rows.index(row, NAME)
                flags = QItemSelectionModel.SelectionFlag
                self.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
                self.scrollTo(index)
                return True
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _measure(self) -> None:
        """Measure how wide each column wants to be: once for all models, however often the table is
        resized."""
        self._widths = [self._wanted(column) for column in range(len(COLUMNS))]
        for column in range(1, len(COLUMNS)):
            self.setColumnWidth(column, self._widths[column])
        self._fit()

    def _fit(self) -> None:
        scale = self._theme.scale
        height = QFontMetrics(self._theme.sans()).height() + round(14 * scale)
        self.verticalHeader().setDefaultSectionSize(height)
        room = self.viewport().width() - round(NAME_WIDTH * scale)
        hidden = set(GIVING_WAY)
        others = [column for column in range(1, len(COLUMNS)) if column not in hidden]
        room -= sum(self._widths[column] for column in others)
        for column in reversed(GIVING_WAY):
            room -= self._widths[column]
            if room < 0:
                break
            hidden.discard(column)
        for column in GIVING_WAY:
            self.setColumnHidden(column, column in hidden)

    def _wanted(self, column: int) -> int:
        metrics = QFontMetrics(self._theme.sans())
        longest = nlargest(MEASURED, {cell(model, column) for model in self.rows.models}, key=len)
        widest = max(map(metrics.horizontalAdvance, longest), default=0)
        return max(widest, metrics.horizontalAdvance(COLUMNS[column][0]) + 16) + 24


def cell(model: LocalModel, column: int) -> str:
    """The text in a column."""
    facts = model.facts
    match column:
        case 0:
            return model.name
        case 1:
            return facts.architecture if facts else NONE
        case 2:
            return model.parameters or NONE
        case 3:
            return model.quantisation if model.quantisation != "?" else NONE
        case 4:
            return count(facts.context) if facts and facts.context else NONE
        case 5:
            return file_size(model.size)
        case _:
            return ORIGINS[model.origin]


def _sort_key(model: LocalModel, column: int) -> Any:
    facts = model.facts
    if column == PARAMETERS:
        return float(facts.parameters) if facts else 0.0
    if column == CONTEXT:
        return float(facts.context) if facts else 0.0
    if column == SIZE:
        return float(model.size)
    return cell(model, column).lower()
