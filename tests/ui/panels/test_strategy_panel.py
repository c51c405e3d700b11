"""Picks, forms and text of the strategy panel always say the same."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QLineEdit, QToolButton
from pytestqt.qtbot import QtBot

from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.ui.panels.notice import Notice
from app.ui.panels.number_box import NumberBox
from app.ui.panels.segmented import Segmented
from app.ui.panels.strategy_panel import StrategyPanel
from app.ui.theme import Theme


@pytest.fixture
def panel(qtbot: QtBot, theme: Theme) -> StrategyPanel:
    made = StrategyPanel(theme)
    made.set_spec("draft-simple:n_max=4")
    qtbot.addWidget(made)
    made.show()
    return made


def text(panel: StrategyPanel) -> QLineEdit:
    return next(one for one in panel.findChildren(QLineEdit) if one.accessibleName() == "Strategy as text")


def retype(qtbot: QtBot, panel: StrategyPanel, spec: str) -> None:
    line = text(panel)
    line.selectAll()
    qtbot.keyClick(line, Qt.Key.Key_Delete)
    qtbot.keyClicks(line, spec)


def number(panel: StrategyPanel, strategy: str, name: str) -> NumberBox:
    box = panel._forms[strategy].field(name).control  # type: ignore[attr-defined]
    assert isinstance(box, NumberBox)
    return box


def pick(qtbot: QtBot, panel: StrategyPanel, name: str) -> None:
    row = panel._rows[name]
    qtbot.mouseClick(row, Qt.MouseButton.LeftButton, pos=QPoint(row.width() - 4, row.height() - 4))


def picked(panel: StrategyPanel) -> list[str]:
    return [name for name, row in panel._rows.items() if row.button.isChecked()]


def errors(panel: StrategyPanel) -> str:
    visible = [one for one in panel.findChildren(QLabel) if one.isVisible()]
    return "\n".join(one.text() for one in visible if one.property("role") == "error")


def notice(panel: StrategyPanel) -> str:
    shown = [one.message for one in panel.findChildren(Notice) if one.isVisible()]
    return "\n".join(shown)


def test_a_spec_shows_everywhere(panel: StrategyPanel) -> None:
    panel.set_spec("prompt-lookup:num_pred_tokens=5:verify=match")
    assert picked(panel) == ["prompt-lookup"]
    assert panel._forms["prompt-lookup"].isVisible()
    assert not panel._forms["draft-simple"].isVisible()
    assert panel._forms["prompt-lookup"].value().num_pred_tokens == 5
    rule = panel.findChild(Segmented)
    assert rule is not None
    assert rule.choice() == "match"
    assert text(panel).text() == panel.spec() == "prompt-lookup:num_pred_tokens=5:verify=match"


def test_every_strategy_says_when_it_helps(panel: StrategyPanel) -> None:
    written = [one.text() for one in panel.findChildren(QLabel)]
    for kind in KINDS.values():
        assert kind.summary in written


def test_picking_keeps_what_was_set_before(qtbot: QtBot, panel: StrategyPanel) -> None:
    seen: list[str] = []
    panel.spec_changed.connect(seen.append)
    pick(qtbot, panel, "prompt-lookup")
    pick(qtbot, panel, "none")
    pick(qtbot, panel, "draft-simple")
    assert seen == ["prompt-lookup", "none", "draft-simple:n_max=4"]
    assert text(panel).text() == "draft-simple:n_max=4"


def test_the_form_writes_the_text(qtbot: QtBot, panel: StrategyPanel) -> None:
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.keyClick(number(panel, "draft-simple", "n_max"), Qt.Key.Key_Up)
    assert told.args == ["draft-simple:n_max=5"]
    assert text(panel).text() == "draft-simple:n_max=5"


def test_a_wrong_field_leaves_the_last_right_spec(qtbot: QtBot, panel: StrategyPanel) -> None:
    box = number(panel, "draft-simple", "n_max")
    box.lineEdit().end(False)
    with qtbot.assertNotEmitted(panel.spec_changed):
        qtbot.keyClicks(box.lineEdit(), "x")
    assert panel.spec() == "draft-simple:n_max=4"
    assert "from 1 to 512" in errors(panel)
    rule = panel.findChild(Segmented)
    assert rule is not None
    qtbot.keyClick(rule, Qt.Key.Key_Right)
    assert panel.spec() == "draft-simple:n_max=4:verify=greedy"
    assert box.lineEdit().text() == "4x"  # kept, whatever else is changed


def test_the_text_fills_the_forms(qtbot: QtBot, panel: StrategyPanel) -> None:
    seen: list[str] = []
    panel.spec_changed.connect(seen.append)
    retype(qtbot, panel, "prompt-lookup:max_ngram_size=2")
    assert seen[-1] == "prompt-lookup:max_ngram_size=2"
    assert picked(panel) == ["prompt-lookup"]
    assert panel._forms["prompt-lookup"].value().max_ngram_size == 2
    assert text(panel).text() == "prompt-lookup:max_ngram_size=2"  # untouched while typing
    assert errors(panel) == ""


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ("medusa", "prompt-lookup"),
        ("draft-simple:k=4", "n_max"),
        ("draft-simple:n_max=0", "from 1 to 512"),
        ("draft-simple+prompt-lookup", "prompt-lookup+draft-simple"),
        ("none:verify=maybe", "greedy"),
    ],
)
def test_wrong_text_is_kept_and_explained_in_place(
    qtbot: QtBot, panel: StrategyPanel, spec: str, allowed: str
) -> None:
    retype(qtbot, panel, spec)
    assert text(panel).text() == spec
    assert text(panel).property("state") == "wrong"
    assert allowed in errors(panel)


def test_several_strategies_come_by_text(qtbot: QtBot, panel: StrategyPanel) -> None:
    retype(qtbot, panel, "prompt-lookup+draft-simple:n_max=2")
    assert panel.spec() == "prompt-lookup+draft-simple:n_max=2"
    assert picked(panel) == []
    assert panel._forms["prompt-lookup"].isVisible()
    assert panel._forms["draft-simple"].isVisible()
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.keyClick(number(panel, "prompt-lookup", "num_pred_tokens"), Qt.Key.Key_Up)
    assert told.args == ["prompt-lookup:num_pred_tokens=9+draft-simple:n_max=2"]
    pick(qtbot, panel, "none")
    assert picked(panel) == ["none"]


def test_the_rule_is_part_of_the_spec(qtbot: QtBot, panel: StrategyPanel) -> None:
    rule = panel.findChild(Segmented)
    assert rule is not None
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.keyClick(rule, Qt.Key.Key_Right)
    assert told.args == ["draft-simple:n_max=4:verify=greedy"]
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.keyClick(rule, Qt.Key.Key_Left)
    assert told.args == ["draft-simple:n_max=4"]


def test_what_does_not_go_together_is_said(qtbot: QtBot, panel: StrategyPanel) -> None:
    assert notice(panel) == ""
    panel.set_spec("draft-simple:verify=greedy")
    panel.set_temperature(0.8)
    assert "temperature 0" in notice(panel)
    panel.set_temperature(0.0)
    assert notice(panel) == ""
    panel.set_has_draft(False)
    assert "needs a draft model" in notice(panel)
    pick(qtbot, panel, "prompt-lookup")
    assert notice(panel) == ""


def test_copy(qtbot: QtBot, panel: StrategyPanel) -> None:
    copy = next(one for one in panel.findChildren(QToolButton) if one.accessibleName() == "Copy the strategy")
    qtbot.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "draft-simple:n_max=4"


def test_setting_a_spec_tells_nobody_and_a_wrong_one_is_refused(qtbot: QtBot, panel: StrategyPanel) -> None:
    with qtbot.assertNotEmitted(panel.spec_changed):
        panel.set_spec("none")
        with pytest.raises(SettingError):
            panel.set_spec("medusa")
    assert panel.spec() == "none"
