"""A question before something is deleted."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.ui.widgets.ask_first import CHANGED, AskFirst, Confirmation, RunStrip


@pytest.mark.parametrize("answer", ["yes", "no", "Escape"])
@pytest.mark.parametrize("stays", [True, False])
def test_the_keyboard_goes_back_to_where_it_was_asked(qtbot: QtBot, answer: str, stays: bool) -> None:
    """Not to the first button of the window, which Qt would choose."""
    window = QWidget()
    qtbot.addWidget(window)
    first, asker, asking, done = QPushButton("First"), QPushButton("Delete…"), AskFirst(), []
    column = QVBoxLayout(window)
    for widget in (first, asker, asking):
        column.addWidget(widget)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    asker.setFocus()
    asking.ask(lambda: Confirmation("Delete it?", "Delete", lambda: done.append(True), "it"))
    assert asking.no.hasFocus()  # the answer that changes nothing
    asker.setVisible(stays)
    if answer == "Escape":
        qtbot.keyClick(asking.no, Qt.Key.Key_Escape)
    else:
        qtbot.keyClick(getattr(asking, answer), Qt.Key.Key_Space)
    assert asking.isHidden() and bool(done) is (answer == "yes")
    assert QApplication.focusWidget() is (asker if stays else None)


@pytest.mark.parametrize("becomes", [None, "another"])
@pytest.mark.parametrize("told", [True, False])
def test_a_question_whose_subject_changed_does_nothing(qtbot: QtBot, becomes: str | None, told: bool) -> None:
    asking, done = AskFirst(), []
    qtbot.addWidget(asking)
    subject: str | None = "it"

    def look() -> Confirmation | None:
        return (
            Confirmation(f"Delete {subject}?", "Delete", lambda: done.append(True), subject)
            if subject
            else None
        )

    asking.ask(look)
    subject = becomes
    places = asking.geometry(), asking.no.geometry()
    if told:
        asking.refresh()
    else:
        asking.yes.click()
    assert asking.words == CHANGED and not asking.yes.isVisible()
    assert (asking.geometry(), asking.no.geometry()) == places  # nothing moves under the pointer
    asking.yes.click()
    assert not done
    asking.no.click()
    assert asking.isHidden()
    subject = "it"
    asking.ask(look)
    asking.yes.click()
    assert asking.isHidden() and done


def test_a_question_that_nobody_sees_is_gone_when_its_subject_changed(qtbot: QtBot) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    asking, subjects = AskFirst(), ["it", "another"]
    asking.setParent(page)
    asking.ask(lambda: Confirmation("Delete it?", "Delete", page.hide, subjects[0]))
    del subjects[0]
    asking.refresh()
    assert asking.isHidden()


def test_a_question_about_the_same_says_how_it_is_now(qtbot: QtBot) -> None:
    asking, done, size = AskFirst(), [], 1
    qtbot.addWidget(asking)
    asking.ask(lambda: Confirmation(f"Delete {size} MB?", "Delete", lambda: done.append(size), "it"))
    size = 2
    asking.refresh()
    assert asking.words == "Delete 2 MB?"
    asking.yes.click()
    assert done == [2]


def test_nothing_is_asked_where_there_is_nothing_to_ask(qtbot: QtBot) -> None:
    asking = AskFirst()
    qtbot.addWidget(asking)
    asking.ask(lambda: None)
    assert asking.isHidden()


def test_the_strip_is_as_high_before_during_and_after_a_measurement(qtbot: QtBot) -> None:
    strip = RunStrip()
    qtbot.addWidget(strip)
    strip.show()
    remarks = ["Two files are left out."]
    heights = []
    for share in (None, 0.3, None):
        strip.set_at_work(share is not None, may_pause=False, paused=False)
        strip.set_share(share)
        if share is None:
            strip.conclude("Nothing was measured.", remarks)
        else:
            strip.say("half of it", remarks=remarks)
        heights.append(strip.heightForWidth(900))
        assert strip.bar.isVisible() is (share is not None)
    assert len(set(heights)) == 1
