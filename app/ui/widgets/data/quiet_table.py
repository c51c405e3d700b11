"""What all tables of the window have in common: rows of text, without distractions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QFontMetrics, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

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
    """Where a cell's text stands: numbers at the right."""
    sides = Qt.AlignmentFlag
    return (sides.AlignRight if right else sides.AlignLeft) | sides.AlignVCenter
