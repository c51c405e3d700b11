"""What tests of the window share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.paths import find_paths
from app.ui.theme import Theme


@pytest.fixture
def theme(qtbot: QtBot) -> Iterator[Theme]:
    made = Theme(find_paths().fonts, "light")
    yield made
    made.deleteLater()
