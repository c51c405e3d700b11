"""Chips and the popovers that open from them."""

from __future__ import annotations

from itertools import pairwise

import pytest
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

from app.engine.compat import FitKind, VocabularyFit
from app.ui.theme import Theme
from app.ui.widgets.chip import Chip
from app.ui.widgets.popover import MARGIN, SHADOW, Popover
from app.ui.widgets.words import fit_words


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
        self.chip = Chip(theme, "target")
        self.chip.set_text("demo 32M", "Q8_0")
        self.other = Chip(theme, "strategy", mono=True)
        self.other.set_text("draft-simple:n_max=4")
        self.beside = QPushButton("Beside")
        self.content = QWidget()
        inner = QVBoxLayout(self.content)
        self.line = QLineEdit()
        self.combo = QComboBox()
        self.combo.addItems(["one", "two"])
        self.button = QPushButton("Apply")
        for part in (self.line, self.combo, self.button):
            inner.addWidget(part)
        self.popover = Popover(theme, self.content, 300)
        self.chip.set_popover(self.popover)
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


def test_the_detail_gives_way_before_the_value(qtbot: QtBot, bench: Bench) -> None:
    chip = bench.chip
    wide = chip.sizeHint().width()
    assert chip.text_shown(wide) == ("demo 32M", "Q8_0")
    assert chip.text_shown(wide - 10) == ("demo 32M", "")
    narrow = chip.minimumSizeHint().width()
    assert narrow < wide
    assert chip.text_shown(narrow) == ("demo 32M", "")
    value, detail = chip.text_shown(narrow - 20)
    assert value.endswith("…")
    assert detail == ""


def test_a_very_long_value_is_cut_but_told(qtbot: QtBot, theme: Theme) -> None:
    chip = Chip(theme, "strategy", mono=True)
    qtbot.addWidget(chip)
    spec = "prompt-lookup:max_ngram_size=5:num_pred_tokens=16+draft-simple:n_max=16:p_min=0.75"
    chip.set_text(spec)
    assert chip.sizeHint().width() < 450
    assert spec in chip.toolTip()


def test_a_chip_names_how_models_fit_and_tells_what_differs(qtbot: QtBot, theme: Theme) -> None:
    chip = Chip(theme, "draft")
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


def test_a_chip_without_a_panel_does_not_stay_down(qtbot: QtBot, bench: Bench) -> None:
    click(qtbot, bench.other)
    assert not bench.other.isChecked()


def test_larger_text_makes_a_larger_chip(qtbot: QtBot, theme: Theme, bench: Bench) -> None:
    before = bench.chip.sizeHint()
    theme.set_scale(1.5)
    after = bench.chip.sizeHint()
    assert after.width() > before.width() * 1.3
    assert after.height() > before.height() * 1.2
