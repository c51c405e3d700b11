"""Tables of the window: every one of them is set up alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QTableView, QTableWidget, QTableWidgetItem
from pytestqt.qtbot import QtBot

from app.ui.compare.results import PartingTable
from app.ui.compare.summary_table import SummaryTable
from app.ui.models.library_page import LibraryTable
from app.ui.theme import Theme
from app.ui.widgets.tables import fit_rows, quiet_table


def test_a_quiet_table_selects_rows_and_cannot_be_edited(qtbot: QtBot, theme: Theme) -> None:
    table = QTableWidget(2, 2)
    qtbot.addWidget(table)
    for at in range(4):
        table.setItem(at // 2, at % 2, QTableWidgetItem("cell"))
    quiet_table(table)
    fit_rows(table, theme)
    table.show()
    table.setCurrentCell(0, 0)
    qtbot.keyClick(table, Qt.Key.Key_F2)
    assert table.state() is not QAbstractItemView.State.EditingState
    assert len(table.selectedItems()) == 2
    assert not table.showGrid()
    qtbot.keyClick(table, Qt.Key.Key_Tab)
    assert table.currentColumn() == 0
    assert table.rowHeight(0) > table.fontMetrics().height()


@pytest.mark.parametrize("make", [PartingTable, SummaryTable, LibraryTable])
def test_all_tables_are_quiet(qtbot: QtBot, theme: Theme, make: Callable[[Theme], QTableView]) -> None:
    table = make(theme)
    qtbot.addWidget(table)
    assert table.editTriggers() == QAbstractItemView.EditTrigger.NoEditTriggers
    assert table.selectionBehavior() is QAbstractItemView.SelectionBehavior.SelectRows
    assert not table.showGrid()
    assert not table.verticalHeader().isVisibleTo(table)
