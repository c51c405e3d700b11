"""What a screen reader gets of rows of choices and of number boxes."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.engine.params import params_of
from app.engine.types import Sampling
from app.ui.theme import Theme
from app.ui.widgets.access import announce
from app.ui.widgets.field import NumberBox
from app.ui.widgets.segmented import Segmented


def test_a_choice_has_a_role_and_says_how_many_there_are(qtbot: QtBot, theme: Theme) -> None:
    row = Segmented(theme, "Mode", ("chat", "completion", "infill"))
    qtbot.addWidget(row)
    row.set_choice("completion")
    spoken = QAccessible.queryAccessibleInterface(row)
    assert spoken.role() is QAccessible.Role.RadioButton and spoken.state().checked
    assert spoken.text(QAccessible.Text.Name) == "Mode: completion"
    assert spoken.text(QAccessible.Text.Description) == "2 of 3"


def test_a_number_box_says_its_text_and_no_false_range(qtbot: QtBot) -> None:
    box = NumberBox(next(param for param in params_of(Sampling) if param.name == "temperature"))
    qtbot.addWidget(box)
    box.set_value(0.7)
    spoken = QAccessible.queryAccessibleInterface(box)
    assert spoken.role() is QAccessible.Role.SpinBox and spoken.valueInterface() is None
    text = spoken.textInterface()
    assert text.text(0, text.characterCount()) == "0.7"
    holder = QWidget()  # a box that is gone takes its interface along
    qtbot.addWidget(holder)
    box.setParent(holder)


def test_what_is_announced_is_the_description_of_the_focus_until_it_comes_back(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Linux: an Orca before 45.2 says no announcement, but a description that changed."""
    monkeypatch.setattr(QAccessible, "isActive", lambda: True)
    monkeypatch.setattr(QGuiApplication, "platformName", lambda: "xcb")
    holder = QWidget()
    qtbot.addWidget(holder)
    prompt, other = QLineEdit(holder), QPushButton(holder)
    prompt.setAccessibleDescription("Enter to send")
    holder.show()
    with qtbot.waitExposed(holder):
        holder.activateWindow()
    prompt.setFocus()
    for said in ("The answer begins.", "Answered: 2 rounds."):
        announce(other, said)
        assert prompt.accessibleDescription() == said
    assert not other.accessibleDescription()
    other.setFocus()
    prompt.setFocus()
    assert prompt.accessibleDescription() == "Enter to send"
