"""The position in the lessons, and a step's sentences: its text, its question, the answers and the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.engine.fates import Origin, Verdict
from app.lessons.lesson import LessonStep, ToldLesson
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring, hover
from app.ui.widgets import kit
from app.ui.widgets.access import announce
from app.ui.widgets.words import SPACE


@dataclass(frozen=True, slots=True)
class StepAt:
    """A step of a lesson; both are indices."""

    lesson: int
    step: int


class Course(QObject):
    """The lessons, the step on the screen, and the user's answers to its questions."""

    moved = Signal()  # another step, or a question was answered
    finished = Signal()  # someone went on behind the last step

    def __init__(self, lessons: Sequence[ToldLesson]) -> None:
        super().__init__()
        self.lessons = lessons
        self.every = tuple(
            StepAt(lesson, step) for lesson, told in enumerate(lessons) for step in range(len(told.steps))
        )
        self.path: Sequence[StepAt] = self.every
        """The steps of the course."""
        self._place = 0  # in the path
        self._answered: dict[StepAt, int | None] = {}  # the choice; None if the answer was just shown
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
    def step(self) -> LessonStep:
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
        """Answer the question, if one is open and has that choice."""
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


_WRAP = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop


class ChoiceState(StrEnum):
    """Whether an answer was right, in words."""

    OPEN = ""
    RIGHT = "right"
    WRONG = "your answer"


_EDGES = {ChoiceState.RIGHT: Origin.ACCEPTED.value, ChoiceState.WRONG: Verdict.REJECTED.value}
LETTERS = 1  # points by which the words of a lesson are larger than the theme's


class ChoiceRow(QAbstractButton):
    """An answer to choose: the number of its key, its words on as many lines as they need, and whether it was
    right."""

    def __init__(self, theme: Theme, number: int) -> None:
        super().__init__()
        self._theme = theme
        self._number = number
        self._outcome = ChoiceState.OPEN
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.updateGeometry)

    def show_choice(self, text: str, outcome: ChoiceState) -> None:
        """Show an answer."""
        self.setText(text)
        self._outcome = outcome
        said = f"{self._number}: {text}"
        self.setAccessibleName(f"{said}. {outcome}" if outcome else said)
        self.updateGeometry()
        self.update()

    @property
    def _words(self) -> str:
        return f"{self.text()}  ({self._outcome.replace(' ', SPACE)})" if self._outcome else self.text()

    def _room(self, width: int) -> QRect:
        """The rectangle of the words in a row of a width."""
        pad = round(8 * self._theme.scale)
        metrics = QFontMetrics(self._theme.sans(LETTERS))
        left = 2 * pad + metrics.horizontalAdvance("0") + pad
        height = metrics.boundingRect(QRect(0, 0, width - left - pad, 10_000), _WRAP, self._words).height()
        return QRect(left, pad, width - left - pad, height)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._room(width).height() + round(16 * self._theme.scale)

    def sizeHint(self) -> QSize:
        width = round(240 * self._theme.scale)
        return QSize(width, self.heightForWidth(max(self.width(), width)))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.heightForWidth(max(self.width(), 80)))

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        card = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        still = palette.edge if self.isEnabled() else palette.line
        edge = palette.fate(_EDGES[self._outcome]) if self._outcome else still
        painter.setPen(QPen(QColor(focus_ring(palette) if ring_shown(self) else edge), 2))
        pointed = self.underMouse() and self.isEnabled()
        painter.setBrush(QColor(hover(palette) if pointed or self.isDown() else palette.ground))
        painter.drawRoundedRect(card, 6, 6)
        painter.setFont(self._theme.sans(LETTERS))
        room = self._room(self.width())
        painter.setPen(QColor(palette.secondary))
        number = QRect(round(12 * self._theme.scale), room.top(), room.left(), room.height())
        painter.drawText(number, _WRAP, str(self._number))
        painter.setPen(QColor(palette.text))
        painter.drawText(room, _WRAP, self._words)
        painter.end()


_CHOICES = 3


class StepWords(QWidget):
    """Shows the words of the course's step, and reads them aloud if a screen reader listens."""

    def __init__(self, theme: Theme, course: Course, on_stage: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._course = course
        self.says_where = not on_stage  # whether all cards of the round are beside the words
        self.keeps_question = not on_stage  # whether question and other answers stay beside the right one
        self.text, self.verdict, self.why = (kit.label(wrap=True, plain=True) for _ in range(3))
        self.choices = [ChoiceRow(theme, number) for number in range(1, _CHOICES + 1)]
        gap = round(8 * theme.scale)
        kit.column(self.text, *self.choices, self.verdict, self.why, spacing=gap, on=self)
        for index, row in enumerate(self.choices):
            row.clicked.connect(lambda _checked=False, choice=index: course.choose(choice))
        course.moved.connect(self._show)
        theme.changed.connect(self._restyle)
        self._restyle()
        self._show()

    def _show(self) -> None:
        course, step = self._course, self._course.step
        asked = bool(step.choices) and not course.asking
        look = step.look if self.says_where else ""
        text, why = (
            (_joined(step.text, look), "") if not step.choices else (step.text, _joined(step.why, look))
        )
        self.text.setText(_whole(text))
        self.text.setVisible(not asked or self.keeps_question)
        for index, row in enumerate(self.choices):
            right = index == step.right or self.keeps_question
            row.setVisible(index < len(step.choices) and (right or not asked))
            if index < len(step.choices):
                row.show_choice(step.choices[index], _outcome(course, index))
                row.setEnabled(course.asking)
        self.verdict.setText(_verdict(course))
        self.why.setText(_whole(why))
        for label in (self.verdict, self.why):
            label.setVisible(asked and bool(label.text()))
        said = f"{self.verdict.text()} {why}" if asked else text
        self.setAccessibleDescription(said)
        announce(self, said)

    def _restyle(self) -> None:
        for label in (self.text, self.why):
            label.setFont(self._theme.sans(LETTERS))
        self.verdict.setFont(self._theme.sans(LETTERS, QFont.Weight.DemiBold))


def _whole(text: str) -> str:
    """The text with "min(1, p / q)" and "u = 0.5" each kept on one line."""
    for sign in (" / ", " = ", "(1, "):
        text = text.replace(sign, sign.replace(" ", SPACE))
    return text


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
