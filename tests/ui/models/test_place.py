"""The whole window with its Models place: a pair fetched by clicks chats; offline mode; closing."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.hub.downloads import State
from app.ui.models.pair_card import PairCard
from app.ui.models.place import ModelsPlace
from tests.hub.server import FakeHub, Fault
from tests.processes import started
from tests.quiet import stays
from tests.ui.models.shop import FIRST
from tests.ui.named import named
from tests.ui.windows import Desk, Windows


def open_models(desk: Desk) -> ModelsPlace:
    """Go to the Models place by its button on the rail."""
    desk.qtbot.mouseClick(
        named(desk.window.rail, "Models (Ctrl+M)", QAbstractButton), Qt.MouseButton.LeftButton
    )
    desk.until(lambda: desk.place("models") is not None)
    assert desk.place("models") is not None
    return desk.place("models")


def first(place: ModelsPlace) -> PairCard:
    return next(card for card in place.catalogue.cards if card.pair.title == FIRST)


def click(desk: Desk, button: QWidget) -> None:
    assert button.isVisible() and button.isEnabled()
    desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


@pytest.mark.usefixtures("hub_home")
def test_a_pair_fetched_by_clicks_chats(windows: Windows, stocked: FakeHub) -> None:
    desk = windows.open(offline=False)
    place = open_models(desk)
    card = first(place)
    desk.until(lambda: card.state == "Confirmed with the Hub.")
    click(desk, card.button)
    desk.until(card.use.isVisible)
    click(desk, card.use)
    assert desk.page.isVisible() and not place.isVisible()
    desk.until_ready()
    pair = desk.session.pair
    assert pair is not None and pair.draft is not None
    for info, name in ((pair.target, "SmolLM2-1.7B"), (pair.draft, "SmolLM2-135M")):
        assert name in info.path and "/snapshots/" in info.path
    answer = desk.ask("Hello")
    assert any(round.drafted for round in answer.answer.rounds)
    saved = desk.saved()
    assert "SmolLM2-1.7B" in saved["target"]["path"]  # type: ignore[index]


@pytest.mark.usefixtures("hub_home")
def test_while_an_answer_is_written_nothing_is_loaded(windows: Windows, stocked: FakeHub) -> None:
    desk = windows.open(offline=True, max_tokens=900)
    place = open_models(desk)
    place.show_view("Library")
    details = place.library.details
    desk.until(details.pair.isEnabled)
    desk.window.go("chat")
    desk.type("Hello")
    desk.until_streaming()
    desk.window.go("models")
    before = desk.session.pair
    click(desk, details.pair)
    assert details.notice.message == "The engine is busy." and place.isVisible()
    desk.controller.stop()
    desk.until_ready()
    assert desk.session.pair is before


@pytest.mark.usefixtures("hub_home")
def test_offline_mode_is_remembered(windows: Windows, stocked: FakeHub) -> None:
    desk = windows.open(offline=True)
    place = open_models(desk)
    assert place.offline.isChecked()
    assert stays(lambda: len(stocked.asked)) and stocked.asked == []
    click(desk, place.offline)
    desk.until(lambda: first(place).state == "Confirmed with the Hub.")
    assert desk.saved()["offline"] is False
    windows.close(desk)
    again = windows.open()
    assert not open_models(again).offline.isChecked()


@pytest.mark.usefixtures("hub_home")
def test_the_clients_variable_forces_it(
    windows: Windows, stocked: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    place = open_models(windows.open(offline=False))
    assert place.offline.isChecked() and not place.offline.isEnabled()
    assert "HF_HUB_OFFLINE" in place.offline.toolTip() and stocked.asked == []


@pytest.mark.usefixtures("hub_home")
def test_the_place_is_built_when_it_is_first_shown(windows: Windows) -> None:
    desk = windows.open(offline=True)
    assert desk.place("models") is None
    place = open_models(desk)
    desk.window.go("chat")
    desk.qtbot.keyClick(desk.window, Qt.Key.Key_M, Qt.KeyboardModifier.ControlModifier)
    desk.until(place.isVisible)
    assert desk.place("models") is place


@pytest.mark.usefixtures("hub_home", "fresh_templates")
def test_closing_is_quick_and_leaves_no_process_behind(windows: Windows, stocked: FakeHub) -> None:
    children = started()
    stocked.always["cdn"] = Fault(pace=0.5)  # a minute in all
    desk = windows.open(offline=False)
    place = open_models(desk)
    desk.until(lambda: first(place).state == "Confirmed with the Hub.")
    click(desk, first(place).button)
    desk.until(lambda: any(download.state is State.RUNNING for download in place.session.downloads.values()))
    began = time.perf_counter()
    windows.close(desk)
    assert time.perf_counter() - began < 20
    desk.until(lambda: started() <= children)
    desk.until(lambda: _threads() == [])


@pytest.mark.usefixtures("hub_home")
def test_closing_while_the_place_opens(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open(offline=True)
    desk.window.go("models")
    assert desk.place("models") is None  # its imports are running, or about to be reported
    windows.close(desk)
    desk.until(lambda: _threads() == [])


def _threads() -> list[str]:
    """Living threads of the place, without those of the server on loopback."""
    names = ("asking", "downloads", "library")
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(names)]
