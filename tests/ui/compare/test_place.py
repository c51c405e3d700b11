"""The Compare place over real engines: run, race, read, save."""

from __future__ import annotations

import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QWidget

from app.base import numbers
from app.lab.experiment import Job
from app.lab.report.columns import COLUMNS, SHAPE, lane_rows
from app.lab.report.page import embedded_json
from app.lab.report.report import Report, make_report
from app.lab.report.verdict import fastest, verdict
from app.ui.state.lab_work import Stage
from tests.ui.compare.measuring import exports_of, measured, opened
from tests.ui.windows import Windows


def test_run_on_the_defaults_measures_every_lane_and_gives_the_engine_back(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    report = measured(desk, place)
    assert next(lane.strategy for lane in report.lanes) == "none"
    assert len(report.lanes) == 4
    assert report.complete
    assert len(report.runs) == 4 * 2
    table = place.outcome.results.table
    assert table.rowCount() == 4
    desk.until_ready()
    assert desk.ask("xyz").text  # the chat has its models again


def test_reports_are_folded_on_the_threads_of_what_is_measured(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded: list[bool] = []

    def noted(*what: Any, **more: Any) -> Report:
        folded.append(threading.current_thread() is threading.main_thread())
        return make_report(*what, **more)

    for module in [module for name, module in sys.modules.items() if name.startswith("app.ui.")]:
        if hasattr(module, "make_report"):
            monkeypatch.setattr(module, "make_report", noted)
    desk = windows.open()
    assert measured(desk, opened(desk)).complete
    assert folded and not any(folded)


def test_a_result_says_what_was_changed_since(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    measured(desk, place)
    desk.until_ready()
    assert "changed since" not in place.strip.remarks.text()
    place.head.lanes_panel.strategy.text.typed.emit("draft-simple:n_max=2")
    assert place.strip.remarks.text().startswith("Lanes changed after this was measured.")
    place.head.prompts_panel.own.setPlainText("xyz")
    assert place.strip.remarks.text().startswith("Lanes and prompts changed after this was measured.")
    assert place.strip.remarks.isVisible()


def test_the_frame_follows_the_verdict_over_all_runs(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    report = measured(desk, place)
    assert place.strip.text == f"All runs: {verdict(report)}"
    best = fastest(report)
    for at, card in enumerate(place.outcome.stage.lanes.cards):
        assert card.toolTip() == ("The fastest over all runs" if at == best else "")
        assert "this run: " in card.caption.text()
    place.outcome.stage.set_best(2)
    place.outcome.stage.show_prompt(1, 0)
    framed = [bool(card.toolTip()) for card in place.outcome.stage.lanes.cards]
    assert framed == [False, False, True, False], "also where another run is shown"


def test_the_race_stands_at_its_end_and_goes_back(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    measured(desk, place)
    stage = place.outcome.stage
    assert not stage.following
    race = stage.race
    assert race is not None
    rounds = [card.answer.cursor for card in stage.lanes.cards]
    assert rounds == [len(race.lanes[lane].times) for lane in range(4)]
    stage.bar.slider.setValue(0)
    assert [card.answer.cursor for card in stage.lanes.cards] == [0, 0, 0, 0]
    middle = race.seconds / 2
    stage.bar.slider.setValue(1000)
    assert stage.bar.at == pytest.approx(middle)
    shown = [card.answer.cursor for card in stage.lanes.cards]
    assert shown == [race.at(middle)[lane].rounds for lane in range(4)]
    stage.bar.play.click()
    desk.until(lambda: not stage.bar.playing)
    assert [card.answer.cursor for card in stage.lanes.cards] == rounds
    (first,) = [lane for lane, state in race.at(race.seconds).items() if state.place == 1]
    assert "this run: 1st" in stage.lanes.cards[first].caption.text()


def test_lanes_show_the_text_of_their_runs_and_whether_it_is_the_baselines(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    measured(desk, place)
    records = place.works.session.records
    for lane, card in enumerate(place.outcome.stage.lanes.cards):
        assert card.text.text_of(card.text.turns[0]) == records[Job(0, 0, lane)].text
        expected = "" if lane == 0 else "identical"
        if lane == 0 or records[Job(0, 0, lane)].identical_to_baseline:
            assert card.badge.text().endswith(expected)
        else:
            assert "differs from token" in card.badge.text()
        whole = records[Job(0, 0, lane)].end_to_end_speedup
        assert card.badge.text().startswith(f"{numbers.factor(whole)} end to end · ") is (lane > 0)


def test_no_lane_waits_while_its_answer_shows(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    seen: set[tuple[bool, bool]] = set()

    def look() -> None:
        for card in place.outcome.stage.lanes.cards:
            seen.add((card.answer is not None, card.caption.text() == "waiting for its turn"))

    place.works.session.progressed.connect(look)
    measured(desk, place)
    assert (False, True) in seen and (True, True) not in seen


def test_the_table_is_sorted_copied_and_explained(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    report = measured(desk, place)
    table = place.outcome.results.table
    model = table.model()
    assert [model.index(row, 0).data() for row in range(4)] == [lane.name for lane in report.lanes]
    table.horizontalHeader().setSortIndicator(1, Qt.SortOrder.DescendingOrder)
    speeds = [COLUMNS[0].value(row) for row in lane_rows(report)]
    fastest = report.lanes[speeds.index(max(speed or 0 for speed in speeds))].name
    assert model.index(0, 0).data() == fastest
    for column, measure in enumerate(COLUMNS, start=1):
        horizontal = Qt.Orientation.Horizontal
        assert model.headerData(column, horizontal, Qt.ItemDataRole.ToolTipRole) == measure.definition
    table.selectRow(0)
    table.copy()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["lane", fastest]
    table.copy_all()
    assert len(QGuiApplication.clipboard().text().splitlines()) == 5
    shape = place.outcome.results.shape
    lane = next(at for at, summary in enumerate(report.summary) if summary.acceptance_by_place)
    texts = [column.text(lane_rows(report)[lane]) for column in SHAPE]
    assert [shape.model().index(lane, at).data() for at in range(1, len(SHAPE) + 1)] == texts
    assert texts[2].split(" · ")[0] == f"{report.summary[lane].acceptance_by_place[0] * 100:.0f}"
    place.exports.copy_command(2)
    assert "--model" in QGuiApplication.clipboard().text()


def test_exports_hold_the_same_report(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    place = opened(desk)
    report = measured(desk, place)
    asked: list[str] = []

    def choose(_window: QWidget, name: str, _pattern: str) -> str:
        asked.append(name)
        return str(tmp_path / name)

    place.exports.choose = choose
    for action in exports_of(place)[:6]:
        action.trigger()
    desk.until(lambda: not place.exports.saving)
    assert asked == ["comparison.html", "comparison.md", "comparison.json", "runs.csv", "traces.zip",
                     "chart.png"]  # fmt: skip
    saved = Report.from_json((tmp_path / "comparison.json").read_bytes())
    assert saved.runs == report.runs
    assert saved.pair is not None
    assert len(saved.pair.target.sha256 or "") == 64
    page = (tmp_path / "comparison.html").read_text()
    assert Report.from_json(embedded_json(page)).runs == report.runs
    assert "draft-simple" in (tmp_path / "comparison.md").read_text()
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 9
    with zipfile.ZipFile(tmp_path / "traces.zip") as archive:
        assert len(archive.namelist()) == 8
    picture = QImage(str(tmp_path / "chart.png"))
    colours = {
        picture.pixelColor(x, y).name()
        for x in range(0, picture.width(), 3)
        for y in range(0, picture.height(), 3)
    }
    assert len(colours) > 4  # not just the background


def test_an_export_that_cannot_be_written_says_so(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    place = opened(desk)
    measured(desk, place)
    place.exports.choose = lambda _window, name, _pattern: str(tmp_path / "nowhere" / name)
    exports_of(place)[2].trigger()
    desk.until(place.notice.isVisible)
    assert "was not saved" in place.notice.message
    exports_of(place)[4].trigger()
    desk.until(lambda: "traces.zip" in place.notice.message)


def test_nothing_is_exported_before_the_first_run_is_over(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    assert not place.head.export.isEnabled()
    measured(desk, place)
    assert place.head.export.isEnabled()
    desk.until_ready()
    place.run()
    assert place.works.session.stage is Stage.FREEING
    assert not place.head.export.isEnabled()
    asked: list[str] = []
    place.exports.choose = lambda _window, name, _pattern: asked.append(name) or ""
    for action in exports_of(place)[:5]:  # a menu that was open already
        action.trigger()
    assert asked == []
    desk.until(lambda: place.works.session.done >= 1)
    desk.until(place.head.export.isEnabled)
    place.works.session.cancel()
    desk.until(lambda: place.works.session.may_start)
    desk.until_ready()
    records = place.works.session.records
    for lane, card in enumerate(place.outcome.stage.lanes.cards):
        waits = Job(0, 0, lane) not in records and Job(1, 0, lane) not in records
        assert (card.caption.text() == "not measured yet") == waits


def test_a_winner_is_taken_into_the_chat(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    measured(desk, place)
    place.outcome.results.table.use_wanted.emit(1)
    assert desk.window.settings.now.strategy == "prompt-lookup"
    assert desk.header.strategy_panel.spec() == "prompt-lookup"
