"""The answer that the numbers are about, and its rounds pointed at in the transcript and in the plots."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from tests.ui.windows import Desk, Windows


def test_choosing_a_round_in_a_plot_shows_its_tokens_and_back(windows: Windows) -> None:
    desk = windows.open()
    item = desk.ask("hello")
    desk.page.instruments.acceptance.canvas.clicked.emit(2)
    token = desk.page.transcript.hover.token
    assert token is not None and token.span.round == 2
    desk.page.transcript.token_clicked.emit(item.turn, 1, 0)
    assert item.answer.pinned_at == 1 and desk.page.instruments.table.shown is item.answer.rounds[1]
    token = desk.page.transcript.first_token_seen()
    desk.page.transcript.show_token(token)
    QTest.keyClick(desk.page.transcript, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    token = desk.page.transcript.hover.token
    desk.page.transcript.token_clicked.emit(item.turn, token.span.round, 0)
    assert desk.page.transcript.hover.token == token, "a click keeps the card of its token"
    item.answer.point(3)
    assert desk.page.instruments.table.shown is item.answer.rounds[3]


def test_the_numbers_follow_the_answer_that_was_clicked(windows: Windows) -> None:
    desk = windows.open()
    first = desk.ask("one")
    rounds = len(first.answer.rounds)
    desk.ask("two, and more than one")
    desk.page.transcript.token_clicked.emit(first.turn, 0, 0)
    assert desk.page.instruments.answer.statistics.rounds == rounds
    assert desk.trace is not None and len(desk.trace.rounds) == rounds


def test_an_older_answer_is_looked_at_while_another_one_comes(slow: Callable[..., Desk]) -> None:
    desk = slow()
    desk.type("first")
    desk.until_streaming(5)
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    first = desk.answers()[0]
    desk.type("second")
    desk.until_streaming(5)
    numbers = desk.page.instruments
    desk.page.transcript.token_clicked.emit(first.turn, 0, 0)
    seen = len(desk.answers()[1].answer.rounds)
    desk.until(lambda: len(desk.answers()[1].answer.rounds) > seen + 5)
    assert numbers.answer.statistics.rounds == len(first.answer.rounds), "those of the clicked answer"
    desk.page.transcript.token_clicked.emit(desk.answers()[1].turn, 0, 0)
    assert numbers.answer.statistics.rounds == len(desk.answers()[1].answer.rounds)
    desk.page.transcript.token_clicked.emit(first.turn, 0, 0)
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    assert numbers.answer.statistics.rounds == len(first.answer.rounds)
    assert numbers.answer.totals is not None and numbers.answer.totals.text == first.text
