"""The sentences of a step: its text, its question with the answers, and why."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.ui.lessons.choice_row import LETTERS, ChoiceRow, ChoiceState
from app.ui.lessons.course import Course
from app.ui.theme import Theme
from app.ui.widgets.announce import announce

_CHOICES = 3


class StepWords(QWidget):
    """Shows the words of the course's step, and reads them aloud where a screen reader listens."""

    def __init__(self, theme: Theme, course: Course, on_stage: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._course = course
        self.says_where = not on_stage  # whether all cards of the round stand beside the words
        self.keeps_question = not on_stage  # whether question and other answers stay beside the right one
        self.text, self.verdict, self.why = (QLabel() for _ in range(3))
        self.choices = [ChoiceRow(theme, number) for number in range(1, _CHOICES + 1)]
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(round(8 * theme.scale))
        for label in (self.text, self.verdict, self.why):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        for widget in (self.text, *self.choices, self.verdict, self.why):
            column.addWidget(widget)
        for index, row in enumerate(self.choices):
            row.clicked.connect(lambda _checked=False, choice=index: course.choose(choice))
        course.moved.connect(self._show)
        theme.changed.connect(self._restyle)
        self._restyle()
        self._show()

    @Slot()
    def _show(self) -> None:
        course, step = self._course, self._course.step
        asked = bool(step.choices) and not course.asking
        look = step.look if self.says_where else ""
        text, why = (
            (_joined(step.text, look), "") if not step.choices else (step.text, _joined(step.why, look))
        )
        self.text.setText(text)
        self.text.setVisible(not asked or self.keeps_question)
        for index, row in enumerate(self.choices):
            right = index == step.right or self.keeps_question
            row.setVisible(index < len(step.choices) and (right or not asked))
            if index < len(step.choices):
                row.show_choice(step.choices[index], _outcome(course, index))
                row.setEnabled(course.asking)
        self.verdict.setText(_verdict(course))
        self.why.setText(why)
        for label in (self.verdict, self.why):
            label.setVisible(asked and bool(label.text()))
        said = f"{self.verdict.text()} {why}" if asked else text
        self.setAccessibleDescription(said)
        announce(self, said)

    @Slot()
    def _restyle(self) -> None:
        for label in (self.text, self.why):
            label.setFont(self._theme.sans(LETTERS))
        self.verdict.setFont(self._theme.sans(LETTERS, QFont.Weight.DemiBold))


def _joined(*paragraphs: str) -> str:
    return "\n\n".join(filter(None, paragraphs))


def _outcome(course: Course, choice: int) -> ChoiceState:
    if course.asking:
        return ChoiceState.OPEN
    if choice == course.step.right:
        return ChoiceState.RIGHT
    return ChoiceState.WRONG if choice == course.chosen else ChoiceState.OPEN


def _verdict(course: Course) -> str:
    if course.chosen is None:
        return ""
    return "Yes." if course.chosen == course.step.right else f"No: {course.step.right + 1} is right."
