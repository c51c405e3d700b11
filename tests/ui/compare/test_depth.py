"""Depth in the window, over real engines."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from app.lab.depths import depth_curves, depth_rows
from app.lab.experiment import Lane
from app.lab.report.report import Report, depths_of
from app.ui.compare.place import ComparePlace
from app.ui.state.lab_work import Stage
from tests.ui.compare.measuring import exports_of, opened, reopened
from tests.ui.windows import Desk, Windows


def typed(desk: Desk, field: QLineEdit, text: str) -> None:
    field.selectAll()
    desk.qtbot.keyClicks(field, text)
    desk.press(Qt.Key.Key_Return, field)


def begun(desk: Desk, place: ComparePlace, depths: str) -> None:
    panel = place.head.depth_panel
    typed(desk, panel.numbers, depths)
    panel.start.click()
    assert place.outcome.currentWidget() is place.outcome.depth_page


def test_depths_become_curves_a_table_and_files(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    place = opened(desk, repeats=1)
    place.chips.set_setup(dataclasses.replace(place.chips.setup, lanes=(Lane("prompt-lookup"),)))
    begun(desk, place, "0,64")
    work = place.works.depth
    desk.until(lambda: work.stage is Stage.ENDED and work.may_start)
    report, page = work.report, place.outcome.depth_page
    assert report is not None and report.complete
    assert depths_of(report.prompts) == (0, 64)
    assert page.view.curves == depth_curves(report)
    assert page.table.rows == list(depth_rows(report)) and len(page.table.rows) == 4
    assert "depth" in place.strip.text
    assert place.chips.setup.own == "abcabcabc", "the set-up has no depths"
    place.exports.choose = lambda _window, name, _pattern: str(tmp_path / name)
    for action in exports_of(place):
        action.trigger()
    desk.until(lambda: not place.exports.saving)
    assert Report.from_json((tmp_path / "comparison.json").read_bytes()).by_depth == report.by_depth
    assert "Against the length of the context" in (tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    place.strip.back.click()
    assert place.outcome.currentWidget() is place.outcome.lanes
    place.head.depth_panel.last.click()
    assert place.outcome.currentWidget() is page
    desk.until_ready()


def test_a_depth_that_does_not_fit_is_refused_while_it_is_typed(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    desk.until_ready()
    panel = place.head.depth_panel
    desk.qtbot.mouseClick(place.head.depths, Qt.MouseButton.LeftButton)
    assert panel.start.isEnabled() and panel.numbers.text().startswith("0,")
    assert " depths × 2 repeats = " in panel.amount.text()
    typed(desk, panel.numbers, "0,1000k")
    assert not panel.start.isEnabled()
    assert "1,024,000 tokens does not fit: the context has room for" in panel.amount.text()
    typed(desk, panel.numbers, "0,many")
    assert not panel.start.isEnabled() and "such as 0,1k,4k" in panel.amount.text()
    typed(desk, panel.numbers, "0,32")
    assert panel.start.isEnabled()


def test_depths_that_were_broken_off_go_on_in_the_next_window(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=64, repeats=20)
    begun(desk, place, "0,32,64")
    desk.until(lambda: place.works.depth.done >= 3)
    assert "depth " in place.strip.text
    desk, again = reopened(windows, desk)
    assert ", 3 depths. " in again.earlier.text
    before = dict(again.earlier.offered.journal.records)
    again.earlier.accept.click()
    assert again.outcome.currentWidget() is again.outcome.depth_page
    desk.until(lambda: again.works.depth.done > len(before))
    assert all(again.works.depth.records[job].seconds == record.seconds for job, record in before.items())
    assert [prompt.depth for prompt in again.chips.setup.prompts] == [None]
    again.strip.cancel.click()
    desk.until(lambda: again.works.depth.may_start)
    desk.until_ready()
    assert not again.chips.changed_since(again.works.depth.experiment, of_lanes=True)
