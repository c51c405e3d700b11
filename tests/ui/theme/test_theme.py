"""The theme: one source of fonts."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFontDatabase

from app.base.paths import find_paths
from app.ui.theme import Theme


def test_a_second_theme_adds_no_fonts_again(theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []
    monkeypatch.setattr(QFontDatabase, "addApplicationFont", added.append)
    again = Theme(find_paths().fonts, "light")
    assert added == []
    assert again.sans().exactMatch() and again.mono().exactMatch()
    again.deleteLater()
