"""The small controls: switch, segments, notice, elided texts."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from app.ui.theme import LIGHT, Theme
from app.ui.widgets.labels import ElidedButton, ElidedLabel
from app.ui.widgets.notice import Notice, Notices, WayOut
from app.ui.widgets.segmented import Segmented


def test_segments_are_chosen_by_mouse_and_keys(qtbot: QtBot, theme: Theme) -> None:
    control = Segmented(theme, "Mode", ["chat", "completion"])
    qtbot.addWidget(control)
    control.resize(control.sizeHint())
    control.show()
    seen: list[str] = []
    control.picked.connect(seen.append)
    end = QPoint(control.width() - 6, control.height() // 2)
    qtbot.mouseClick(control, Qt.MouseButton.LeftButton, pos=end)
    qtbot.mouseClick(control, Qt.MouseButton.LeftButton, pos=end)  # nothing new
    qtbot.keyClick(control, Qt.Key.Key_Left)
    qtbot.keyClick(control, Qt.Key.Key_Left)  # no further
    assert seen == ["completion", "chat"]
    assert control.accessibleName() == "Mode: chat"
    control.set_choice("completion")
    assert seen == ["completion", "chat"]
    assert control.accessibleName() == "Mode: completion"


def test_segments_give_way_in_a_narrow_row(qtbot: QtBot, theme: Theme) -> None:
    control = Segmented(theme, "Mode", ["chat", "completion", "infill"])
    qtbot.addWidget(control)
    narrow = control.minimumSizeHint()
    assert narrow.width() < control.sizeHint().width()
    control.resize(narrow)
    control.show()
    qtbot.mouseClick(control, Qt.MouseButton.LeftButton, pos=QPoint(narrow.width() - 6, 8))
    assert control.choice() == "infill"


def test_a_segment_that_is_not_available_is_not_chosen(qtbot: QtBot, theme: Theme) -> None:
    control = Segmented(theme, "Mode", ["chat", "completion"])
    qtbot.addWidget(control)
    control.resize(control.sizeHint())
    before = control.grab().toImage()
    control.set_unavailable(["completion"])
    assert control.grab().toImage() != before
    with qtbot.waitSignal(control.refused) as told, qtbot.assertNotEmitted(control.picked):
        qtbot.keyClick(control, Qt.Key.Key_Right)
    assert told.args == ["completion"] and control.choice() == "chat"
    control.set_unavailable([])
    qtbot.keyClick(control, Qt.Key.Key_Right)
    assert control.choice() == "completion"


def test_a_notice_takes_no_room_until_something_is_wrong(qtbot: QtBot, theme: Theme) -> None:
    notice = Notice(theme)
    qtbot.addWidget(notice)
    assert notice.isHidden()
    notice.tell("<b>x.gguf</b> is damaged.", "Download it again.")
    assert notice.isVisible()
    assert notice.message == "<b>x.gguf</b> is damaged."
    assert "Download it again." in notice.accessibleName()
    edge = notice.grab().toImage().pixelColor(1, notice.height() // 2)
    assert edge == QColor(LIGHT.error)
    close = notice.findChild(QToolButton)
    assert close is not None
    with qtbot.waitSignal(notice.dismissed):
        qtbot.mouseClick(close, Qt.MouseButton.LeftButton)
    assert notice.isHidden()
    assert notice.message == ""


def test_elided_texts_give_way_and_keep_their_name(qtbot: QtBot, theme: Theme) -> None:
    name = "Meta-Llama-3.1-70B-Instruct-Q5_K_M-00001-of-00002.gguf"
    label = ElidedLabel(Qt.TextElideMode.ElideMiddle)
    label.set_text(name)
    button = ElidedButton(name)
    for widget in (label, button):
        qtbot.addWidget(widget)
        assert widget.minimumSizeHint().width() == 0
        assert widget.accessibleName() == name
        widget.show()
    button.resize(120, 30)
    assert "…" in button.text()
    assert button.text().startswith("Meta")
    button.resize(900, 30)
    assert button.text() == name


# ------------------------------------------------------------------------------- several notices


@pytest.fixture
def notices(qtbot: QtBot, theme: Theme) -> Notices:
    made = Notices(theme)
    qtbot.addWidget(made)
    return made


def said(notices: Notices) -> list[str]:
    return [strip.message for strip in notices.strips if strip.isVisibleTo(notices)]


def test_notices_of_different_causes_stand_below_each_other(notices: Notices) -> None:
    assert notices.isHidden() and notices.message == ""
    notices.tell("The disk is full.", "Make room.")
    notices.tell("The pair cannot be loaded.")
    assert said(notices) == ["The disk is full.", "The pair cannot be loaded."]
    assert notices.isVisible() and notices.message == "The pair cannot be loaded."


def test_each_notice_is_dismissed_by_itself(qtbot: QtBot, notices: Notices) -> None:
    notices.tell("The disk is full.")
    notices.tell("The pair cannot be loaded.")
    close = notices.strips[0].findChild(QToolButton)
    assert close is not None
    qtbot.mouseClick(close, Qt.MouseButton.LeftButton)
    assert said(notices) == ["The pair cannot be loaded."]
    notices.clear()
    assert notices.isHidden()


def test_a_notice_replaces_that_of_the_same_cause_or_words(notices: Notices) -> None:
    notices.tell("x.gguf is damaged.", cause="pair")
    notices.tell("The engine stopped.")
    notices.tell("y.gguf is damaged.", cause="pair")
    notices.tell("The engine stopped.", "", WayOut("Load on the CPU only", list), cause="pair")
    assert said(notices) == ["The engine stopped."]
    assert notices.strips[0].ways_out == ["Load on the CPU only"]


def test_a_notices_button_acts_for_its_own_cause(notices: Notices) -> None:
    done: list[str] = []
    for words in ("first", "second"):
        notices.tell(f"{words}.", "", WayOut(words, partial(done.append, words)))
    for strip in notices.strips:
        action = strip.findChild(QPushButton)
        assert action is not None
        action.click()
    assert done == ["first", "second"]


def test_what_is_withdrawn_with_a_chat_leaves_what_has_a_cause(notices: Notices) -> None:
    notices.tell("This chat cannot be read.")
    notices.tell("The engine has not stopped yet.", cause="stop")
    notices.clear_passing()
    assert said(notices) == ["The engine has not stopped yet."]
    notices.withdraw("stop")
    assert notices.isHidden()


def test_no_more_than_four_notices_take_room(notices: Notices) -> None:
    for n in range(9):
        notices.tell(f"Failure {n}.")
    assert said(notices) == [f"Failure {n}." for n in range(5, 9)]
