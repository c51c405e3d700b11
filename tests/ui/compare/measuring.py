"""The Compare place as its tests use it: opened on a short prompt, run, exported."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction

from app.lab.report.report import Report
from app.ui.compare.place import ComparePlace
from app.ui.compare.setup import Source
from app.ui.state.lab_work import Stage
from tests.ui.windows import Desk, Windows


def opened(desk: Desk, tokens: int = 16, repeats: int = 2, prompt: str = "abcabcabc") -> ComparePlace:
    """The place, set up with a short prompt of the user's own."""
    desk.window.go("compare")
    place = desk.place("compare")
    assert place is not None
    place.head.prompts_panel.source.picked.emit(Source.OWN)
    place.head.prompts_panel.own.setPlainText(prompt)
    place.head.prompts_panel.amount.field("repeats").set_value(repeats)
    place.head.prompts_panel.amount.field("max_tokens").set_value(tokens)
    place.head.prompts_panel.amount.changed.emit()
    return place


def reopened(windows: Windows, desk: Desk) -> tuple[Desk, ComparePlace]:
    """Close the window; the next one, at Compare, with its place."""
    windows.close(desk)
    desk = windows.open()
    desk.window.go("compare")
    place = desk.place("compare")
    assert place is not None
    return desk, place


def measured(desk: Desk, place: ComparePlace) -> Report:
    """Press Run and wait for the end."""
    desk.qtbot.mouseClick(place.head.run, Qt.MouseButton.LeftButton)
    desk.until(lambda: place.works.session.at_work)
    desk.until(lambda: place.works.session.stage is Stage.ENDED and place.works.session.may_start)
    report = place.works.session.report
    assert report is not None
    return report


def exports_of(place: ComparePlace) -> list[QAction]:
    """The visible actions of the Export menu."""
    place.head.export_menu.aboutToShow.emit()
    return [action for action in place.head.export_menu.actions() if action.isVisible()]
