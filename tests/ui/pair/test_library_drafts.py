"""What the library says of drafts: in the draft's panel, and where the advice names a smaller one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from app.engine.types import ModelOptions, Round
from app.hub.library.shelf import Shelf
from app.ui.pair.model_panel import ModelPanel
from tests.files.tiny import Tiny
from tests.ui.traces import make_round
from tests.ui.windows import Desk, Windows

TARGET, DRAFT, SMALL = (
    Tiny(name=name, n_layers=layers, n_embd=128, letters="abcdefgh")
    for name, layers in (("target", 24), ("draft", 16), ("small", 2))
)


@pytest.fixture
def models(
    tiny_file: Callable[[Tiny], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    return {tiny.name: str(tiny_file(tiny)) for tiny in (TARGET, DRAFT, SMALL)}


def pair(models: dict[str, str]) -> dict[str, Any]:
    return {"target": ModelOptions(models["target"]), "draft": ModelOptions(models["draft"])}


def verdict(panel: ModelPanel) -> str:
    found = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]
    return next((text for text in found if "of the target's size" in text), "")


def share(models: dict[str, str], draft: str) -> str:
    sizes = [Path(models[name]).stat().st_size for name in (draft, "target")]
    return f"{sizes[0] / sizes[1] * 100:.0f} % of the target's size"


def test_a_draft_is_judged_in_its_panel(windows: Windows, models: dict[str, str]) -> None:
    desk = windows.open(**pair(models), recent_models=(models["small"],))
    desk.qtbot.mouseClick(desk.header.draft, Qt.MouseButton.LeftButton)
    panel = desk.header.draft_panel
    assert verdict(panel) == f"{share(models, 'draft')}: it will hardly save time."
    button = next(button for button in panel.findChildren(QPushButton) if button.toolTip() == models["small"])
    desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert verdict(panel) == "", "the verdict on another file has gone"
    desk.until(lambda: verdict(panel))
    assert verdict(panel) == f"Good: it has the same vocabulary; {share(models, 'small')}: a good size."


def test_a_smaller_draft_of_the_library_is_loaded_by_a_click(
    windows: Windows, models: dict[str, str]
) -> None:
    Shelf(windows.paths.data).add([Path(models["small"])])
    desk = windows.open(**pair(models), strategy="draft-simple")
    desk.ask("abc")
    slow_draft(desk)
    text = f"Try small ({share(models, 'small')}) and measure"
    desk.until(lambda: text in offered(desk))
    offered(desk)[text].click()
    desk.until_ready()
    assert desk.window.settings.now.draft == replace(ModelOptions(models["small"]))
    assert desk.session.pair is not None and desk.session.pair.draft is not None
    assert desk.session.pair.draft.path == models["small"]


def test_another_draft_of_the_library_is_offered_where_few_tokens_are_accepted(
    windows: Windows, models: dict[str, str]
) -> None:
    Shelf(windows.paths.data).add([Path(models["small"])])
    desk = windows.open(**pair(models), strategy="draft-simple")
    desk.ask("abc")
    drafted = [
        make_round(
            index, ["a"] if index < 4 else [], "b", "c", ["d"], draft_seconds=0.002, verify_seconds=0.03
        )
        for index in range(20)
    ]
    show_rounds(desk, drafted, 0.02)
    text = f"Try small as the draft ({share(models, 'small')}) and measure"
    desk.until(lambda: text in offered(desk))
    desk.window.settings.change(strategy="none")
    offered(desk)[text].click()
    desk.until_ready()
    assert desk.window.settings.now.strategy == "draft-simple", "none would not try it"


def test_a_draft_that_the_library_gets_later_is_named_in_the_chat(
    windows: Windows, models: dict[str, str]
) -> None:
    desk = windows.open(**pair(models), strategy="draft-simple")
    desk.ask("abc")
    slow_draft(desk)
    desk.until(lambda: "of a target pass" in desk.page.instruments.cost.advice.text())
    desk.window.go("models")
    Shelf(windows.paths.data).add([Path(models["small"])])
    desk.window.go("chat")
    desk.until(lambda: f"Try small ({share(models, 'small')}) and measure" in offered(desk))


def slow_draft(desk: Desk) -> None:
    """Rounds in which a draft token takes half of a target pass, in place of the answer's own."""
    drafted = [
        make_round(index, ["a"], "b", "c", [], draft_seconds=0.01, verify_seconds=0.01) for index in range(20)
    ]
    show_rounds(desk, drafted, 0.01)


def show_rounds(desk: Desk, drafted: list[Round], single: float) -> None:
    """These rounds and plain ones of so many seconds, in place of the answer's own."""
    answer = desk.window.controller.shown.answer
    assert answer is not None and answer.trace is not None
    plain = [make_round(20 + index, [], "b", verify_seconds=single) for index in range(20)]
    answer.trace.rounds[:] = [*drafted, *plain]
    answer.count_from(0)
    answer.move(len(answer.trace.rounds))
    desk.window.controller.shown.answer_shown.emit()


def offered(desk: Desk) -> dict[str, QPushButton]:
    buttons = desk.page.instruments.cost.remedies.findChildren(QPushButton)
    return {button.text(): button for button in buttons if button.isVisibleTo(desk.page)}
