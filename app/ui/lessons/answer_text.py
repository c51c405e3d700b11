"""The text of a lesson's answer, with a frame around the step's round."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent

from app.ui.lessons.course import Course
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn, TranscriptView


class AnswerText(TranscriptView):
    """Shows the answer of the course up to its step."""

    def __init__(self, theme: Theme, course: Course) -> None:
        super().__init__(theme)
        self.course = course
        self._shown: AnswerModel | None = None
        self.setAccessibleName("Answer")
        self.regenerates = False
        self.set_empty_words("", "")
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        course.moved.connect(self.follow_step)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.follow_step()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.follow_step()

    @Slot()
    def follow_step(self) -> None:
        """Show the text of the step's answer, and frame its round."""
        if not self.isVisible():
            return
        answer = self.course.answer
        if self._shown is not answer:
            self._shown = answer
            self.set_turns([AnswerTurn(answer, "")])
        self.catch_up()
        for turn in self.turns:
            self.frame_round(turn, answer.inspected)
            if self.course.asking:  # the latest round stays in sight, but the question is not about it
                self.frame_round(turn, None)
