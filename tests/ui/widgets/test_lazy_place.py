"""Places that are made when they are first opened."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QStackedWidget
from pytestqt.qtbot import QtBot

from app.ui.widgets.lazy_place import LazyPlace, PlaceWidget

SLOW = ("app.hub.catalogue",)


@pytest.mark.parametrize("modules", [(), SLOW])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied", "/data/library.json"), "permission denied"),
        (ImportError("no httpx2"), "no httpx2"),
    ],
)
def test_a_place_that_cannot_be_made_says_why(
    qtbot: QtBot, error: Exception, words: str, modules: tuple[str, ...]
) -> None:
    def make() -> PlaceWidget:
        raise error

    lazy = LazyPlace("Models", make, modules)
    qtbot.addWidget(lazy)
    lazy.show()
    qtbot.waitUntil(lambda: f"Models cannot be opened: {words}" in lazy.words, timeout=30_000)
    assert "Opening" not in lazy.words and lazy.place is None
    lazy.close_place()


@pytest.mark.parametrize("modules", [(), SLOW])
def test_a_place_is_made_once_when_it_is_first_shown(qtbot: QtBot, modules: tuple[str, ...]) -> None:
    made: list[PlaceWidget] = []

    def make() -> PlaceWidget:
        made.append(PlaceWidget())
        return made[-1]

    lazy = LazyPlace("Models", make, modules)
    stack = QStackedWidget()
    qtbot.addWidget(stack)
    stack.addWidget(PlaceWidget())
    stack.addWidget(lazy)
    stack.show()
    assert made == []
    stack.setCurrentWidget(lazy)
    qtbot.waitUntil(lambda: len(made) == 1 and made[0].isVisible(), timeout=30_000)
    stack.setCurrentIndex(0)
    stack.setCurrentIndex(1)
    assert len(made) == 1 and lazy.place is made[0] and made[0].isVisible()
    lazy.close_place()


def test_a_window_that_closes_while_modules_are_imported_makes_no_place(qtbot: QtBot) -> None:
    made: list[PlaceWidget] = []
    lazy = LazyPlace("Models", lambda: made.append(PlaceWidget()) or made[-1], SLOW)
    qtbot.addWidget(lazy)
    lazy.show()
    lazy.close_place()
    lazy.hide()
    lazy.show()
    assert made == [] and lazy.place is None
