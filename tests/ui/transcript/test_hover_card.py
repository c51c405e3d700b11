"""Pointing at tokens, by mouse and by keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
from app.ui.transcript.hover_card import HoverCard
from tests.ui.traces import drawing, make_round, make_trace, simulate
from tests.ui.transcript.places import centre, last, point, token, turn

ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture
def chat(view: TranscriptView) -> TranscriptView:
    view.set_turns([UserTurn("Rewrite mean."), AnswerTurn(AnswerModel(drawing()), "demo 32M")])
    view.repaint()
    return view


def card(view: TranscriptView) -> HoverCard:
    return view.hover.card


def move(qtbot: QtBot, view: TranscriptView, to: QPoint) -> None:
    qtbot.mouseMove(view.viewport(), to + QPoint(1, 0))
    qtbot.mouseMove(view.viewport(), to)


def test_the_card_comes_after_a_moment_and_says_what_is_known(qtbot: QtBot, chat) -> None:
    move(qtbot, chat, centre(chat, token(chat, " arithmetic", "resampled")))
    assert card(chat).facts is None
    qtbot.waitUntil(lambda: card(chat).facts is not None)
    assert card(chat).facts.token == "·arithmetic"
    assert "arithmetic" in card(chat).accessibleDescription()
    # From then on it follows at once.
    move(qtbot, chat, centre(chat, token(chat, " average", "rejected")))
    assert card(chat).facts.token == "·average"
    move(qtbot, chat, point(chat, "Rewrite", "u"))
    assert card(chat).facts is None


def test_the_card_lies_beside_the_token_not_on_it(qtbot: QtBot, chat) -> None:
    for text, fate in ((" arithmetic", "resampled"), ("def", "bonus"), (" not", "bonus")):
        wanted = token(chat, text, fate)
        chat.show_token(wanted)
        rect = chat.to_viewport(chat.stack.token_rects(wanted)[0]).toRect()
        shown = card(chat).geometry().adjusted(18, 18, -18, -18)
        assert not shown.intersects(rect)
        assert QRect(QPoint(0, 0), chat.viewport().size()).contains(shown)


@pytest.mark.parametrize("height", [120, 330])
def test_a_card_without_room_below_is_whole_and_beside_its_token(qtbot: QtBot, chat, height) -> None:
    around = QWidget()
    qtbot.addWidget(around)
    around.resize(800, 600)
    chat.setParent(around)
    chat.setGeometry(0, 100, 800, height)
    around.show()
    chat.show()
    for text, fate in ((" arithmetic", "resampled"), (" not", "bonus")):
        wanted = token(chat, text, fate)
        chat.show_token(wanted)
        room = card(chat).parentWidget()
        rect = chat.to_viewport(chat.stack.token_rects(wanted)[0]).toRect()
        rect.translate(chat.viewport().mapTo(room, QPoint(0, 0)))
        shown = card(chat).geometry().adjusted(18, 18, -18, -18)
        assert not shown.intersects(rect)
        assert room.rect().contains(shown)
    assert (room is around) == (height == 120)
    chat.setParent(None)


def test_rounds_and_clicks_are_told(qtbot: QtBot, chat) -> None:
    told: list[int | None] = []
    clicked: list[object] = []
    last(chat).pointed.connect(lambda: told.append(last(chat).pointed_at))
    chat.token_clicked.connect(lambda *what: clicked.append(what))
    move(qtbot, chat, centre(chat, token(chat, " arithmetic", "resampled")))
    move(qtbot, chat, centre(chat, token(chat, " the", "accepted")))  # the same round
    at = centre(chat, token(chat, "-", "bonus"))
    move(qtbot, chat, at)
    qtbot.mouseClick(chat.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    move(qtbot, chat, QPoint(3, 3))
    assert told == [3, 4, None]
    assert clicked == [(turn(chat, "a"), 4, len(last(chat).rounds[4].drafted))]


def test_a_drag_is_no_click(qtbot: QtBot, chat) -> None:
    clicked: list[object] = []
    chat.token_clicked.connect(lambda *what: clicked.append(what))
    start, end = point(chat, "Return the"), point(chat, "mean of a non")
    button, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    qtbot.mousePress(chat.viewport(), button, none, start)
    qtbot.mouseMove(chat.viewport(), end)
    qtbot.mouseRelease(chat.viewport(), button, none, end)
    assert clicked == []


@pytest.mark.parametrize("third", [False, True], ids=["double", "triple"])
def test_a_double_click_is_two_clicks_unless_a_third_follows(qtbot: QtBot, chat, third: bool) -> None:
    clicked: list[object] = []
    chat.token_clicked.connect(lambda *what: clicked.append(what))
    at = centre(chat, token(chat, " arithmetic", "resampled"))
    button, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    qtbot.mouseClick(chat.viewport(), button, none, at)
    qtbot.mouseDClick(chat.viewport(), button, none, at)
    qtbot.mouseRelease(chat.viewport(), button, none, at)
    if third:
        qtbot.mousePress(chat.viewport(), button, none, at)  # selects the paragraph
    qtbot.wait(QGuiApplication.styleHints().mouseDoubleClickInterval() + 50)
    token_clicked = (turn(chat, "a"), 3, len(last(chat).rounds[3].drafted))
    assert clicked == [token_clicked] * (1 if third else 2)


@pytest.mark.parametrize("gone", [False, True], ids=["scrolled", "gone"])
def test_a_double_click_is_about_the_token_that_had_it(qtbot: QtBot, chat, gone: bool) -> None:
    clicked: list[object] = []
    chat.token_clicked.connect(lambda *what: clicked.append(what))
    answered, place = turn(chat, "a"), len(last(chat).rounds[3].drafted)
    at = centre(chat, token(chat, " arithmetic", "resampled"))
    button, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    qtbot.mouseDClick(chat.viewport(), button, none, at)
    qtbot.mouseRelease(chat.viewport(), button, none, at)
    if gone:
        chat.set_turns([])
    else:
        chat.resize(chat.width() // 2, chat.height())
    qtbot.wait(QGuiApplication.styleHints().mouseDoubleClickInterval() + 50)
    assert clicked == ([] if gone else [(answered, 3, place)])


def test_a_newline_can_be_pointed_at(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_turns(
        [AnswerTurn(AnswerModel(make_trace([make_round(0, ["one"], "\n"), make_round(1, [], "two")])), "m")]
    )
    view.repaint()
    end = point(view, "one", end=True)
    found = view.stack.token_at(*view.to_column(end + QPoint(5, 0)))
    assert found is not None and (found.span.text, found.span.fate) == ("\n", "bonus")
    assert view.stack.token_at(*view.to_column(end + QPoint(40, 0))) is None


def test_alt_arrows_walk_through_all_tokens(qtbot: QtBot, chat) -> None:
    seen = []
    qtbot.keyClick(chat, Qt.Key.Key_Right, ALT)
    while True:
        shown = card(chat).facts
        assert shown is not None
        seen.append((shown.token, shown.fate))
        before = chat.hover.token
        qtbot.keyClick(chat, Qt.Key.Key_Right, ALT)
        if chat.hover.token == before:
            break
    trace = drawing()
    struck = sum(round.rejected + round.ignored for round in trace.rounds)
    assert len(seen) == len(trace.token_ids) + struck
    assert seen[0] == ("```", "plain") and seen[-1] == ("<|end|>", "bonus")
    at = seen.index(("·average", "rejected"))
    assert [word for word, _ in seen[at : at + 4]] == ["·average", "·of", "·a", "·arithmetic"]
    qtbot.keyClick(chat, Qt.Key.Key_Left, ALT)
    assert card(chat).facts.token == "."


def test_walking_leaves_hidden_drafts_out(qtbot: QtBot, chat) -> None:
    chat.set_drafts_shown(False)
    chat.show_token(token(chat, " the", "accepted"))
    qtbot.keyClick(chat, Qt.Key.Key_Right, ALT)
    assert card(chat).facts.token == "·arithmetic"


def test_alt_up_and_down_walk_from_round_to_round(qtbot: QtBot, chat) -> None:
    chat.show_round(turn(chat, "a"), 3)
    qtbot.keyClick(chat, Qt.Key.Key_Down, ALT)
    assert chat.hover.token.span.round == 4
    qtbot.keyClick(chat, Qt.Key.Key_Up, ALT)
    qtbot.keyClick(chat, Qt.Key.Key_Up, ALT)
    assert chat.hover.token.span.round == 2


def test_walking_scrolls(qtbot: QtBot, view: TranscriptView) -> None:
    trace = simulate("some words in a line\n" * 100)
    view.set_turns([AnswerTurn(AnswerModel(trace), "m")])
    view.show_round(turn(view, "a"), 0)
    assert view.verticalScrollBar().value() < 60
    view.show_round(turn(view, "a"), trace.rounds[-1].index)
    assert view.verticalScrollBar().value() > 1000
    for _ in range(60):
        qtbot.keyClick(view, Qt.Key.Key_Left, ALT)
        rect = view.to_viewport(view.stack.token_rects(view.hover.token)[0])
        assert rect.top() >= 0 and rect.bottom() <= view.viewport().height()


def test_enter_chooses_and_escape_ends(qtbot: QtBot, chat) -> None:
    chat.show_round(turn(chat, "a"), 3)
    with qtbot.waitSignal(chat.token_clicked) as told:
        qtbot.keyClick(chat, Qt.Key.Key_Return)
    assert told.args == [turn(chat, "a"), 3, 0]
    assert last(chat).pointed_at == 3
    qtbot.keyClick(chat, Qt.Key.Key_Escape)
    assert last(chat).pointed_at is None
    assert card(chat).facts is None


def test_escape_with_nothing_to_end_is_left_to_the_window(qtbot: QtBot, theme: Theme) -> None:
    class Window(QWidget):
        escaped = 0

        @override
        def keyPressEvent(self, event) -> None:
            self.escaped += event.key() == Qt.Key.Key_Escape

    window = Window()
    qtbot.addWidget(window)
    view = TranscriptView(theme, window)
    window.show()
    view.set_turns([AnswerTurn(AnswerModel(drawing()), "m")])
    view.select_all()
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert window.escaped == 0
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert window.escaped == 1


def test_scrolling_points_at_what_is_now_under_the_pointer(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(simulate("word " * 2000, rate=0.9)), "m")])
    view.repaint()
    at = QPoint(view.column[0] + 100, 300)
    move(qtbot, view, at)
    before = view.hover.token
    view.verticalScrollBar().setValue(view.verticalScrollBar().value() - 300)
    assert view.hover.token is not None and view.hover.token != before
    assert view.hover.token == view.stack.token_at(*view.to_column(at))


def test_an_answer_that_is_replaced_is_no_longer_pointed_at(qtbot: QtBot, chat) -> None:
    chat.show_round(turn(chat, "a"), 3)
    chat.remove_from(turn(chat, "a"))
    assert chat.hover.token is None and card(chat).facts is None
    chat.repaint()


def test_a_card_that_would_cover_its_token_leaves_its_lists_out(qtbot: QtBot, chat) -> None:
    wanted = token(chat, " arithmetic", "resampled")
    chat.resize(440, 330)
    chat.show_token(wanted)
    rect = chat.to_viewport(chat.stack.token_rects(wanted)[0]).toRect()
    shown = card(chat).geometry().adjusted(18, 18, -18, -18)
    assert not shown.intersects(rect)
    assert card(chat).facts.target == () and "draft_p" in dict(card(chat).facts.rows)
    chat.resize(800, 600)
    chat.show_token(wanted)
    assert card(chat).facts.target
