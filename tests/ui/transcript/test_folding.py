"""The text being read keeps its place; the end is followed only from the end."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
from app.ui.transcript.layout.stack import Token
from app.ui.widgets.icons import IconButton
from tests.ui.named import named
from tests.ui.traces import make_round, make_trace, simulate
from tests.ui.transcript.places import add, last, position, turn

PROSE = (
    "Some paragraphs are so long that they take several lines in the column, and how many is not known"
    " before they are laid out. " * 3 + "\n\nOthers are short.\n"
)


def numbered(count: int) -> str:
    return "".join(f"[{number}] {PROSE}" for number in range(count))


@pytest.fixture
def chat(view: TranscriptView) -> TranscriptView:
    view.set_turns([UserTurn(numbered(3)), AnswerTurn(AnswerModel(simulate(numbered(80), rate=0.7)), "m")])
    return view


def seen(view: TranscriptView) -> dict[tuple[int, int], int]:
    """The visible blocks and their tops."""
    top = view.scroller.top
    found = {}
    for index, item in view.stack.visible(top, top + view.viewport().height()):
        for row in range(len(item.blocks)):
            y = view.stack.block_top(index, row) - top
            if 0 <= y < view.viewport().height():
                found[index, row] = y
    return found


def test_a_stored_chat_opens_at_its_end(chat: TranscriptView) -> None:
    bar = chat.verticalScrollBar()
    assert bar.value() == bar.maximum() > 5000
    last = chat.stack.items[-1]
    assert (1, len(last.blocks) - 1) in seen(chat) or last.blocks[-1].text == ""


def test_scrolling_up_moves_the_text_by_exactly_so_much(chat: TranscriptView) -> None:
    """Heights of paragraphs above are only estimated before; that must not show."""
    bar = chat.verticalScrollBar()
    for _ in range(60):
        before = seen(chat)
        bar.setValue(bar.value() - 97)
        after = seen(chat)
        moved = {after[key] - before[key] for key in before.keys() & after.keys()}
        assert moved == {97}


def test_the_whole_way_up_and_down_again(chat: TranscriptView) -> None:
    bar = chat.verticalScrollBar()
    while bar.value() > 0:
        bar.setValue(bar.value() - 400)
    assert (0, 0) in seen(chat)
    while bar.value() < bar.maximum():
        bar.setValue(bar.value() + 400)
    assert bar.value() == chat.stack.height - chat.viewport().height()


def test_home_and_end(qtbot: QtBot, chat: TranscriptView) -> None:
    bar = chat.verticalScrollBar()
    qtbot.keyClick(chat, Qt.Key.Key_Home)
    assert bar.value() == 0
    qtbot.keyClick(chat, Qt.Key.Key_End)
    assert bar.value() == bar.maximum() > 0
    qtbot.keyClick(chat, Qt.Key.Key_PageUp)
    assert bar.maximum() - bar.value() == chat.viewport().height() - 40


def test_a_wheel_turn_scrolls(chat: TranscriptView) -> None:
    before = chat.verticalScrollBar().value()
    at = QPointF(200, 200)
    event = QWheelEvent(
        at, chat.viewport().mapToGlobal(at), QPoint(), QPoint(0, 120),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(chat.viewport(), event)
    assert chat.verticalScrollBar().value() < before


def test_another_width_keeps_the_place(chat: TranscriptView) -> None:
    bar = chat.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    first = min(seen(chat), key=lambda key: seen(chat)[key])
    for width in (500, 900, 320, 900):
        chat.resize(width, 600)
        top = chat.scroller.top
        index = chat.stack.index_at(top)
        item = chat.stack.items[index]
        row = item.block_at(top - chat.stack.top(index))
        assert abs(row - first[1]) <= 2


def test_hiding_drafts_keeps_the_place(chat: TranscriptView) -> None:
    bar = chat.verticalScrollBar()
    bar.setValue(bar.maximum() // 3)
    first = min(seen(chat))
    chat.set_drafts_shown(False)
    assert abs(min(seen(chat))[1] - first[1]) <= 1


def begin(view: TranscriptView) -> list:
    trace = simulate(numbered(60), seed=9)
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    last(view).begin(trace.header)
    return trace.rounds


def test_the_end_is_followed(chat: TranscriptView) -> None:
    rounds = begin(chat)
    bar = chat.verticalScrollBar()
    for start in range(0, 300, 10):
        add(chat, rounds[start : start + 10])
        assert bar.value() == bar.maximum() == chat.stack.height - chat.viewport().height()


def test_who_scrolled_up_is_left_in_peace(qtbot: QtBot, chat: TranscriptView) -> None:
    rounds = begin(chat)
    add(chat, rounds[:60])
    bar = chat.verticalScrollBar()
    bar.setValue(bar.value() - 120)
    before = seen(chat)
    button = named(chat, "Go to the end", IconButton)
    add(chat, rounds[60:200])
    after = seen(chat)
    assert {after[key] - before[key] for key in before.keys() & after.keys()} == {0}
    assert bar.value() < bar.maximum() - 500
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert bar.value() == bar.maximum()
    assert not button.isVisible()
    add(chat, rounds[200:260])
    assert bar.value() == bar.maximum()


def test_scrolling_back_to_the_end_follows_again(chat: TranscriptView) -> None:
    rounds = begin(chat)
    add(chat, rounds[:100])
    bar = chat.verticalScrollBar()
    bar.setValue(bar.value() - 200)
    bar.setValue(bar.maximum())
    add(chat, rounds[100:200])
    assert bar.value() == bar.maximum()


def test_the_screen_is_laid_out_and_little_more(chat: TranscriptView) -> None:
    blocks = chat.stack.items[-1].blocks
    assert 5 < sum(block.laid_out for block in blocks) < 60 < len(blocks)


def test_far_places_can_be_reached_at_once(chat: TranscriptView) -> None:
    chat.find("[40]")
    where = position(chat, "[40]")
    assert 0 <= chat.stack.block_top(where.item, where.block) - chat.scroller.top < 600
    assert sum(block.laid_out for block in chat.stack.items[-1].blocks) < 120


def test_larger_type_keeps_the_place_and_widens_the_column(chat: TranscriptView, theme: Theme) -> None:
    chat.resize(1800, 600)
    before = chat.column[1]
    bar = chat.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    first = min(seen(chat))
    theme.set_scale(1.5)
    assert chat.column[1] == pytest.approx(before * 1.5, rel=0.05)
    assert abs(min(seen(chat))[1] - first[1]) <= 2


def test_a_short_chat_has_nothing_to_scroll(view: TranscriptView) -> None:
    view.set_turns([UserTurn("Hi")])
    assert view.verticalScrollBar().maximum() == 0
    assert not view.verticalScrollBar().isEnabled()


def test_a_paragraph_of_any_length_opens_and_scrolls(view: TranscriptView) -> None:
    """Paragraphs that share a line are laid out one after another: not one inside another."""
    words = "word " * 40_000
    rounds = [make_round(index, ["word "] * 4, "word ") for index in range(8_000)]
    for turns in ([UserTurn(words)], [AnswerTurn(AnswerModel(make_trace(rounds)), "m")]):
        view.set_turns(turns)
        bar = view.verticalScrollBar()
        assert bar.value() == bar.maximum() > 5000
        laid_out = [block for block in view.stack.items[0].blocks if block.laid_out]
        assert len(laid_out) < 100, "only what is seen, and what shares its lines"
        bar.setValue(bar.maximum() // 2)
        view.resize(view.width() - 50, 600)
        view.select_all()
        assert view.selection.text() == words
    view.show_round(turn(view, "a"), 7_990)
    assert view.hover.token is not None and view.hover.token.span.round == 7_990


def test_a_framed_round_is_in_sight_whatever_the_size(chat: TranscriptView) -> None:
    item = chat.stack.answer(1)
    assert item is not None
    for index in (0, len(item.answer.rounds) // 2, len(item.answer.rounds) - 1):
        chat.frame_round(item.turn, index)
        for size in ((700, 500), (900, 150), (500, 700)):
            chat.resize(*size)
            span = item.spans.first_of_round(index, True)
            assert span is not None
            rect = chat.to_viewport(chat.stack.token_rects(Token(1, span))[0])
            assert chat.viewport().rect().contains(rect.center().toPoint())
    assert chat.hover.token is None, "nothing is pointed at"
