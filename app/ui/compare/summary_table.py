"""The table: one row a lane, the columns and definitions of every report."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
    Signal,
    SignalInstance,
    Slot,
)
from PySide6.QtGui import QAction, QColor, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QTableView, QWidget

from app.lab.columns import COLUMNS
from app.lab.report import ReportLane
from app.lab.summary import Summary
from app.ui.quiet_table import fit_rows, quiet_table
from app.ui.theme import Theme
from app.ui.tips import as_text

Index = QModelIndex | QPersistentModelIndex
SORT = Qt.ItemDataRole.UserRole
Rows = Sequence[tuple[Summary, ReportLane]]


class SummaryRows(QAbstractTableModel):
    """The lane's name, then COLUMNS."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.rows: list[tuple[Summary, ReportLane]] = []
        theme.changed.connect(self._recolour)

    def set_rows(self, rows: Rows) -> None:
        """Show these; where there are as many as before, selection and order stay."""
        same = len(rows) == len(self.rows)
        if same:
            self.rows = list(rows)
            if rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(COLUMNS)))
            return
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(COLUMNS) + 1

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section - 1].title if section else "lane"
        if role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section - 1].definition if section else "Its label, or its strategy"
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        (summary, lane), column = self.rows[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[column - 1].text(summary, lane) if column else lane.name
        if role == SORT:
            return _sort_key(summary, lane, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            failed = f"\n{summary.failed} of its runs failed." if summary.failed else ""
            return as_text(f"{lane.strategy}{failed}") if not column else COLUMNS[column - 1].definition
        if role == Qt.ItemDataRole.FontRole:
            return self._theme.mono(-0.5) if not column else self._theme.sans()
        if role == Qt.ItemDataRole.ForegroundRole and summary.failed and not column:
            return QColor(self._theme.palette.rejected)
        return None

    @Slot()
    def _recolour(self) -> None:
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, len(COLUMNS)))


class SummaryTable(QTableView):
    """Sorted by what its head is clicked for; copied by Ctrl+C."""

    command_wanted = Signal(int)
    """Copy the llama.cpp command of this lane."""
    use_wanted = Signal(int)
    """Answer with this lane's strategy in the chat."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows = SummaryRows(theme, self)
        self.sorted = QSortFilterProxyModel(self)
        self.sorted.setSourceModel(self.rows)
        self.sorted.setSortRole(SORT)
        self.setModel(self.sorted)
        self.setAccessibleName("Lanes")
        quiet_table(self)
        head = self.horizontalHeader()
        head.setSectionsClickable(True)
        head.setSortIndicatorShown(True)
        self.sorted.sort(-1)  # as they were given, until someone wants another order
        head.setSortIndicatorClearable(True)
        head.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self._action("Copy", self.copy, QKeySequence.StandardKey.Copy)
        self._action("Copy the whole table", self.copy_all)
        self._action("Copy the llama.cpp command of this lane", lambda: self._about_lane(self.command_wanted))
        self._action("Use this lane's strategy in the chat", lambda: self._about_lane(self.use_wanted))
        theme.changed.connect(self._fit)
        self._fit()

    def set_rows(self, rows: Rows) -> None:
        """Show these."""
        self.rows.set_rows(rows)
        for column, one in enumerate(COLUMNS, start=1):
            if one.key == "failed":
                self.setColumnHidden(column, not any(summary.failed for summary, _lane in rows))

    @Slot()
    def copy(self) -> None:
        """The selected rows, with a line of names, as cells that a spreadsheet takes; none: all."""
        rows = sorted(one.row() for one in self.selectionModel().selectedRows())
        if not rows:
            self.copy_all()
            return
        columns = range(self.sorted.columnCount())
        lines = [["lane", *(one.title for one in COLUMNS)]]
        lines += [[str(self.sorted.index(row, column).data()) for column in columns] for row in rows]
        QGuiApplication.clipboard().setText("\n".join("\t".join(line) for line in lines))

    @Slot()
    def copy_all(self) -> None:
        QGuiApplication.clipboard().setText(table_text(self.rows.rows))

    def _about_lane(self, signal: SignalInstance) -> None:
        current = self.sorted.mapToSource(self.currentIndex())
        if current.isValid():
            signal.emit(self.rows.rows[current.row()][0].lane)

    def _action(self, words: str, act: object, key: QKeySequence.StandardKey | None = None) -> None:
        action = QAction(words, self)
        if key is not None:
            action.setShortcut(QKeySequence(key))
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(act)
        self.addAction(action)

    @Slot()
    def _fit(self) -> None:
        fit_rows(self, self._theme)


def table_text(rows: Rows) -> str:
    """The whole table as lines of tab-separated cells, which a spreadsheet takes."""
    lines = [["lane", *(one.title for one in COLUMNS)]]
    lines += [[lane.name, *(one.text(summary, lane) for one in COLUMNS)] for summary, lane in rows]
    return "\n".join("\t".join(line) for line in lines)


def _sort_key(summary: Summary, lane: ReportLane, column: int) -> object:
    if not column:
        return lane.name.lower()
    value = COLUMNS[column - 1].value(summary, lane)
    return float("-inf") if value is None else float(value)


def _alignment(column: int) -> Qt.AlignmentFlag:
    sides = Qt.AlignmentFlag
    return (sides.AlignRight if column else sides.AlignLeft) | sides.AlignVCenter
