"""Chips and the popovers that open from them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QShortcut
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot
from shiboken6 import delete, isValid

from app.engine.compat import FitKind, VocabularyFit
from app.engine.types import ModelOptions
from app.ui.theme import Theme
from app.ui.widgets.chip import Chip, ChipRow, chip_widths
from app.ui.widgets.popover import MARGIN, SHADOW
from app.ui.widgets.words import file_size, fit_words
from tests.ui.windows import Windows


class Bench(QMainWindow):
    """A window with two chips, a button beside them, and a panel behind the first chip."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        central = QWidget()
        self.setCentralWidget(central)
        layout = QVBoxLayout(central)
        head = QHBoxLayout()
        layout.addLayout(head)
        layout.addStretch()
        self.content = QWidget()
        self.chip = Chip(theme, "target", self.content, 300)
        self.chip.set_text("demo 32M", "Q8_0")
        self.other = Chip(theme, "strategy", QWidget(), mono=True)
        self.other.set_text("draft-simple:n_max=4")
        self.beside = QPushButton("Beside")
        inner = QVBoxLayout(self.content)
        self.line = QLineEdit()
        self.combo = QComboBox()
        self.combo.addItems(["one", "two"])
        self.button = QPushButton("Apply")
        for part in (self.line, self.combo, self.button):
            inner.addWidget(part)
        self.popover = self.chip.popover
        for widget in (self.chip, self.other, self.beside):
            head.addWidget(widget)
        head.addStretch()
        self.resize(800, 500)

    def card(self) -> QRect:
        return self.popover.geometry().adjusted(SHADOW, SHADOW, -SHADOW, -SHADOW)


@pytest.fixture
def bench(qtbot: QtBot, theme: Theme) -> Bench:
    made = Bench(theme)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitExposed(made)
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    return made


def scroll(bench: Bench) -> QScrollArea:
    area = bench.popover.findChild(QScrollArea)
    assert isinstance(area, QScrollArea)
    return area


def click(qtbot: QtBot, widget: QWidget) -> None:
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)


def test_a_chip_opens_its_panel_below_itself_and_closes_it(qtbot: QtBot, bench: Bench) -> None:
    click(qtbot, bench.chip)
    assert bench.popover.isVisible()
    assert bench.popover.window() is bench  # a child, not a window of its own
    assert bench.chip.isChecked()
    bottom = bench.chip.mapTo(bench, QPoint(0, bench.chip.height())).y()
    assert bench.card().top() == bottom + MARGIN
    assert bench.card().left() == bench.chip.mapTo(bench, QPoint()).x()
    assert bench.line.hasFocus()
    with qtbot.waitSignal(bench.popover.closed):
        click(qtbot, bench.chip)
    assert not bench.popover.isVisible()
    assert not bench.chip.isChecked()


def test_the_keyboard_opens_walks_round_and_closes(qtbot: QtBot, bench: Bench) -> None:
    bench.chip.setFocus()
    qtbot.keyClick(bench.chip, Qt.Key.Key_Space)
    assert bench.line.hasFocus()
    order = [bench.line, bench.combo, bench.button, bench.line]
    for here, there in pairwise(order):
        qtbot.keyClick(here, Qt.Key.Key_Tab)
        assert there.hasFocus()
    qtbot.keyClick(bench.line, Qt.Key.Key_Backtab)
    assert bench.button.hasFocus()
    qtbot.keyClick(bench.button, Qt.Key.Key_Escape)
    assert not bench.popover.isVisible()
    assert bench.chip.hasFocus()


def test_escape_closes_the_panel_before_it_means_anything_else(qtbot: QtBot, bench: Bench) -> None:
    stopped: list[bool] = []
    shortcut = QShortcut(Qt.Key.Key_Escape, bench)
    shortcut.activated.connect(lambda: stopped.append(True))
    click(qtbot, bench.chip)
    qtbot.keyClick(bench.line, Qt.Key.Key_Escape)
    assert not bench.popover.isVisible()
    assert stopped == []
    qtbot.keyClick(bench, Qt.Key.Key_Escape)
    assert stopped == [True]


def test_it_closes_when_its_control_is_gone(qtbot: QtBot, bench: Bench) -> None:
    click(qtbot, bench.chip)
    bench.chip.hide()
    assert not bench.popover.isVisible() and not bench.chip.hasFocus()


def test_minimising_the_window_leaves_it_open(qtbot: QtBot, bench: Bench) -> None:
    click(qtbot, bench.chip)
    bench.showMinimized()
    bench.showNormal()
    qtbot.waitUntil(lambda: not bench.isMinimized())
    assert bench.popover.isVisible()


def test_a_click_elsewhere_closes_it_and_still_counts(qtbot: QtBot, bench: Bench) -> None:
    clicked: list[bool] = []
    bench.beside.clicked.connect(lambda: clicked.append(True))
    click(qtbot, bench.chip)
    click(qtbot, bench.beside)
    assert not bench.popover.isVisible()
    assert clicked == [True]
    click(qtbot, bench.chip)
    qtbot.mouseClick(bench, Qt.MouseButton.LeftButton, pos=QPoint(780, 480))
    assert not bench.popover.isVisible()


def test_a_click_inside_keeps_it_open(qtbot: QtBot, bench: Bench) -> None:
    click(qtbot, bench.chip)
    click(qtbot, bench.button)
    qtbot.mouseClick(bench.content, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert bench.popover.isVisible()


def test_a_list_that_it_opened_keeps_it_open(qtbot: QtBot, bench: Bench) -> None:
    click(qtbot, bench.chip)
    bench.combo.showPopup()
    view = bench.combo.view()
    rect = view.visualRect(view.model().index(1, 0))
    qtbot.mouseMove(view.viewport(), rect.center())
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    assert bench.popover.isVisible()
    bench.combo.hidePopup()


def test_it_stays_inside_the_window(qtbot: QtBot, bench: Bench) -> None:
    tall = QLabel("tall")
    tall.setMinimumHeight(2000)
    layout = bench.content.layout()
    assert layout is not None
    layout.addWidget(tall)
    click(qtbot, bench.chip)
    qtbot.waitUntil(lambda: bench.card().bottom() > 400)
    qtbot.waitUntil(scroll(bench).verticalScrollBar().isVisible)
    assert bench.rect().contains(bench.card())
    bench.resize(320, 300)
    qtbot.waitUntil(lambda: bench.rect().contains(bench.card()))


def test_it_grows_with_its_contents(qtbot: QtBot, bench: Bench) -> None:
    click(qtbot, bench.chip)
    before = bench.card().height()
    more = QLabel("more")
    more.setMinimumHeight(100)
    layout = bench.content.layout()
    assert layout is not None
    layout.addWidget(more)
    qtbot.waitUntil(lambda: bench.card().height() >= before + 100)
    # A bar that came while it grew would take width, make lines wrap and so be needed for good.
    policy = scroll(bench).verticalScrollBarPolicy()
    assert policy == Qt.ScrollBarPolicy.ScrollBarAlwaysOff


def test_a_chip_at_the_edge_opens_inside(qtbot: QtBot, theme: Theme, bench: Bench) -> None:
    bench.popover.open_below(bench.beside)
    bench.resize(400, 400)
    qtbot.waitUntil(lambda: bench.rect().contains(bench.card()))


def test_hiding_the_window_does_not_close_the_panel(qtbot: QtBot, bench: Bench) -> None:
    click(qtbot, bench.chip)
    with qtbot.assertNotEmitted(bench.popover.closed):
        bench.hide()
        bench.show()
    assert bench.popover.isVisible()
    click(qtbot, bench.beside)
    assert not bench.popover.isVisible()  # it still hears clicks


def test_a_chip_says_all_of_it(qtbot: QtBot, bench: Bench) -> None:
    assert bench.chip.accessibleName() == "target demo 32M Q8_0"
    assert bench.chip.toolTip() == "target demo 32M Q8_0"
    assert bench.chip.focusPolicy() & Qt.FocusPolicy.TabFocus
    bench.chip.set_text("demo 32M", "Q8_0", "Q8_0 · demo.gguf · /data/of mine · 32 MB")
    assert bench.chip.accessibleName() == "target demo 32M Q8_0 · demo.gguf · 32 MB"
    assert "/data/of mine" in bench.chip.toolTip()


def test_the_detail_gives_way_before_the_value(qtbot: QtBot, bench: Bench) -> None:
    chip = bench.chip
    wide = chip.sizeHint().width()
    assert chip.text_shown(wide) == ("demo 32M", "Q8_0")
    assert chip.text_shown(wide - 10) == ("demo 32M", "")
    narrow = chip.minimumSizeHint().width()
    assert narrow < wide
    assert chip.text_shown(narrow) == ("demo 32M", "")
    chip.set_text("temperature 0.8")
    value, detail = chip.text_shown(narrow)
    assert "…" in value and value.endswith("0.8")  # the number is what differs
    assert detail == ""


def test_a_very_long_value_is_cut_but_told(qtbot: QtBot, theme: Theme) -> None:
    chip = Chip(theme, "strategy", QWidget(), mono=True)
    qtbot.addWidget(chip)
    spec = "prompt-lookup:max_ngram_size=5:num_pred_tokens=16+draft-simple:n_max=16:p_min=0.75"
    chip.set_text(spec)
    assert chip.sizeHint().width() < 450
    assert spec in chip.toolTip()


def test_a_chip_names_how_models_fit_and_tells_what_differs(qtbot: QtBot, theme: Theme) -> None:
    chip = Chip(theme, "draft", QWidget())
    qtbot.addWidget(chip)
    for kind in FitKind:
        fit = str(VocabularyFit(kind, "" if kind is FitKind.SAME else "token 5 is another"))
        chip.set_text("demo 1.3M", fit_words(fit), fit)
        assert chip.text_shown(chip.sizeHint().width()) == ("demo 1.3M", kind)
        assert chip.toolTip() == chip.accessibleName() == f"draft demo 1.3M {fit}"


def test_a_chip_looks_different_alerted_focused_and_in_the_dark(
    qtbot: QtBot, theme: Theme, bench: Bench
) -> None:
    images = [bench.other.grab().toImage()]
    bench.other.set_alert(True)
    images.append(bench.other.grab().toImage())
    bench.other.setFocus()
    images.append(bench.other.grab().toImage())
    theme.set_mode("dark")
    images.append(bench.other.grab().toImage())
    assert all(a != b for i, a in enumerate(images) for b in images[:i])


def test_larger_text_makes_a_larger_chip(qtbot: QtBot, theme: Theme, bench: Bench) -> None:
    before = bench.chip.sizeHint()
    theme.set_scale(1.5)
    after = bench.chip.sizeHint()
    assert after.width() > before.width() * 1.3
    assert after.height() > before.height() * 1.2


WIDTHS = [(300, 200, 150, 100), (280, 180, 140, 90), (200, 150, 100, 80), (150, 150, 120, 110)]


def test_details_go_first_then_captions_then_names_are_cut() -> None:
    assert chip_widths(WIDTHS, 2000) == [300, 280, 200, 150]
    assert chip_widths(WIDTHS, 929) == [200, 280, 200, 150]
    assert chip_widths(WIDTHS, 680) == [200, 180, 150, 150]
    assert chip_widths(WIDTHS, 640) == [150, 180, 150, 150]
    assert chip_widths(WIDTHS, 500) == [145, 135, 100, 120]
    assert chip_widths(WIDTHS, 380) == [100, 90, 80, 110]
    assert chip_widths(WIDTHS, 190) == [50, 45, 40, 55]


@given(
    st.lists(
        st.tuples(*[st.integers(20, 400)] * 4).map(lambda sizes: tuple(sorted(sizes, reverse=True))),
        min_size=4,
        max_size=4,
    ),
    st.integers(0, 2000),
)
def test_no_more_room_is_taken_than_there_is(widths: list[tuple[int, int, int, int]], room: int) -> None:
    given_widths = chip_widths(widths, room)
    assert sum(given_widths) <= room
    if room >= sum(sizes[3] for sizes in widths):
        assert all(sizes[3] <= width <= sizes[0] for sizes, width in zip(widths, given_widths, strict=True))


def test_a_long_value_is_whole_if_no_other_needs_the_room(qtbot: QtBot, theme: Theme) -> None:
    row = ChipRow(theme)
    qtbot.addWidget(row)
    row.chips = tuple(Chip(theme, "strategy", QWidget(), mono=True) for _ in range(4))
    for chip in row.chips:
        row.row.addWidget(chip)
        chip.set_text("none")
    long = "ngram-map-k4v:size_n=8:size_m=16+draft-simple:n_max=8:p_min=0.5"
    row.chips[2].set_text(long)
    row.resize(1600, 60)
    row.show()
    row.restyle()
    assert row.chips[2].text_shown(row.chips[2].width()) == (long, "")
    row.resize(sum(chip.widths()[0] for chip in row.chips) + row.width() - row.room(), 60)
    assert row.chips[2].text_shown(row.chips[2].width())[0] != long
    assert [chip.width() for chip in row.chips] == [chip.widths()[0] for chip in row.chips]


def test_a_row_gives_its_chips_what_its_buttons_leave(qtbot: QtBot, theme: Theme) -> None:
    row = ChipRow(theme)
    qtbot.addWidget(row)
    button = QPushButton("A button with a lot of words")
    row.chips = tuple(Chip(theme, f"caption {at}", QWidget()) for at in range(4))
    row.others = (button,)
    for part in (*row.chips, button):
        row.row.addWidget(part)
    for chip in row.chips:
        chip.set_text("a value", "and a detail of some length")
    row.resize(2000, 60)
    row.show()
    row.restyle()
    assert [chip.width() for chip in row.chips] == [chip.widths()[0] for chip in row.chips]
    room = row.room()
    button.hide()
    assert row.room() == room + button.sizeHint().width() + 8
    button.show()
    row.resize(700, 60)
    row.fit()
    assert sum(chip.minimumWidth() for chip in row.chips) <= row.room()
    assert row.minimumSizeHint().width() == 0


def test_the_draft_is_dimmed_where_the_strategy_uses_none(windows: Windows) -> None:
    desk = windows.open(strategy="draft-simple")
    lit = desk.header.draft.grab().toImage()
    assert "does not use a draft model" not in desk.header.draft.toolTip()
    desk.window.settings.change(strategy="suffix")
    assert "suffix, does not use a draft model" in desk.header.draft.toolTip()
    assert desk.header.draft.grab().toImage() != lit
    desk.window.settings.change(strategy="suffix+draft-simple")
    assert "does not use a draft model" not in desk.header.draft.toolTip()


def test_a_pair_of_one_name_is_told_apart(windows: Windows, pair_files: tuple[Path, Path]) -> None:
    target, _draft = pair_files
    repository = windows.paths.config / "models--owner--tiny-GGUF" / "snapshots" / "a1"
    repository.mkdir(parents=True)
    other = repository / "other.gguf"
    other.write_bytes(target.read_bytes())
    desk = windows.open(draft=ModelOptions(str(other)), strategy="none")
    target_words, draft_words = desk.header.target.toolTip(), desk.header.draft.toolTip()
    assert target.name in target_words
    assert f"other.gguf · owner/tiny-GGUF · {file_size(other.stat().st_size)}" in draft_words
    assert desk.header.target.text_shown(1000)[0] != desk.header.draft.text_shown(1000)[0]


def test_chips_never_overlap_not_even_before_the_next_layout(qtbot: QtBot, theme: Theme) -> None:
    row = ChipRow(theme)
    qtbot.addWidget(row)
    row.chips = tuple(Chip(theme, f"caption {at}", QWidget()) for at in range(4))
    for chip in row.chips:
        chip.set_text("a value", "and a detail of some length")
        row.row.addWidget(chip)
    row.resize(1600, 60)
    row.show()
    qtbot.waitExposed(row)
    for width in (700, 1500, 640, 1100):
        row.resize(width, 60)  # what is painted at once
        for left, right in pairwise(row.chips):
            assert left.geometry().right() < right.geometry().left(), width


def test_a_name_is_cut_before_the_words_target_and_draft_go(qtbot: QtBot, theme: Theme) -> None:
    row = ChipRow(theme)
    qtbot.addWidget(row)
    row.chips = tuple(
        Chip(theme, name, QWidget(), caption_stays=at < 2) for at, name in enumerate(("target", "draft"))
    )
    row.chips += tuple(Chip(theme, f"caption {at}", QWidget()) for at in range(2))
    for chip in row.chips:
        row.row.addWidget(chip)
        chip.set_text("SmolLM2-135M-Instruct", "Q4_1")
    row.resize(sum(chip.widths()[2] for chip in row.chips) - 20, 60)
    row.show()
    row.restyle()
    target, draft, *others = row.chips
    assert "…" in target.text_shown(target.width())[0]
    assert target.width() + draft.width() < 2 * target.widths()[1], "their words are beside the names"
    assert all(chip.width() <= chip.widths()[2] for chip in others), "these have only their values"
    assert target.widths()[3] > others[0].widths()[3], "however narrow"


def test_a_panel_goes_with_its_chip(bench: Bench, qtbot: QtBot) -> None:
    bench.chip.click()
    assert bench.popover.isVisible()
    delete(bench.chip)
    qtbot.waitUntil(lambda: not isValid(bench.popover))
    qtbot.mouseClick(bench.beside, Qt.MouseButton.LeftButton)


def test_a_panel_follows_a_chip_that_is_laid_out_again(bench: Bench, qtbot: QtBot) -> None:
    click(qtbot, bench.chip)
    before = bench.card().top()
    bench.chip.move(bench.chip.x(), bench.chip.y() + 30)  # as if the row were wrapped
    assert bench.card().top() == before + 30
