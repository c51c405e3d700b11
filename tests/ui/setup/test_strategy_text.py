"""Commands and logs that are pasted into the strategy panel."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QPushButton
from pytestqt.qtbot import QtBot

from app.ui.setup import strategy_text
from app.ui.setup.strategy_panel import StrategyPanel
from app.ui.setup.strategy_text import TITLE, WORDS
from app.ui.theme import Theme
from app.ui.widgets.form import FoldButton
from tests.engine.explain.test_server_log import TWO_ANSWERS
from tests.ui.named import named

HYBRID = "llama-server -m t.gguf -md D.gguf --draft 16 --spec-type ngram-mod --no-such-flag 3"


@pytest.fixture
def panel(qtbot: QtBot, theme: Theme) -> StrategyPanel:
    made = StrategyPanel(theme)
    made.set_spec("draft-simple:n_max=4:verify=match")
    qtbot.addWidget(made)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    qtbot.mouseClick(named(made, TITLE, FoldButton), Qt.MouseButton.LeftButton)
    return made


def field(panel: StrategyPanel) -> QPlainTextEdit:
    return named(panel, "Command or log to read", QPlainTextEdit)


def paste(qtbot: QtBot, panel: StrategyPanel, text: str) -> None:
    field(panel).clear()
    QGuiApplication.clipboard().setText(text)
    field(panel).paste()
    panel.reader.read()


def test_a_pasted_command_is_explained_and_its_strategy_used(qtbot: QtBot, panel: StrategyPanel) -> None:
    assert field(panel).hasFocus()
    QGuiApplication.clipboard().setText(HYBRID)
    field(panel).paste()
    told = panel.reader.told
    qtbot.waitUntil(lambda: told.text() != WORDS)  # after a pause, without a key
    assert "strategy ngram-mod+draft-simple:n_max=16." in told.text()
    assert "--no-such-flag, and Draftscope has nothing similar" in told.text()
    assert panel.spec() == "draft-simple:n_max=4:verify=match"
    use = named(panel, "Use this strategy", QPushButton)
    with qtbot.waitSignal(panel.spec_changed) as changed:
        qtbot.mouseClick(use, Qt.MouseButton.LeftButton)
    assert changed.args == [panel.spec()] == ["ngram-mod+draft-simple:n_max=16:verify=match"]


def test_a_pasted_log_says_what_its_figures_mean(qtbot: QtBot, panel: StrategyPanel) -> None:
    paste(qtbot, panel, TWO_ANSWERS)
    assert "25 of 60 drafted tokens were accepted" in panel.reader.told.text()
    assert panel.reader.use.isVisibleTo(panel)
    paste(
        qtbot,
        panel,
        "statistics ngram_mod: #calls = 8, #gen drafts = 2, #acc drafts = 1, #gen tokens = 9, "
        "#acc tokens = 4",
    )
    assert "#acc drafts: 1 draft (50.0" in panel.reader.told.text()


def test_what_is_neither_is_said_and_nothing_is_offered(qtbot: QtBot, panel: StrategyPanel) -> None:
    paste(qtbot, panel, HYBRID)
    paste(qtbot, panel, "Buy milk.")
    assert panel.reader.told.text().startswith("This is not a command of llama-server")
    assert not panel.reader.use.isVisibleTo(panel)
    paste(qtbot, panel, " ")
    assert panel.reader.told.text() == WORDS
    paste(qtbot, panel, "llama-server -m t.gguf --spec-type none")
    assert "Nothing drafts: --spec-type is none." in panel.reader.told.text()
    assert not panel.reader.use.isVisibleTo(panel)


def test_a_long_text_is_read_to_a_limit(
    qtbot: QtBot, panel: StrategyPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategy_text, "LONGEST", len(TWO_ANSWERS))
    paste(qtbot, panel, f"{TWO_ANSWERS}\n{TWO_ANSWERS}")
    assert "2 answers, 60 tokens" in panel.reader.told.text()
    assert panel.reader.told.text().endswith("characters were read.")
