"""Quantisations in Compare: files are made after their size was said, and each gets a lane."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.hub.library.model import FileOrigin
from tests.ui.compare.measuring import opened
from tests.ui.windows import Windows


def test_files_are_made_and_become_lanes(windows: Windows) -> None:
    desk = windows.open()
    desk.window.go("models")
    desk.until(lambda: desk.place("models") is not None)
    library = desk.place("models").session.library
    place = opened(desk)
    panel, lanes_panel = place.chips.quants, place.head.lanes_panel

    def press(button: object) -> None:
        desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    press(place.head.lanes)
    press(lanes_panel.add_quants)
    desk.until(lambda: not panel.at_work)
    boxes = [box for box in panel.boxes if box.isVisible()]
    assert [box.isChecked() for box in boxes] == [True] * 4 + [False], "the others have no room for lanes"
    assert boxes[0].text().endswith(", as it is")
    assert "Writes Q4_0 " in panel.amount.text() and " free)" in panel.amount.text()
    boxes[4].click()
    assert "Choose 2 to 4 files." in panel.amount.text() and not panel.start.isEnabled()
    for box in boxes[1:3]:
        box.click()
    press(panel.start)
    assert panel.start.text() == "Cancel"
    place.run()
    press(panel.start)
    assert place.notice.message.startswith("Quantisations are still being made.")
    desk.until(lambda: not panel.at_work)
    assert "Stopped." in panel.amount.text()
    left = [path for path in windows.paths.quantised.rglob("*") if path.is_file()]
    assert all(path.suffix == ".gguf" for path in left), "whole files where the click came late"
    boxes[4].click()
    press(panel.start)
    desk.until(lambda: not panel.at_work)
    lanes = place.chips.setup.lanes
    assert [lane.name.split()[0] for lane in lanes] == [boxes[0].text().split(",")[0], "Q8_0"]
    strategy = desk.window.settings.now.strategy
    assert {lane.strategy for lane in lanes} == {strategy}
    assert [lane.strategy for lane in place.chips.lanes] == ["none", strategy, "none", strategy]
    assert len(place.outcome.stage.lanes.cards) == 4 and place.head.lanes.text_shown(1000)[0] == "4"
    desk.window.go("models")
    desk.until(lambda: any(model.origin is FileOrigin.MADE for model in library.models))
