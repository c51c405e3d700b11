"""What all tables of the window have in common: rows of text, without distractions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from PySide6.QtCore import Qt
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


class TextTable(QTableWidget):
    """A quiet table of texts: Ctrl+C copies the selected rows, the menu all of them."""

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
        columns in `mono` are code. A derived class with rows of its own calls `restyle` when it is ready."""
        super().__init__(0, len(titles))
        self._theme = theme
        self._titles = tuple(titles)
        self._left, self._mono = left, mono
        self.texts_shown: list[Sequence[str]] = []
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

    def explain(self, definitions: Sequence[str]) -> None:
        """Give every column's title its definition as a tooltip."""
        for column, definition in enumerate(definitions):
            item = self.horizontalHeaderItem(column)
            assert item is not None
            item.setToolTip(definition)

    def set_texts(self, texts: Sequence[Sequence[str]]) -> None:
        """Show these rows; the selection stays."""
        self.texts_shown = list(texts)
        self.fill()

    def texts(self) -> Sequence[Sequence[str]]:
        """The texts of all rows."""
        return self.texts_shown

    def colour(self, texts: Sequence[str]) -> str:
        """The colour of a row."""
        return self._theme.palette.text

    def fill(self) -> None:
        """Put the rows into the table, in the theme's fonts and colours."""
        self.setRowCount(len(self.texts_shown))
        for row, texts in enumerate(self.texts_shown):
            for column, text in enumerate(texts):
                item = self.item(row, column)
                if item is None:
                    item = QTableWidgetItem()
                    item.setTextAlignment(alignment(right=column not in self._left))
                    self.setItem(row, column, item)
                item.setText(text)
                item.setFont(self._theme.mono(-0.5) if column in self._mono else self._theme.sans())
                item.setForeground(QColor(self.colour(texts)))

    def restyle(self) -> None:
        fit_rows(self, self._theme)
        self.fill()

    def copy(self) -> None:
        """Copy the selected rows, or all if none is selected, as a table for spreadsheets."""
        texts = self.texts()
        self._copy([texts[row] for row in selected_rows(self)] or texts)

    def copy_all(self) -> None:
        self._copy(self.texts())

    def _copy(self, texts: Sequence[Sequence[str]]) -> None:
        copy_texts([[title for title in self._titles if title], *texts])
