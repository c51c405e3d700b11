"""Where one is in the lessons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.lessons.told import ToldLesson, ToldStep
from app.ui.state.answer import AnswerModel


@dataclass(frozen=True, slots=True)
class StepAt:
    """A step of a lesson; both are indices."""

    lesson: int
    step: int


class Course(QObject):
    """The lessons, the step on the screen, and what was chosen where a step asks."""

    moved = Signal()  # another step, or a question was answered
    finished = Signal()  # somebody went on behind the last step

    def __init__(self, lessons: Sequence[ToldLesson]) -> None:
        super().__init__()
        self.lessons = lessons
        self.every = tuple(
            StepAt(lesson, step) for lesson, told in enumerate(lessons) for step in range(len(told.steps))
        )
        self.path: Sequence[StepAt] = self.every
        """The steps that are gone through."""
        self._place = 0  # in the path
        self._answered: dict[StepAt, int | None] = {}  # the choice; None where the answer was just shown
        self._answers = [AnswerModel(told.trace) for told in lessons]
        for answer, told in zip(self._answers, lessons, strict=True):
            answer.measure(told.measurement)
        self._show()

    # ------------------------------------------------------------------ where it is

    @property
    def at(self) -> StepAt:
        return self.path[self._place]

    @property
    def lesson(self) -> ToldLesson:
        return self.lessons[self.at.lesson]

    @property
    def step(self) -> ToldStep:
        return self.lesson.steps[self.at.step]

    @property
    def answer(self) -> AnswerModel:
        """The recorded answer, shown up to the step's round."""
        return self._answers[self.at.lesson]

    @property
    def asking(self) -> bool:
        """Whether the step asks, and its round is not shown yet."""
        return bool(self.step.choices) and self.at not in self._answered

    @property
    def chosen(self) -> int | None:
        """The choice that was made at this step."""
        return self._answered.get(self.at)

    @property
    def is_first(self) -> bool:
        return self._place == 0

    @property
    def is_last(self) -> bool:
        return self._place == len(self.path) - 1

    # ------------------------------------------------------------------ going on

    def open(self, lesson: int) -> None:
        """Go to the start of a lesson, with its questions open again."""
        self.follow(self.every, self.every.index(StepAt(lesson, 0)))

    def follow(self, path: Sequence[StepAt], place: int = 0) -> None:
        """Go through these steps, from one of them on."""
        self.path, self._answered = path, {}
        self._go(place)

    def next(self) -> None:
        """Show the answer to a question that is open, else the next step."""
        if self.asking:
            self._answer(None)
        elif self.is_last:
            self.finished.emit()
        else:
            self._go(self._place + 1)

    def back(self) -> None:
        """Go to the step before."""
        if not self.is_first:
            self._go(self._place - 1)

    def choose(self, choice: int) -> None:
        """Answer the question, where one is open and has that choice."""
        if self.asking and 0 <= choice < len(self.step.choices):
            self._answer(choice)

    def _answer(self, choice: int | None) -> None:
        self._answered[self.at] = choice
        self._show()

    def _go(self, place: int) -> None:
        self._place = place
        self._show()

    def _show(self) -> None:
        """Show the answer up to the round, or up to the round before while the question is open."""
        self.answer.pin(None)
        self.answer.move(self.step.round + (not self.asking))
        self.moved.emit()
