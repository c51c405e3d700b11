"""Selecting and copying: only emitted text."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.ui.state.answer import AnswerModel
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
from tests.quiet import stays
from tests.ui.traces import drawing, make_round, make_trace, simulate
from tests.ui.transcript.places import point, turn

LEFT = Qt.MouseButton.LeftButton
SHIFT = Qt.KeyboardModifier.ShiftModifier
NONE = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def chat(view: TranscriptView) -> TranscriptView:
    view.set_turns([UserTurn("Rewrite mean please."), AnswerTurn(AnswerModel(drawing()), "demo 32M")])
    view.repaint()
    return view


def drag(qtbot: QtBot, view: TranscriptView, start: QPoint, end: QPoint) -> None:
    viewport = view.viewport()
    qtbot.mousePress(viewport, LEFT, NONE, start)
    qtbot.mouseMove(viewport, (start + end) / 2)
    qtbot.mouseMove(viewport, end)
    qtbot.mouseRelease(viewport, LEFT, NONE, end)


def clipboard() -> str:
    return QGuiApplication.clipboard().text()


def test_dragging_over_struck_tokens_selects_what_was_emitted(qtbot: QtBot, chat) -> None:
    drag(qtbot, chat, point(chat, "Return the"), point(chat, "mean of a non", end=True))
    assert chat.selection.text() == "Return the arithmetic mean of a non"


def test_dragging_backwards_and_over_lines(qtbot: QtBot, chat) -> None:
    drag(qtbot, chat, point(chat, "raise", end=True), point(chat, "if not"))
    assert chat.selection.text() == "if not values:\n        raise"


def test_dragging_from_turn_to_turn_leaves_labels_out(qtbot: QtBot, chat) -> None:
    drag(qtbot, chat, point(chat, "please", "u"), point(chat, "```python", end=True))
    assert chat.selection.text() == "please.\n\n```python"


def test_a_selection_survives_hiding_the_drafts(qtbot: QtBot, chat) -> None:
    drag(qtbot, chat, point(chat, "the arithmetic"), point(chat, "mean of", end=True))
    before = chat.selection.text()
    chat.set_drafts_shown(False)
    assert chat.selection.text() == before == "the arithmetic mean of"


def test_double_click_selects_a_word_and_drags_by_words(qtbot: QtBot, chat) -> None:
    viewport = chat.viewport()
    at = point(chat, "arithmetic") + QPoint(12, 0)
    qtbot.mousePress(viewport, LEFT, NONE, at)
    qtbot.mouseRelease(viewport, LEFT, NONE, at)
    qtbot.mouseDClick(viewport, LEFT, NONE, at)
    assert chat.selection.text() == "arithmetic"
    qtbot.mouseMove(viewport, point(chat, "non") + QPoint(10, 0))
    assert chat.selection.text() == "arithmetic mean of a non"


def test_triple_click_selects_a_paragraph(qtbot: QtBot, chat) -> None:
    viewport = chat.viewport()
    at = point(chat, "adds") + QPoint(5, 0)
    qtbot.mouseDClick(viewport, LEFT, NONE, at)
    qtbot.mousePress(viewport, LEFT, NONE, at)
    qtbot.mouseRelease(viewport, LEFT, NONE, at)
    assert chat.selection.text() == drawing().text.splitlines()[-1]


def test_shift_click_extends(qtbot: QtBot, chat) -> None:
    viewport = chat.viewport()
    qtbot.mouseClick(viewport, LEFT, NONE, point(chat, "def mean"))
    assert chat.selection.text() == ""
    qtbot.mouseClick(viewport, LEFT, SHIFT, point(chat, "def mean", end=True))
    assert chat.selection.text() == "def mean"


def test_keys_select_all_and_copy(qtbot: QtBot, chat) -> None:
    QGuiApplication.clipboard().setText("before")
    qtbot.keyClick(chat, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert clipboard() == "before"  # nothing selected, nothing lost
    qtbot.keyClick(chat, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(chat, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert clipboard() == f"Rewrite mean please.\n\n{drawing().text}"


def test_escape_ends_the_selection(qtbot: QtBot, chat) -> None:
    chat.select_all()
    qtbot.keyClick(chat, Qt.Key.Key_Escape)
    assert chat.selection.text() == ""


def test_copying_a_turn(chat) -> None:
    chat.copy_turn(turn(chat, "a"))
    assert clipboard() == drawing().text


def test_long_lines_are_copied_in_one_piece(qtbot: QtBot, view: TranscriptView) -> None:
    text = "many words in one line " * 200
    view.set_turns([AnswerTurn(AnswerModel(simulate(text, rate=0.9)), "m")])
    assert len(view.stack.items[0].blocks) > 3
    view.select_all()
    assert view.selection.text() == text


def test_triple_click_takes_a_long_line_whole(qtbot: QtBot, view: TranscriptView) -> None:
    text = "first\n" + "many words in one line " * 60 + "\nlast"
    view.set_turns([AnswerTurn(AnswerModel(simulate(text, rate=0.9)), "m")])
    view.repaint()
    at = point(view, "line many") + QPoint(2, 0)
    qtbot.mouseDClick(view.viewport(), LEFT, NONE, at)
    qtbot.mousePress(view.viewport(), LEFT, NONE, at)
    assert view.selection.text() == text.splitlines()[1]


def test_every_place_of_a_long_line_is_found_again(view: TranscriptView) -> None:
    """The paragraphs of a long line share lines on the screen; a click there finds the right paragraph."""
    text = "wort " * 500
    view.set_turns(
        [AnswerTurn(AnswerModel(make_trace([make_round(0, [], word) for word in text.split(" ")])), "m")]
    )
    joined = "wort" * 500
    view.set_turns([UserTurn(text)])
    view.resize(500, 2000)
    view.repaint()
    item = view.stack.items[0]
    assert len(item.blocks) > 2 and len(joined) > 0
    for row, block in enumerate(item.blocks):
        for offset in (*range(0, 12), len(block.text) // 2, *range(len(block.text) - 12, len(block.text))):
            rect = block.rects(offset, offset + 1)
            if not rect:
                continue  # a space at the end of a line
            y = view.stack.block_top(0, row) + rect[0].center().y()
            found = view.stack.position_at(rect[0].left() + 0.6, y)
            assert (found.block, found.offset) == (row, offset)


def test_emoji_are_selected_whole(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(make_trace([make_round(0, ["a😀"], "b好c")])), "m")])
    view.repaint()
    drag(qtbot, view, point(view, "😀"), point(view, "好", end=True))
    assert view.selection.text() == "😀b好"


def test_dragging_below_the_edge_scrolls(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(simulate("line of text\n" * 200)), "m")])
    view.verticalScrollBar().setValue(0)
    viewport = view.viewport()
    qtbot.mousePress(viewport, LEFT, NONE, QPoint(100, 300))
    qtbot.mouseMove(viewport, QPoint(100, 400))
    qtbot.mouseMove(viewport, QPoint(100, viewport.height() + 40))
    qtbot.waitUntil(lambda: view.verticalScrollBar().value() > 300)
    qtbot.mouseRelease(viewport, LEFT, NONE, QPoint(100, viewport.height() + 40))
    assert stays(view.verticalScrollBar().value)
    assert len(view.selection.text()) > 250
