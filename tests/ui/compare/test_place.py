"""The Compare place over real engines: set up, run, race, read, save, break and go on."""

from __future__ import annotations

import dataclasses
import os
import signal
import zipfile
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QPushButton, QWidget

from app.cli.bench import parse_bench
from app.engine.types import ModelOptions
from app.lab.columns import COLUMNS
from app.lab.experiment import Job, Lane, Pair
from app.lab.journal import is_free
from app.lab.page.page import embedded_json
from app.lab.report import Report
from app.lab.suites import Suite, built_in
from app.lab.verdict import fastest, verdict
from app.paths import resource_folder
from app.ui.compare.place import ComparePlace
from app.ui.compare.setup import Amount, Source, first_setup
from app.ui.compare.work import Stage
from app.ui.engine_session import Activity
from app.ui.panels.number_box import NumberBox
from tests.ui.windows import Desk, Windows


def opened(desk: Desk, tokens: int = 16, repeats: int = 2, prompt: str = "abcabcabc") -> ComparePlace:
    """The place with a short prompt of one's own."""
    desk.window.go("compare")
    place = desk.window.compare.place
    assert place is not None
    place.head.prompts_panel.source.picked.emit(Source.OWN)
    place.head.prompts_panel.own.setPlainText(prompt)
    place.head.prompts_panel.amount.field("repeats").set_value(repeats)
    place.head.prompts_panel.amount.field("max_tokens").set_value(tokens)
    place.head.prompts_panel.amount.changed.emit()
    return place


def measured(desk: Desk, place: ComparePlace) -> Report:
    """Press Run and wait for the end."""
    desk.qtbot.mouseClick(place.head.run, Qt.MouseButton.LeftButton)
    desk.until(lambda: place.works.session.at_work)
    desk.until(lambda: place.works.session.stage is Stage.ENDED and place.works.session.may_start)
    report = place.works.session.report()
    assert report is not None
    return report


def exports_of(place: ComparePlace) -> list[QAction]:
    """What the menu behind Export offers now."""
    place.head.export_menu.aboutToShow.emit()
    return [one for one in place.head.export_menu.actions() if one.isVisible()]


def test_an_amount_is_typed_without_being_rewritten(windows: Windows) -> None:
    place = opened(windows.open(), tokens=256)
    box = place.head.prompts_panel.amount.field("max_tokens").control
    assert isinstance(box, NumberBox)
    box.lineEdit().setCursorPosition(0)
    QTest.keyClicks(box.lineEdit(), "10")
    QTest.keyClick(box.lineEdit(), Qt.Key.Key_Return)
    assert box.lineEdit().text() == "10256" and place.chips.setup.amount.max_tokens == 10256


def test_built_in_prompts_have_their_template_again_after_a_plain_file(
    windows: Windows, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("Once upon\n")
    place = opened(windows.open(), tokens=16)
    panel = place.head.prompts_panel
    panel._choose = lambda _parent: str(plain)
    panel.source.picked.emit(Source.FILE)
    panel.open.click()
    assert not place.chips.setup.chat and not panel.chat.isChecked()
    panel.source.picked.emit(Source.SUITE)
    assert place.chips.setup.chat and panel.chat.isChecked()
    assert "up to 16 tokens" in panel._about.text()


def test_run_on_the_defaults_measures_every_lane_and_gives_the_engine_back(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    report = measured(desk, place)
    assert next(lane.strategy for lane in report.lanes) == "none"
    assert len(report.lanes) == 4
    assert report.complete
    assert len(report.runs) == 4 * 2
    table = place.outcome.results.table
    assert table.rows.rowCount() == 4
    desk.until_ready()
    assert desk.ask("xyz").text  # the chat has its models again


def test_the_chats_engine_is_away_while_it_is_measured(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=200, repeats=20)
    place.run()
    assert desk.session.activity is Activity.LENT
    assert desk.session.pair is None
    desk.until(lambda: place.works.session.stage is Stage.RUNNING)
    desk.window.go("chat")
    desk.type("xyz")
    assert "Compare is measuring" in desk.error()
    assert desk.page.prompt._edit.toPlainText() == "xyz"
    place.works.session.cancel()
    desk.until_ready()
    assert desk.session.pair is not None


def test_pause_stops_cancel_ends_and_what_was_measured_stays(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=64, repeats=50)
    place.run()
    desk.until(lambda: place.works.session.done >= 5)
    place.strip.pause.click()
    desk.until(lambda: place.works.session.stage is Stage.PAUSED)
    assert place.strip.pause.text() == "Resume"
    done = place.works.session.done
    desk.qtbot.wait(200)
    assert place.works.session.done == done
    place.strip.pause.click()
    desk.until(lambda: place.works.session.done > done)
    place.strip.cancel.click()
    desk.until(lambda: not place.works.session.at_work)
    report = place.works.session.report()
    assert report is not None
    assert not report.complete
    assert len(report.runs) >= done
    assert place.head.run.isEnabled()
    assert f"of {place.works.session.total:,} runs" in place.strip.text


def test_nothing_comes_into_the_place_of_cancel(windows: Windows) -> None:
    """A click or a key that is a moment late neither starts nor ends anything."""
    desk = windows.open()
    place = opened(desk, tokens=64, repeats=50)
    place.run()
    desk.until(lambda: place.works.session.done >= 2)
    places = [button.geometry() for button in place.head.others]
    assert not any(one.isEnabled() for one in (place.head.run, place.head.sweep, place.head.tune))
    cancel = place.strip.cancel
    cancel.setFocus()
    late = cancel.mapTo(place, cancel.rect().center())
    desk.qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    desk.until(lambda: place.works.session.may_start)
    done = place.works.session.done
    assert [button.geometry() for button in place.head.others] == places
    assert not cancel.isVisible() and not isinstance(place.childAt(late), QPushButton)
    assert not isinstance(QApplication.focusWidget(), QPushButton)
    desk.qtbot.mouseClick(place.childAt(late) or place, Qt.MouseButton.LeftButton)
    for key in (Qt.Key.Key_Space, Qt.Key.Key_Return):
        desk.qtbot.keyClick(QApplication.focusWidget() or place, key)
    assert not place.works.at_work and place.works.session.done == done


def test_lanes_and_prompts_are_there_again_after_a_restart(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=24, repeats=4, prompt="xyzxyz")
    place.head.lanes_panel.strategy.text.typed.emit("draft-simple:n_max=2")
    before = place.chips.setup
    windows.close(desk)
    desk = windows.open()
    desk.window.go("compare")
    again = desk.window.compare.place
    assert again is not None
    assert again.chips.setup == before
    assert again.head.prompts_panel.own.toPlainText() == "xyzxyz"
    assert "draft-simple:n_max=2" in [lane.strategy for lane in again.chips.setup.lanes]


@pytest.mark.parametrize("damage", [b"rubbish", b'{"version": 99}', b'{"suite": "general", "lanes": []}'])
def test_a_damaged_set_up_is_set_aside_and_said(windows: Windows, damage: bytes) -> None:
    desk = windows.open()
    place = opened(desk, prompt="xyzxyz")
    folder = place.earlier.journals.folder
    windows.close(desk)
    (folder / "setup.json").write_bytes(damage)
    desk = windows.open()
    desk.window.go("compare")
    again = desk.window.compare.place
    assert again is not None
    assert again.chips.setup.source is Source.SUITE
    assert "What was set up in Compare could not be read" in again.notice.message
    assert [one.read_bytes() for one in folder.glob("setup.json.*")] == [damage]


def test_a_result_says_what_was_changed_since(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    measured(desk, place)
    desk.until_ready()
    assert "changed since" not in place.strip.remarks.text()
    place.head.lanes_panel.strategy.text.typed.emit("draft-simple:n_max=2")
    assert place.strip.remarks.text().startswith("Lanes changed since this was measured.")
    place.head.prompts_panel.own.setPlainText("xyz")
    assert place.strip.remarks.text().startswith("Lanes and prompts changed since this was measured.")
    assert place.strip.remarks.isVisible()


def test_the_frame_follows_the_verdict_over_all_runs(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    report = measured(desk, place)
    assert place.strip.text == f"All runs: {verdict(report)}"
    best = fastest(report)
    for at, card in enumerate(place.outcome.stage.lanes.cards):
        assert card.toolTip() == ("The fastest over all runs" if at == best else "")
        assert card.caption.text().startswith("this run: ")
    place.outcome.stage.set_best(2)
    place.outcome.stage.show_prompt(1, 0)
    framed = [bool(card.toolTip()) for card in place.outcome.stage.lanes.cards]
    assert framed == [False, False, True, False], "also where another run is shown"


def test_the_copied_command_has_the_context_that_is_there(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    desk.until_ready()
    assert desk.session.pair is not None
    place.chips.show_setup()
    copy = next(
        one
        for one in place.head.lanes_panel.findChildren(QWidget)
        if one.toolTip() == "Copy the llama.cpp command"
    )
    assert isinstance(copy, QAbstractButton)
    copy.click()
    assert f"--ctx-size {desk.session.pair.target.n_ctx} " in QGuiApplication.clipboard().text()


def test_a_pair_that_is_being_loaded_is_not_called_by_the_name_of_the_one_before(
    windows: Windows, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(pair_files[0].read_bytes())
    desk = windows.open()
    place = opened(desk)
    desk.until_ready()
    before = place.head.pair.text_shown(1000)[0]
    desk.header.target_panel.applied.emit(ModelOptions(str(other)))
    assert desk.session.activity is Activity.LOADING
    assert place.head.pair.text_shown(1000)[0] == "other.gguf" != before
    desk.until_ready()
    assert place.head.pair.text_shown(1000)[0] == before, "this one calls itself the same"


def test_the_race_stands_at_its_end_and_goes_back(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    measured(desk, place)
    stage = place.outcome.stage
    assert not stage.following
    race = stage.race
    assert race is not None
    rounds = [card.rounds for card in stage.lanes.cards]
    assert rounds == [len(race.lanes[lane].times) for lane in range(4)]
    stage.bar.slider.setValue(0)
    assert [card.rounds for card in stage.lanes.cards] == [0, 0, 0, 0]
    middle = race.seconds / 2
    stage.bar.slider.setValue(1000)
    assert stage.bar.at == pytest.approx(middle)
    shown = [card.rounds for card in stage.lanes.cards]
    assert shown == [race.at(middle)[lane].rounds for lane in range(4)]
    stage.bar.play.click()
    desk.until(lambda: not stage.bar.playing)
    assert [card.rounds for card in stage.lanes.cards] == rounds
    first = race._by_finish()[0]
    assert stage.lanes.cards[first].caption.text().startswith("this run: 1st")


def test_lanes_show_the_text_of_their_runs_and_whether_it_is_the_baselines(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    measured(desk, place)
    records = place.works.session.records
    for lane, card in enumerate(place.outcome.stage.lanes.cards):
        assert card.text.text_of("answer") == records[Job(0, 0, lane)].text
        expected = "" if lane == 0 else "identical"
        if lane == 0 or records[Job(0, 0, lane)].identical_to_baseline:
            assert card.badge.text() == expected
        else:
            assert "differs from token" in card.badge.text()


def test_the_table_is_sorted_copied_and_explained(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    report = measured(desk, place)
    table = place.outcome.results.table
    model = table.sorted
    assert [model.index(row, 0).data() for row in range(4)] == [lane.name for lane in report.lanes]
    table.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    speeds = [COLUMNS[0].value(one, lane) for one, lane in zip(report.summary, report.lanes, strict=True)]
    fastest = report.lanes[speeds.index(max(one or 0 for one in speeds))].name
    assert model.index(0, 0).data() == fastest
    for column, one in enumerate(COLUMNS, start=1):
        horizontal = Qt.Orientation.Horizontal
        assert model.headerData(column, horizontal, Qt.ItemDataRole.ToolTipRole) == one.definition
    table.selectRow(0)
    table.copy()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["lane", fastest]
    table.copy_all()
    assert len(QGuiApplication.clipboard().text().splitlines()) == 5
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
    assert len(colours) > 4  # and not the ground alone


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


def test_an_engine_that_dies_is_replaced_and_the_measurement_is_whole(windows: Windows) -> None:
    desk = windows.open(engine="process")
    place = opened(desk, tokens=100, repeats=4)
    place.run()
    desk.until(lambda: place.works.session.stage is Stage.RUNNING and place.works.session.done >= 2)
    runner = place.works.session.runner
    assert runner is not None
    home = runner._engine._home
    os.kill(home._process.pid, signal.SIGKILL)  # type: ignore[union-attr]
    desk.until(place.notice.isVisible)
    desk.until(lambda: place.works.session.stage is Stage.ENDED)
    report = place.works.session.report()
    assert report is not None
    assert report.complete
    assert not any(one.error for one in report.runs)


def test_a_window_that_was_closed_offers_to_go_on(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=100, repeats=20)
    place.run()
    desk.until(lambda: place.works.session.done >= 3)
    windows.close(desk)
    desk = windows.open()
    desk.window.go("compare")
    again = desk.window.compare.place
    assert again is not None
    assert again.earlier.offer.isVisible()
    assert "interrupted" in again.earlier.offer.text
    earlier = again.earlier.offered
    assert earlier is not None
    before = dict(earlier.journal.records)
    again.earlier.offer.accept.click()
    assert not again.earlier.offer.isVisible()
    desk.until(lambda: again.works.session.done > len(before))
    again.works.session.cancel()
    desk.until(lambda: again.works.session.may_start)
    for job, record in before.items():  # what was measured is not measured again
        assert again.works.session.records[job].seconds == record.seconds
    desk.until_ready()


def test_a_measurement_that_is_complete_can_be_looked_at_again(windows: Windows) -> None:
    desk = windows.open()
    report = measured(desk, opened(desk))
    windows.close(desk)
    desk = windows.open()
    desk.window.go("compare")
    place = desk.window.compare.place
    assert place is not None
    assert "All 8 runs" in place.earlier.offer.text
    place.earlier.offer.accept.click()
    desk.until(lambda: place.works.session.stage is Stage.ENDED and place.works.session.may_start)
    shown = place.works.session.report()
    assert shown is not None
    assert shown.runs == report.runs
    assert desk.session.activity is Activity.READY  # no engine was needed for that
    assert place.outcome.stage.race is not None
    assert place.chips.setup.prompts == tuple(one for one in place.works.session.experiment.prompts)  # type: ignore[union-attr]


def test_what_is_being_measured_is_locked(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=100, repeats=20)
    for _ in range(2):
        place.run()
        desk.until(lambda: place.works.session.done >= 1)
        path = place.earlier.journals._paths()[0]
        assert not is_free(path)
        place.works.session.cancel()
        desk.until(lambda: place.works.session.may_start)
        assert is_free(path)
        desk.until_ready()


def test_what_was_cancelled_is_offered_at_once_and_goes_on(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=64, repeats=20)
    place.run()
    desk.until(lambda: place.works.session.done >= 3)
    assert not place.earlier.offer.isVisible()
    place.strip.cancel.click()
    desk.until(lambda: place.works.session.may_start)
    assert place.earlier.offer.isVisible()
    assert "interrupted" in place.earlier.offer.text
    before = dict(place.works.session.records)
    desk.until_ready()
    place.earlier.offer.accept.click()
    assert not place.earlier.offer.isVisible()
    desk.until(lambda: place.works.session.done > len(before))
    assert all(place.works.session.records[job].seconds == one.seconds for job, one in before.items())
    place.strip.cancel.click()
    desk.until(lambda: place.works.session.may_start)
    desk.until_ready()


def test_the_error_of_a_run_is_gone_when_another_begins(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    place = opened(desk)
    real = place._chat.pair
    (tmp_path / "broken.gguf").write_bytes(b"GGUF rubbish")
    broken = Pair(type(real().target)(str(tmp_path / "broken.gguf")), real().draft)
    object.__setattr__(place._chat, "pair", lambda: broken)
    place.run()
    desk.until(lambda: place.works.session.stage is Stage.FAILED and place.works.session.may_start)
    assert place.notice.isVisible()
    object.__setattr__(place._chat, "pair", real)
    desk.until_ready()
    place.run()
    assert not place.notice.isVisible()
    desk.until(lambda: place.works.session.stage is Stage.ENDED and place.works.session.may_start)
    assert not place.notice.isVisible()
    desk.until_ready()


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
    place.exports.choose = lambda _window, name, _pattern: asked.append(name) or ""  # type: ignore[func-returns-value]
    for action in exports_of(place)[:5]:  # a menu that was open already
        action.trigger()
    assert asked == []
    desk.until(lambda: place.works.session.done >= 1)
    desk.until(place.head.export.isEnabled)
    place.works.session.cancel()
    desk.until(lambda: place.works.session.may_start)
    desk.until_ready()


def test_discarding_what_was_broken_off_removes_it(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=100, repeats=20)
    place.run()
    desk.until(lambda: place.works.session.done >= 2)
    windows.close(desk)
    desk = windows.open()
    desk.window.go("compare")
    again = desk.window.compare.place
    assert again is not None
    again.earlier.offer.dismiss.click()
    assert not again.earlier.offer.isVisible()
    assert again.earlier.journals.latest() is None
    assert not list(again.earlier.journals.folder.glob("*traces*"))


def test_a_pair_that_cannot_be_loaded_says_so_and_the_place_stays_usable(
    windows: Windows, tmp_path: Path
) -> None:
    desk = windows.open()
    place = opened(desk)
    real = place._chat.pair()
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF rubbish")
    object.__setattr__(place._chat, "pair", lambda: Pair(type(real.target)(str(broken)), real.draft))
    place.run()
    desk.until(lambda: place.works.session.stage is Stage.FAILED)
    assert place.notice.isVisible()
    assert place.head.run.isVisible()
    desk.until_ready()


def test_a_set_up_that_cannot_run_says_why(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, prompt="  ")
    place.run()
    assert not place.works.session.at_work
    assert place.notice.message == "There is no prompt."
    place.head.prompts_panel.own.setPlainText("abc")
    place.head.lanes_panel._edit(strategy="draft-simple", pair=Pair(place._chat.pair().target))
    place.run()
    assert "needs a draft" in place.notice.message


def test_while_the_chat_answers_nothing_is_measured(windows: Windows) -> None:
    desk = windows.open(max_tokens=900)
    place = opened(desk)
    desk.window.go("chat")
    desk.type("abc")
    desk.until_streaming()
    place.run()
    assert "still being answered" in place.notice.message
    assert not place.works.session.at_work
    desk.controller.stop()
    desk.until_ready()


def test_lanes_are_added_labelled_and_removed(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    panel = place.head.lanes_panel
    panel.add.click()
    assert len(place.chips.setup.lanes) == 4
    panel.label.setText("mine")
    panel.label.textEdited.emit("mine")
    assert place.chips.setup.lanes[3].name == "mine"
    panel.strategy.text.typed.emit("draft-simple:n_max=2")
    assert place.chips.setup.lanes[3] == Lane("draft-simple:n_max=2", "mine")
    for _ in range(5):
        panel.add.click()
    assert len(place.chips.setup.lanes) == 7  # eight with the baseline
    assert not panel.add.isEnabled()
    panel._remove(0)
    assert place.chips.setup.lanes[0].strategy != "prompt-lookup"
    assert len(place.outcome.stage.lanes.cards) == 7
    assert len({lane.strategy for lane in place.chips.setup.lanes}) == 6


def test_a_winner_is_taken_into_the_chat(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    measured(desk, place)
    place._use(1)
    assert desk.window.settings.now.strategy == "prompt-lookup"
    assert desk.header.strategy_panel.spec() == "prompt-lookup"


def test_prompts_are_taken_by_category() -> None:
    suite = next(one for one in built_in(resource_folder()) if one.name == "bundled")
    setup = first_setup(suite, has_draft=True)
    assert len(setup.prompts) == len(suite.categories)
    assert {one.category for one in setup.prompts} == set(suite.categories)
    code = dataclasses.replace(setup, categories=("code",), amount=Amount(1, 0))
    assert {one.category for one in code.prompts} == {"code"}
    assert len(code.prompts) == sum(one.category == "code" for one in suite.prompts)
    assert not dataclasses.replace(setup, source=Source.FILE).prompts
    none = dataclasses.replace(setup, source=Source.FILE, file=Suite("a", "a", ()))
    assert none.prompts == ()


def test_window_and_bench_ask_for_the_same_runs(windows: Windows) -> None:
    desk = windows.open()
    desk.window.go("compare")
    place = desk.window.compare.place
    assert place is not None
    real = place._chat.pair()
    assert real.draft is not None
    lanes = [one.strategy for one in place.chips.setup.lanes]
    for suite in place.head.prompts_panel._suites:
        place.head.prompts_panel._pick_suite(place.head.prompts_panel._suites.index(suite))
        place.head.prompts_panel.amount.field("per_category").set_value(0)
        place.head.prompts_panel.amount.changed.emit()
        shown = place.chips.experiment()
        arguments = (
            "--target", real.target.path, "--draft", real.draft.path, "--suite", suite.name,
            "--repeat", str(shown.repeats), *[word for lane in lanes for word in ("--strategy", lane)],
        )  # fmt: skip
        asked = parse_bench(list(arguments)).experiment
        seed = shown.sampling.seed
        asked = msgspec.structs.replace(asked, sampling=dataclasses.replace(asked.sampling, seed=seed))
        assert shown.max_tokens == suite.max_tokens
        for field in (one.name for one in msgspec.structs.fields(shown) if one.name != "pair"):
            assert getattr(shown, field) == getattr(asked, field), field
    place.head.prompts_panel.amount.field("max_tokens").set_value(33)
    place.head.prompts_panel.amount.changed.emit()
    assert place.chips.experiment().max_tokens == 33
