"""Words, journals and the race's clock: what needs no engine."""

from __future__ import annotations

import zipfile
from html import unescape
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from pyqtgraph import InfiniteLine
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app.engine.fates import Origin
from app.engine.types import FinishReason, ModelOptions
from app.lab.experiment import Experiment, Job, Lane, Pair, Prompt, make_experiment
from app.lab.report.columns import COLUMNS, SHAPE
from app.lab.report.report import Cell, SweepFacts
from app.lab.report.summary import Speedup
from app.lab.runs.compare import TraceStore
from app.lab.runs.journal import Journal, RunLine, lock_journal
from app.lab.runs.record import Divergence, RunRecord
from app.lab.tune.tuned import FINALISTS, TRIED, Rung, Score
from app.ui.compare.exports import save_traces
from app.ui.compare.journals import KEPT, Journals
from app.ui.compare.lane_card import LaneCard
from app.ui.compare.outcome import TunePage
from app.ui.compare.race_bar import RaceBar
from app.ui.compare.results import Point, Scatter
from app.ui.compare.summary_table import SummaryTable
from app.ui.compare.words import THIS_RUN, ahead_words, badge, place_words, short
from app.ui.compare.works import TuneSession
from app.ui.theme import Theme
from tests.lab.report.reports import made_report
from tests.ui.pixels import painted
from tests.ui.traces import drawing


def experiment() -> Experiment:
    return make_experiment(
        Experiment(Pair(ModelOptions("target.gguf")), (Lane("prompt-lookup"),), (Prompt("abc"),), repeats=2)
    )


def record(**changes: object) -> RunRecord:
    """A run of lane 1, compared with lane 0."""
    made = RunRecord.of(drawing(), lane=1)
    return msgspec.structs.replace(made, **{"baseline_lane": 0} | changes)


def test_a_badge_says_identical_near_tie_law_or_where_it_parts() -> None:
    parting = Divergence(4, 1, 2, " a", "\n", 0.5, 0.2, near_tie=False)
    tie = msgspec.structs.replace(parting, near_tie=True)
    assert badge(record(identical_to_baseline=True), "prompt-lookup", 0)[0] == "identical"
    words, why = badge(record(identical_to_baseline=False, first_divergence=parting), "prompt-lookup", 0)
    assert words == "differs from token 5"
    assert "“\\n” instead of “ a”" in why
    assert "0.500 apart" in why and "may be rounding" not in why
    unknown = msgspec.structs.replace(parting, near_tie=None)
    why = badge(record(identical_to_baseline=False, first_divergence=unknown), "prompt-lookup", 0)[1]
    assert "may be rounding" in why
    shown = badge(record(identical_to_baseline=False, first_divergence=tie), "prompt-lookup", 0)[0]
    assert shown == "equal but for rounding, differs from token 5"
    drawn = badge(record(identical_to_baseline=False, first_divergence=parting), "prompt-lookup", 0.8)[0]
    assert drawn == "same distribution, different text"
    matched = record(identical_to_baseline=False, first_divergence=parting)
    assert badge(matched, "prompt-lookup:verify=match", 0.8)[0] == "differs from token 5"
    assert badge(record(lane=0), "none", 0) == ("", "")


def test_places_and_gaps() -> None:
    assert [place_words(place) for place in (1, 2, 3, 4, 8)] == ["1st", "2nd", "3rd", "4th", "8th"]
    assert ahead_words(0.25).endswith("ahead of the baseline")
    assert ahead_words(-0.25).endswith("behind the baseline")
    assert ahead_words(0.0) == "level with the baseline"
    assert short(f"{THIS_RUN}1st, 2 s · {ahead_words(0.25)}").endswith("250\N{NO-BREAK SPACE}ms ahead")
    assert short(ahead_words(-0.25)).endswith("ms behind")


def write_journal(path: Path, runs: int, failed: int = 0) -> Journal:
    """A journal of `experiment` with so many of its runs, the last of them failed."""
    asked = experiment()
    journal = Journal.create(path, asked)
    for at, job in enumerate(asked.jobs()[:runs]):
        made = RunRecord.of_failed(asked, job, "no room")
        if at < runs - failed:
            made = msgspec.structs.replace(made, finish_reason=FinishReason.LENGTH, error="")
        journal.add(RunLine(job, made))
    return journal


def test_a_journal_that_is_being_written_is_no_offer(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    path = journals.new()
    write_journal(path, 2)
    lock = lock_journal(path)
    assert journals.latest() is None
    assert journals.broken_off() is None
    lock.release()
    earlier = journals.latest()
    assert earlier is not None
    assert (earlier.path, earlier.done, earlier.total) == (path, 2, 4)


def test_what_can_go_on_is_offered_before_what_is_newer_and_complete(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    older, broken, failed, complete, empty = (journals.new() for _ in range(5))
    write_journal(older, 1)
    write_journal(broken, 3)
    write_journal(failed, 4, failed=1)
    write_journal(complete, 4)
    write_journal(empty, 0)
    found, latest = journals.broken_off(), journals.latest()
    assert found is not None and latest is not None
    assert (found.path, found.done, found.complete) == (broken, 3, False)
    assert (latest.path, latest.complete, latest.broken_off) == (complete, True, False)
    journals.remove(broken)
    journals.remove(older)
    assert journals.broken_off() is None, "all runs of the remaining journals were tried"
    journals.remove(complete)
    latest = journals.latest()
    assert latest is not None
    assert (latest.path, latest.done, latest.failed, latest.complete) == (failed, 3, 1, False)


@pytest.mark.parametrize("version", [b"1", b"99"])
def test_journals_of_other_versions_stay_and_are_not_offered(tmp_path: Path, version: bytes) -> None:
    journals = Journals(tmp_path)
    other = journals.new()
    write_journal(other, 2)
    other.write_bytes(other.read_bytes().replace(b"draftscope-journal-2", b"draftscope-journal-" + version))
    for _ in range(KEPT + 2):
        write_journal(journals.new(), 4)
    assert len(journals.paths()) == KEPT + 1 and other in journals.paths()
    assert journals.broken_off() is None


def test_what_can_go_on_stays_longest(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    waiting = journals.new()
    write_journal(waiting, 2)
    for at in range(KEPT + 2):
        write_journal(journals.new(), 4 if at % 2 else 0)
    kept = journals.paths()
    assert waiting in kept
    assert len(kept) == KEPT
    assert sum(not Journal.read(journal).records for journal in kept) == 1, (
        "of those without a run the newest alone"
    )
    grid = SweepFacts("n_max", "p_min", ("1",), ("0",), (Cell("1", "0", 1),))
    path = journals.new(grid)
    write_journal(path, 2)
    found = journals.broken_off()
    assert found is not None
    assert (found.path, found.sweep) == (path, grid)
    journals.remove(path)
    assert not list(tmp_path.glob(f"{path.stem}*"))


@pytest.mark.parametrize("meanwhile", [None, "went on", "goes on"])
def test_discard_leaves_a_measurement_that_went_on(tmp_path: Path, meanwhile: str | None) -> None:
    """Another window may have taken it up while this one offered it."""
    journals = Journals(tmp_path)
    path = journals.new()
    write_journal(path, 2)
    offered = journals.broken_off()
    assert offered is not None
    if meanwhile == "went on":
        path.unlink()
        write_journal(path, 4)
    lock = lock_journal(path) if meanwhile == "goes on" else None
    journals.discard(offered)
    assert path.exists() is (meanwhile is not None)
    if lock is not None:
        lock.release()


def test_a_damaged_journal_is_no_offer(tmp_path: Path) -> None:
    (tmp_path / "20260101-000000.jsonl").write_text("rubbish\n")
    assert Journals(tmp_path).latest() is None


def test_the_race_runs_at_true_speed_and_slower(qtbot: QtBot, theme: Theme) -> None:
    bar = RaceBar(theme)
    qtbot.addWidget(bar)
    bar.show()
    bar.set_seconds(0.3)
    assert bar.at == 0.3
    moments: list[float] = []
    bar.moved.connect(moments.append)
    bar.play.click()
    assert moments[0] < 0.1  # from its end it begins anew
    qtbot.waitUntil(lambda: not bar.playing)
    assert moments == sorted(moments)
    assert moments[-1] == pytest.approx(0.3)
    bar.speed.setCurrentText("20× slower")
    bar.slider.setValue(0)
    bar.play.click()
    qtbot.waitUntil(lambda: bar.at > 0)
    assert bar.playing
    assert bar.at < 0.2
    bar.slider.setValue(1000)  # a seek while it plays
    assert bar.at == pytest.approx(0.15)
    bar.play.click()
    assert not bar.playing
    bar.set_seconds(0.0)
    assert not bar.play.isEnabled()
    assert bar.slider.orientation() is Qt.Orientation.Horizontal


def test_a_narrow_race_shows_its_prompt_below_the_clock(qtbot: QtBot, theme: Theme) -> None:
    theme.set_scale(1.6)
    bar = RaceBar(theme)
    qtbot.addWidget(bar)
    bar.set_choices(["1 · Repeat: a fox, a hen"], 2)
    bar.set_seconds(20.0)
    bar.show()
    for width, below in ((860, True), (1500, False)):
        bar.resize(width, bar.sizeHint().height())
        QApplication.processEvents()  # it is laid out
        assert (bar.prompt.y() > bar.speed.geometry().bottom()) is below
        assert bar.prompt.width() > 200 and bar.prompt.geometry().bottom() < bar.height()


def discs(plot: Scatter, colour: str) -> list[QPoint]:
    """The middles of the points that a plot paints, from left to right."""
    image, wanted = plot.grab().toImage(), QColor(colour)
    inside = {
        (x, y)
        for x in range(image.width())
        for y in range(image.height())
        if image.pixelColor(x, y) == wanted
    }
    middles = [
        QPoint(x, y) for x, y in sorted(inside)
        if inside.issuperset({(x - 4, y), (x + 4, y), (x, y - 4), (x, y + 4)})
    ]  # fmt: skip
    return [at for before, at in pairwise((QPoint(-99, 0), *middles)) if at.x() - before.x() > 9]


def test_the_scatter_finds_its_points(qtbot: QtBot, theme: Theme) -> None:
    plot = Scatter(theme)
    qtbot.addWidget(plot)
    plot.resize(600, 240)
    points = [Point("a", 0.1, 0.5, 0.4, 0.6), Point("b", 0.9, 1.4)]
    plot.set_points(points)
    plot.show()
    first, second = discs(plot, theme.palette.text)
    assert first.x() < second.x() and first.y() > second.y()
    for place, point in ((first, points[0]), (second, points[1])):
        qtbot.mouseMove(plot.area.viewport(), place)
        qtbot.waitUntil(lambda point=point: point.reading in unescape(QToolTip.text()))  # type: ignore[misc]
    qtbot.mouseMove(plot.area.viewport(), (first + second) / 2)
    qtbot.waitUntil(lambda: not QToolTip.isVisible())
    texts = {text.replace("\N{NO-BREAK SPACE}", " ") for text, _, _ in painted(plot)}
    assert {"speed-up", "1.00×", "0 %", "100 %", "a", "b", "none"} <= texts
    plot.draw()
    assert not [
        item for item in plot.area.scene().items() if type(item) is InfiniteLine and not item.parentItem()
    ]
    box, at = plot.axes[0].box, plot.axes[0].pixel(0.9, 1.4)

    def turn(at: QPointF, key: Qt.KeyboardModifier) -> bool:
        turned = QWheelEvent(
            at, at, QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton, key, Qt.ScrollPhase.NoScrollPhase,
            False,
        )  # fmt: skip
        turned.ignore()
        QApplication.sendEvent(plot.area.viewport(), turned)
        return turned.isAccepted()

    whole = box.viewRange()
    numbers = plot.axes[0].left
    for spot in (at, numbers.mapToScene(numbers.boundingRect().center())):
        assert not turn(spot, Qt.KeyboardModifier.NoModifier), "it scrolls the page"
    assert box.viewRange() == whole
    assert turn(at, Qt.KeyboardModifier.ControlModifier)
    plot.set_points(points)
    (low, high), _ = box.viewRange()
    assert whole[0][0] < low < 0.9 < high, "zoomed, and still so after it is drawn again"
    for act in (qtbot.mouseDClick, qtbot.mouseRelease):
        act(plot.area.viewport(), Qt.MouseButton.LeftButton, pos=at.toPoint())
    assert box.viewRange() == whole


def test_failed_runs_have_a_column_where_there_are_some(qtbot: QtBot, theme: Theme) -> None:
    report = made_report()
    rows = list(zip(report.summary, report.lanes, strict=True))
    table = SummaryTable(theme)
    qtbot.addWidget(table)
    column = 1 + next(at for at, column in enumerate(COLUMNS) if column.key == "failed")
    table.set_rows(rows)
    assert table.isColumnHidden(column)
    table.set_rows([(msgspec.structs.replace(summary, failed=2), lane) for summary, lane in rows])
    assert not table.isColumnHidden(column)
    assert table.item(0, column).text() == "2"


def test_shares_are_small_bars_with_their_words_at_hand(qtbot: QtBot, theme: Theme) -> None:
    report = made_report()
    rows = list(zip(report.summary, report.lanes, strict=True))
    table = SummaryTable(theme, SHAPE)
    qtbot.addWidget(table)
    table.resize(1000, 240)
    table.set_rows(rows)
    table.show()
    column = 1 + next(at for at, column in enumerate(SHAPE) if column.key == "acc_per_pos")
    index = table.model().index(1, column)
    assert index.data() == SHAPE[column - 1].text(rows[1]), "screen readers and copies have the words"
    assert index.data() in index.data(Qt.ItemDataRole.ToolTipRole)
    cell, colour = table.visualRect(index), QColor(theme.palette.area(Origin.ACCEPTED)).rgb()
    picture = table.viewport().grab().toImage()
    heights = [
        sum(picture.pixel(x, y) == colour for y in range(cell.top(), cell.bottom()))
        for x in range(cell.left(), cell.right())
    ]
    bars = [height for height, before in zip(heights[1:], heights, strict=False) if height and not before]
    wanted = [16 * theme.scale * share for share in rows[1][0].acc_per_pos]
    assert bars == pytest.approx(wanted, abs=1), "a bar for each place, as high as its share"


def test_the_names_stay_beside_their_numbers_when_titles_take_two_lines(qtbot: QtBot, theme: Theme) -> None:
    report = made_report()
    rows = list(zip(report.summary, report.lanes, strict=True))
    table = SummaryTable(theme)
    qtbot.addWidget(table)
    table.resize(1168, 240)
    table.show()
    head, names = table.horizontalHeader(), table.names
    heights = set()
    for shown in ([], rows):  # columns without a value are hidden
        table.set_rows(shown)
        qtbot.waitUntil(lambda: head.height() == head.sizeHint().height())
        heights.add(head.height())
        assert names.horizontalHeader().height() == head.height()
        assert names.viewport().mapTo(table, QPoint()).y() == table.viewport().mapTo(table, QPoint()).y()
    assert len(heights) == 2


def test_saving_traces_ends_with_the_window(qtbot: QtBot, tmp_path: Path) -> None:
    traces = TraceStore(tmp_path / "traces")
    for at in range(3):
        traces.put(Job(0, at, 0), drawing())
    path = tmp_path / "traces.zip"
    saving = save_traces(traces, path)
    saving.end()  # before it has begun
    saving.run()
    assert not path.exists()
    assert not list(tmp_path.glob("*.partial"))
    whole = save_traces(traces, path)
    with qtbot.waitSignal(whole.done):
        whole.start()
    whole.wait()
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 3


def test_the_best_of_a_search_are_as_many_as_its_last_round_has(theme: Theme, qtbot: QtBot) -> None:
    tried = tuple(
        Score(f"suffix:n_max={at + 1}", Speedup(2.0 - at / 10), 0.5, 3, kept=True, whole_speedup=1.5)
        for at in range(6)
    )
    session = TuneSession(None, None)
    session.rungs = [Rung(24, 1.0, tried)]
    page = TunePage(theme, session)
    qtbot.addWidget(page)
    wanted: list[tuple[str, ...]] = []
    page.compare_wanted.connect(wanted.append)
    page.compare.click()
    assert wanted == [tuple(score.strategy for score in tried[:FINALISTS])]
    shown = dict(zip(TRIED, page.rows()[0], strict=True))
    assert shown["speed-up (95 %)"] == "2.00×" and shown["end to end"] == "1.50×"
    assert shown["acceptance"].startswith("50.0") and shown["stage"] == "1"


def test_the_table_fits_1280_pixels_and_keeps_its_names_when_narrower(qtbot: QtBot, theme: Theme) -> None:
    report = made_report(4)
    lanes = [
        msgspec.structs.replace(lane, name=f"prompt-lookup:max_ngram_size={n}+draft-simple:n_max=4:p_min=0.5")
        for n, lane in enumerate(report.lanes)
    ]
    table = SummaryTable(theme)
    qtbot.addWidget(table)
    table.resize(1168, 240)  # beside the rail and the margins
    table.set_rows(list(zip(report.summary, lanes, strict=True)))
    table.show()
    assert table.horizontalScrollBar().maximum() == 0
    table.resize(700, 240)
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() > 0)
    table.horizontalScrollBar().setValue(table.horizontalScrollBar().maximum())
    names = table.names
    assert table.columnViewportPosition(0) < 0, "scrolled away"
    assert names.isVisible() and names.x() <= table.frameWidth()
    assert names.width() == table.columnWidth(0) < 300
    for row in range(4):
        assert names.rowViewportPosition(row) == table.rowViewportPosition(row)
    assert names.viewport().mapTo(table, QPoint()).y() == table.viewport().mapTo(table, QPoint()).y()
    first = names.visualRect(names.model().index(2, 0)).center()
    qtbot.mouseClick(names.viewport(), Qt.MouseButton.LeftButton, pos=first)
    assert [index.row() for index in table.selectionModel().selectedRows()] == [2]
    head, edge = names.horizontalHeader().viewport(), QPoint(names.columnWidth(0) - 1, 8)
    QTest.mousePress(head, Qt.MouseButton.LeftButton, pos=edge)
    QTest.mouseMove(head, edge - QPoint(60, 0))
    QTest.mouseRelease(head, Qt.MouseButton.LeftButton, pos=edge - QPoint(60, 0))
    assert names.columnWidth(0) == table.columnWidth(0), "no names beside those of the table"


def test_the_menu_of_a_sorted_table_acts_on_the_lane_under_it(qtbot: QtBot, theme: Theme) -> None:
    report = made_report()
    rows = list(zip(report.summary, report.lanes, strict=True))
    table = SummaryTable(theme)
    qtbot.addWidget(table)
    table.set_rows(rows)
    wanted: list[int] = []
    table.use_wanted.connect(wanted.append)
    use = next(action for action in table.actions() if action.text().startswith("Use this lane"))
    named = {lane.name: summary.lane for summary, lane in rows}
    for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
        table.horizontalHeader().setSortIndicator(0, order)
        shown = [str(table.model().index(row, 0).data()) for row in range(len(rows))]
        wanted.clear()
        for row in range(len(rows)):
            table.setCurrentIndex(table.model().index(row, 0))
            use.trigger()
        assert wanted == [named[name] for name in shown]


def test_a_lane_is_no_longer_framed_where_another_is_the_fastest(qtbot: QtBot, styled: Theme) -> None:
    card = LaneCard(styled, "suffix", "")
    qtbot.addWidget(card)
    card.resize(300, 300)
    before = card.grab().toImage()
    card.set_best(True)
    assert card.toolTip() and card.grab().toImage() != before
    card.set_best(False)
    assert not card.toolTip() and card.grab().toImage() == before
