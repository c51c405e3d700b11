"""Which of a pair's two panels shows the engine's messages, with an engine that says what a test wants."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
from PySide6.QtWidgets import QProgressBar, QPushButton

from app.engine.process.messages import Failed, Load, LoadProgress, LoadStage, Offer
from app.engine.types import ModelOptions, Role
from app.ui.pair.model_panel import ModelPanel
from app.ui.state.engine_session import Activity
from tests.ui.homes import Homes, loaded
from tests.ui.windows import Desk, Windows, doubted

SAME = {Role.TARGET: ModelOptions("/large/model.gguf"), Role.DRAFT: ModelOptions("/small/model.gguf")}
OTHER = {Role.TARGET: Role.DRAFT, Role.DRAFT: Role.TARGET}


@pytest.fixture
def desk(windows: Windows, homes: Homes) -> Desk:
    """A window that loads two files of one name."""
    desk = windows.open(ready=False, target=SAME[Role.TARGET], draft=SAME[Role.DRAFT])
    desk.until(lambda: homes.made and load_runs(homes))
    return desk


def load_runs(homes: Homes) -> list[int]:
    return [command.run for command in homes.last.sent if isinstance(command, Load)]


def panel_of(desk: Desk, role: Role) -> ModelPanel:
    return desk.header.draft_panel if role is Role.DRAFT else desk.header.target_panel


def progress_of(desk: Desk, role: Role) -> int | None:
    """The percentage that a panel shows; None where it shows no progress."""
    panel = panel_of(desk, role)
    bar = panel.findChild(QProgressBar)
    assert isinstance(bar, QProgressBar)
    return bar.value() if bar.isVisibleTo(panel) else None


@pytest.mark.parametrize("role", Role)
def test_progress_is_told_in_the_panel_of_its_model(desk: Desk, homes: Homes, role: Role) -> None:
    run = load_runs(homes)[-1]
    homes.last.say(LoadProgress(run, role, "model.gguf", 0.5))
    desk.until(lambda: progress_of(desk, role) == 50)
    assert desk.window.status.state.text() == f"Loading {role} 50 %"
    homes.last.say(LoadProgress(run, role, "model.gguf", 1.0, LoadStage.TESTING))
    desk.until(lambda: progress_of(desk, role) == 100)
    assert desk.window.status.state.text() == f"Testing {role}"
    assert progress_of(desk, OTHER[role]) is None


@pytest.mark.parametrize("gone", [False, True], ids=["refused", "crash"])
@pytest.mark.parametrize("role", Role)
def test_a_failure_is_told_in_the_panel_of_its_model(
    desk: Desk, homes: Homes, role: Role, gone: bool
) -> None:
    homes.last.say(
        Failed(load_runs(homes)[-1], "model.gguf is damaged.", "Try another.", gone=gone, role=role)
    )
    desk.until(desk.error)
    assert desk.panel_error(panel_of(desk, role)) == "model.gguf is damaged. Try another."
    assert desk.panel_error(panel_of(desk, OTHER[role])) == ""


@pytest.mark.parametrize("changed", Role)
def test_a_failure_of_neither_is_told_where_a_model_was_changed(
    desk: Desk, homes: Homes, changed: Role
) -> None:
    homes.last.say(loaded(load_runs(homes)[-1]))
    desk.until_ready()
    panel_of(desk, changed).applied.emit(ModelOptions("/new/model.gguf"))
    desk.until(lambda: len(load_runs(homes)) == 2)
    homes.last.say(Failed(load_runs(homes)[-1], "The worker at here:1 is gone."))
    desk.until(desk.error)
    assert "The worker at here:1 is gone." in desk.panel_error(panel_of(desk, changed))
    assert desk.panel_error(panel_of(desk, OTHER[changed])) == ""


@pytest.mark.parametrize("died", [{"gone": True}, {"no_room": True}], ids=["killed", "no room"])
def test_what_may_succeed_next_time_is_offered_again_first(
    desk: Desk, homes: Homes, died: dict[str, bool]
) -> None:
    asked = [command for command in homes.last.sent if isinstance(command, Load)][-1]
    safer = Offer("Load with safe kernels", replace(asked.target, repack=False), asked.draft)
    homes.last.say(Failed(asked.run, "The engine stopped.", offer=safer, role=Role.TARGET, **died))  # type: ignore[arg-type]
    desk.until(desk.error)
    assert desk.offers() == ["Load again", "Load with safe kernels"]
    assert desk.header.target_panel.notice.ways_out == desk.offers()
    press(desk, "Load again")
    desk.until(lambda: load_runs(homes) and load_runs(homes)[-1] != asked.run)
    again = homes.last.sent[-1]
    assert isinstance(again, Load) and (again.target, again.draft) == (asked.target, asked.draft)
    assert desk.error() == ""


def test_a_file_that_is_refused_is_not_offered_again(desk: Desk, homes: Homes) -> None:
    homes.last.say(Failed(load_runs(homes)[-1], "model.gguf is damaged.", role=Role.TARGET))
    desk.until(desk.error)
    assert desk.offers() == []


def test_a_pair_killed_in_its_own_reload_loads_again_by_one_button(windows: Windows) -> None:
    desk = windows.open("process")
    os.kill(desk.engine_pid, signal.SIGKILL)
    desk.until(lambda: desk.session.activity is Activity.LOADING)
    os.kill(desk.engine_pid, signal.SIGKILL)
    desk.until(lambda: desk.session.activity is Activity.EMPTY and desk.error())
    assert desk.offers()[0] == "Load again" and "No model is loaded." in desk.error()
    assert doubted(desk.header.target)
    press(desk, "Load again")
    desk.until_ready()
    assert desk.error() == "" and not doubted(desk.header.target)


def press(desk: Desk, words: str) -> None:
    """Press a button beside the error in the chat."""
    buttons = desk.page.prompt.notices.findChildren(QPushButton)
    next(button for button in buttons if button.text() == words and button.isVisible()).click()


def test_a_draft_that_failed_says_nothing_once_none_is_used(desk: Desk, homes: Homes) -> None:
    homes.last.say(Failed(load_runs(homes)[-1], "There is no room.", role=Role.DRAFT, no_room=True))
    desk.until(desk.error)
    assert desk.panel_error(desk.header.draft_panel) == "There is no room."
    desk.header.draft_panel.applied.emit(None)
    desk.until(lambda: len(load_runs(homes)) == 2)
    homes.last.say(loaded(load_runs(homes)[-1]))
    desk.until_ready()
    assert desk.panel_error(desk.header.draft_panel) == desk.error() == ""
