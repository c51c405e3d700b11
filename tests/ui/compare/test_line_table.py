"""Tables of texts in a narrow window with large letters."""

from __future__ import annotations

import re

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.lab.depths import HEAD
from app.lab.tune.tuned import TRIED
from app.ui.compare.line_table import LineTable
from app.ui.theme import Theme
from tests.ui.windows import Windows

WIDTH = 876  # pixels that a window of 1,024 has for a table
LANE = "prompt-lookup+draft-simple:n_max=4"
SPEEDUP = "1.61× (0.87 to 2.98)"


def fits(table: LineTable) -> bool:
    return table.horizontalHeader().length() <= table.viewport().width()


def texts(table: LineTable, at: int) -> list[str]:
    """What a row shows, without the places where lines may end."""
    items = [table.item(at, column) for column in range(table.columnCount())]
    found = [item.text() for item in items if item is not None]
    return [re.sub("[\u200b\u2060]", "", text).replace("\u00a0", " ") for text in found]


def test_texts_take_more_lines_so_that_every_column_is_in_sight(qtbot: QtBot, styled: Theme) -> None:
    styled.set_scale(1.6)
    table = LineTable(styled, "By depth, in numbers", HEAD)
    qtbot.addWidget(table)
    row = [LANE, "1,024", "1,075", "1,266", SPEEDUP, "1.43×", "100.0 %", "68.5 ms"]
    table.set_rows([row])
    table.resize(WIDTH, 400)
    table.show()
    line = table.verticalHeader().defaultSectionSize()
    assert fits(table) and table.rowHeight(0) > line and texts(table, 0) == row
    table.resize(2 * WIDTH, 400)
    QApplication.processEvents()
    assert fits(table) and table.rowHeight(0) == line
    table.copy_all()
    assert QApplication.clipboard().text().split("\n")[1].split("\t") == row


def test_a_setting_without_numbers_has_its_reason_beside_it(windows: Windows) -> None:
    desk = windows.open()
    desk.window.settings.change(text_scale=1.6)
    desk.window.resize(1024, 768)
    desk.window.go("compare")
    place = desk.place("compare")
    assert place is not None
    place.outcome.show_work(place.works.tune)
    table, numbers = place.outcome.tune_page.table, len(TRIED) - 2
    measured = ["draft-simple:n_max=16", SPEEDUP, "1.43×", "100.0 %", "28", "4", "out: place 13 of 13"]
    waiting, failed = (
        ["suffix", *[none] * numbers, why] for none, why in (("", "waiting"), ("–", "no room"))
    )
    table.set_rows([measured, waiting, failed])
    QApplication.processEvents()
    assert fits(table)
    assert texts(table, 0) == measured
    assert texts(table, 1)[1] == "waiting" and texts(table, 2)[1] == "no room"
    assert [table.columnSpan(at, 1) for at in range(3)] == [1, numbers + 1, numbers + 1]
    table.set_rows([failed, measured])
    assert [table.columnSpan(at, 1) for at in range(2)] == [numbers + 1, 1] and texts(table, 1) == measured
