"""The view Drafts in the whole window: drafts are judged, kept, used and compared."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QFileDialog, QLabel, QTableWidget
from pytestqt.qtbot import QtBot

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, find_paths
from app.engine.types import ModelOptions, Sampling
from app.lab.drafts import DraftScore
from app.ui.models.drafts_page import DraftsPage
from app.ui.models.drafts_table import DraftLine, DraftsTable
from app.ui.state.engine_session import Activity
from app.ui.theme import Theme
from tests.files.noisy import noisy_copy
from tests.files.tiny import Tiny
from tests.quiet import stays
from tests.ui.models.test_place import open_models
from tests.ui.named import named
from tests.ui.windows import Desk, Windows

pytestmark = pytest.mark.usefixtures("hub_home")
TABLE = "Drafts, fastest predicted first; press Enter to use one in the chat"


class Trials:
    """The view in a window, and what its user does and reads there."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.desk = desk
        self._patch = monkeypatch
        place = open_models(desk)
        place.show_view("Drafts")
        self.session = place.session
        self.page: DraftsPage = place.drafts
        self.table: QTableWidget = self.page.table
        assert self.table.accessibleName() == TABLE

    def button(self, words: str) -> QAbstractButton:
        return next(button for button in self.page.findChildren(QAbstractButton) if button.text() == words)

    def click(self, words: str) -> None:
        button = self.button(words)
        assert button.isVisible() and button.isEnabled(), words
        self.desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def add(self, files: Sequence[Path]) -> None:
        """Choose files by hand."""
        names = [str(file) for file in files]
        self._patch.setattr(QFileDialog, "getOpenFileNames", lambda *_: (names, ""))
        self.click("Add drafts…")

    def measure(self) -> None:
        self.begin()
        self.until_over()

    def begin(self) -> None:
        self.desk.until(self.button("Measure").isEnabled)
        self.click("Measure")
        assert self.desk.session.activity is Activity.LENT

    def until_over(self) -> None:
        self.desk.until(lambda: not self.button("Cancel").isVisible(), timeout=300_000)
        self.desk.until_ready()

    def rows(self) -> list[list[str]]:
        """The texts of the rows, without the button."""
        return [
            [self.table.item(row, column).text() for column in range(self.table.columnCount() - 1)]
            for row in range(self.table.rowCount())
        ]

    def row(self, name: str) -> list[str]:
        return next(row for row in self.rows() if name in row[0])

    def top_of_the_table(self) -> int:
        """Its distance from the page's top in pixels, once the layout is settled."""
        self.desk.until_laid_out()
        return self.table.mapTo(self.page, QPoint()).y()

    @property
    def words(self) -> str:
        """The line above the table."""
        return self.page.strip.text


@pytest.fixture
def near(tiny_file: Callable[[Tiny], Path], tmp_path: Path) -> list[Path]:
    """Two drafts for the tiny target: a bad one, and the target itself under another name."""
    sources = {
        "bad.gguf": tiny_file(Tiny(name="target", n_ctx=1024, noise=0.6, noise_seed=3)),
        "same.gguf": tiny_file(Tiny(name="target", n_ctx=1024)),
    }
    for name, source in sources.items():
        shutil.copy(source, tmp_path / name)
    return [tmp_path / name for name in sources]


def test_large_text_leaves_the_button_of_every_draft_in_sight(qtbot: QtBot, styled: Theme) -> None:
    styled.set_scale(1.6)
    score = DraftScore("a.gguf", 144_000_000, 0.27, "", 900, 0.68, 0.58, 0.73, 0.7, 0.31, 4, 1.32, 1.22, 1.42)
    table = DraftsTable(styled)
    qtbot.addWidget(table)
    for width, words in ((896, "Use"), (1500, "Use this draft")):
        table.resize(width, 300)
        table.show()
        table.set_rows([DraftLine("/a.gguf", "SmolLM2-135M-Instruct Q4_0", score)])
        button = table.cellWidget(0, table.columnCount() - 1)
        assert isinstance(button, QAbstractButton) and button.text() == words
        QApplication.processEvents()  # the table places its buttons later
        assert button.width() > button.fontMetrics().horizontalAdvance(words)
        assert table.horizontalScrollBar().maximum() == 0
        assert table.viewport().rect().contains(button.geometry())


@pytest.mark.timeout(600)  # a busy machine takes minutes for three drafts of the bundled pair
@pytest.mark.verify
def test_noisy_drafts_of_the_bundled_pair_are_ordered_and_shown_again(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = Path(find_paths().model(BUNDLED_DRAFT))
    noisy = [noisy_copy(source, tmp_path / f"noise-{noise}.gguf", noise) for noise in (60, 25)]
    desk = windows.open(target=ModelOptions(BUNDLED_TARGET), draft=ModelOptions(BUNDLED_DRAFT))
    trials = Trials(desk, monkeypatch)
    desk.until(trials.rows)
    trials.add(noisy)
    assert trials.words == "Nothing has been measured for this target."
    assert trials.row("noise-60")[3:] == ["–"] * 5
    trials.measure()
    alphas = {row[0]: float(row[3].split()[0]) for row in trials.rows()}
    assert len(alphas) == 3
    assert alphas["noise-60.gguf"] < alphas["noise-25.gguf"] < max(alphas.values())
    factors = [float(row[7].split("×")[0]) for row in trials.rows()]
    assert factors == sorted(factors, reverse=True)
    assert "Measured 2" in trials.words and "What the bundled pair can do" in trials.words
    said, rows = trials.words, trials.rows()
    assert desk.session.pair is not None and desk.session.pair.draft is not None
    windows.close(desk)
    again = Trials(windows.open(), monkeypatch)
    again.desk.until(lambda: again.rows() == rows)
    assert again.words == said


def test_a_file_that_cannot_be_judged_says_why_and_the_others_go_on(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, near: list[Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(near[0].read_bytes()[:9000])
    desk = windows.open()
    trials = Trials(desk, monkeypatch)
    trials.add([broken, *near])
    trials.measure()
    assert "damaged" in trials.rows()[-1][3] and trials.rows()[-1][0] == "broken.gguf"
    assert trials.row("same.gguf")[3].startswith("1.00") and trials.row("same.gguf")[4] == "100.0\xa0%"
    assert "×" in trials.row("bad.gguf")[7]


def test_cancelling_gives_the_chat_its_models_back_at_once(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, near: list[Path]
) -> None:
    desk = windows.open()
    trials = Trials(desk, monkeypatch)
    trials.add(near)
    desk.until(trials.button("Measure").isEnabled)
    top = trials.top_of_the_table()
    trials.begin()
    assert desk.session.pair is None
    cancel = trials.button("Cancel")
    cancel.setFocus()
    desk.until(lambda: re.search(r"answers prompt ([2-9]|1\d)", trials.words))  # a fast machine skips some
    assert desk.window.focusWidget() is cancel
    assert trials.top_of_the_table() == top, "the line above it changes in place"
    desk.press(Qt.Key.Key_Space, cancel)
    assert trials.words == "Stopping…"
    trials.until_over()
    assert desk.session.pair is not None
    assert trials.words == "Nothing has been measured for this target."
    assert trials.top_of_the_table() == top
    assert trials.row("same.gguf")[3:] == ["–"] * 5


def test_what_was_judged_before_a_cancel_stays(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, near: list[Path], tmp_path: Path
) -> None:
    desk = windows.open()
    trials = Trials(desk, monkeypatch)
    more = [tmp_path / f"more-{number}.gguf" for number in range(12)]
    for copy in more:
        shutil.copy(near[0], copy)
    trials.add([*near, *more])
    trials.begin()
    desk.until(lambda: any("×" in row[7] for row in trials.rows()), timeout=120_000)
    assert trials.row("more-11")[3] == "waiting"
    trials.click("Cancel")
    trials.until_over()
    assert "Measured" in trials.words
    assert trials.row("more-11")[3] == "–"
    judged = [row for row in trials.rows() if "×" in row[7]]
    assert judged == trials.rows()[: len(judged)] and judged


def test_a_draft_is_used_by_its_button_and_by_enter(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, near: list[Path]
) -> None:
    desk = windows.open()
    trials = Trials(desk, monkeypatch)
    trials.add(near)
    button = named(trials.page, "Use bad.gguf as the draft", QAbstractButton)
    desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    desk.until_ready()
    assert desk.page.isVisible()
    draft = desk.window.settings.now.draft
    assert draft is not None and draft.path == str(near[0])
    desk.window.go("models")
    place = next(row for row, cells in enumerate(trials.rows()) if cells[0] == "same.gguf")
    trials.table.setFocus()
    trials.table.selectRow(place)
    desk.press(Qt.Key.Key_Return, trials.table)
    desk.until_ready()
    draft = desk.window.settings.now.draft
    assert draft is not None and draft.path == str(near[1])


def test_the_best_are_set_up_as_lanes_of_compare(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, near: list[Path]
) -> None:
    desk = windows.open(sampling=Sampling(temperature=0.7, seed=5))
    trials = Trials(desk, monkeypatch)
    trials.add(near)
    assert not trials.button("Compare these").isEnabled()
    trials.measure()
    assert "drafts drawn (sample=1)" in trials.words
    best = [row[0] for row in trials.rows() if "×" in row[7]][:3]
    trials.click("Compare these")
    compare = desk.place("compare")
    assert compare.isVisible()
    lanes = compare.chips.setup.lanes
    assert [lane.label for lane in lanes] == best
    for lane in lanes:
        assert lane.strategy.startswith("draft-simple:n_max=") and lane.strategy.endswith(":sample=1")
        assert lane.pair.target.path == str(windows.pair[0])
    drafts = {Path(lane.pair.draft.path).name for lane in lanes}
    assert {"same.gguf", "bad.gguf"} <= drafts
    assert compare.chips.setup.options.sampling.temperature == 0.7
    assert [lane.name for lane in compare.chips.experiment().lanes] == ["none", *best]


def test_results_are_copied_and_exported(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, near: list[Path], tmp_path: Path
) -> None:
    desk = windows.open()
    trials = Trials(desk, monkeypatch)
    trials.add(near)
    assert not trials.button("Export").isEnabled()
    trials.measure()
    menu = {action.text(): action for action in trials.page.export_menu.actions()}
    menu["Copy the table"].trigger()
    lines = QGuiApplication.clipboard().text().split("\n")
    assert [line.split("\t") for line in lines[1:]] == trials.rows()
    assert lines[0].split("\t")[0] == "draft"
    trials.table.selectRow(1)
    desk.qtbot.keyClick(trials.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().split("\n")[1:] == ["\t".join(trials.rows()[1])]
    files = {".json": tmp_path / "out.json", ".csv": tmp_path / "out.csv"}
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda _w, _t, name, _p: (str(files[Path(name).suffix]), "")
    )
    menu["Save all as JSON…"].trigger()
    menu["Save table as CSV…"].trigger()
    report = json.loads(files[".json"].read_text())
    table = list(csv.DictReader(files[".csv"].read_text().splitlines()))
    assert [draft["file"] for draft in report["drafts"]] == [row["file"] for row in table]
    assert float(table[0]["alpha"]) == report["drafts"][0]["alpha"]


def test_nothing_is_measured_while_the_chat_is_answered(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = windows.open(max_tokens=900)
    desk.type("Hello")
    desk.until_streaming()
    desk.session.set_pace(held=True)  # Models may take longer to open than the answer takes
    trials = Trials(desk, monkeypatch)
    desk.until(trials.button("Measure").isEnabled)
    trials.click("Measure")
    assert "still running in Chat" in trials.page.notice.message
    assert desk.busy()
    desk.session.set_pace(held=False)
    desk.controller.stop()
    desk.until_ready()


def test_results_that_cannot_be_saved_are_shown_all_the_same(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, near: list[Path]
) -> None:
    desk = windows.open()
    (desk.paths.data / "drafts").write_bytes(b"a file where the folder should be")
    trials = Trials(desk, monkeypatch)
    trials.add(near)
    trials.measure()
    assert "cannot be used" in trials.page.notice.message
    assert "×" in trials.row("same.gguf")[7]


def test_a_target_without_drafts_says_what_to_do(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = windows.open(draft=None)  # the tiny target, which is not in the library
    trials = Trials(desk, monkeypatch)
    target = named(trials.page, "Target", QComboBox)
    desk.until(lambda: target.count() == 3)  # the bundled pair, and the chat's target
    assert target.currentData() == str(windows.pair[0])
    desk.until(lambda: "No draft for this target yet" in trials.page.placeholder.text)
    assert not trials.button("Measure").isEnabled() and not trials.rows()
    remarks = "2 other files can draft only through text"
    assert any(remarks in label.text() for label in trials.page.findChildren(QLabel))
    target.setCurrentIndex(target.findData(find_paths().model(BUNDLED_TARGET)))
    desk.until(lambda: len(trials.rows()) == 1)
    assert trials.button("Measure").isEnabled()


def test_the_library_and_the_drafts_ask_for_drafts_of_different_targets(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = windows.open(draft=None)
    place = open_models(desk)
    place.show_view("Library")
    place.library.show_model(Path(find_paths().model(BUNDLED_TARGET)))
    details = place.library.details
    desk.until(lambda: not details.reading and details.candidates)
    before = details.candidates
    trials = Trials(desk, monkeypatch)
    desk.until(lambda: "No draft" in trials.page.placeholder.text)
    place.show_view("Library")
    assert stays(lambda: details.candidates) and details.candidates == before
    desk.until(details.best.isEnabled)
    desk.qtbot.mouseClick(details.best, Qt.MouseButton.LeftButton)
    desk.until(lambda: len(trials.rows()) == 1)
    assert named(trials.page, "Target", QComboBox).currentText() == "demo 30M"
