"""What the parts of the Inspector have in common: they follow an answer while they are on the screen."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer, SignalInstance
from PySide6.QtGui import QPaintEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from app.ui.state.answer import AnswerModel, reconnect
from app.ui.widgets.background import Throttle


class InspectorPart(QWidget):
    """Follows an answer: `draw` is called when its rounds, its cursor or the inspected round changed.

    While an answer grows, that is at most ten times a second; while the part is hidden, or scrolled out of
    sight, never.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answer = AnswerModel()  # before the first answer
        self._stale = True  # something changed since `draw`
        self._soon = Throttle(self._redraw, self)
        self._scrolled_in = QTimer(self, singleShot=True, interval=0)  # nothing changes while it is painted
        self._scrolled_in.timeout.connect(self._redraw)
        reconnect(self._slots, None, self.answer)

    def draw(self) -> None:
        """Show the answer as it is now."""
        raise NotImplementedError

    def set_answer(self, answer: AnswerModel | None) -> None:
        """Show another answer; None shows none."""
        before, self.answer = self.answer, answer if answer is not None else AnswerModel()
        reconnect(self._slots, before, self.answer)
        self._redraw()

    @property
    def in_sight(self) -> bool:
        """Whether any of it is on the screen. A part that nothing was drawn in yet may have no height."""
        return self.isVisible() and (self.size().isEmpty() or not self.visibleRegion().isEmpty())

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (
            (answer.began, self._redraw), (answer.grew, self._grow), (answer.ended, self._redraw),
            (answer.moved, self._redraw), (answer.pinned, self._redraw),
        )  # fmt: skip

    def _grow(self) -> None:
        self._stale = True
        if self.in_sight:
            self._soon.request()

    def _redraw(self) -> None:
        self._stale = True
        if self.in_sight:
            self._stale = False
            self.draw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._redraw()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._stale:  # it was scrolled into sight
            self._scrolled_in.start()
