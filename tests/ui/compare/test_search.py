"""Sweep and "Tune for me" in the window, over real engines."""

from __future__ import annotations

import html
import json
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLineEdit

from app.engine.strategy import StrategySpec
from app.lab.axes import keys_of
from app.lab.report.plots import MAPS, heat_map
from app.lab.report.summary import Speedup
from app.lab.tune.tuned import Rung, Score, Tuned
from app.lab.tune.tuner import RungBegun
from app.ui.compare.pages import cell_words
from app.ui.compare.place import ComparePlace
from app.ui.compare.start_panels import suggested
from app.ui.compare.works import TuneSession
from app.ui.state.engine_session import Activity
from app.ui.state.lab_work import Stage
from tests.ui.compare.measuring import exports_of, opened, reopened
from tests.ui.windows import Desk, Windows


def swept(desk: Desk, place: ComparePlace) -> None:
    panel = place.head.sweep_panel
    panel.across.values.setText("1,3")
    panel.down.values.setText("0,0.5")
    panel.check()
    assert panel.amount.text() == "4 cells and the baseline: 5 cold runs"
    panel.start.click()
    desk.until(lambda: place.works.sweep.stage is Stage.ENDED and place.works.sweep.may_start)


def test_a_sweep_fills_its_grid_and_a_cell_is_taken_into_the_chat(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, repeats=1)
    swept(desk, place)
    report = place.works.sweep.report
    assert report is not None
    cells = heat_map(report)
    assert place.works.sweep.cells == cells
    heat = place.outcome.sweep_page.heat
    assert heat.cells == cells
    assert [(shown.cell.x, shown.cell.y) for shown in cells] == [
        ("1", "0"), ("3", "0"), ("1", "0.5"), ("3", "0.5")
    ]  # fmt: skip
    assert all(each.value(shown) is not None for shown in cells for each in MAPS)
    place_of_last = heat.grid.viewport().rect().bottomRight() - QPoint(20, 20)
    desk.qtbot.mouseClick(heat.grid.viewport(), Qt.MouseButton.LeftButton, pos=place_of_last)
    assert heat.current is not None
    assert heat.current.strategy == "draft-simple:p_min=0.5"
    assert place.outcome.sweep_page.cell.text() == cell_words(cells[3])
    desk.qtbot.keyClick(heat.grid, Qt.Key.Key_Left)
    assert heat.current.strategy == "draft-simple:n_max=1:p_min=0.5"
    desk.qtbot.keyClick(heat.grid, Qt.Key.Key_Left)
    desk.qtbot.keyClick(heat.grid, Qt.Key.Key_Up)
    assert heat.current.cell.y == "0"
    strategy = heat.current.strategy
    desk.until_ready()
    place.outcome.sweep_page.use.click()
    assert desk.window.settings.now.strategy == strategy


def test_a_sweep_that_was_broken_off_goes_on_in_the_next_window(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=64, repeats=20)
    lanes = place.chips.setup.lanes
    panel = place.head.sweep_panel
    panel.across.values.setText("1,3")
    panel.down.values.setText("0,0.5")
    panel.start.click()
    desk.until(lambda: place.works.sweep.done >= 2)
    desk, again = reopened(windows, desk)
    earlier = again.earlier.offered
    assert earlier is not None
    again.earlier.accept.click()
    assert again.outcome.currentWidget() is again.outcome.sweep_page
    desk.until(lambda: again.works.sweep.done > earlier.done)
    assert [shown.cell.x for shown in again.outcome.sweep_page.heat.cells] == ["1", "3", "1", "3"]
    assert again.chips.setup.lanes == lanes, "the cells are no lanes of a comparison"
    again.works.cancel()
    desk.until(lambda: again.works.sweep.may_start)
    desk.until_ready()


def test_a_cell_is_compared_side_by_side(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, repeats=1)
    swept(desk, place)
    desk.until_ready()
    place.outcome.sweep_page.compare.click()
    desk.until(lambda: place.works.session.stage is Stage.ENDED and place.works.session.may_start)
    assert len(place.works.session.experiment.lanes) == 2
    assert place.outcome.currentWidget() is place.outcome.lanes


def retype(desk: Desk, field: QLineEdit, text: str) -> None:
    field.selectAll()
    desk.qtbot.keyClicks(field, text)
    desk.press(Qt.Key.Key_Return, field)


def test_a_sweep_that_cannot_be_says_why(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    panel = place.head.sweep_panel
    retype(desk, panel.across.values, "1,3")
    assert panel.start.isEnabled()
    retype(desk, panel.across.values, "nonsense")
    assert not panel.start.isEnabled()
    assert "nonsense" in panel.amount.text()
    retype(desk, panel.strategy, "prompt-lookup")
    assert panel.across.key.currentText() == "max_ngram_size"
    assert panel.down.values.text().startswith("greedy,") and not panel.down.values.cursorPosition()
    assert panel.start.isEnabled()


@pytest.mark.parametrize("strategy", ["draft-simple", "ngram-mod+draft-simple:n_max=2", "suffix"])
def test_what_a_sweep_suggests_is_allowed(strategy: str) -> None:
    names = keys_of(strategy)
    assert len(names) >= 2
    for key, param in names.items():
        for value in suggested(key, param).split(","):
            param.parse(value)
    assert StrategySpec.parse(strategy).parts


def test_tune_tries_settings_says_why_and_its_winner_goes_into_the_chat(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=12)
    place.head.tune_panel.seconds.set_value(5)
    place.head.tune_panel.start.click()
    assert desk.session.activity is Activity.LENT
    page = place.outcome.tune_page
    desk.until(lambda: "running" in [row[-1] for row in page.rows()])
    desk.until(lambda: place.works.tune.stage is Stage.ENDED and place.works.tune.may_start)
    assert "running" not in [row[-1] for row in page.rows()]
    result = place.works.tune.result
    assert result is not None
    assert page.reason.text() == result.reason
    assert "on these prompts" in place.works.tune.plan
    shown = [row[0] for row in page.rows()]
    assert len(shown) == len(set(shown)) == result.tried + len(result.left_out)
    assert page.table.rowCount() == len(shown)
    assert page.rows()[-1][-1].startswith("not tried: ")
    desk.until_ready()
    sure = result.winner != "none" or result.refuted
    assert page.use.isVisible() is sure, "a difference that may be chance is not offered"
    page.use_wanted.emit(result.winner)
    assert desk.window.settings.now.strategy == result.winner


@pytest.mark.verify
def test_a_search_goes_on_is_saved_and_can_be_seen_again(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    place = opened(desk, tokens=12)
    place.head.tune_panel.seconds.set_value(5)
    place.head.tune_panel.start.click()
    desk.until(lambda: place.works.tune.stage is Stage.ENDED and place.works.tune.may_start)
    first = place.works.tune.result
    assert first is not None
    desk.until_ready()
    page = place.outcome.tune_page
    assert page.more.isVisible() and page.more.text() == "Search 2 more minutes"
    place.exports.choose = lambda _window, name, _pattern: str(tmp_path / name)
    for action in exports_of(place):
        action.trigger()
    desk.until(lambda: not place.exports.saving)
    assert json.loads((tmp_path / "search.json").read_bytes())["reason"] == first.reason
    assert html.escape(first.reason) in (tmp_path / "search.html").read_text()
    place.strip.back.click()
    assert place.outcome.currentWidget() is place.outcome.lanes
    place.head.tune_panel.last.click()
    assert place.outcome.currentWidget() is page
    page.more.click()
    assert not page.more.isVisible()
    desk.until(lambda: place.works.tune.done >= 2)
    place.strip.cancel.click()
    desk.until(lambda: place.works.tune.may_start)
    result = place.works.tune.result
    assert result is not None
    assert result.rungs[: len(first.rungs)] == first.rungs
    desk.until_ready()


def test_a_search_that_is_cancelled_gives_the_engine_back(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=12)
    panel = place.head.tune_panel
    desk.qtbot.mouseClick(place.head.tune, Qt.MouseButton.LeftButton)
    assert panel.seconds.isVisible() and panel.seconds.value() == 60
    panel.seconds.set_value(600)
    desk.qtbot.mouseClick(panel.start, Qt.MouseButton.LeftButton)
    desk.until(lambda: place.works.tune.done >= 3)
    place.strip.cancel.click()
    desk.until(lambda: not place.works.tune.at_work)
    desk.until_ready()
    assert place.head.run.isEnabled()
    place.strip.back.click()
    assert place.outcome.currentWidget() is place.outcome.lanes


def test_a_search_says_how_long_its_round_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TuneSession, "rung_share", 0.25)
    session = TuneSession(None, None)
    session.stage, session.rung = Stage.RUNNING, RungBegun(0, 3, (), 60.0)
    assert session.now()[:2] == ("stage 1 of 3 · 0 settings · 0 runs", "45 s left in this stage")


def test_a_headline_is_no_surer_than_the_search() -> None:
    shown = Speedup(0.9, 0.8, 1.0, 3)
    rung = Rung(24, 1.0, (Score("suffix", shown, 0.5, 3, kept=True),))
    lost = Tuned("none", shown, "suffix", "", (rung,), 3, 3, 1.0, complete=True)
    assert lost.headline == "Speculation does not pay here"
    assert msgspec.structs.replace(lost, complete=False).headline == "No winner was found"
    unsure = msgspec.structs.replace(rung.scores[0], speedup=Speedup(4.7))
    chance = msgspec.structs.replace(lost, rungs=(msgspec.structs.replace(rung, scores=(unsure,)),))
    assert chance.headline == "No winner was found"
    assert msgspec.structs.replace(lost, winner="suffix").headline == "suffix wins on these prompts"
