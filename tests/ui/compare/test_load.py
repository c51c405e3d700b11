"""Load in the window, on scripted servers."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.engine.errors import SettingError
from app.lab.lanes import server_lanes
from app.lab.load import levels
from app.lab.load.export import load_cells, load_curves
from app.lab.load.levels import Limits, LoadPlan
from app.lab.load.report import BurstReport
from app.servers.client import ServerClient
from app.ui.compare.place import ComparePlace
from app.ui.state.engine_session import Activity
from app.ui.state.lab_work import Stage
from tests.servers.scripted import (
    DRAFTING,
    PLAIN,
    PROPS,
    Answer,
    Asked,
    ScriptedServer,
    event,
    llama_server,
    serving,
)
from tests.ui.compare.measuring import exports_of, measured, opened
from tests.ui.windows import Desk, Windows


def with_servers(desk: Desk, *servers: ScriptedServer) -> ComparePlace:
    """Compare with the lanes of servers, and a load typed that is measured in a moment."""
    place = opened(desk, tokens=3, repeats=1)
    lanes = [
        lane
        for server in servers
        for lane in server_lanes(ServerClient(server.address, "", lambda: False).describe())
    ]
    place.chips.set_setup(dataclasses.replace(place.chips.setup, lanes=tuple(lanes)))
    place.head.load_panel.open()
    desk.qtbot.keyClicks(place.head.load_panel.numbers, ",16")
    place.head.load_panel.numbers.setText("1,2")
    return place


def test_a_load_becomes_curves_a_table_and_files(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        place = with_servers(desk, drafting, plain)
        panel, work, page = place.head.load_panel, place.works.load, place.outcome.load_page
        measured(desk, place)
        desk.until(place.head.export.isEnabled)
        panel.start.click()
        assert not place.head.export.isEnabled()  # what is shown now has no report yet
        assert desk.session.activity is Activity.LENT
        assert place.outcome.currentWidget() is page and not place.strip.pause.isVisible()
        desk.until(lambda: work.stage is Stage.ENDED and work.may_start)
    assert place.head.export.isEnabled()
    report = work.report
    assert report is not None and report.complete and report.levels == (1, 2)
    assert work.curves is not None and work.curves.table() == load_curves(report).table()
    assert page.view.curves is work.curves
    assert page.table.rows == load_cells(report)[1] and len(page.table.rows) == 4
    assert "drafting pays" in place.strip.text and "2 slots" in page.left_out
    place.exports.choose = lambda _window, name, _pattern: str(tmp_path / name)
    for action in exports_of(place):
        action.trigger()
    desk.until(lambda: not place.exports.saving)
    assert BurstReport.from_json((tmp_path / "load.json").read_bytes()) == report
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == [
        "chart.png", "load.csv", "load.html", "load.json", "load.md"
    ]  # fmt: skip
    place.strip.back.click()
    assert place.outcome.currentWidget() is place.outcome.lanes
    panel.last.click()
    assert place.outcome.currentWidget() is page
    desk.until_ready()


def test_without_a_server_the_load_says_where_to_add_one(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    panel = place.head.load_panel
    panel.open()
    assert not panel.start.isEnabled()
    assert "Add a running server to the lanes" in panel.amount.text()
    with pytest.raises(SettingError, match="Only servers"):
        panel.plan()


def test_the_panel_says_how_much_a_load_sends(windows: Windows) -> None:
    desk = windows.open()
    with ExitStack() as stack:
        place = with_servers(desk, stack.enter_context(serving(llama_server(*PLAIN, types="none"))))
    panel = place.head.load_panel
    panel.open()
    assert panel.amount.text() == "1 server lane × 2 loads × 1 repeat: 6 requests"
    panel.numbers.setText("1,1000")
    panel.open()
    assert not panel.start.isEnabled() and "Allowed: 1 to 256" in panel.amount.text()


def test_the_panel_measures_a_rate_and_limits(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "_RATE_SECONDS", 0.1)
    desk = windows.open()
    with serving(llama_server(*PLAIN, types="none")) as server:
        place = with_servers(desk, server)
        panel, work = place.head.load_panel, place.works.load
        panel.kind.setCurrentText("Requests per second")
        assert panel.numbers.text() == "0.5,1,2" and panel.start.isEnabled()
        panel.numbers.setText("0.1,100")
        desk.qtbot.keyClicks(panel.limits["first_token"], "soon")
        desk.until(lambda: not panel.start.isEnabled())
        assert "Allowed: first_token and inter_token with seconds" in panel.amount.text()
        panel.limits["first_token"].clear()
        desk.qtbot.keyClicks(panel.limits["first_token"], "60")
        desk.until(panel.start.isEnabled)
        assert panel.amount.text().startswith("1 server lane × 2 loads × 1 repeat: 20 requests")
        panel.numbers.setText("90")
        experiment, load = panel.plan()
        assert load == LoadPlan(rates=(90.0,), limits=Limits(60.0)) and len(experiment.lanes) == 1
        panel.numbers.setText("95")
        panel.start.click()
        desk.until(lambda: work.stage is Stage.ENDED and work.may_start)
    (line,) = place.outcome.load_page.table.rows
    assert line[1] == "95/s" and line[-1].endswith("100\N{NO-BREAK SPACE}%")
    assert "Goodput counts requests with the first token within" in place.outcome.load_page.left_out
    desk.until_ready()


def test_the_context_that_a_server_told_limits_the_depth(windows: Windows) -> None:
    desk = windows.open()
    props = Answer({**PROPS, "default_generation_settings": {"n_ctx": 100}})
    with serving(llama_server(*PLAIN, types="none", props=props)) as server:
        place = with_servers(desk, server)
        place.chips.servers.ask(server.address)
        desk.until(lambda: place.chips.servers.known(server.address).info is not None)
    depth = place.head.depth_panel
    depth.numbers.setText("0,98")
    with pytest.raises(SettingError, match="the context has room for 100,"):
        depth.plan()
    depth.numbers.setText("0,64")
    assert depth.plan()[1] == (0, 64)


def test_a_load_is_cancelled_and_keeps_its_bursts(windows: Windows) -> None:
    desk = windows.open()
    asked: list[Asked] = []

    def complete(request: Asked) -> Answer:
        if not request.body.get("stream"):
            return Answer({"generation_settings": {"speculative.types": "none"}})
        asked.append(request)
        return Answer(pieces=map(event, PLAIN))

    with serving(llama_server(types="none") | {"/completion": complete}) as server:
        place = with_servers(desk, server)
        place.head.prompts_panel.amount.field("repeats").set_value(100)
        place.head.prompts_panel.amount.changed.emit()
        work = place.works.load
        place.head.load_panel.start.click()
        desk.until(lambda: work.report is not None and len(work.report.bursts) >= 2)
        assert place.strip.bar.value() >= 5, "a burst of 200 is 5 of 1,000"
        place.strip.cancel.click()
        desk.until(lambda: work.may_start)
    assert work.report is not None and not work.report.complete
    assert f"{len(work.report.bursts):,} of 200 bursts: " in place.strip.text
    desk.until_ready()


def test_a_server_that_is_gone_is_said_and_the_engine_comes_back(windows: Windows) -> None:
    desk = windows.open()
    with serving(llama_server(*PLAIN, types="none")) as server:
        place = with_servers(desk, server)
    place.head.load_panel.start.click()
    desk.until(place.notice.isVisible)
    desk.until(lambda: place.works.load.may_start)
    assert place.strip.text == "Nothing was measured."
    desk.until_ready()
