"""The summary tables: one row per lane, with the columns and definitions of all reports."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt, Signal, SignalInstance
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QTableWidgetItem,
)

from app.engine.fates import Origin
from app.lab.report.charts import MOST_BARS
from app.lab.report.columns import COLUMNS, Column, Row
from app.ui.theme import Theme
from app.ui.widgets.labels import as_text
from app.ui.widgets.tables import TextTable, add_action, fit_rows, quiet_table, two_lines

_NAMES_SHARE = 0.25  # greatest share of the width for the names
_NAMES_LEAST = 160  # pixels
_GAP = 22  # pixels between columns, at text scale 1
_ARROW = 18  # more for the arrow of the sorted column

Index = QModelIndex | QPersistentModelIndex


class ShareBars(QStyledItemDelegate):
    """Paints the shares of a cell as small bars instead of its text; the tooltip lists them."""

    def __init__(self, theme: Theme, table: SummaryTable, column: Column[Row]) -> None:
        super().__init__(table)
        self._theme = theme
        self._table = table
        self._column = column

    def shares(self, index: Index) -> Sequence[float | None]:
        return (self._column.shares or (lambda _: ()))(self._table.rows[index.row()])[:MOST_BARS]

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


class SummaryTable(TextTable[Row]):
    """The table. A click on a header sorts by that column; Ctrl+C copies."""

    command_wanted = Signal(int)
    """Copy the llama.cpp command for this lane."""
    use_wanted = Signal(int)
    """Answer with this lane's strategy in the chat."""

    def __init__(self, theme: Theme, columns: Sequence[Column[Row]] = COLUMNS, name: str = "Lanes") -> None:
        self.columns = columns
        super().__init__(theme, name, ("lane", *(column.title for column in columns)))
        self.explain(("Its label, or its strategy", *(column.definition for column in columns)))
        self.setHorizontalHeaderLabels(["lane", *(two_lines(column.title) for column in columns)])
        for at, column in enumerate(columns, start=1):
            if column.shares is not None:
                self.setItemDelegateForColumn(at, ShareBars(theme, self, column))
        self.let_sort(clearable=True)
        add_action(
            self, "Copy the llama.cpp command for this lane", lambda: self._about_lane(self.command_wanted)
        )
        add_action(self, "Use this lane's strategy in the chat", lambda: self._about_lane(self.use_wanted))
        # Qt's widths have room for 13 arrows.
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.names = LaneColumn(self)
        self.restyle()

    def cells(self, row: Row) -> Sequence[str]:
        return [row[1].name, *(column.text(row) for column in self.columns)]

    def identity(self, row: Row) -> object:
        return row[0].lane

    def sort_key(self, row: Row, column: int) -> object:
        if not column:
            return row[1].name.lower()
        value = self.columns[column - 1].value(row)
        return float("-inf") if value is None else float(value)

    def dress(self, item: QTableWidgetItem, row: Row, column: int) -> None:
        super().dress(item, row, column)
        summary, lane = row
        if column:
            shown = self.columns[column - 1]
            tip = f"{shown.definition}\n{shown.text(row)}" if shown.shares else shown.definition
        else:
            failed = f"\n{summary.failed} of its runs failed." if summary.failed else ""
            name = lane.name if lane.name == lane.strategy else f"{lane.name}\n{lane.strategy}"
            tip = as_text(f"{name}{failed}")
            if failed:
                item.setForeground(QColor(self._theme.palette.error))
        item.setToolTip(tip)

    def fill(self) -> None:
        """Show only columns that have a value for at least one row."""
        super().fill()
        for column, measure in enumerate(self.columns, start=1):
            self.setColumnHidden(column, all(measure.value(row) is None for row in self.rows))
        self._fit_columns()

    def restyle(self) -> None:
        fit_rows(self.names, self._theme)
        super().restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
        """Make the columns as narrow as their numbers and titles; the names take at most _NAMES_SHARE of the
        width."""
        numbers, titles = QFontMetrics(self._theme.sans()), QFontMetrics(self._theme.sans(-1))
        gap, arrow = round(_GAP * self._theme.scale), round(_ARROW * self._theme.scale)
        for column, measure in enumerate(self.columns, start=1):
            texts = [self._wide(measure, row, numbers) for row in self.rows]
            lines = [titles.horizontalAdvance(line) for line in two_lines(measure.title).split("\n")]
            sorted_by = self.horizontalHeader().sortIndicatorSection() == column
            self.setColumnWidth(column, max([*texts, *lines]) + gap + arrow * sorted_by)
        most = round(self.viewport().width() * _NAMES_SHARE)
        self.setColumnWidth(0, min(self.sizeHintForColumn(0), max(most, _NAMES_LEAST)))
        self.names.fit()

    def _wide(self, measure: Column[Row], row: Row, numbers: QFontMetrics) -> int:
        if measure.shares is not None and (shares := measure.shares(row)):
            return bar_size(self._theme)[0] * len(shares[:MOST_BARS])
        return numbers.horizontalAdvance(measure.text(row))

    def _about_lane(self, signal: SignalInstance) -> None:
        if self.currentIndex().isValid():
            signal.emit(self.rows[self.currentRow()][0].lane)


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
