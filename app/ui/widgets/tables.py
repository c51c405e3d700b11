"""What all tables of the window have in common: rows of text, without distractions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtGui import QAction, QColor, QFontMetrics, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QTableWidget, QTableWidgetItem

from app.ui.theme import Theme

STYLE = """
    QTableView::item { padding: 0 5px; }
    QAbstractScrollArea::corner { background: transparent; border: none; }
"""


def quiet_table(view: QTableView) -> None:
    """Set up a table: whole rows, which cannot be edited, without a grid; Tab leaves the table."""
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    view.setShowGrid(False)
    view.setWordWrap(False)
    view.setTabKeyNavigation(False)
    view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    view.setStyleSheet(STYLE)
    view.verticalHeader().hide()
    head = view.horizontalHeader()
    head.setHighlightSections(False)
    head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)


def fit_rows(view: QTableView, theme: Theme) -> None:
    """Set the height of the rows to the theme's font."""
    height = QFontMetrics(theme.sans()).height() + round(12 * theme.scale)
    view.verticalHeader().setDefaultSectionSize(height)


def add_action(
    view: QTableView, words: str, act: Callable[[], object], key: QKeySequence.StandardKey | None = None
) -> None:
    """Add an action to the table's menu; its key acts while the table has the focus."""
    action = QAction(words, view)
    if key is not None:
        action.setShortcut(QKeySequence(key))
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
    action.triggered.connect(act)
    view.addAction(action)


def copy_texts(rows: Iterable[Iterable[str]]) -> None:
    """Copy rows of texts as a table for spreadsheets."""
    QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in rows))


def selected_rows(view: QTableView) -> list[int]:
    """The selected rows, in order."""
    return sorted(index.row() for index in view.selectionModel().selectedRows())


def alignment(*, right: bool) -> Qt.AlignmentFlag:
    """The alignment of a cell's text: numbers are at the right."""
    sides = Qt.AlignmentFlag
    return (sides.AlignRight if right else sides.AlignLeft) | sides.AlignVCenter


def two_lines(title: str) -> str:
    """A column title, in two lines if it is wider than its numbers."""
    if " " in title:
        breaks = [at for at, letter in enumerate(title) if letter == " "]
        middle = min(breaks, key=lambda at: abs(2 * at - len(title)))
        return f"{title[:middle]}\n{title[middle + 1 :]}"
    return title.replace("/", "/\n", 1) if len(title) > len("tokens/s") else title


RowT = TypeVar("RowT")


class TextTable(QTableWidget, Generic[RowT]):
    """A quiet table with a row of texts for each thing. Ctrl+C copies the selected rows, the menu all rows.

    A derived class says what the texts of a thing are, and calls `restyle` when it is ready.
    """

    def __init__(
        self,
        theme: Theme,
        name: str,
        titles: Sequence[str],
        *,
        left: Collection[int] = (0,),
        mono: Collection[int] = (0,),
    ) -> None:
        """A column without a title has no text. The texts of columns in `left` are at the left, those of
        columns in `mono` are code."""
        super().__init__(0, len(titles))
        self._theme = theme
        self._titles = tuple(titles)
        self._left, self._mono = left, mono
        self._given: list[RowT] = []
        self.rows: list[RowT] = []  # in the order in which they are shown
        self.setAccessibleName(name)
        quiet_table(self)
        for column, title in enumerate(titles):
            item = QTableWidgetItem(title)
            item.setTextAlignment(alignment(right=column not in left))
            self.setHorizontalHeaderItem(column, item)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        add_action(self, "Copy", self.copy, QKeySequence.StandardKey.Copy)
        add_action(self, "Copy the whole table", self.copy_all)
        theme.changed.connect(self.restyle)

    def cells(self, row: RowT) -> Sequence[str]:
        """The texts of a row."""
        raise NotImplementedError

    def identity(self, row: RowT) -> object:
        """The subject of a row: the row that has it stays selected."""
        return self.cells(row)[0]

    def sort_key(self, row: RowT, column: int) -> Any:
        """The sort key of a row in a column, if the user can sort."""
        return self.cells(row)[column]

    def dress(self, item: QTableWidgetItem, row: RowT, column: int) -> None:
        """Style a cell in the theme's fonts and colours."""
        item.setFont(self._theme.mono(-0.5) if column in self._mono else self._theme.sans())
        item.setForeground(QColor(self._theme.palette.text))

    def explain(self, definitions: Sequence[str]) -> None:
        """Give every column's title its definition as a tooltip."""
        for column, definition in enumerate(definitions):
            item = self.horizontalHeaderItem(column)
            assert item is not None
            item.setToolTip(definition)

    def let_sort(self, *, clearable: bool) -> None:
        """Let the user sort by a click on a title; if it is `clearable`, the third click restores the given
        order."""
        head = self.horizontalHeader()
        head.setSectionsClickable(True)
        head.setSortIndicatorShown(True)
        head.setSortIndicatorClearable(clearable)
        head.setSortIndicator(-1 if clearable else 0, Qt.SortOrder.AscendingOrder)
        head.sortIndicatorChanged.connect(self._arrange)

    def set_rows(self, rows: Iterable[RowT]) -> None:
        """Show these rows. The selection and the user's sort order are kept."""
        given = list(rows)
        if given != self._given:
            self._given = given
            self._arrange()

    def _arrange(self) -> None:
        """Show the rows in order; `itemSelectionChanged` comes only if something else is selected then."""
        chosen = [self.identity(self.rows[at]) for at in selected_rows(self)]
        head, self.rows = self.horizontalHeader(), list(self._given)
        if head.isSortIndicatorShown() and (column := head.sortIndicatorSection()) >= 0:
            backwards = head.sortIndicatorOrder() is Qt.SortOrder.DescendingOrder
            self.rows.sort(key=lambda row: self.sort_key(row, column), reverse=backwards)
        self.blockSignals(True)
        self.fill()
        kept = [at for at, row in enumerate(self.rows) if self.identity(row) in chosen]
        if kept != selected_rows(self):
            self._select(kept)
        self.blockSignals(False)
        if [self.identity(self.rows[at]) for at in kept] != chosen:
            self.itemSelectionChanged.emit()

    def _select(self, rows: Sequence[int]) -> None:
        flags, model = QItemSelectionModel.SelectionFlag, self.selectionModel()
        model.clearSelection()
        for at in rows:
            index = self.model().index(at, 0)
            model.select(index, flags.Select | flags.Rows)
            model.setCurrentIndex(index, flags.NoUpdate)

    def fill(self) -> None:
        """Put the rows into the table."""
        self.setRowCount(len(self.rows))
        for at, row in enumerate(self.rows):
            for column, text in enumerate(self.cells(row)):
                item = self.item(at, column)
                if item is None:
                    item = QTableWidgetItem()
                    item.setTextAlignment(alignment(right=column not in self._left))
                    self.setItem(at, column, item)
                item.setText(text)
                self.dress(item, row, column)

    def restyle(self) -> None:
        fit_rows(self, self._theme)
        self.fill()

    def copy(self) -> None:
        """Copy the selected rows, or all if none is selected, as a table for spreadsheets."""
        self._copy([self.rows[at] for at in selected_rows(self)] or self.rows)

    def copy_all(self) -> None:
        self._copy(self._given)

    def _copy(self, rows: Sequence[RowT]) -> None:
        copy_texts([[title for title in self._titles if title], *map(self.cells, rows)])
