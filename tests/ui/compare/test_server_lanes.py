"""Running servers as lanes of the Compare place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QPushButton

from app.engine.strategy import NONE, SERVER
from app.ui.compare.lane_card import LaneCard
from app.ui.compare.place import ComparePlace
from app.ui.pair.server_form import ServerForm
from app.ui.widgets.icons import IconButton
from tests.servers.scripted import (
    DRAFTING,
    PLAIN,
    Answer,
    Asked,
    ScriptedServer,
    counted,
    llama_server,
    serving,
)
from tests.ui.compare.measuring import measured, opened, reopened
from tests.ui.named import named, words_in
from tests.ui.windows import Desk, Windows


def form_of(place: ComparePlace) -> ServerForm:
    """The form for a new server, opened as a user does."""
    panel = place.head.lanes_panel
    named(panel, "Add a server…", QPushButton).setChecked(True)
    assert panel.new_server.isVisibleTo(panel)
    return panel.new_server


def added(desk: Desk, place: ComparePlace, server: ScriptedServer) -> None:
    """Add the lanes of a server by its address."""
    form = form_of(place)
    form.address.setText(server.address)
    before = len(place.chips.setup.lanes)
    named(form, "Add its lanes", QPushButton).click()
    desk.until(lambda: len(place.chips.setup.lanes) > before)


def only_servers(desk: Desk, *servers: ScriptedServer, tokens: int = 3) -> ComparePlace:
    """The place with one short lane of its own pair, and servers."""
    place = opened(desk, tokens=tokens, repeats=1)
    panel = place.head.lanes_panel
    for spec in [lane.strategy for lane in place.chips.setup.lanes][1:]:
        named(panel, f"Remove {spec}", IconButton).click()
    for server in servers:
        added(desk, place, server)
    return place


def card_of(place: ComparePlace, name: str) -> LaneCard:
    (card,) = [card for card in place.outcome.stage.lanes.cards if card.name.startswith(name)]
    return card


def test_a_server_becomes_a_lane_that_says_what_it_told(windows: Windows) -> None:
    desk = windows.open()
    with serving(llama_server(*DRAFTING)) as server:
        place = only_servers(desk, server)
    lane = place.chips.setup.lanes[-1]
    assert (lane.strategy, lane.name) == (SERVER, "llama-server: draft-simple")
    panel = place.head.lanes_panel
    assert panel.add_server.isVisibleTo(panel) and not panel.new_server.isVisibleTo(panel)
    told = words_in(panel.server)
    for fact in ("target.gguf", "drafts with draft-simple", "2 slots", "temperature 0.8", "context 1,024"):
        assert fact in told
    assert "p and q are unknown" in told and "cannot turn drafting off" in told
    assert not panel.strategy.isVisibleTo(panel), "the server drafts by its own settings"
    card = card_of(place, "llama-server")
    assert card.told.text() == "target.gguf Q4_0 · draft-simple · context 1,024 · 2 slots"
    desk.until(lambda: card.told.isVisible() and card_of(place, "none").told.isVisible())  # plots stay level


def test_a_server_races_beside_our_lanes_with_exact_fates(windows: Windows) -> None:
    desk = windows.open()
    with serving(llama_server(*DRAFTING)) as server:
        place = only_servers(desk, server)
        report = measured(desk, place)
    assert [lane.strategy for lane in report.lanes] == [NONE, "prompt-lookup", SERVER]
    lane = report.lanes[2]
    assert lane.server is not None and lane.server.address == server.address
    card = card_of(place, "llama-server")
    assert card.answer is not None and card.answer.header is not None
    fates = [[token.verdict.value for token in round.drafted] for round in card.answer.rounds]
    assert fates == [[], ["accepted", "rejected"]]
    assert all(token.p is None and token.q is None for token in card.answer.rounds[1].drafted)
    assert card.badge.text() == "no baseline" and card.factor.text() == ""
    assert "has no baseline" in words_in(place.strip)


def test_a_second_server_without_drafts_is_the_baseline(windows: Windows) -> None:
    desk = windows.open()
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        place = only_servers(desk, drafting, plain)
        report = measured(desk, place)
    assert [lane.baseline for lane in report.lanes] == [0, 0, 3, 3]
    card = card_of(place, "llama-server: draft-simple")
    assert card.factor.text().endswith("×") and card.badge.text().endswith(" · identical")
    assert "has no baseline" not in words_in(place.strip)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (llama_server(*DRAFTING[:2]), "stopped in the middle of its answer"),
        (llama_server(counted(1, "a", 1), counted(2, "b", 2, 1, 3)), "counters contradict each other"),
        (llama_server(*DRAFTING[:3], counted(4, "d", 4)), "3 tokens asked for"),
    ],
    ids=["dying", "lying", "talking on"],
)
def test_a_server_that_fails_says_why_in_its_lane(windows: Windows, script: Any, told: str) -> None:
    desk = windows.open()
    with serving(script) as server:
        place = only_servers(desk, server)
        report = measured(desk, place)
    assert [summary.failed for summary in report.summary] == [0, 0, 1]
    card = card_of(place, "llama-server")
    assert any(told in run.failure for run in report.runs), [run.failure for run in report.runs]
    assert told in words_in(card.text)


def test_a_server_that_is_gone_fails_its_own_lane_only(windows: Windows) -> None:
    desk = windows.open()
    with serving(llama_server(*DRAFTING)) as server:
        place = only_servers(desk, server)
    report = measured(desk, place)
    assert [summary.failed for summary in report.summary] == [0, 0, 1]
    assert "No server answers" in next(run.failure for run in report.runs if run.lane == 2)


def test_a_server_that_cannot_be_asked_says_so_in_the_form(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    form = form_of(place)
    before = place.chips.setup
    form.address.setText("ftp://x")
    form.act.click()
    assert "is not the address of a server" in form.notice.message
    form.address.setText("http://127.0.0.1:9")
    form.act.click()
    desk.until(lambda: "No server answers" in form.notice.message)
    with serving({"/props": Answer({"error": "no"}, 404)}) as stranger:
        form.address.setText(stranger.address)
        form.act.click()
        desk.until(lambda: "does not support this request" in form.notice.message)
    assert place.chips.setup == before


def test_a_key_is_asked_for_and_serves_the_measurement(windows: Windows) -> None:
    def guarded(answer: Any) -> Any:
        def reply(request: Asked) -> Answer:
            if request.headers.get("authorization") != "Bearer sk-1":
                return Answer({"error": {"message": "Invalid API Key"}}, 401)
            return answer(request) if callable(answer) else answer

        return reply

    desk = windows.open()
    with serving({path: guarded(answer) for path, answer in llama_server(*DRAFTING).items()}) as server:
        place = opened(desk, tokens=3, repeats=1)
        form = form_of(place)
        assert not form.key.isVisibleTo(form)
        form.address.setText(server.address)
        form.act.click()
        desk.until(lambda: form.key.isVisibleTo(form))
        assert "wants a key" in form.notice.message and form.notice.hint == "Type its key below."
        key = named(form, "Key of the server", QLineEdit)
        assert key.echoMode() is QLineEdit.EchoMode.Password
        desk.qtbot.keyClicks(key, "sk-1")
        desk.press(Qt.Key.Key_Return, key)
        desk.until(lambda: place.chips.setup.lanes[-1].strategy == SERVER)
        assert key.text() == ""
        report = measured(desk, place)
    assert not any(summary.failed for summary in report.summary)
    kept = [path for path in Path(desk.paths.data).rglob("*") if path.is_file()]
    assert not any(b"sk-1" in path.read_bytes() for path in kept), "no file holds the key"


def test_a_server_is_there_again_after_a_restart_and_asked_anew(windows: Windows) -> None:
    desk = windows.open()
    with serving(llama_server(*DRAFTING)) as server:
        lanes = only_servers(desk, server).chips.setup.lanes
        desk, place = reopened(windows, desk)
        assert place.chips.setup.lanes == lanes
        panel = place.head.lanes_panel
        named(panel, f"llama-server: draft-simple   {server.address}", QPushButton).click()
        server.script = llama_server(*PLAIN, types="none")
        named(panel, "Ask again", QPushButton).click()
        desk.until(lambda: place.chips.setup.lanes[-1].strategy == NONE)
    assert place.chips.setup.lanes[-1].name == "llama-server: none"
    assert "does not draft" in words_in(panel.server)


def test_a_measurement_with_a_plain_server_is_set_up_as_it_was(windows: Windows) -> None:
    desk = windows.open()
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        place = only_servers(desk, drafting, plain)
        lanes = place.chips.setup.lanes
        measured(desk, place)
        desk, place = reopened(windows, desk)
        named(place.earlier, "Show it", QPushButton).click()
        desk.until(lambda: place.works.session.report is not None)
    assert [(lane.strategy, lane.pair) for lane in place.chips.setup.lanes] == [
        (lane.strategy, lane.pair) for lane in lanes
    ]


def test_the_strategy_of_a_server_is_not_used_in_the_chat(windows: Windows) -> None:
    desk = windows.open(strategy="prompt-lookup")
    with serving(llama_server(*DRAFTING)) as server:
        place = only_servers(desk, server)
        measured(desk, place)
    place.outcome.results.table.use_wanted.emit(2)
    assert desk.window.settings.now.strategy == "prompt-lookup"
    assert "its own settings" in place.notice.message
