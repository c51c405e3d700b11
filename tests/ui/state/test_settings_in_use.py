"""The settings in use: signals of changes, and when they are saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from app.base.paths import find_paths
from app.ui.state.chat_side import SettingsInUse
from tests.ui.windows import settings_in_use


@pytest.fixture
def settings(qtbot: QtBot, tmp_path: Path) -> SettingsInUse:
    return settings_in_use(find_paths({"DRAFTSCOPE_HOME": str(tmp_path)}))


def test_a_change_tells_the_names_of_what_is_another_value(settings: SettingsInUse) -> None:
    told: list[tuple[set[str], str]] = []
    settings.changed.connect(lambda names: told.append((names, settings.now.strategy)))
    settings.change(strategy="suffix", max_tokens=settings.now.max_tokens, offline=True)
    assert told == [({"strategy", "offline"}, "suffix")]


def test_the_same_value_again_is_no_change(settings: SettingsInUse) -> None:
    told: list[object] = []
    settings.changed.connect(told.append)
    settings.change(strategy=settings.now.strategy)
    assert told == []
    assert not any(timer.isActive() for timer in settings.findChildren(QTimer)), "nothing is saved later"


def test_several_changes_are_saved_once_a_moment_later(qtbot: QtBot, settings: SettingsInUse) -> None:
    due: list[float] = []
    settings.due.connect(lambda: due.append(settings.now.text_scale))
    with qtbot.waitSignal(settings.due):
        for scale in (1.1, 1.2, 1.3):
            settings.change(text_scale=scale)
    assert due == [1.3]
