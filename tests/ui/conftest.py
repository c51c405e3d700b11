"""What tests of the window share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.paths import find_paths
from app.ui.theme import Theme
from tests.ui.windows import Windows


@pytest.fixture
def theme(qtbot: QtBot) -> Iterator[Theme]:
    made = Theme(find_paths().fonts, "light")
    yield made
    made.deleteLater()


@pytest.fixture
def windows(
    qtbot: QtBot,
    tmp_path: Path,
    pair_files: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Windows]:
    """Whole windows over the tiny pair, on a home folder of their own."""
    # A test process that never collects what was there keeps every window of every test.
    monkeypatch.setattr("app.wiring._settle_memory", lambda: None)
    made = Windows(qtbot, tmp_path / "home", pair_files)
    yield made
    made.close_all()
