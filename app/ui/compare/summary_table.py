"""The summary tables: one row per lane, with the columns and definitions of all reports."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QSortFilterProxyModel,
    Qt,
    Signal,
    SignalInstance,
)
from PySide6.QtGui import QColor, QFontMetrics, QGuiApplication, QKeySequence, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.engine.fates import Origin
from app.lab.report.charts import MOST_BARS
from app.lab.report.columns import COLUMNS, Column, Row, lane_cells
from app.ui.theme import Theme
from app.ui.widgets.labels import as_text
from app.ui.widgets.tables import add_action, alignment, fit_rows, quiet_table, selected_rows

_NAMES_SHARE = 0.25  # greatest share of the width for the names
_NAMES_LEAST = 160  # pixels
_GAP = 22  # pixels between columns, at text scale 1
_ARROW = 18  # more for the arrow of the sorted column

Index = QModelIndex | QPersistentModelIndex
SORT = Qt.ItemDataRole.UserRole
Rows = Sequence[Row]


class SummaryRows(QAbstractTableModel):
    """The rows as a model: the lane's name, then the columns."""

    def __init__(self, theme: Theme, columns: Sequence[Column[Row]], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.columns = columns
        self.rows: list[Row] = []
        theme.changed.connect(self._recolour)

    def set_rows(self, rows: Rows) -> None:
        """Show these rows; selection and order stay if their number is the same."""
        same = len(rows) == len(self.rows)
        if same:
            self.rows = list(rows)
            if rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(self.columns)))
            return
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.columns) + 1

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _narrow(self.columns[section - 1].title) if section else "lane"
        if role == Qt.ItemDataRole.ToolTipRole:
            return self.columns[section - 1].definition if section else "Its label, or its strategy"
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=section > 0)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self.rows[index.row()], index.column()
        summary, lane = row
        if role == Qt.ItemDataRole.DisplayRole:
            return self.columns[column - 1].text(row) if column else lane.name
        if role == SORT:
            return _sort_key(row, self.columns[column - 1] if column else None)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=column > 0)
        if role == Qt.ItemDataRole.ToolTipRole:
            failed = f"\n{summary.failed} of its runs failed." if summary.failed else ""
            name = lane.name if lane.name == lane.strategy else f"{lane.name}\n{lane.strategy}"
            if not column:
                return as_text(f"{name}{failed}")
            shown = self.columns[column - 1]
            return f"{shown.definition}\n{shown.text(row)}" if shown.shares else shown.definition
        if role == Qt.ItemDataRole.FontRole:
            return self._theme.mono(-0.5) if not column else self._theme.sans()
        if role == Qt.ItemDataRole.ForegroundRole and summary.failed and not column:
            return QColor(self._theme.palette.error)
        return None

    def _recolour(self) -> None:
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, len(self.columns)))


class ShareBars(QStyledItemDelegate):
    """Paints the shares of a cell as small bars instead of its text; the tooltip lists them."""

    def __init__(self, theme: Theme, table: SummaryTable, column: Column[Row]) -> None:
        super().__init__(table)
        self._theme = theme
        self._table = table
        self._column = column

    def shares(self, index: Index) -> Sequence[float | None]:
        row = self._table.row_at(index.row())
        return (self._column.shares or (lambda _: ()))(row)[:MOST_BARS]

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        self.initStyleOption(option, index)
        if self.shares(index):
            option.text = ""
        style = self._table.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, self._table)
        room: QRect = option.rect
        wide, high = bar_size(self._theme)
        shares, bottom = self.shares(index), room.center().y() + high // 2
        left = room.left() + _GAP // 2  # the first places are below each other
        colour = QColor(self._theme.palette.area(Origin.ACCEPTED))
        for at, share in enumerate(shares):
            top = max(1, round(high * (share or 0.0)))
            painter.fillRect(left + wide * at, bottom - top, wide - 1, top, colour)


def bar_size(theme: Theme) -> tuple[int, int]:
    """The width of a bar with its gap, and the height of a whole one, in pixels."""
    return round(6 * theme.scale), round(16 * theme.scale)


class SummaryTable(QTableView):
    """The table. A click on a header sorts by that column; Ctrl+C copies."""

    command_wanted = Signal(int)
    """Copy the llama.cpp command of this lane."""
    use_wanted = Signal(int)
    """Answer with this lane's strategy in the chat."""

    def __init__(self, theme: Theme, columns: Sequence[Column[Row]] = COLUMNS, name: str = "Lanes") -> None:
        super().__init__()
        self._theme = theme
        self.columns = columns
        self.rows = SummaryRows(theme, columns, self)
        self.sorted = QSortFilterProxyModel(self)
        self.sorted.setSourceModel(self.rows)
        self.sorted.setSortRole(SORT)
        self.setModel(self.sorted)
        self.setAccessibleName(name)
        quiet_table(self)
        for at, column in enumerate(columns, start=1):
            if column.shares is not None:
                self.setItemDelegateForColumn(at, ShareBars(theme, self, column))
        head = self.horizontalHeader()
        head.setSectionsClickable(True)
        head.setSortIndicatorShown(True)
        self.sorted.sort(-1)  # in the given order, until the user sorts
        head.setSortIndicatorClearable(True)
        head.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        add_action(self, "Copy", self.copy, QKeySequence.StandardKey.Copy)
        add_action(self, "Copy the whole table", self.copy_all)
        add_action(
            self, "Copy the llama.cpp command of this lane", lambda: self._about_lane(self.command_wanted)
        )
        add_action(self, "Use this lane's strategy in the chat", lambda: self._about_lane(self.use_wanted))
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # Qt's widths have room for 13 arrows
        head.sortIndicatorChanged.connect(self._fit_columns)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.names = LaneColumn(self)
        theme.follow(self._fit)

    def set_rows(self, rows: Rows) -> None:
        """Show these rows, and only columns that have a value for at least one of them."""
        self.rows.set_rows(rows)
        for column, measure in enumerate(self.columns, start=1):
            known = any(measure.value(row) is not None for row in rows)
            self.setColumnHidden(column, not known)
        self._fit_columns()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
        """Make the columns as narrow as their numbers and titles; the names take at most _NAMES_SHARE of the
        width."""
        numbers, titles = QFontMetrics(self._theme.sans()), QFontMetrics(self._theme.sans(-1))
        gap, arrow = round(_GAP * self._theme.scale), round(_ARROW * self._theme.scale)
        for column, measure in enumerate(self.columns, start=1):
            texts = [self._wide(measure, row, numbers) for row in self.rows.rows]
            lines = [titles.horizontalAdvance(line) for line in _narrow(measure.title).split("\n")]
            sorted_by = self.horizontalHeader().sortIndicatorSection() == column
            self.setColumnWidth(column, max([*texts, *lines]) + gap + arrow * sorted_by)
        most = round(self.viewport().width() * _NAMES_SHARE)
        self.setColumnWidth(0, min(self.sizeHintForColumn(0), max(most, _NAMES_LEAST)))
        self.names.fit()

    def _wide(self, measure: Column[Row], row: Row, numbers: QFontMetrics) -> int:
        if measure.shares is not None and (shares := measure.shares(row)):
            return bar_size(self._theme)[0] * len(shares[:MOST_BARS])
        return numbers.horizontalAdvance(measure.text(row))

    def copy(self) -> None:
        """Copy the selected rows, or all if none is selected, as a table for spreadsheets with a header
        line."""
        rows = [self.row_at(row) for row in selected_rows(self)]
        QGuiApplication.clipboard().setText(table_text(rows or self.rows.rows, self.columns))

    def copy_all(self) -> None:
        QGuiApplication.clipboard().setText(table_text(self.rows.rows, self.columns))

    def row_at(self, place: int) -> Row:
        """The row at this place of the sorted table."""
        return self.rows.rows[self.sorted.mapToSource(self.sorted.index(place, 0)).row()]

    def _about_lane(self, signal: SignalInstance) -> None:
        current = self.sorted.mapToSource(self.currentIndex())
        if current.isValid():
            signal.emit(self.rows.rows[current.row()][0].lane)

    def _fit(self) -> None:
        fit_rows(self, self._theme)
        fit_rows(self.names, self._theme)
        self._fit_columns()


class LaneColumn(QTableView):
    """A copy of the first column, laid over the table: it stays in place while the other columns scroll."""

    def __init__(self, table: QTableView) -> None:
        super().__init__(table)
        self._table = table
        self.setModel(table.model())
        self.setSelectionModel(table.selectionModel())
        quiet_table(self)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTextElideMode(table.textElideMode())
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the table handles keys, copying and the menu
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        for hide in (self.setHorizontalScrollBarPolicy, self.setVerticalScrollBarPolicy):
            hide(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(table.verticalScrollMode())
        for column in range(1, table.model().columnCount()):
            self.setColumnHidden(column, True)
        mine, theirs = self.horizontalHeader(), table.horizontalHeader()
        mine.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        mine.setSectionsClickable(True)
        mine.setSortIndicatorShown(True)
        mine.setSortIndicatorClearable(True)
        mine.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        mine.sortIndicatorChanged.connect(self._sort_table)
        theirs.sortIndicatorChanged.connect(self._show_sorting)
        theirs.geometriesChanged.connect(self.fit)  # titles may take more lines
        table.verticalScrollBar().valueChanged.connect(self.verticalScrollBar().setValue)
        self.verticalScrollBar().valueChanged.connect(table.verticalScrollBar().setValue)

    def _sort_table(self, column: int, order: Qt.SortOrder) -> None:
        self._table.horizontalHeader().setSortIndicator(column, order)

    def _show_sorting(self, column: int, order: Qt.SortOrder) -> None:
        self.horizontalHeader().setSortIndicator(column, order)

    def fit(self) -> None:
        """Move over the table's own first column."""
        table, edge = self._table, self._table.frameWidth()
        head = table.horizontalHeader().height()
        self.setColumnWidth(0, table.columnWidth(0))
        self.horizontalHeader().setFixedHeight(head)
        self.setGeometry(edge, edge, table.columnWidth(0), table.viewport().height() + head)


def table_text(rows: Rows, columns: Sequence[Column[Row]] = COLUMNS) -> str:
    """The whole table as lines of tab-separated cells, for spreadsheets."""
    lines = [["lane", *(measure.title for measure in columns)]]
    lines += lane_cells(columns, rows)
    return "\n".join("\t".join(line) for line in lines)


def _narrow(title: str) -> str:
    """A column title, in two lines if it is wider than its numbers."""
    if " " in title:
        breaks = [at for at, letter in enumerate(title) if letter == " "]
        middle = min(breaks, key=lambda at: abs(2 * at - len(title)))
        return f"{title[:middle]}\n{title[middle + 1 :]}"
    return title.replace("/", "/\n", 1) if len(title) > len("tokens/s") else title


def _sort_key(row: Row, column: Column[Row] | None) -> object:
    if column is None:
        return row[1].name.lower()
    value = column.value(row)
    return float("-inf") if value is None else float(value)
