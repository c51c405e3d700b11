"""An answer that fills a gap: quiet code around it, in the same lines, and what is found and copied."""

from __future__ import annotations

from itertools import product

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.saved.chats.conversation import Question
from app.ui.state.answer import AnswerModel
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
from app.ui.transcript.layout.sectioned_item import NEAR, NEXT
from app.ui.transcript.layout.stack import Position
from app.ui.transcript.text.folds import FoldLine
from app.ui.transcript.text.paragraphs import Kind
from app.ui.transcript.turn_editor import TurnEditor
from tests.ui.traces import make_header, make_round, make_totals, make_trace, simulate
from tests.ui.transcript.places import add, answer, centre, last, point, token, turn

PREFIX, SUFFIX = "def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"


def filling(model: AnswerModel, prefix: str = PREFIX, suffix: str = SUFFIX) -> AnswerTurn:
    return AnswerTurn(model, "m", goes_on_from=prefix, suffix=suffix)


def filled(text: str, prefix: str = PREFIX, suffix: str = SUFFIX) -> AnswerTurn:
    return filling(AnswerModel(make_trace([make_round(0, [], text)])), prefix, suffix)


def lines(view: TranscriptView) -> list[float]:
    """The heights at which visible lines of the answer begin, without those that continue a line."""
    index = view.stack.index_of(turn(view, "a"))
    item = view.stack.items[index]
    tops = [
        view.stack.block_top(index, row) + block.rects(0, 1)[0].top()
        for row, block in enumerate(item.blocks)
        if block.text and not block.hidden and block.rects(0, 1)
    ]
    return sorted(set(tops))


@pytest.mark.parametrize("text", ["a + b", "sum(\n        (a, b))", "a + b\n", "\n", ""])
@pytest.mark.parametrize(("prefix", "suffix"), [(PREFIX, SUFFIX), ("", SUFFIX), (PREFIX, ""), ("", "")])
def test_the_answer_stands_in_the_lines_of_its_gap(
    view: TranscriptView, text: str, prefix: str, suffix: str
) -> None:
    view.set_turns([filled(text, prefix, suffix)])
    assert answer(view).text == text
    assert answer(view).text_with_gap == prefix + text + suffix
    whole = (prefix + text + suffix).split("\n")
    assert len(lines(view)) == sum(bool(line) for line in whole)
    assert {block.paragraph.kind for block in answer(view).blocks} == {Kind.CODE}  # type: ignore[attr-defined]


def test_live_and_stored_infills_look_the_same(view: TranscriptView) -> None:
    trace = simulate("first(\n    second,\n    third)\n" * 4, rate=0.7)
    assert trace.totals is not None
    view.add_turn(filling(AnswerModel(live=True)))
    waiting = answer(view).text_with_gap
    last(view).begin(trace.header)
    for round in trace.rounds:
        add(view, [round])
        assert answer(view).text_with_gap == PREFIX + answer(view).text + SUFFIX
    last(view).end(trace.totals)
    picture = view.grab().toImage()
    view.set_turns([filling(AnswerModel(trace))])
    assert waiting == PREFIX + SUFFIX
    assert view.grab().toImage() == picture


def test_a_filled_gap_stays_as_it_is_when_others_are_rendered(view: TranscriptView) -> None:
    view.set_turns([filled("# a *b*")])
    before = [block.text for block in answer(view).blocks]
    view.set_rendered(True)
    assert [block.text for block in answer(view).blocks] == before
    view.add_turn(filling(AnswerModel(live=True)))
    last(view).begin(make_header())
    add(view, [make_round(0, [], "# c *d*")])
    last(view).end(make_totals("# c *d*"))
    assert view.stack.items[1].text == "# c *d*"


def test_text_around_a_gap_is_found_and_copied_with_it(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_turns([UserTurn(PREFIX, 0, SUFFIX, answered=True), filled("a + b")])
    assert view.find("return a + b") == (1, 1)
    assert view.find("print(add") == (1, 1)
    assert view.find("def add") == (1, 1)
    view.select_all()
    view.copy()
    assert QGuiApplication.clipboard().text().strip() == (PREFIX + "a + b" + SUFFIX).strip()
    view.copy_turn(turn(view, "a"))
    assert QGuiApplication.clipboard().text() == "a + b"
    view.copy_turn(turn(view, "u"))
    assert QGuiApplication.clipboard().text() == f"{PREFIX}[…]{SUFFIX}"
    menu = view.make_menu(point(view, "a + b"))
    next(action for action in menu.actions() if action.text() == "Copy answer and surroundings").trigger()
    assert QGuiApplication.clipboard().text() == PREFIX + "a + b" + SUFFIX
    menu.close()


def test_only_tokens_of_the_answer_can_be_pointed_at(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_turns([filled("a + b")])
    qtbot.mouseMove(view.viewport(), centre(view, token(view, "a + b", "plain")))
    qtbot.waitUntil(lambda: view.hover.token is not None)
    qtbot.mouseMove(view.viewport(), point(view, "print"))
    qtbot.waitUntil(lambda: view.hover.token is None)


def test_the_text_around_a_gap_is_quieter_than_the_answer(view: TranscriptView) -> None:
    view.set_turns([filled("@@@", "@@@\n", "\n@@@")])
    image = view.grab().toImage()
    left, _ = view.column
    rows = [row for row, block in enumerate(answer(view).blocks) if block.text]
    darkest = []
    for row in rows:
        rect = view.to_viewport(view.stack.rects(Position(0, row, 0), 3)[0]).toRect()
        places = product(range(left, rect.right()), range(rect.top(), rect.bottom()))
        darkest.append(min(image.pixelColor(x, y).lightness() for x, y in places))
    assert darkest[1] < darkest[0] == darkest[2]


def test_lines_far_from_the_gap_unfold_by_a_click(qtbot: QtBot, view: TranscriptView) -> None:
    before, after = ("".join(f"{name}{n}\n" for n in range(3 * NEAR)) for name in ("early", "late"))
    view.set_turns([filled("x = 1\n", before, after)])
    item = answer(view)
    folded, height = [block for block in item.blocks if isinstance(block, FoldLine)], item.height
    hidden = 3 * NEAR + 1 - NEAR, 3 * NEAR + 1 - NEXT
    assert [line.fold.words for line in folded] == [f"{lines} more lines" for lines in hidden]
    assert item.text_with_gap == before + "x = 1\n" + after
    view.scroller.to_top()
    line = view.to_viewport(QRectF(0, view.stack.block_top(0, 0), 100, 20)).center().toPoint()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=line)
    assert [line.fold.folded for line in folded] == [False, True] and item.height > height
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=line)
    assert [line.fold.folded for line in folded] == [True, True] and item.height == height
    view.find("late30")
    assert [line.fold.folded for line in folded] == [True, False], "what is found is shown"


def test_a_gap_keeps_its_folds_while_it_is_filled(view: TranscriptView) -> None:
    before = "".join(f"early{n}\n" for n in range(3 * NEAR))
    view.add_turn(filling(AnswerModel(live=True), before, SUFFIX))
    view.find("early0")
    last(view).begin(make_header())
    add(view, [make_round(0, [], "x = 1")])
    last(view).end(make_totals("x = 1"))
    folded = [block for block in answer(view).blocks if isinstance(block, FoldLine)]
    assert [line.fold.folded for line in folded] == [False]


def test_a_gap_is_edited_in_two_fields(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_turns([UserTurn(PREFIX, 0, SUFFIX, answered=True), filled("a + b")])
    view.edit(turn(view, "u"))
    editor = view.findChild(TurnEditor)
    assert editor is not None and editor.suffix is not None
    assert editor.question == Question(PREFIX, SUFFIX)
    qtbot.keyClick(editor.field, Qt.Key.Key_Tab)
    qtbot.waitUntil(editor.suffix.hasFocus)
    editor.suffix.setPlainText("\nprint(add(3, 4))")
    with qtbot.waitSignal(view.edit_submitted) as told:
        qtbot.keyClick(editor.suffix, Qt.Key.Key_Return)
    assert told.args == [turn(view, "u"), Question(PREFIX, "\nprint(add(3, 4))")]


def test_the_editor_opens_where_the_message_was(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_turns([UserTurn(PREFIX * 3, 0, SUFFIX * 3, answered=True), filled("a + b\n" * 40)])
    view.scroller.to_top()
    top = view.stack.top(0) - view.scroller.top
    view.edit(turn(view, "u"))
    editor = view.findChild(TurnEditor)
    assert editor is not None
    assert view.stack.top(0) - view.scroller.top == top
    assert 0 <= editor.y() < view.viewport().height()


def test_an_unanswered_gap_is_shown_with_its_mark(view: TranscriptView) -> None:
    view.set_turns([UserTurn("a(", 0, ")")])
    assert [block.text for block in view.stack.items[0].blocks] == ["a([…])"]
