"""A light theme, and a panel whose save dialog is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget

from app.ui.instruments import InstrumentsPanel
from app.ui.theme import Theme

FONTS = Path(__file__).parents[3] / "resources" / "fonts"


@pytest.fixture
def theme(qapp) -> Theme:
    return Theme(FONTS, "light")


class Answer:
    """Stands in for the save dialog."""

    def __init__(self, folder: Path) -> None:
        self.folder: Path | None = folder
        self.asked: list[str] = []

    def __call__(self, window: QWidget, name: str, pattern: str) -> str:
        self.asked.append(name)
        return "" if self.folder is None else str(self.folder / name)


@pytest.fixture
def dialog(tmp_path) -> Answer:
    return Answer(tmp_path)


@pytest.fixture
def panel(qtbot, theme, dialog) -> InstrumentsPanel:
    widget = InstrumentsPanel(theme)
    for card in (*widget.cards, widget.cost):
        card.ask_where = dialog
    qtbot.addWidget(widget)
    widget.resize(360, 900)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget
