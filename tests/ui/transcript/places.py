"""Where tokens and texts of a transcript stand on the screen, for tests that use the mouse."""

from __future__ import annotations

from PySide6.QtCore import QPoint

from app.engine.types import Round
from app.ui.state.answer import AnswerModel, Note
from app.ui.transcript import AnswerTurn, SystemTurn, TranscriptView, UserTurn
from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.stack import Position, Token
from app.ui.transcript.text.spans import Span
from app.ui.transcript.turn_editor import TurnEditor
from tests.ui.traces import make_header

_KINDS = {"s": SystemTurn, "u": UserTurn, "a": AnswerTurn}


def turn(view: TranscriptView, kind: str) -> SystemTurn | UserTurn | AnswerTurn:
    """The first turn of a kind: "s" system prompt, "u" user, "a" answer."""
    return next(turn for turn in view.turns if isinstance(turn, _KINDS[kind]))


def last(view: TranscriptView) -> AnswerModel:
    """The model of the last answer."""
    return next(turn.answer for turn in reversed(view.turns) if isinstance(turn, AnswerTurn))


def add(view: TranscriptView, rounds: list[Round]) -> None:
    """Add rounds to the last answer."""
    model = last(view)
    if model.trace is None:
        model.begin(make_header())
    model.add(rounds)


def note(view: TranscriptView, told: Note | None) -> None:
    """End the first answer with a note below it."""
    model = answer(view).answer
    model.end(model.totals, told)


def answer(view: TranscriptView, kind: str = "a") -> AnswerItem:
    item = view.stack.items[view.stack.index_of(turn(view, kind))]
    assert isinstance(item, AnswerItem)
    return item


def token(view: TranscriptView, text: str, fate: str, kind: str = "a") -> Token:
    """The first token of that text and fate."""
    index = view.stack.index_of(turn(view, kind))
    for block in answer(view, kind).blocks:
        for span in block.paragraph.spans:  # type: ignore[attr-defined]
            if span.text == text and span.fate == fate:
                return Token(index, span)
    raise AssertionError(f"no token {text!r}, {fate}")


def centre(view: TranscriptView, wanted: Token) -> QPoint:
    """The middle of a token, in viewport coordinates."""
    rect = view.to_viewport(view.stack.token_rects(wanted)[0])
    return rect.center().toPoint()


def position(view: TranscriptView, text: str, kind: str = "a", end: bool = False) -> Position:
    """The position at which a text within a block begins, or ends."""
    index = view.stack.index_of(turn(view, kind))
    for row, block in enumerate(view.stack.items[index].blocks):
        at = block.text.find(text)
        if at >= 0:
            return Position(index, row, at + len(text) if end else at)
    raise AssertionError(f"no text {text!r}")


def point(view: TranscriptView, text: str, kind: str = "a", end: bool = False) -> QPoint:
    """The left (or right) edge of a text, in viewport coordinates."""
    where = position(view, text, kind, end)
    if end:
        rect = view.stack.rects(where._replace(offset=where.offset - 1), where.offset)[0]
        return view.to_viewport(rect).toRect().center() + QPoint(round(rect.width() / 2), 0)
    rect = view.stack.rects(where, where.offset + 1)[0]
    return QPoint(round(view.to_viewport(rect).left()), round(view.to_viewport(rect).center().y()))


def open_editor(view: TranscriptView) -> TurnEditor | None:
    """The editor that stands in place of a message, if there is one."""
    return next((editor for editor in view.findChildren(TurnEditor) if not editor.isHidden()), None)


def spans(view: TranscriptView, kind: str = "a") -> list[Span]:
    return [
        span
        for block in answer(view, kind).blocks
        for span in block.paragraph.spans  # type: ignore[attr-defined]
    ]
