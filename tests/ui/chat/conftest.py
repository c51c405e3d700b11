"""The prompt box in a window of its own."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.ui.chat.prompt_box import PromptBox
from app.ui.theme import Theme


@pytest.fixture
def box(qtbot: QtBot, theme: Theme) -> PromptBox:
    made = PromptBox(theme)
    qtbot.addWidget(made)
    made.resize(700, 200)
    made.show()
    qtbot.waitExposed(made)
    made.activateWindow()
    made.setFocus()
    return made
