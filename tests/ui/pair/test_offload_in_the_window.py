"""Offload in the whole window: real engines, and real workers on loopback."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QPoint, Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QWidget

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET
from app.engine.devices import offload
from app.engine.devices.memory import CPU, Device, ModelMemory, PairMemory
from app.engine.devices.placement import LighterPair
from app.engine.process.messages import (
    DevicesListed,
    Failed,
    Lighten,
    Lightened,
    ListDevices,
    Load,
    Measure,
    Measured,
    Offer,
)
from app.engine.types import ModelInfo, ModelOptions, Role
from app.hub.library.shelf import Shelf
from app.ui.pair.memory_view import EXPECTED, ONE_FITS, SAVES, TAKEN
from app.ui.pair.model_panel import ModelPanel
from app.ui.pair.placement import BY_HAND
from app.ui.state.engine_session import Activity
from app.ui.widgets.field import NumberBox
from app.ui.widgets.notice import WayOut
from app.ui.widgets.segmented import Segmented
from tests.files.tiny import Tiny
from tests.quiet import stays
from tests.ui.homes import Homes, loaded
from tests.ui.named import named
from tests.ui.windows import Desk, Windows
from tests.workers import Worker, worker

LAYERS = 7  # six blocks and the output layer


@pytest.fixture
def six(tiny_file: Callable[[Tiny], Path]) -> ModelOptions:
    return ModelOptions(str(tiny_file(Tiny(name="six", n_layers=6, n_heads=2, n_ctx=512))))


@pytest.fixture
def near(tiny_file: Callable[[Tiny], Path]) -> ModelOptions:
    return ModelOptions(str(tiny_file(Tiny(name="near", n_ctx=512, noise=0.15, noise_seed=7))))


@pytest.fixture
def two() -> Iterator[tuple[Worker, Worker]]:
    """Two workers, requested before the windows so that they end after them: a worker that ends takes the
    engine with it."""
    with worker() as first, worker() as second:
        yield first, second


def words(widget: QWidget) -> str:
    QCoreApplication.processEvents()
    found = [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]
    return "\n".join(found).replace("\N{NO-BREAK SPACE}", " ")


def click(desk: Desk, place: QWidget, text: str) -> None:
    QCoreApplication.processEvents()
    found = next(
        button for button in place.findChildren(QPushButton) if button.text() == text and button.isVisible()
    )
    assert found.isEnabled(), text
    desk.qtbot.mouseClick(found, Qt.MouseButton.LeftButton)


def open_panel(desk: Desk, role: str) -> ModelPanel:
    chip = desk.header.target if role == "target" else desk.header.draft
    desk.qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    panel = desk.header.target_panel if role == "target" else desk.header.draft_panel
    assert panel.isVisible()
    return panel


def choose_recent(desk: Desk, panel: ModelPanel, path: str) -> None:
    QCoreApplication.processEvents()
    button = next(
        button
        for button in panel.findChildren(QPushButton)
        if button.toolTip() == path and button.isVisible()
    )
    desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def add_worker(desk: Desk, panel: ModelPanel, endpoint: str) -> None:
    if not panel.form.devices_fold.button.isChecked():
        panel.form.devices_fold.button.click()
    address = named(panel, "Address of a worker, as host:port", QLineEdit)
    desk.qtbot.keyClicks(address, endpoint)
    desk.qtbot.keyClick(address, Qt.Key.Key_Return)


def add_workers(desk: Desk, panel: ModelPanel, two: tuple[Worker, Worker]) -> None:
    for number, started in enumerate(two):
        add_worker(desk, panel, started.endpoint)
        desk.until(lambda number=number: f"RPC{number}" in panel.form.placement.chosen)  # type: ignore[misc]


def until_measured(desk: Desk, panel: ModelPanel) -> None:
    desk.until(lambda: EXPECTED in words(panel.memory) and "free" in words(panel.memory))


def apply(desk: Desk, panel: ModelPanel) -> None:
    desk.qtbot.mouseClick(named(desk.window, "Apply", QPushButton), Qt.MouseButton.LeftButton)
    assert desk.session.activity is Activity.LOADING
    desk.until(lambda: desk.session.activity is not Activity.LOADING)


def layers(info: ModelInfo) -> dict[str, int]:
    return {memory.device: memory.layers for memory in info.memory if memory.layers}


def shown_layers(panel: ModelPanel, role: str) -> dict[str, int]:
    """Device -> layers, as the memory table has them."""
    memory = panel.memory.memory
    assert memory is not None
    model = memory.target if role == "target" else memory.draft
    assert model is not None
    lines = words(panel.memory).split("\n")
    for share in model.memory:
        if share.layers:
            assert str(share.layers) in lines
    return {memory.device: memory.layers for memory in model.memory if memory.layers}


# ------------------------------------------------------------------------------------ on the CPU alone


def test_without_devices_there_is_one_line_and_one_bar(windows: Windows) -> None:
    desk = windows.open()
    panel = open_panel(desk, "target")
    desk.until(lambda: TAKEN in words(panel.memory))
    assert "All layers are on the CPU" in words(panel.form)
    assert not panel.form.layers.isVisible() and not panel.form.placement.isVisible()
    assert words(panel.memory).count("Main memory") == 1
    pair = desk.session.pair
    assert pair is not None
    assert shown_layers(panel, "target") == layers(pair.target) == {"CPU": 3}


def test_what_would_be_taken_is_told_before_loading(windows: Windows) -> None:
    desk = windows.open()
    panel = open_panel(desk, "target")
    desk.until(lambda: TAKEN in words(panel.memory))
    box = panel.form.field("ctx_size").control  # type: ignore[attr-defined]
    assert isinstance(box, NumberBox)
    box.lineEdit().selectAll()
    desk.qtbot.keyClicks(box.lineEdit(), "16000000")
    desk.until(lambda: "too much" in words(panel.memory))
    assert "Lower ctx_size" in words(panel.memory)
    box.lineEdit().selectAll()
    desk.qtbot.keyClicks(box.lineEdit(), "x")
    desk.until(lambda: "all settings are valid" in words(panel.memory))
    box.lineEdit().selectAll()
    desk.qtbot.keyClicks(box.lineEdit(), "0")
    desk.until(lambda: TAKEN in words(panel.memory))


def test_apply_keeps_its_place_whatever_comes_below_it(windows: Windows) -> None:
    desk = windows.open()
    panel = open_panel(desk, "target")
    apply_button = next(button for button in panel.head.findChildren(QPushButton) if button.text() == "Apply")

    def place() -> QPoint:
        QCoreApplication.processEvents()
        return apply_button.mapToGlobal(QPoint(0, 0))

    before = place()
    desk.until(lambda: TAKEN in words(panel.memory))
    assert place() == before, "the memory came"
    panel.form.more_fold.button.click()
    assert place() == before, "the settings unfolded"
    panel.tell("It failed.", "Try another one.", WayOut("Try", list))
    assert place() == before, "an error came"


def test_numbers_of_one_pair_are_never_shown_beside_the_name_of_another(
    windows: Windows, six: ModelOptions
) -> None:
    desk = windows.open(draft=None, strategy="none")
    panel = open_panel(desk, "target")
    desk.until(lambda: TAKEN in words(panel.memory))
    desk.until_laid_out()
    before = panel.memory.height()
    panel.set_recent([six.path])
    choose_recent(desk, panel, six.path)
    shown = re.sub("<[^>]*>", "", words(panel.memory))
    assert "measuring" in shown and not re.search(r"\d", shown)
    assert panel.memory.height() == before, "the table stays where it is"
    desk.until(lambda: EXPECTED in words(panel.memory) and re.search(r"\d", words(panel.memory)))


def test_a_model_being_loaded_is_not_described_by_the_previous_one(
    windows: Windows, six: ModelOptions
) -> None:
    desk = windows.open(draft=None, strategy="none")
    panel = open_panel(desk, "target")
    panel.set_recent([six.path])
    choose_recent(desk, panel, six.path)
    click(desk, panel.head, "Apply")
    assert desk.session.activity is Activity.LOADING
    found = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]  # before any event
    assert Path(six.path).name in found and not any("trained on" in text for text in found)


def test_nothing_is_measured_while_an_answer_is_written(windows: Windows) -> None:
    desk = windows.open(max_tokens=800)
    desk.type("hello")
    desk.until_streaming()
    panel = open_panel(desk, "target")
    desk.until(lambda: "when the engine is free" in words(panel.memory))
    desk.controller.stop()
    desk.until(lambda: TAKEN in words(panel.memory))


# --------------------------------------------------------------------------------------- two workers


def opened_on(
    two: tuple[Worker, Worker], windows: Windows, six: ModelOptions, near: ModelOptions
) -> tuple[Desk, ModelPanel]:
    """A window with both workers, and the target's panel."""
    desk = windows.open("process", target=six, draft=near)
    panel = open_panel(desk, "target")
    add_workers(desk, panel, two)
    return desk, panel


def test_the_split_that_is_set_is_the_split_that_llama_cpp_reports(
    two: tuple[Worker, Worker], windows: Windows, six: ModelOptions, near: ModelOptions
) -> None:
    desk, panel = opened_on(two, windows, six, near)
    until_measured(desk, panel)
    (shares,) = [
        segmented for segmented in panel.form.placement.findChildren(Segmented) if segmented.isVisible()
    ]
    desk.qtbot.keyClick(shares, Qt.Key.Key_Right)
    assert shares.choice() == BY_HAND
    share = next(box for box in panel.form.placement.findChildren(NumberBox) if box.isVisibleTo(panel))
    share.lineEdit().selectAll()
    desk.qtbot.keyClicks(share.lineEdit(), "6")
    desk.until(lambda: shown_layers(panel, "target") == {"RPC0": 6, "RPC1": 1})
    assert EXPECTED in words(panel.memory)
    apply(desk, panel)
    desk.until(lambda: TAKEN in words(panel.memory))
    pair = desk.session.pair
    assert pair is not None
    assert shown_layers(panel, "target") == layers(pair.target) == {"RPC0": 6, "RPC1": 1}
    assert desk.window.status.device.text().endswith("RPC0, RPC1")
    desk.press(Qt.Key.Key_Escape, panel)
    desk.ask("hello")
    assert desk.tokens() == 24

    saved = desk.saved()
    rpc = f"{two[0].endpoint},{two[1].endpoint}"
    assert saved["target"]["rpc"] == saved["draft"]["rpc"] == rpc  # type: ignore[index]
    assert saved["target"]["tensor_split"] == "6,1"  # type: ignore[index]
    assert saved["draft"]["tensor_split"] == ""  # type: ignore[index]
    windows.close(desk)
    again = windows.open("process")
    panel = open_panel(again, "target")
    again.until(lambda: TAKEN in words(panel.memory))
    assert shown_layers(panel, "target") == {"RPC0": 6, "RPC1": 1}


def test_target_and_draft_go_where_each_was_sent(
    two: tuple[Worker, Worker], windows: Windows, six: ModelOptions, near: ModelOptions
) -> None:
    desk, panel = opened_on(two, windows, six, near)
    row = next(row for row in panel.form.placement.rows if row.name == "RPC1")
    row.check.click()
    desk.press(Qt.Key.Key_Escape, panel)
    draft = open_panel(desk, "draft")
    assert "The target's changes are also loaded" in words(draft.head)
    desk.until(lambda: draft.form.layers.isVisible() and draft.form.layers.most == 3)
    draft.form.layers.none.click()
    desk.until(lambda: shown_layers(draft, "draft") == {"CPU": 3})
    apply(desk, draft)
    pair = desk.session.pair
    assert pair is not None and pair.draft is not None
    assert layers(pair.target) == {"RPC0": LAYERS}
    assert layers(pair.draft) == {"CPU": 3}
    assert "changes are also loaded" not in words(draft.head)


def test_fit_for_me_sets_both_models(
    two: tuple[Worker, Worker], windows: Windows, six: ModelOptions, near: ModelOptions
) -> None:
    desk, panel = opened_on(two, windows, six, near)
    desk.header.draft_panel.form.set_layers(0)
    desk.until(lambda: panel.form.layers.most == LAYERS)
    panel.form.layers.none.click()
    desk.until(lambda: shown_layers(panel, "target") == {"CPU": LAYERS})
    click(desk, panel, "Fit for me")
    desk.until(lambda: sum(shown_layers(panel, "target").values()) == LAYERS)
    desk.until(lambda: "CPU" not in shown_layers(panel, "target"))
    assert panel.form.value().n_gpu_layers == -1
    assert desk.header.draft_panel.form.value().n_gpu_layers == -1
    assert panel.form.layers.fit.isEnabled()


def test_a_worker_that_is_not_there_is_told_beside_its_address(windows: Windows) -> None:
    desk = windows.open()
    panel = open_panel(desk, "target")
    desk.until(lambda: TAKEN in words(panel.memory))
    with worker() as gone_worker:
        gone = gone_worker.endpoint
    add_worker(desk, panel, gone)
    desk.until(lambda: "There is no worker" in words(panel.form.workers))
    assert "does not answer" in words(panel.form.workers)
    assert "not measured" in words(panel.memory)
    port = gone.rpartition(":")[2]
    remove = next(
        widget for widget in panel.form.workers.findChildren(QWidget) if widget.toolTip().endswith(f":{port}")
    )
    desk.qtbot.mouseClick(remove, Qt.MouseButton.LeftButton)
    desk.until(lambda: TAKEN in words(panel.memory))
    assert not named(desk.window, "Apply", QPushButton).isEnabled()


def test_a_worker_that_dies_in_mid_answer_can_be_left_out_with_one_button(
    two: tuple[Worker, Worker], windows: Windows, pair_files: tuple[Path, Path]
) -> None:
    rpc = f"{two[0].endpoint},{two[1].endpoint}"
    target = ModelOptions(str(pair_files[0]), rpc=rpc, device="RPC1")
    desk = windows.open("process", target=target, draft=None, strategy="none", max_tokens=900)
    desk.type("go")
    desk.until_streaming()
    desk.page.prompt.set_text("typed meanwhile")
    two[1].process.kill()
    offer = f"Load without the worker at {two[1].endpoint}"
    desk.until(lambda: offer in desk.offers())
    desk.until(lambda: desk.session.activity is Activity.EMPTY)
    assert desk.notes() and two[1].endpoint in desk.notes()[0], "the answer says why it ended"
    assert desk.page.prompt.text() == "typed meanwhile"
    desk.until(lambda: two[1].endpoint in desk.error() and offer in desk.offers())
    panel = open_panel(desk, "target")
    assert offer in [button.text() for button in panel.head.findChildren(QPushButton) if button.isVisible()]
    click(desk, panel.head, offer)
    desk.until_ready()
    pair = desk.session.pair
    assert pair is not None and layers(pair.target) == {CPU: 3}, "the other worker was not chosen"
    assert desk.saved()["target"]["rpc"] == two[0].endpoint  # type: ignore[index]
    assert desk.error() == "" and desk.page.prompt.text() == "typed meanwhile"


# ----------------------------------------------------------------------------------- another way to load


def sent(homes: Homes, kind: type) -> list:
    return [message for message in homes.last.sent if isinstance(message, kind)]


def test_an_offer_is_one_button_and_keeps_symbolic_paths(windows: Windows, homes: Homes) -> None:
    bundled = ModelOptions(BUNDLED_TARGET), ModelOptions(BUNDLED_DRAFT)
    desk = windows.open(ready=False, target=bundled[0], draft=bundled[1])
    desk.until(lambda: homes.made and sent(homes, Load))
    asked = sent(homes, Load)[-1]
    assert isinstance(asked, Load) and not asked.target.path.startswith("bundled:")
    safer = Offer(
        "Load with safe kernels",
        ModelOptions(asked.target.path, repack=False),
        ModelOptions(asked.draft.path, repack=False) if asked.draft else None,
    )
    fault = "The kernels of this build of llama.cpp fault on this machine (signal 11)."
    homes.last.say(Failed(asked.run, fault, "Nothing is lost.", expected=False, gone=True, offer=safer))
    desk.until(desk.error)
    panel = open_panel(desk, "target")
    assert fault in desk.panel_error(panel) and fault in desk.error()
    click(desk, panel.head, "Load with safe kernels")
    desk.until(lambda: sent(homes, Load))
    tried = sent(homes, Load)[-1]
    assert (tried.target, tried.draft) == (safer.target, safer.draft)
    homes.last.say(loaded(tried.run))
    desk.until_ready()
    assert desk.panel_error(panel) == "" and desk.error() == ""
    saved = desk.saved()
    assert saved["target"]["path"] == BUNDLED_TARGET  # type: ignore[index]
    assert saved["target"]["repack"] is False and saved["draft"]["repack"] is False  # type: ignore[index]


def test_an_answer_about_another_pair_is_not_taken(windows: Windows, homes: Homes) -> None:
    desk = windows.open(ready=False)
    desk.until(lambda: homes.made and sent(homes, Load))
    homes.last.say(loaded(sent(homes, Load)[-1].run))
    desk.until_ready()
    panel = open_panel(desk, "target")
    here = Device(CPU, "x", "CPU", "CPU", 1, 2)
    desk.until(lambda: sent(homes, ListDevices))
    listed = (Device("CUDA0", "x", "GPU", "CUDA", 1, 2), here)
    homes.last.say(DevicesListed(sent(homes, ListDevices)[-1].run, listed, ("CPU",)))
    desk.until(lambda: panel.form.layers.isVisible() and sent(homes, Measure))
    unmeasured = Failed(sent(homes, Measure)[-1].run, "There is no telling.")
    homes.last.say(unmeasured)
    desk.until(lambda: "no telling" in words(panel.memory))

    def fit() -> Measure:
        panel.form.layers.fit.click()
        desk.until(lambda: sent(homes, Measure) and sent(homes, Measure)[-1].fit)
        asked = sent(homes, Measure)[-1]
        assert isinstance(asked, Measure)
        return asked

    def answer(asked: Measure, layers: int) -> None:
        model = ModelMemory((), layers, LAYERS)
        target = replace(asked.target, n_gpu_layers=layers)
        homes.last.say(Measured(asked.run, PairMemory(model, None, (here,)), target, None))
        desk.until(panel.form.layers.fit.isEnabled)

    asked = fit()
    desk.header.target_panel.form.set_layers(2)  # meanwhile
    box = panel.form.field("ctx_size").control  # type: ignore[attr-defined]
    box.lineEdit().selectAll()
    desk.qtbot.keyClicks(box.lineEdit(), "1234")
    answer(asked, 5)
    assert panel.form.value().n_gpu_layers == 2
    answer(fit(), 5)
    assert panel.form.value().n_gpu_layers == 5


def test_a_pair_whose_measurement_kills_the_engine_is_not_retried(windows: Windows, homes: Homes) -> None:
    desk = windows.open(ready=False)
    desk.until(lambda: homes.made and sent(homes, Load))
    homes.last.say(loaded(sent(homes, Load)[-1].run))
    desk.until_ready()
    panel = open_panel(desk, "target")
    desk.until(lambda: sent(homes, ListDevices))
    listed = DevicesListed(
        sent(homes, ListDevices)[-1].run, (Device(CPU, "x", "CPU", "CPU", 1, 2),), ("CPU",)
    )
    homes.last.say(listed)
    desk.until(lambda: sent(homes, Measure))
    run = sent(homes, Measure)[-1].run
    homes.last.say(Failed(run, "The engine stopped unexpectedly.", "", expected=False, gone=True))
    desk.until(lambda: len(homes.made) == 2 and sent(homes, Load))
    homes.last.say(loaded(sent(homes, Load)[-1].run))
    desk.until_ready()
    desk.until(lambda: "stopped unexpectedly" in words(panel.memory))
    assert stays(lambda: len(sent(homes, Measure)))
    assert not sent(homes, Measure) and len(homes.made) == 2


def test_a_pair_that_does_not_fit_is_made_to_fit_with_one_button(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = windows.open()
    before = desk.window.settings.now
    panel = open_panel(desk, "target")
    desk.until(lambda: panel.memory.memory is not None)
    assert panel.memory.memory is not None
    room = 4 * sum(usage.total for model in panel.memory.memory.models for usage in model.memory)
    monkeypatch.setattr(offload, "list_devices", lambda _: (Device(CPU, CPU, "CPU", CPU, room, room),))
    set_context(desk, panel, 65_536)
    desk.until(lambda: ONE_FITS in words(panel.memory))
    button = next(button for button in offered(panel) if button.text().startswith("Load with a context of"))
    assert ": saves " in button.text()
    size = int(re.sub(r"\D", "", button.text().partition(" tokens")[0]))
    desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    desk.until(lambda: desk.session.pair is not None and desk.session.pair.target.n_ctx == size)
    assert desk.window.settings.now.target == replace(before.target, ctx_size=size)
    assert desk.window.settings.now.draft == before.draft
    desk.until(lambda: not offered(panel))


def test_a_smaller_draft_of_the_library_is_offered_where_memory_is_short(
    windows: Windows, tiny_file: Callable[[Tiny], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(windows.paths.data / "hub"))
    target, draft, small = (
        str(tiny_file(Tiny(name=name, n_layers=layers, n_embd=128, letters="abcdefgh")))
        for name, layers in (("target", 24), ("draft", 16), ("small", 2))
    )
    Shelf(windows.paths.data).add([Path(small)])
    desk = windows.open(target=ModelOptions(target), draft=ModelOptions(draft), strategy="draft-simple")
    panel = open_panel(desk, "draft")
    desk.until(lambda: panel.memory.memory is not None)
    room = 300_000_000  # the draft's cache of 65,536 tokens takes 540 MB, the small one's 70
    monkeypatch.setattr(offload, "list_devices", lambda _: (Device(CPU, CPU, "CPU", CPU, room, room),))
    set_context(desk, panel, 65_536)
    text = f"Load with {Path(small).name} as the draft"
    desk.until(lambda: any(button.text().startswith(text) for button in offered(panel)))
    next(button for button in offered(panel) if button.text().startswith(text)).click()
    desk.until(lambda: desk.session.pair is not None and desk.session.pair.draft is not None)
    desk.until(lambda: desk.session.pair.draft.path == small)
    now = desk.window.settings.now
    assert now.draft is not None and (now.draft.path, now.target.path) == (small, target)


def test_without_the_draft_the_strategy_needs_none(windows: Windows, homes: Homes) -> None:
    bundled: dict[str, Any] = {"target": ModelOptions(BUNDLED_TARGET), "draft": ModelOptions(BUNDLED_DRAFT)}
    desk = windows.open(ready=False, strategy="suffix+draft-simple", **bundled)
    desk.until(lambda: homes.made and sent(homes, Load))
    load = sent(homes, Load)[-1]
    homes.last.say(Failed(load.run, "There is no room.", role=Role.TARGET, no_room=True))
    desk.until(lambda: desk.session.activity is Activity.EMPTY)
    panel = open_panel(desk, "target")
    here = Device(CPU, "x", "CPU", "CPU", 5, 9)
    desk.until(lambda: sent(homes, ListDevices))
    homes.last.say(DevicesListed(sent(homes, ListDevices)[-1].run, (here,), ("CPU",)))
    desk.until(lambda: sent(homes, Measure))
    asked = sent(homes, Measure)[-1]
    small = PairMemory(ModelMemory((), 0, 1), ModelMemory((), 0, 1), (here,))
    homes.last.say(Measured(asked.run, small, asked.target, asked.draft))
    desk.until(lambda: sent(homes, Lighten))
    # The library's answer comes during the search, which does not know it.
    desk.until(lambda: desk.window.library_drafts.suiting(sent(homes, Lighten)[0].target.path))
    homes.last.say(Lightened(sent(homes, Lighten)[-1].run, ()))
    desk.until(lambda: len(sent(homes, Lighten)) == 2)
    lighten = sent(homes, Lighten)[-1]
    homes.last.say(Lightened(lighten.run, (LighterPair("no draft", lighten.target, None, 2_000_000),)))
    desk.until(lambda: offered(panel))
    assert SAVES in words(panel.memory)
    click(desk, panel.memory, "Load with no draft: saves 2.00\N{NO-BREAK SPACE}MB")
    desk.until(lambda: len(sent(homes, Load)) == 2)
    assert sent(homes, Load)[-1].draft is None
    assert desk.window.settings.now.strategy == "suffix"
    assert desk.window.settings.now.target == bundled["target"]


def test_a_search_that_kills_the_engine_is_not_repeated(windows: Windows, homes: Homes) -> None:
    desk = windows.open(ready=False)
    desk.until(lambda: homes.made and sent(homes, Load))
    refused = sent(homes, Load)[-1]
    homes.last.say(Failed(refused.run, "There is no room.", role=Role.TARGET, no_room=True))
    desk.until(lambda: desk.session.activity is Activity.EMPTY)
    panel = open_panel(desk, "target")
    here = Device(CPU, "x", "CPU", "CPU", 5, 9)

    def measure() -> None:
        desk.until(lambda: sent(homes, ListDevices))
        homes.last.say(DevicesListed(sent(homes, ListDevices)[-1].run, (here,), ("CPU",)))
        desk.until(lambda: sent(homes, Measure))
        asked = sent(homes, Measure)[-1]
        small = PairMemory(ModelMemory((), 0, 1), ModelMemory((), 0, 1), (here,))
        homes.last.say(Measured(asked.run, small, asked.target, asked.draft))

    measure()
    desk.until(lambda: sent(homes, Lighten))
    run = sent(homes, Lighten)[-1].run
    homes.last.say(Failed(run, "The engine stopped.", "", expected=False, gone=True))
    panel.opened.emit()
    desk.until(lambda: len(homes.made) == 2)
    measure()
    desk.until(lambda: EXPECTED in words(panel.memory))
    assert not sent(homes, Lighten) and len(homes.made) == 2


def set_context(desk: Desk, panel: ModelPanel, size: int) -> None:
    box = panel.form.field("ctx_size").control  # type: ignore[attr-defined]
    box.lineEdit().selectAll()
    desk.qtbot.keyClicks(box.lineEdit(), str(size))
    desk.qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)


def offered(panel: ModelPanel) -> list[QPushButton]:
    buttons = panel.memory.lighter.findChildren(QPushButton)
    return [button for button in buttons if button.isVisible()]
