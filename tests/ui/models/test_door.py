"""The door of the Models place, where the place cannot be built."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.ui.models.door import ModelsDoor
from app.ui.models.place import ModelsPlace


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied", "/data/library.json"), "permission denied"),
        (ImportError("no httpx2"), "no httpx2"),
    ],
)
def test_a_place_that_cannot_be_built_says_why(qtbot: QtBot, error: Exception, words: str) -> None:
    def build() -> ModelsPlace:
        raise error

    door = ModelsDoor(build)
    qtbot.addWidget(door)
    door.show()
    qtbot.waitUntil(lambda: words in door._words.text(), timeout=30_000)
    assert "Opening" not in door._words.text() and door.place is None
    door.close_models()
