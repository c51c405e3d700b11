"""What the parts of the Inspector have in common: they follow an answer while they are on the screen."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import SignalInstance, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from app.ui.state.answer import AnswerModel, reconnect
from app.ui.widgets.work.throttle import Throttle


class InspectorPart(QWidget):
    """Follows an answer: `draw` is called when its rounds, its cursor or the inspected round changed.

    While an answer grows, that is at most ten times a second; while the part is hidden, never.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answer = AnswerModel()  # before the first answer
        self._stale = True  # something changed since `draw`
        self._soon = Throttle(self._redraw, self)
        reconnect(self._slots, None, self.answer)

    def draw(self) -> None:
        """Show the answer as it is now."""
        raise NotImplementedError

    def set_answer(self, answer: AnswerModel | None) -> None:
        """Show another answer; None shows none."""
        before, self.answer = self.answer, answer if answer is not None else AnswerModel()
        reconnect(self._slots, before, self.answer)
        self._redraw()

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (
            (answer.began, self._redraw), (answer.grew, self._grow), (answer.ended, self._redraw),
            (answer.moved, self._redraw), (answer.pinned, self._redraw),
        )  # fmt: skip

    @Slot()
    def _grow(self) -> None:
        self._stale = True
        if self.isVisible():
            self._soon.request()

    @Slot()
    def _redraw(self) -> None:
        self._stale = True
        if self.isVisible():
            self._stale = False
            self.draw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._redraw()
