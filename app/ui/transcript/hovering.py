"""The token pointed at, by mouse or keyboard, and its card."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QRectF, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.transcript.layout.stack import Stack, Token
from app.ui.transcript.overlays.hover_card import HoverCard
from app.ui.transcript.text.facts import facts_of

_DELAY_MS = 120  # a pointer that only crosses the text shows no card


class Hover(QObject):
    """The token pointed at, at most one, and its card."""

    changed = Signal()

    def __init__(
        self,
        theme: Theme,
        area: QWidget,
        stack: Stack,
        to_viewport: Callable[[QRectF], QRectF],
    ) -> None:
        super().__init__(area)
        self._stack = stack
        self._to_viewport = to_viewport
        self.card = HoverCard(theme, area)
        self.token: Token | None = None
        self._answer: AnswerModel | None = None  # the answer whose round is pointed at
        self._timer = QTimer(self, singleShot=True, interval=_DELAY_MS)
        self._timer.timeout.connect(self._show_card)

    def point(self, token: Token | None) -> None:
        """Point at a token, or at none. The card appears after a delay; once visible, it follows without
        one."""
        if token == self.token or (
            token is not None
            and self.token is not None
            and token.item == self.token.item
            and token.span.same_token(self.token.span)
        ):
            return
        self._set(token)
        if token is None:
            self._hide_card()
        elif self.card.isVisible():
            self._show_card()
        else:
            self._timer.start()

    def choose(self, token: Token) -> None:
        """Point at a token chosen by the keyboard, and show its card at once."""
        self._set(token)
        self._show_card()

    def clear(self) -> bool:
        """Point at nothing; False where nothing was pointed at."""
        was = self.token is not None
        self._set(None)
        self._hide_card()
        return was

    def place_card(self) -> None:
        """Move the card after its text moved."""
        if self.card.isVisible():
            self._show_card()

    def _set(self, token: Token | None) -> None:
        if token == self.token:
            return
        self.token = token
        item = self._stack.answer(token.item) if token is not None else None
        answer = item.answer if item is not None else None
        if self._answer is not None and self._answer is not answer:
            self._answer.point(None)
        self._answer = answer
        if answer is not None and token is not None:
            answer.point(token.span.round)
        self.changed.emit()

    def _hide_card(self) -> None:
        self._timer.stop()
        self.card.hide()

    @Slot()
    def _show_card(self) -> None:
        self._timer.stop()
        token = self.token
        answer = self._stack.answer(token.item) if token is not None else None
        if token is None or answer is None:
            return
        round = answer.round(token.span.round)
        rects = self._stack.token_rects(token)
        if round is None or answer.answer.header is None or not rects:
            self.card.hide()
            return
        facts = facts_of(round, token.span, answer.answer.header)
        self.card.show_facts(facts, self._to_viewport(rects[-1]))
