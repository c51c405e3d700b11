"""Lines around rounds and tokens: where they change, only what is around them is painted."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QRectF
from PySide6.QtGui import QPaintEvent, QRegion
from PySide6.QtWidgets import QApplication
from typing_extensions import override

from app.ui.state.answer import AnswerModel
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
from app.ui.transcript.layout.stack import Token
from tests.ui.traces import simulate
from tests.ui.transcript.places import answer, turn

LINES = "The windows overlap, so every value is seen.\nThe loop costs what it does, and no more.\n"


class Paint(QObject):
    """What was painted of a view's text."""

    def __init__(self, view: TranscriptView) -> None:
        super().__init__()
        self._viewport = view.viewport()
        self._region = QRegion()
        self._viewport.installEventFilter(self)
        self.taken()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QPaintEvent):
            self._region = self._region.united(event.region())
        return False

    def taken(self) -> QRegion:
        """What was painted since the last call."""
        QApplication.processEvents()
        region, self._region = self._region, QRegion()
        return region


@pytest.fixture
def chat(view: TranscriptView) -> TranscriptView:
    trace = simulate(LINES * 40, seed=1)
    view.set_turns([UserTurn("Write."), AnswerTurn(AnswerModel(trace), "demo 32M")])
    view.scroller.to_top()
    view.repaint()
    return view


def around(view: TranscriptView, index: int) -> list[QRectF]:
    """Where a round stands in the viewport."""
    spans = answer(view).spans
    span = spans.first_of_round(index, True)
    assert span is not None
    rects = view.stack.round_rects(Token(view.stack.index_of(turn(view, "a")), span))
    return [view.to_viewport(rect) for rect in rects]


def test_another_framed_round_is_painted_with_the_one_before(chat: TranscriptView) -> None:
    chat.frame_round(turn(chat, "a"), 4)  # what is below the screen is laid out now
    paint = Paint(chat)
    for index in (2, 9, 3, None):
        before = chat.outlines.framed
        chat.frame_round(turn(chat, "a"), index)
        painted = paint.taken()
        for framed in filter(lambda at: at is not None, (before[1] if before else None, index)):
            for rect in around(chat, framed):
                edge = rect.toAlignedRect().adjusted(-1, -1, 1, 1)
                assert QRegion(edge).subtracted(painted).isEmpty()
        height = painted.boundingRect().height()
        assert 0 < height < chat.viewport().height() / 2


def test_a_round_out_of_sight_is_scrolled_to_and_all_is_painted(chat: TranscriptView) -> None:
    paint, viewport = Paint(chat), chat.viewport()
    rounds = len(answer(chat).answer.rounds)
    chat.frame_round(turn(chat, "a"), 1)
    paint.taken()
    chat.frame_round(turn(chat, "a"), rounds - 1)
    assert QRegion(viewport.rect()).subtracted(paint.taken()).isEmpty()


def test_copied_tokens_are_outlined_alone(chat: TranscriptView) -> None:
    paint = Paint(chat)
    for count in (4, 0):
        chat.outline_tokens(turn(chat, "a"), 3, 0, count)
        painted = paint.taken()
        assert 0 < painted.boundingRect().height() < chat.viewport().height() / 2
    chat.outline_tokens(turn(chat, "a"), 3, 0, 0)
    assert paint.taken().isEmpty()


def test_a_line_that_scrolls_away_from_the_pointer_leaves_nothing_behind(chat: TranscriptView) -> None:
    chat.clearFocus()  # its ring would have all painted
    chat.offers_end = False  # nothing lies on the text: its pixels are moved
    bar = chat.verticalScrollBar()
    bar.setValue(200)
    token = chat.stack.token_at(*chat.to_column(chat.viewport().rect().center()))
    assert token is not None
    chat.hover.point(token)  # its card comes later
    paint = Paint(chat)
    (before, *_) = map(chat.to_viewport, chat.stack.token_rects(token))
    bar.setValue(bar.value() + 30)
    assert chat.hover.token is None, "the pointer is elsewhere"
    edge = before.translated(0, -30).toAlignedRect().adjusted(-1, -1, 1, 1) & chat.viewport().rect()
    assert not edge.isEmpty() and QRegion(edge).subtracted(paint.taken()).isEmpty()
