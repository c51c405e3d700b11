from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.ui.theme import Theme
from app.ui.transcript import TranscriptView


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> TranscriptView:
    """A transcript on the (offscreen) screen."""
    made = TranscriptView(theme)
    qtbot.addWidget(made)
    made.resize(900, 600)
    with qtbot.waitExposed(made):
        made.show()
    return made
