"""A measurement in the Compare place that is paused, cancelled, cut off or looked at again."""

from __future__ import annotations

from multiprocessing import active_children
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton

from app.lab.experiment import Pair
from app.lab.runs.journal import is_free
from app.ui.state.engine_session import Activity
from app.ui.state.lab_work import Stage
from tests.quiet import stays
from tests.ui.compare.measuring import measured, opened, reopened
from tests.ui.windows import Windows


def test_the_chats_engine_is_away_while_it_is_measured(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=200, repeats=20)
    place.run()
    assert desk.session.activity is Activity.LENT
    assert desk.session.pair is None
    desk.until(lambda: place.works.session.stage is Stage.RUNNING)
    desk.window.go("chat")
    desk.type("xyz")
    assert "A measurement is running" in desk.error()
    assert desk.page.prompt.text() == "xyz"
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
    done, lanes = place.works.session.done, len(place.works.session.experiment.lanes)
    assert stays(lambda: place.works.session.done)
    assert len(place.works.session.live) == lanes - 1  # of the dropped run nothing is shown
    place.strip.pause.click()
    desk.until(lambda: place.works.session.done > done)
    place.strip.cancel.click()
    desk.until(lambda: not place.works.session.at_work)
    report = place.works.session.report
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
    places = [button.geometry() for button in place.head.buttons]
    assert not any(button.isEnabled() for button in (place.head.run, place.head.sweep, place.head.tune))
    cancel = place.strip.cancel
    cancel.setFocus()
    late = cancel.mapTo(place, cancel.rect().center())
    desk.qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    desk.until(lambda: place.works.session.may_start)
    done = place.works.session.done
    assert [button.geometry() for button in place.head.buttons] == places
    assert not cancel.isVisible() and not isinstance(place.childAt(late), QPushButton)
    assert not isinstance(QApplication.focusWidget(), QPushButton)
    desk.qtbot.mouseClick(place.childAt(late) or place, Qt.MouseButton.LeftButton)
    for key in (Qt.Key.Key_Space, Qt.Key.Key_Return):
        desk.qtbot.keyClick(QApplication.focusWidget() or place, key)
    assert not place.works.at_work and place.works.session.done == done


def test_an_engine_that_dies_is_replaced_and_the_measurement_is_whole(windows: Windows) -> None:
    desk = windows.open(engine="process")
    place = opened(desk, tokens=100, repeats=4)
    place.run()
    desk.until(lambda: place.works.session.stage is Stage.RUNNING and place.works.session.done >= 2)
    (engine,) = (process for process in active_children() if process.name == "draftscope engine")
    engine.kill()
    desk.until(place.notice.isVisible)
    desk.until(lambda: place.works.session.stage is Stage.ENDED)
    report = place.works.session.report
    assert report is not None
    assert report.complete
    assert not any(run.error for run in report.runs)


def test_a_window_that_was_closed_offers_to_go_on(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=100, repeats=20)
    place.run()
    desk.until(lambda: place.works.session.done >= 3)
    desk, again = reopened(windows, desk)
    assert again.earlier.isVisible()
    assert "interrupted" in again.earlier.text
    earlier = again.earlier.offered
    assert earlier is not None
    before = dict(earlier.journal.records)
    again.earlier.accept.click()
    assert not again.earlier.isVisible()
    desk.until(lambda: again.works.session.done > len(before))
    again.works.session.cancel()
    desk.until(lambda: again.works.session.may_start)
    for job, record in before.items():  # finished runs are not measured again
        assert again.works.session.records[job].seconds == record.seconds
    desk.until_ready()


def test_a_measurement_that_is_complete_can_be_looked_at_again(windows: Windows) -> None:
    desk = windows.open()
    report = measured(desk, opened(desk))
    desk, place = reopened(windows, desk)
    assert "All 8 runs" in place.earlier.text
    place.earlier.accept.click()
    desk.until(lambda: place.works.session.stage is Stage.ENDED and place.works.session.may_start)
    shown = place.works.session.report
    assert shown is not None
    assert shown.runs == report.runs
    assert desk.session.activity is Activity.READY  # no engine was needed for that
    assert place.outcome.stage.race is not None
    assert place.chips.setup.prompts == tuple(place.works.session.experiment.prompts)


def test_what_is_being_measured_is_locked(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=100, repeats=20)
    for _ in range(2):
        place.run()
        desk.until(lambda: place.works.session.done >= 1)
        path = place.earlier.journals.paths()[0]
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
    assert not place.earlier.isVisible()
    place.strip.cancel.click()
    desk.until(lambda: place.works.session.may_start)
    assert place.earlier.isVisible()
    assert "interrupted" in place.earlier.text
    before = dict(place.works.session.records)
    desk.until_ready()
    place.earlier.accept.click()
    assert not place.earlier.isVisible()
    desk.until(lambda: place.works.session.done > len(before))
    assert all(place.works.session.records[job].seconds == record.seconds for job, record in before.items())
    place.strip.cancel.click()
    desk.until(lambda: place.works.session.may_start)
    desk.until_ready()


def test_the_error_of_a_run_is_gone_when_another_begins(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    place = opened(desk)
    real = place.chat.pair
    (tmp_path / "broken.gguf").write_bytes(b"GGUF rubbish")
    broken = Pair(type(real().target)(str(tmp_path / "broken.gguf")), real().draft)
    object.__setattr__(place.chat, "pair", lambda: broken)
    place.run()
    desk.until(lambda: place.works.session.stage is Stage.FAILED and place.works.session.may_start)
    assert place.notice.isVisible()
    object.__setattr__(place.chat, "pair", real)
    desk.until_ready()
    place.run()
    assert not place.notice.isVisible()
    desk.until(lambda: place.works.session.stage is Stage.ENDED and place.works.session.may_start)
    assert not place.notice.isVisible()
    desk.until_ready()


def test_discarding_what_was_broken_off_removes_it(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=100, repeats=20)
    place.run()
    desk.until(lambda: place.works.session.done >= 2)
    desk, again = reopened(windows, desk)
    again.earlier.dismiss.click()
    assert not again.earlier.isVisible()
    assert again.earlier.journals.latest() is None
    assert not list(again.earlier.journals.folder.glob("*traces*"))
