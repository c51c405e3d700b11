"""The table of one round as a widget."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from app.engine.types import Round
from app.ui.instruments import RoundTable
from app.ui.instruments.round_table import RoundColumn
from tests.ui.instruments.answers import answer


def texts(table: RoundTable, column: RoundColumn) -> list[str]:
    model = table.model
    return [model.index(row, column).data() for row in range(model.rowCount())]


def a_round(wanted: str, **how) -> Round:
    """A round that has a token of that fate."""
    rounds = answer(80, **how)
    fates = ([str(t.verdict) for t in round.drafted] + [str(round.emitted[-1].origin)] for round in rounds)
    return next(round for round, has in zip(rounds, fates, strict=True) if wanted in has)


@pytest.fixture
def table(qtbot, theme) -> RoundTable:
    widget = RoundTable(theme)
    qtbot.addWidget(widget)
    widget.resize(340, 300)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def test_before_the_first_round(table) -> None:
    assert table.shown is None
    assert table.title.text() == "Round"
    assert table.model.rowCount() == 0


def test_a_round_with_a_rejected_token(table) -> None:
    round = a_round("ignored")
    table.show_round(round)
    assert table.title.text() == f"Round {round.index + 1}"
    verdicts = [str(token.verdict) for token in round.drafted]
    assert texts(table, RoundColumn.VERDICT) == [*verdicts, "resampled"]
    ignored = verdicts.index("ignored")
    assert texts(table, RoundColumn.P)[ignored] == "–"
    assert len(texts(table, RoundColumn.TOKEN)) == len(round.drafted) + 1


def test_q_is_shown_for_drawn_drafts_only(table) -> None:
    table.show_round(a_round("accepted"))
    assert table.view.isColumnHidden(RoundColumn.Q)
    assert not table.view.isColumnHidden(RoundColumn.DRAFT_P)
    table.resize(600, 300)
    table.show_round(a_round("accepted", sampled=True))
    assert not table.view.isColumnHidden(RoundColumn.Q)
    assert not table.view.isColumnHidden(RoundColumn.DRAFT_P)


def test_where_there_is_no_room_q_goes_before_draft_p(table) -> None:
    table.resize(280, 300)
    table.show_round(a_round("accepted", sampled=True))
    assert not table.view.isColumnHidden(RoundColumn.Q)
    assert table.view.isColumnHidden(RoundColumn.DRAFT_P)
    columns = [c for c in RoundColumn if not table.view.isColumnHidden(c)]
    width = sum(table.view.columnWidth(column) for column in columns)
    assert width <= table.view.viewport().width()


def test_columns_stay_when_a_round_has_no_draft(table) -> None:
    table.show_round(a_round("accepted"))
    table.show_round(a_round("plain"))
    assert not table.view.isColumnHidden(RoundColumn.DRAFT_P)
    assert texts(table, RoundColumn.VERDICT) == ["plain"]


def test_the_verdict_has_the_colour_of_the_fate(table, theme) -> None:
    table.show_round(a_round("rejected"))
    row = texts(table, RoundColumn.VERDICT).index("rejected")
    colour = table.model.index(row, RoundColumn.VERDICT).data(Qt.ItemDataRole.ForegroundRole)
    assert colour == QColor(theme.palette.fate("rejected"))
    theme.set_mode("dark")
    colour = table.model.index(row, RoundColumn.VERDICT).data(Qt.ItemDataRole.ForegroundRole)
    assert colour == QColor(theme.palette.fate("rejected"))


def test_the_bar_is_as_long_as_p(table, theme) -> None:
    round = a_round("bonus")
    table.show_round(round)
    row = len(round.drafted)
    rect = table.view.visualRect(table.model.index(row, RoundColumn.BAR))
    image = table.view.viewport().grab().toImage()
    middle = rect.center().y()
    track = range(rect.left() + 16, rect.right() + 1)
    filled = [x for x in track if image.pixelColor(QPoint(x, middle)) == QColor(theme.palette.fate("bonus"))]
    assert len(filled) == pytest.approx(round.emitted[-1].p * len(track), abs=3)


def test_pinned_can_be_let_go_with_the_keyboard(table, qtbot) -> None:
    table.show_round(a_round("accepted"), pinned=True)
    assert table.unpin.isVisible()
    table.unpin.setFocus(Qt.FocusReason.TabFocusReason)
    with qtbot.waitSignal(table.unpin_requested):
        QTest.keyClick(table.unpin, Qt.Key.Key_Space)
    table.show_round(a_round("accepted"))
    assert not table.unpin.isVisible()
