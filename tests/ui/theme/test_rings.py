"""Focus rings: for the keyboard, not for the mouse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.ui.theme.rings import FocusBefore, FocusRings, by_mouse, ring_shown


@pytest.fixture
def buttons(qtbot: QtBot) -> Iterator[tuple[QPushButton, QPushButton]]:
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    window = QWidget()
    qtbot.addWidget(window)
    kept = FocusRings(application, window)
    layout = QVBoxLayout(window)
    pair = QPushButton("One"), QPushButton("Two")
    for button in pair:
        layout.addWidget(button)
    window.show()
    qtbot.waitActive(window)
    yield pair
    delete(kept)


def click(button: QPushButton, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        # Offscreen, clicks of a test do not reach the state of the mouse that Qt keeps.
        patch.setattr(QApplication, "mouseButtons", lambda: Qt.MouseButton.LeftButton)
        QTest.mouseClick(button, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))


def test_tab_leaves_a_ring(buttons: tuple[QPushButton, QPushButton]) -> None:
    first, second = buttons
    first.setFocus()
    QTest.keyClick(first, Qt.Key.Key_Tab)
    assert ring_shown(second) and not by_mouse(second) and not ring_shown(first)


def test_a_click_leaves_none(
    buttons: tuple[QPushButton, QPushButton], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = buttons
    second.setFocus()
    click(first, monkeypatch)
    assert first.hasFocus() and by_mouse(first) and not ring_shown(first)
    QTest.keyClick(first, Qt.Key.Key_Tab)
    QTest.keyClick(second, Qt.Key.Key_Backtab)
    assert ring_shown(first)


def test_a_clicked_button_that_goes_hands_its_focus_on_without_a_ring(
    buttons: tuple[QPushButton, QPushButton], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = buttons
    second.setFocus()
    click(first, monkeypatch)
    first.hide()
    assert second.hasFocus() and not ring_shown(second)


def test_without_anyone_looking_the_ring_is_shown(qtbot: QtBot) -> None:
    button = QPushButton("One")
    qtbot.addWidget(button)
    button.show()
    button.setFocus()
    qtbot.waitUntil(button.hasFocus)
    assert ring_shown(button)


@pytest.mark.parametrize("gone", [False, True])
def test_a_clicked_button_hands_on_what_had_the_keyboard_before_it(
    buttons: tuple[QPushButton, QPushButton], monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    opener, inside = buttons
    field = QLineEdit(opener.window())
    field.show()
    field.setFocus()
    with monkeypatch.context() as patch:
        patch.setattr(QApplication, "mouseButtons", lambda: Qt.MouseButton.LeftButton)
        QTest.mouseClick(opener, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert by_mouse(opener)
    before = FocusBefore(inside)
    if gone:
        delete(field)
    before.remember()
    inside.setFocus()
    before.give_back(opener)
    assert QApplication.focusWidget() is (opener if gone else field)


def test_a_focus_that_is_given_back_has_the_ring_that_it_had(
    buttons: tuple[QPushButton, QPushButton], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, inside = QWidget(buttons[0].window()), buttons[1]
    text.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    text.show()
    before = FocusBefore(inside)
    for by_keys in (False, True):
        with monkeypatch.context() as patch:
            held = Qt.MouseButton.NoButton if by_keys else Qt.MouseButton.LeftButton
            patch.setattr(QApplication, "mouseButtons", lambda held=held: held)
            text.setFocus()
        before.remember()
        inside.setFocus()
        before.give_back()
        assert text.hasFocus() and ring_shown(text) == by_keys
        inside.setFocus()
