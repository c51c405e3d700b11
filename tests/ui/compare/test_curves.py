"""Plots over a row of places: what they draw, read out and save."""

from __future__ import annotations

import csv
import dataclasses
import io
from html import escape
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.lab.depths import DEFINITION, HEAD, depth_curves, depth_rows
from app.lab.report.plots import CurveMark, CurvePlot, Curves
from app.ui.compare.pages import CurvesPage, CurvesView
from app.ui.theme import Theme
from tests.lab.report.reports import made_depths
from tests.ui.pixels import painted


def made_curves() -> Curves:
    curves = depth_curves(made_depths((0, 256, 1024)))
    assert curves is not None
    return curves


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def view(qtbot: QtBot, theme: Theme, saved: Path) -> CurvesView:
    made = CurvesView(theme, "By depth", "depth")
    made.ask_where = lambda _window, name, _pattern: str(saved / name)
    qtbot.addWidget(made)
    made.resize(900, 300)
    made.set_curves(made_curves())
    made.show()
    QApplication.processEvents()
    return made


def test_every_number_is_a_point_that_is_read_out(view: CurvesView) -> None:
    curves = view.curves
    assert curves is not None
    points = list(view.marks())
    assert len(points) == sum(len(plot.values) for plot in curves.plots) == 3 * 3 + 2 * 3 + 3 * 3
    assert all(view.rect().contains(point.toPoint()) for _, point in points)
    assert view.reading(points[0][1] + QPointF(3, 3)) == curves.reading(0, 0)
    covered = [point for (_lane, at), point in points if at == 2][-3:]
    assert covered[0] == covered[1] == covered[2], "the same time to the first token"
    assert view.reading(covered[0]) == "\n\n".join(curves.reading(lane, 2) for lane in range(3))
    assert view.reading(QPointF(2, 2)) == ""


def test_places_stand_at_equal_distances_and_higher_is_more(view: CurvesView) -> None:
    first = dict(reversed(list(view.marks())))
    steps = [first[1, at].x() for at in range(3)]
    assert steps[1] - steps[0] == pytest.approx(steps[2] - steps[1])
    assert first[1, 0].y() < first[1, 2].y() < first[0, 2].y(), "faster is higher; the baseline is at 1"


def test_a_narrow_view_stacks_its_plots(view: CurvesView) -> None:
    plot = made_curves().plots[0]
    four = tuple(dataclasses.replace(plot, key=str(key), title=str(key)) for key in range(4))
    view.set_curves(dataclasses.replace(made_curves(), plots=four))
    QApplication.processEvents()
    wide = {round(point.y()) for mark, point in view.marks() if mark == (0, 0)}
    view.resize(500, 500)
    QApplication.processEvents()
    narrow = {round(point.y()) for mark, point in view.marks() if mark == (0, 0)}
    assert (len(wide), len(narrow)) == (1, 2)
    assert all(view.rect().contains(point.toPoint()) for _, point in view.marks())


def test_places_and_names_are_written_where_there_is_room(view: CurvesView) -> None:
    curves = made_curves()
    many = tuple(range(0, 24_000, 1000))
    plot = dataclasses.replace(curves.plots[0], values={(0, at): 1.0 for at in range(len(many))})
    lanes = tuple(f"{at} prompt-lookup {'long ' * 40}" for at in range(3))
    view.set_curves(dataclasses.replace(curves, places=many, plots=(plot,), lanes=lanes))
    QApplication.processEvents()
    texts = painted(view)
    places = [x for text, x, _ in texts if text in {f"{place:,}" for place in many}]
    assert 8 <= len(places) < len(many), "not all"
    assert all(right - left > 40 for left, right in pairwise(places[1:]))
    assert all(escape(name).replace("-", "-\N{WORD JOINER}") in view.legend.text() for name in lanes), "whole"
    assert view.legend.height() >= view.legend.heightForWidth(view.legend.width()), "no name is cut"


def test_a_lane_stands_out_and_a_mark_is_drawn(view: CurvesView) -> None:
    alike = view.grab().toImage()
    view.stand_out(1)
    assert view.grab().toImage() != alike
    view.stand_out(None)
    assert view.grab().toImage() == alike
    curves = made_curves()
    mark = CurveMark(0.5, 1.0, "here")
    marked = dataclasses.replace(curves.plots[0], marks=(mark,))
    view.set_curves(dataclasses.replace(curves, plots=(marked, *curves.plots[1:])))
    assert view.grab().toImage() != alike


def test_a_plot_without_numbers_takes_no_room(view: CurvesView) -> None:
    curves = made_curves()
    empty = CurvePlot("acceptance_rate", "acceptance", str, {})
    view.set_curves(dataclasses.replace(curves, plots=(curves.plots[0], empty)))
    assert max(point.x() for _, point in view.marks()) > view.width() - 60
    view.set_curves(None)
    assert not list(view.marks())
    view.grab()


def test_a_right_click_saves_the_picture_and_the_data(view: CurvesView, saved: Path) -> None:
    picture, table = view.menu().actions()
    picture.trigger()
    table.trigger()
    assert (saved / "depth.png").read_bytes().startswith(b"\x89PNG")
    head, *rows = csv.reader(io.StringIO((saved / "depth.csv").read_text(encoding="utf-8")))
    curves = made_curves()
    assert head == curves.table()[0] and len(rows) == 9
    assert float(rows[3][2]) == curves.plots[0].values[1, 0]


def test_a_row_of_the_table_makes_its_lane_stand_out(qtbot: QtBot, theme: Theme) -> None:
    page = CurvesPage(theme, "By depth", "depth", HEAD, DEFINITION)
    qtbot.addWidget(page)
    page.resize(900, 600)
    page.show()
    report = made_depths((0, 256, 1024))
    lines = list(depth_rows(report))
    page.set_content(depth_curves(report), lines, ["left out, depth 9: why"])
    assert page.table.rows == lines and page.left_out == "left out, depth 9: why"
    alike = page.view.grab().toImage()
    page.table.selectRow(4)
    assert page.view.grab().toImage() != alike
    page.table.copy()
    assert QApplication.clipboard().text() == "\n".join(["\t".join(HEAD), "\t".join(lines[4])])
    page.table.clearSelection()
    assert page.view.grab().toImage() == alike
