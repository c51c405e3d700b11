"""A question before something is deleted."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.ui.models.ask_first import AskFirst


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
    asking.ask("Delete it?", "Delete", lambda: done.append(True))
    assert asking.no.hasFocus()  # what changes nothing
    asker.setVisible(stays)
    if answer == "Escape":
        qtbot.keyClick(asking.no, Qt.Key.Key_Escape)
    else:
        qtbot.keyClick(getattr(asking, answer), Qt.Key.Key_Space)
    assert asking.isHidden() and bool(done) is (answer == "yes")
    assert QApplication.focusWidget() is (asker if stays else None)
