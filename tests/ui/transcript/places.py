"""Where tokens and texts of a transcript stand on the screen, for tests that use the mouse."""

from __future__ import annotations

from PySide6.QtCore import QPoint

from app.ui.transcript import TranscriptView
from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.stack import Position, Token
from app.ui.transcript.text.spans import Span


def answer(view: TranscriptView, turn_id: str = "a") -> AnswerItem:
    item = view.stack.items[view.stack.index_of(turn_id)]
    assert isinstance(item, AnswerItem)
    return item


def token(view: TranscriptView, text: str, fate: str, turn_id: str = "a") -> Token:
    """The first token of that text and fate."""
    index = view.stack.index_of(turn_id)
    for block in answer(view, turn_id).blocks:
        for span in block.paragraph.spans:  # type: ignore[attr-defined]
            if span.text == text and span.fate == fate:
                return Token(index, span)
    raise AssertionError(f"no token {text!r}, {fate}")


def centre(view: TranscriptView, wanted: Token) -> QPoint:
    """The middle of a token, in the viewport."""
    rect = view.to_viewport(view.stack.token_rects(wanted)[0])
    return rect.center().toPoint()


def position(view: TranscriptView, text: str, turn_id: str = "a", end: bool = False) -> Position:
    """Where a text that stands in one block begins, or ends."""
    index = view.stack.index_of(turn_id)
    for row, block in enumerate(view.stack.items[index].blocks):
        at = block.text.find(text)
        if at >= 0:
            return Position(index, row, at + len(text) if end else at)
    raise AssertionError(f"no text {text!r}")


def point(view: TranscriptView, text: str, turn_id: str = "a", end: bool = False) -> QPoint:
    """The left edge of a text (or the right one), in the viewport."""
    where = position(view, text, turn_id, end)
    if end:
        rect = view.stack.rects(where._replace(offset=where.offset - 1), where.offset)[0]
        return view.to_viewport(rect).toRect().center() + QPoint(round(rect.width() / 2), 0)
    rect = view.stack.rects(where, where.offset + 1)[0]
    return QPoint(round(view.to_viewport(rect).left()), round(view.to_viewport(rect).center().y()))


def spans(view: TranscriptView, turn_id: str = "a") -> list[Span]:
    return [
        span
        for block in answer(view, turn_id).blocks
        for span in block.paragraph.spans  # type: ignore[attr-defined]
    ]
