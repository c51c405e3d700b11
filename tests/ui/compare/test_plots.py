"""Plots of the lanes, the scatter and the heat map: what they read out, and what a right click saves."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pyqtgraph as pg
import pytest
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.base import numbers
from app.engine.errors import UserError
from app.engine.record.trace import Trace
from app.lab.report.plots import heat_map
from app.lab.report.report import Cell, SweepFacts
from app.ui.compare.lane_card import LanesView
from app.ui.compare.lane_plot import LanePlot, _rounded_up
from app.ui.compare.pages import HeatView, shade
from app.ui.compare.results import Point, Scatter, points_of
from app.ui.state.folds import RATE_WINDOW
from app.ui.theme import Theme
from app.ui.theme.palette import DARK, LIGHT, Palette
from app.ui.widgets.plot import Plot
from tests.lab.report.reports import made_report
from tests.ui.contrast import contrast
from tests.ui.pixels import colours_of
from tests.ui.traces import make_header, make_round


def nowhere(_window: QWidget, _name: str, _pattern: str) -> str:
    return ""


def answer(rounds: int = 20, seconds: float = 0.1) -> Trace:
    """Two tokens a round, and one of two drafted tokens accepted."""
    made = [make_round(at, "a", "c", "b", offset=at * seconds, seconds=seconds) for at in range(rounds)]
    return Trace(make_header(), made)


@pytest.fixture
def plot(qtbot: QtBot, theme: Theme) -> LanePlot:
    made = LanePlot(theme, "suffix")
    made.ask_where = nowhere
    qtbot.addWidget(made)
    made.resize(200, 60)
    return made


def ink(plot: QWidget, colour: str) -> int:
    """Pixels of a colour."""
    return colours_of(plot.grab().toImage())[QColor(colour).name().upper()]


def test_a_lane_plot_follows_its_answer_and_goes_back(plot: LanePlot, theme: Theme) -> None:
    trace = answer()
    plot.set_axes(40, 25, 10.0)
    assert ink(plot, theme.palette.fate("accepted")) == 0
    plot.show_trace(trace, 10)
    half = ink(plot, theme.palette.fate("accepted"))
    plot.show_trace(trace, 20)
    assert half < ink(plot, theme.palette.fate("accepted"))
    plot.show_trace(trace, 10)
    assert ink(plot, theme.palette.fate("accepted")) == half
    assert plot.tokens == 40
    plot.show_trace(None, 0)
    assert plot.tokens == 0
    assert ink(plot, theme.palette.fate("accepted")) == 0


def test_its_numbers_are_those_of_the_trace(plot: LanePlot) -> None:
    trace = answer()
    plot.show_trace(trace, 20)
    plot.set_axes(40, plot.peak, 12.5)
    assert plot.peak == pytest.approx(20.0)  # two tokens in 0.1 s
    reading = plot.reading(0.5 * plot.width() + 1)
    assert "round 11, up to token 22" in reading
    assert f"20.0\N{NO-BREAK SPACE}tok/s over the last {RATE_WINDOW} rounds" in reading
    assert "1 of 2 drafted tokens accepted" in reading
    assert "12.5\N{NO-BREAK SPACE}tok/s" in reading
    plot.show_trace(trace, 5)
    assert plot.reading(0.5 * plot.width()) == "", "that round is not shown yet"
    names, rows = plot.table()
    assert [dict(zip(names, row, strict=True)) for row in rows][4] == {
        "round": 4, "tokens": 10, "tokens_per_second": pytest.approx(20.0), "drafted": 2, "accepted": 1
    }  # fmt: skip


def test_an_answer_that_grows_is_read_on(plot: LanePlot) -> None:
    trace = answer(rounds=4)
    plot.show_trace(trace, 4)
    assert plot.peak == pytest.approx(20), "the speed over all rounds, which are few"
    trace.rounds.extend(answer().rounds[4:])
    plot.show_trace(trace, 20)
    assert plot.tokens == 40
    assert plot.peak == pytest.approx(20.0)


def test_all_lanes_have_the_same_axes(qtbot: QtBot, theme: Theme) -> None:
    view = LanesView(theme)
    qtbot.addWidget(view)
    view.set_lanes([("none", ""), ("suffix", "")])
    view.resize(800, 400)
    view.show()
    slow, fast = (card.plot for card in view.cards)
    slow.show_trace(answer(seconds=0.2), 20)
    fast.show_trace(answer(seconds=0.05), 20)
    own_axes = fast.grab().toImage()
    view.share_axes(40, (10.0, 10.0))
    assert fast.grab().toImage() != own_axes
    slow.show_trace(answer(seconds=0.05), 20)
    assert slow.size() == fast.size()
    assert slow.grab().toImage() == fast.grab().toImage(), "the same answer looks the same in both"


def test_a_card_is_never_so_low_that_its_plot_is_cut(qtbot: QtBot, theme: Theme) -> None:
    view = LanesView(theme)
    qtbot.addWidget(view)
    view.set_lanes([("none", ""), ("suffix", "")])
    view.show()
    view.resize(400, view.minimumSizeHint().height())  # the cards scroll sideways
    QApplication.processEvents()  # it is laid out
    for card in view.cards:
        assert card.geometry().bottom() < view.viewport().height()
        assert card.plot.height() == card.plot.sizeHint().height()
        assert card.plot.geometry().bottom() < card.plot.parentWidget().height()
        assert card.text.geometry().top() > card.plot.parentWidget().geometry().bottom()
        assert card.text.geometry().bottom() < card.height()


def test_the_top_of_an_axis_is_a_round_number_above() -> None:
    assert [_rounded_up(speed) for speed in (0.034, 7.0, 42.0, 100.0, 151.0)] == [
        0.04,
        8.0,
        50.0,
        100.0,
        200.0,
    ]
    assert _rounded_up(0.0) > 0


CELLS = tuple(Cell(x, y, 1 + (x == "2")) for y in ("0", "0.5") for x in ("1", "2"))
GRID = SweepFacts("n_max", "p_min", ("1", "2"), ("0", "0.5"), CELLS)


def heat(theme: Theme, choose: Callable[[QWidget, str, str], str]) -> HeatView:
    view = HeatView(theme)
    view.ask_where = choose
    view.set_cells(GRID, heat_map(made_report(sweep=GRID)))
    return view


def test_a_sweep_that_has_no_cells_yet_shows_none_of_the_one_before(qtbot: QtBot, theme: Theme) -> None:
    view = heat(theme, lambda *_: "")
    qtbot.addWidget(view)
    assert view.current is not None
    view.set_cells(GRID, ())
    assert view.current is None and view.grid.item(0, 0) is None
    view.grab()  # paints without an error


def test_of_points_as_near_all_are_read_out(qtbot: QtBot, theme: Theme) -> None:
    view = Scatter(theme)
    qtbot.addWidget(view)
    view.set_points([Point("a", 0.5, 1.0), Point("b", 0.5, 1.0)])
    ((_, place), _) = view.marks()
    assert [point.name for point in view.near(place)] == ["a", "b"]


def test_the_baseline_crosses_no_name_of_a_point(qtbot: QtBot, theme: Theme) -> None:
    view = Scatter(theme)
    qtbot.addWidget(view)
    view.resize(800, 200)
    view.show()
    view.set_points([Point("prompt-lookup", 0.2, 0.97), Point("suffix", 0.5, 1.02), Point("draft", 0.9, 2.0)])
    axes = view.axes[0]
    level = axes.pixel(0, 1).y()
    names = [item.textItem for item in axes.box.childGroup.childItems() if isinstance(item, pg.TextItem)]
    assert len(names) == 3
    for name in names:
        box = name.sceneBoundingRect().adjusted(0, 4, 0, -4)  # without its margins
        assert not box.top() < level < box.bottom(), name.toPlainText()


def scatter(theme: Theme, choose: Callable[[QWidget, str, str], str]) -> Scatter:
    view = Scatter(theme)
    view.ask_where = choose
    view.set_points([Point("a", 0.1, 0.5, 0.4, 0.6), Point("b", 0.9, 1.4, whole=1.3)])
    return view


def lane(theme: Theme, choose: Callable[[QWidget, str, str], str]) -> LanePlot:
    view = LanePlot(theme, "suffix")
    view.ask_where = choose
    view.show_trace(answer(), 20)
    return view


def test_the_points_of_lanes_say_the_factor_end_to_end_too() -> None:
    report = made_report()
    for point, summary in zip(points_of(report), report.summary[1:], strict=True):
        assert point.reading.endswith(f", end to end {numbers.factor(summary.whole_speedup)}")


@pytest.mark.parametrize(("make", "rows"), [(heat, 4), (scatter, 2), (lane, 20)])
def test_every_plot_is_saved_as_picture_and_as_table(
    qtbot: QtBot, theme: Theme, tmp_path: Path, make: Callable[..., Plot], rows: int
) -> None:
    plot = make(theme, lambda _window, name, _pattern: str(tmp_path / name))
    qtbot.addWidget(plot)
    plot.resize(300, 200)
    for action in plot.menu().actions():
        action.trigger()
    picture = QImage(str(tmp_path / f"{plot.file_stem}.png"))
    assert picture.width() > 2 * 300
    assert len({picture.pixelColor(x, y).name() for x in range(0, 600, 3) for y in range(0, 400, 3)}) > 2
    with (tmp_path / f"{plot.file_stem}.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == rows
    assert all(len(row) == len(plot.table()[0]) for row in table)


def test_a_plot_that_cannot_be_saved_says_so(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    plot = scatter(theme, lambda _window, name, _pattern: str(tmp_path / "nowhere" / name))
    qtbot.addWidget(plot)
    errors: list[UserError] = []
    plot.failed.connect(errors.append)
    plot.save_picture()
    plot.save_table()
    assert len(errors) == 2


def test_every_cell_of_a_heat_map_shows_its_number(qtbot: QtBot, theme: Theme) -> None:
    view = heat(theme, nowhere)
    qtbot.addWidget(view)
    view.resize(400, 300)
    picture = view.grab().toImage()
    wide, high = picture.width() // 2, picture.height() // 2
    for x, y in ((0, 1), (1, 0), (1, 1)):  # the frame of the chosen cell has the colour of numbers, too
        cell = picture.copy(x * wide, y * high, wide, high)
        assert QColor(theme.palette.text).name().upper() in colours_of(cell)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_the_numbers_of_a_heat_map_are_legible_on_every_shade(colours: Palette) -> None:
    for step in range(101):
        assert contrast(colours.text, shade(colours, step / 100)) >= 4.5
    assert contrast(colours.secondary, colours.ground) >= 4.5, "not allowed"


def test_an_answer_of_few_rounds_has_an_axis_that_holds_it(plot: LanePlot) -> None:
    """Of fewer rounds than a rate is taken over no speed was known: the axis said 1.00 tokens/s."""
    few = answer(3)
    plot.show_trace(few, 3)
    rates = [row[2] for row in plot.table()[1]]
    assert len(rates) == 3
    assert plot.peak == rates[-1] == pytest.approx(20)


def test_a_burst_of_a_server_s_tokens_does_not_flatten_the_curves(plot: LanePlot) -> None:
    trace = answer(rounds=20, seconds=0.1)
    at_once = [make_round(20 + at, "a", "c", "b", offset=2.0 + 1e-6 * at, seconds=1e-6) for at in range(100)]
    trace.rounds.extend(at_once)
    plot.show_trace(trace, 120)
    assert plot.peak == pytest.approx(4 * 240 / 2.0, rel=0.01), "four times the speed of the whole answer"
