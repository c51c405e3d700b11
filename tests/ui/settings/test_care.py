"""The section of the settings for when something goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QPushButton, QWidget

from app.saved.chats.chat_file import NAME
from app.saved.chats.store import ChatStore
from app.ui.settings.sections import COPIED, CareSettings
from tests.quiet import stays
from tests.ui.named import named
from tests.ui.windows import Desk, Windows

SECRET = "my secret question"


@pytest.fixture
def desk(windows: Windows) -> Desk:
    """A window in which something was said, on the Settings place."""
    made = windows.open(system_prompt=SECRET)
    made.ask(SECRET)
    made.window.go("settings")
    return made


def care(desk: Desk) -> CareSettings:
    return desk.window.settings_page.care


def press(inside: QWidget, words: str, desk: Desk) -> None:
    button = next(button for button in inside.findChildren(QPushButton) if button.text() == words)
    assert button.isVisible()
    desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def copied(desk: Desk) -> str:
    QGuiApplication.clipboard().clear()
    press(care(desk), "Copy a report", desk)
    desk.until(lambda: care(desk).report_words.text() == COPIED and QGuiApplication.clipboard().text())
    return QGuiApplication.clipboard().text()


def test_a_report_is_copied_without_what_was_said(desk: Desk) -> None:
    desk.window.save()
    report = copied(desk)
    assert "CPU: CPU" in report and "1, 0 damaged" in report
    assert SECRET not in report
    named(care(desk), "Include the system prompt and the stop strings", QCheckBox).setChecked(True)
    assert copied(desk).count(SECRET) == 1


def test_a_report_is_copied_while_the_engine_is_at_work(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("abc")
    desk.until_streaming()
    desk.window.go("settings")
    report = copied(desk)
    assert "unknown: the engine is busy" in report
    assert desk.busy(), "a report stops no answer"


def test_a_check_says_what_it_would_do_and_asks(desk: Desk) -> None:
    press(care(desk), "Check my data", desk)
    desk.until(lambda: care(desk).check_words.text() == "Nothing is damaged.")
    (file,) = desk.paths.chats.glob(f"*/{NAME}")
    before = [turn.text for turn in ChatStore(desk.paths.chats).load(file.parent.name).turns]
    file.write_bytes(b"\xff")
    (desk.paths.data / "downloads.json").write_bytes(b"{")
    press(care(desk), "Check my data", desk)
    desk.until(care(desk).asking.isVisible)
    assert "rebuilt from the trace of 1 answer" in care(desk).check_words.text()
    assert "The list of downloads is damaged" in care(desk).check_words.text()
    assert care(desk).asking.words == "Repair 2 findings as described? Nothing is deleted."
    assert file.read_bytes() == b"\xff", "nothing is done unasked"
    press(care(desk), "Repair", desk)
    desk.until(lambda: care(desk).check_words.text() == "2 of 2 findings repaired.")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["text"] for line in lines[2:]] == before


def test_what_was_found_can_be_kept_as_it_is(desk: Desk) -> None:
    file = desk.paths.data / "downloads.json"
    file.write_bytes(b"{")
    press(care(desk), "Check my data", desk)
    desk.until(care(desk).asking.isVisible)
    press(care(desk), "Keep", desk)
    assert care(desk).asking.isHidden() and stays(file.read_bytes)


def test_a_notice_of_a_bug_copies_a_report_and_says_so(windows: Windows) -> None:
    desk = windows.open()
    desk.window.care.tell_bug("KeyError at store.py:12")
    (notice,) = desk.page.prompt.notices.strips
    assert notice.message == "Something went wrong in Draftscope: KeyError at store.py:12."
    QGuiApplication.clipboard().clear()
    press(notice, "Copy a report", desk)
    desk.until(lambda: COPIED in desk.error())
    assert "KeyError at store.py:12" in desk.error()
    assert QGuiApplication.clipboard().text().startswith("Draftscope ")
