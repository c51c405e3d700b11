"""The panel that chooses a model file and how it is loaded."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET
from app.demo import REAL_PAIR, SMALL_PAIR
from app.engine.types import ModelInfo, ModelOptions, Role
from app.ui.pair.model_panel import RECENT_SHOWN, ModelPanel
from app.ui.theme import Theme
from app.ui.widgets.buttons import TwoLineButton
from app.ui.widgets.field import NumberBox
from app.ui.widgets.notice import Notice
from app.ui.widgets.words import chip_words, parameters

INFO = ModelInfo(
    path="/install/resources/demo_pair/target.gguf",
    name="demo 32M",
    architecture="llama",
    quantisation="Q8_0",
    size=34_100_000,
    n_params=32_100_000,
    n_layers=8,
    n_vocab=8192,
    n_ctx_train=4096,
    n_ctx=2048,
    threads=1,
    has_chat_template=True,
)


class Chooser:
    """Stands in for the file dialog."""

    def __init__(self) -> None:
        self.answer = ""
        self.asked: list[str] = []

    def __call__(self, parent: QWidget, folder: str) -> str:
        self.asked.append(folder)
        return self.answer


@pytest.fixture
def chooser(monkeypatch: pytest.MonkeyPatch) -> Chooser:
    made = Chooser()
    monkeypatch.setattr("app.ui.pair.model_panel.ask_for_model", made)
    return made


@pytest.fixture
def panel(qtbot: QtBot, theme: Theme, chooser: Chooser) -> ModelPanel:
    made = ModelPanel(theme, Role.TARGET, BUNDLED_TARGET)
    made.set_options(ModelOptions(BUNDLED_TARGET))
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def draft(qtbot: QtBot, theme: Theme, chooser: Chooser) -> ModelPanel:
    made = ModelPanel(theme, Role.DRAFT, BUNDLED_DRAFT)
    made.set_options(ModelOptions(BUNDLED_DRAFT))
    qtbot.addWidget(made)
    made.show()
    return made


def button(panel: ModelPanel, text: str) -> QPushButton:
    return next(button for button in panel.findChildren(QPushButton) if button.text() == text)


def press(qtbot: QtBot, panel: ModelPanel, text: str) -> None:
    qtbot.mouseClick(button(panel, text), Qt.MouseButton.LeftButton)


def words(panel: ModelPanel) -> str:
    """All text on the panel."""
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def test_the_loaded_model_is_described(panel: ModelPanel) -> None:
    panel.set_info(INFO)
    text = words(panel)
    assert "demo 32M" in text
    assert "llama · 32M parameters · Q8_0 · 34.1\N{NO-BREAK SPACE}MB" in text
    assert "context 2,048 tokens, trained on 4,096 · 1 thread" in text
    assert not button(panel, "Apply").isEnabled()


def test_another_file_is_loaded_only_by_apply(qtbot: QtBot, panel: ModelPanel, chooser: Chooser) -> None:
    panel.set_info(INFO)
    chooser.answer = "/models/own.gguf"
    with qtbot.assertNotEmitted(panel.applied):
        press(qtbot, panel, "Choose file…")
    assert "own.gguf" in words(panel)
    assert "Apply loads it." in words(panel)
    assert "demo 32M" not in words(panel)
    with qtbot.waitSignal(panel.applied) as told:
        press(qtbot, panel, "Apply")
    assert told.args == [ModelOptions("/models/own.gguf")]


def test_a_dialog_that_is_cancelled_changes_nothing(qtbot: QtBot, panel: ModelPanel) -> None:
    press(qtbot, panel, "Choose file…")
    assert panel.options() == ModelOptions(BUNDLED_TARGET)
    assert not button(panel, "Apply").isEnabled()


def test_the_dialog_begins_where_the_model_lies(qtbot: QtBot, panel: ModelPanel, chooser: Chooser) -> None:
    press(qtbot, panel, "Choose file…")
    panel.set_options(ModelOptions("/models/deep/own.gguf"))
    press(qtbot, panel, "Choose file…")
    assert "bundled" not in chooser.asked[0]
    assert chooser.asked[1].replace("\\", "/").endswith("/models/deep")


def test_settings_go_along(qtbot: QtBot, panel: ModelPanel) -> None:
    panel.set_info(INFO)
    box = panel.form.field("ctx_size").control  # type: ignore[attr-defined]
    assert isinstance(box, NumberBox)
    panel.activateWindow()
    box.setFocus()
    qtbot.waitUntil(box.hasFocus)
    box.selectAll()
    qtbot.keyClicks(box, "1024")
    with qtbot.waitSignal(panel.applied) as told:
        press(qtbot, panel, "Apply")
    assert told.args == [ModelOptions(BUNDLED_TARGET, ctx_size=1024)]


def test_a_wrong_setting_cannot_be_applied(qtbot: QtBot, panel: ModelPanel) -> None:
    box = panel.form.field("threads").control  # type: ignore[attr-defined]
    assert isinstance(box, NumberBox)
    box.lineEdit().selectAll()
    qtbot.keyClicks(box.lineEdit(), "9999")
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)
    assert not button(panel, "Apply").isEnabled()
    assert "from 0 to 1,024" in words(panel)


def test_a_failure_is_told_inside_and_can_be_tried_again(qtbot: QtBot, panel: ModelPanel) -> None:
    panel.set_options(ModelOptions("/models/own.gguf"))
    panel.set_error("own.gguf is not a GGUF file.", "Choose another file.")
    notice = next(notice for notice in panel.findChildren(Notice) if notice.message)
    assert notice.isVisible()
    assert notice.hint == "Choose another file."
    assert "Not loaded." in words(panel)
    with qtbot.waitSignal(panel.applied) as told:
        press(qtbot, panel, "Apply")
    assert told.args == [ModelOptions("/models/own.gguf")]
    panel.set_loading("own.gguf", 0.0)
    assert not notice.isVisible()


def test_loading_shows_how_far_it_is(panel: ModelPanel) -> None:
    panel.set_loading("target.gguf", 0.42)
    bar = panel.findChild(QProgressBar)
    assert bar is not None
    assert bar.isVisible()
    assert bar.value() == 42
    assert "Loading target.gguf, 42 %" in words(panel)
    panel.set_info(INFO)
    assert not bar.isVisible()
    assert "Loading" not in words(panel)


def test_recent_files_are_few_and_one_click_away(qtbot: QtBot, panel: ModelPanel) -> None:
    panel.set_recent([BUNDLED_TARGET, *[f"C:\\models\\m{i}.gguf" for i in range(9)]])
    shown = [
        button for button in panel.findChildren(QPushButton) if button.accessibleName().startswith("Recent")
    ]
    assert [button.toolTip() for button in shown] == [f"C:\\models\\m{i}.gguf" for i in range(RECENT_SHOWN)]
    assert shown[0].accessibleName() == "Recent file m0.gguf · C:/models"
    qtbot.mouseClick(shown[1], Qt.MouseButton.LeftButton)
    assert panel.options() == ModelOptions("C:\\models\\m1.gguf")
    panel.set_recent([])
    assert "Recent" not in words(panel)


def test_our_own_pairs_are_one_click_away(qtbot: QtBot, panel: ModelPanel) -> None:
    panel.set_own((REAL_PAIR, SMALL_PAIR))
    real, small = panel.findChildren(TwoLineButton)
    assert "made to be fast: shows gains on two cores" in small.accessibleDescription()
    assert (real.current, small.current) == (False, True)
    with qtbot.waitSignal(panel.own_wanted) as told:
        qtbot.mouseClick(real, Qt.MouseButton.LeftButton)
    assert told.args == [REAL_PAIR]
    panel.set_options(REAL_PAIR.target)
    assert (real.current, small.current) == (True, False)
    assert "SmolLM2 135M" in words(panel) and "real:" not in words(panel)


def test_a_draft_can_be_switched_off(qtbot: QtBot, draft: ModelPanel) -> None:
    press(qtbot, draft, "No draft")
    assert "cannot be used" in words(draft)
    assert not draft.form.isVisible()
    with qtbot.waitSignal(draft.applied) as told:
        press(qtbot, draft, "Apply")
    assert told.args == [None]
    draft.set_options(None)
    assert not button(draft, "Apply").isEnabled()
    press(qtbot, draft, "Small pair's draft")
    assert button(draft, "Apply").isEnabled()
    assert draft.form.isVisible()


def test_a_target_cannot(panel: ModelPanel) -> None:
    assert "No draft" not in [
        button.text() for button in panel.findChildren(QPushButton) if button.isVisible()
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999"), (1_400_000, "1.4M"), (9_960_000, "10M"), (32_100_000, "32M"), (7.2e9, "7.2B")],
)
def test_parameters(count: float, text: str) -> None:
    assert parameters(int(count)) == text


def test_chip_words() -> None:
    assert chip_words(INFO) == ("demo 32M", "Q8_0")
    nameless = msgspec.structs.replace(INFO, name="target.gguf")
    assert chip_words(nameless) == ("target.gguf 32M", "Q8_0")
    sized = msgspec.structs.replace(INFO, name="SmolLM2-32M-Instruct")
    assert chip_words(sized) == ("SmolLM2-32M-Instruct", "Q8_0"), "the size is in the name"


def test_a_context_beyond_the_trained_one_is_said_as_a_warning(panel: ModelPanel) -> None:
    panel.set_info(INFO)
    assert "trained on" in words(panel) and "expect nonsense" not in words(panel)
    panel.set_info(msgspec.structs.replace(INFO, n_ctx=2 * INFO.n_ctx_train))
    warning = next(label for label in panel.findChildren(QLabel) if "expect nonsense" in label.text())
    assert warning.isVisible() and warning.property("role") == "error"
    assert f"{INFO.n_ctx_train:,} tokens" in warning.text()


def test_the_draft_s_panel_says_whose_context_it_has(draft: ModelPanel) -> None:
    assert "0 uses the target's" in words(draft) and "at most 8,192" not in words(draft)
    draft.set_options(ModelOptions(BUNDLED_DRAFT))
    draft.set_info(msgspec.structs.replace(INFO, n_ctx=2 * INFO.n_ctx_train))
    assert "few of its tokens will be accepted beyond those" in words(draft)
