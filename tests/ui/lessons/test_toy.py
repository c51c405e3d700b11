"""The toy: bars that mouse and keyboard drag, and the picture that follows them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.base.paths import find_paths
from app.ui.lessons.toy import BLOCK, TWO, BarSlider, LawToy
from app.ui.theme import Theme
from app.ui.theme.style import Styler
from tests.ui.named import words_in


@pytest.fixture
def toy(qtbot: QtBot, theme: Theme) -> LawToy:
    theme.set_motion("less")
    made = LawToy(theme)
    qtbot.addWidget(made)
    made.resize(1100, 700)
    made.show()
    return made


def bar(toy: LawToy, name: str) -> BarSlider:
    return next(bar for bar in toy.bars if bar.accessibleName() == name)


def sums(toy: LawToy) -> tuple[float, float]:
    content = toy.card.content
    assert content is not None and content.law is not None
    return sum(share.p for share in content.law.shares), sum(share.q for share in content.law.shares)


def test_bars_are_dragged_by_mouse_and_keys_and_the_others_give_way(toy: LawToy) -> None:
    first = bar(toy, "q of A")
    QTest.mouseClick(first, Qt.MouseButton.LeftButton, pos=QPoint(first.width() // 2, 5))
    assert first.value() == 50 and bar(toy, "q of B").value() == 43 and sums(toy) == pytest.approx((1, 1))
    before = toy.card.content
    QTest.keyClick(first, Qt.Key.Key_Right)
    assert first.value() == 51 and toy.card.content != before and sums(toy) == pytest.approx((1, 1))
    for _ in range(12):
        QTest.keyClick(first, Qt.Key.Key_PageUp)
    assert (first.value(), bar(toy, "q of B").value()) == (100, 0) and sums(toy) == pytest.approx((1, 1))
    spoken = QAccessible.queryAccessibleInterface(first)
    assert spoken.role() is QAccessible.Role.Slider and spoken.valueInterface().currentValue() == 100


def test_two_letters_show_what_a_block_gains(toy: LawToy) -> None:
    toy.kind.set_choice(TWO)
    toy.kind.picked.emit(TWO)
    assert "Accepted letters per draft: 1.111 letter by letter, 1.222 as a block." in words_in(toy)
    content = toy.card.content
    assert content is not None and [each.token for each in content.bars] == ["AA", "AB", "BA", "BB"]
    assert [words for _fate, words in content.legend] == ["accepted = 0.444", "not covered", "rejected"]
    letters = content.law
    toy.rule.set_choice(BLOCK)
    toy.rule.picked.emit(BLOCK)
    assert toy.card.content is not None and toy.card.content.law != letters
    toy.card.draws.click()
    assert toy.card.draws.tally is not None and toy.card.draws.tally.total == 1000


def test_a_click_leaves_the_button_its_large_letters(qtbot: QtBot, qapp: QApplication, theme: Theme) -> None:
    theme.set_motion("less")
    styler = Styler(qapp, theme, find_paths().icons)
    styler.apply()
    toy = LawToy(theme)
    qtbot.addWidget(toy)
    toy.resize(1100, 700)
    toy.show()
    toy.activateWindow()
    bar(toy, "q of A").setFocus()
    qapp.processEvents()
    button = toy.card.draws
    before = button.font().pointSizeF()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert button.text() == "Draw again" and button.property("ring") is False
    assert button.font().pointSizeF() == before
    theme.changed.disconnect(styler.apply)
    styler.deleteLater()
    qapp.setStyleSheet("")


def test_escape_leaves_it(toy: LawToy, qtbot: QtBot) -> None:
    with qtbot.waitSignal(toy.left):
        QTest.keyClick(bar(toy, "p of A"), Qt.Key.Key_Escape)
