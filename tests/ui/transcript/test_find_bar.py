from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.ui.state.answer import AnswerModel
from app.ui.theme import LIGHT
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
from tests.ui.pixels import colours_of
from tests.ui.traces import drawing, make_round, make_trace, simulate
from tests.ui.transcript.places import add


@pytest.fixture
def chat(view: TranscriptView) -> TranscriptView:
    view.set_turns([UserTurn("Rewrite mean."), AnswerTurn(AnswerModel(drawing()), "demo 32M")])
    return view


def test_finds_across_the_borders_of_tokens(chat: TranscriptView) -> None:
    assert chat.find("mean(values)") == (1, 1)
    assert chat.find('ValueError("mean of') == (1, 1)


def test_never_finds_rejected_or_ignored_drafts(chat: TranscriptView) -> None:
    assert chat.find("average") == (0, 0)
    assert chat.find("list") == (0, 0)
    assert chat.find("the arithmetic") == (1, 1)  # as if there were no drafts in between


def test_never_finds_labels_or_control_tokens(chat: TranscriptView) -> None:
    assert chat.find("demo 32M") == (0, 0)
    assert chat.find("|end|") == (0, 0)


def test_whatever_the_case_and_with_no_special_characters(chat: TranscriptView) -> None:
    assert chat.find("REWRITE") == (1, 1)
    assert chat.find(".*") == (0, 0)
    assert chat.find("/ len(") == (1, 1)


def test_walks_around_in_both_directions(chat: TranscriptView) -> None:
    total = (drawing().text + " Rewrite mean.").count("mean")
    walk = [chat.find("mean")[0] for _ in range(total + 1)]
    assert walk == [*range(1, total + 1), 1]
    assert chat.find("mean", forward=False) == (total, total)
    assert chat.find("mean", forward=False) == (total - 1, total)


def test_finds_lines_that_are_continued(view: TranscriptView) -> None:
    text = "alpha beta " * 300
    view.set_turns([AnswerTurn(AnswerModel(simulate(text, rate=0.9)), "m")])
    assert len(view.stack.items[0].blocks) > 3
    assert view.find("alpha beta")[1] == 300
    assert view.find("beta alpha")[1] == 299


def test_finds_over_a_newline(chat: TranscriptView) -> None:
    assert chat.find("values:\n        raise") == (1, 1)


def test_scrolls_to_what_it_found(view: TranscriptView) -> None:
    text = "line of text\n" * 100 + "needle\n" + "line of text\n" * 100
    view.set_turns([AnswerTurn(AnswerModel(simulate(text)), "m")])
    view.find("needle")
    match = view.finder.current
    assert match is not None
    rect = view.to_viewport(view.stack.rects(match.first, match.end.offset)[0])
    assert rect.top() > 0 and rect.bottom() < view.viewport().height()


def test_the_current_match_is_inverted_and_others_outlined(chat: TranscriptView) -> None:
    def dark_share() -> float:
        match = chat.finder.current
        assert match is not None
        rect = chat.to_viewport(chat.stack.rects(match.first, match.end.offset)[0]).toRect()
        seen = colours_of(chat.grab(rect).toImage())
        return seen[LIGHT.text] / seen.total()

    chat.find("sequence")
    assert dark_share() > 0.4
    match = chat.finder.current
    chat.end_find()
    assert chat.finder.current is None and match is not None
    assert chat.find("sequence")[1] == 3


def test_matches_grow_while_an_answer_arrives(view: TranscriptView) -> None:
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    add(view, [make_round(0, [], "one two")])
    assert view.find("two") == (1, 1)
    add(view, [make_round(1, [" tw"], "o", "two")])
    assert view.finder.total == 2
    assert view.finder.number == 1


def test_finding_in_an_empty_chat(view: TranscriptView) -> None:
    assert view.find("x") == (0, 0)
    view.set_turns([AnswerTurn(AnswerModel(), "m")])
    assert view.find("x") == (0, 0)


# ------------------------------------------------------------------------------------------ the bar


def test_the_bar_opens_by_key_and_counts(qtbot: QtBot, chat: TranscriptView) -> None:
    qtbot.keyClick(chat, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    bar = chat.find_bar
    assert bar.isVisible()
    qtbot.keyClicks(bar.field, "sequence")
    assert bar.count.text() == "1 of 3"
    qtbot.keyClick(bar.field, Qt.Key.Key_Return)
    assert bar.count.text() == "2 of 3"
    qtbot.keyClick(bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert bar.count.text() == "1 of 3"
    qtbot.keyClicks(bar.field, "x")
    assert bar.count.text() == "none"
    assert not bar.next.isEnabled()
    qtbot.keyClick(bar.field, Qt.Key.Key_Escape)
    assert not bar.isVisible()
    assert not chat.finder.active


def test_the_bar_keeps_its_text_and_searches_again(qtbot: QtBot, chat: TranscriptView) -> None:
    chat.open_find()
    qtbot.keyClicks(chat.find_bar.field, "sequence")
    qtbot.keyClick(chat.find_bar.field, Qt.Key.Key_Escape)
    chat.open_find()
    assert chat.find_bar.count.text() == "1 of 3"


def test_the_bar_counts_on_while_an_answer_arrives(qtbot: QtBot, view: TranscriptView) -> None:
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    add(view, [make_round(0, [], "two")])
    view.open_find()
    qtbot.keyClicks(view.find_bar.field, "two")
    add(view, [make_round(1, [], " two")])
    assert view.find_bar.count.text() == "1 of 2"


def test_the_find_bar_is_in_the_menu(chat: TranscriptView) -> None:
    menu = chat.make_menu(chat.viewport().rect().center())
    actions = {action.text(): action for action in menu.actions()}
    actions["Find…"].trigger()
    assert chat.find_bar.isVisible()
    menu.close()


def test_stored_texts_are_searched_when_the_chat_changes(chat: TranscriptView) -> None:
    chat.open_find()
    chat.find_bar.field.setText("mean")
    chat.set_turns([AnswerTurn(AnswerModel(make_trace([make_round(0, [], "no such word")])), "m")])
    assert chat.finder.total == 0
    assert chat.find_bar.count.text() == "none"
