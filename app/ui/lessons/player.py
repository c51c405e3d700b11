"""The player: a step of a lesson beside its round."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.ui.inspector.replay.slow_motion import RoundPhase, SlowMotion
from app.ui.inspector.round.round_view import RoundView
from app.ui.lessons.answer_text import AnswerText
from app.ui.lessons.course import Course
from app.ui.lessons.words import StepWords
from app.ui.theme import Theme
from app.ui.widgets.text.elided import ElidedLabel
from app.ui.widgets.text.tips import as_text

_WIDE = 820  # pixels at text scale 1: from here on the words stand beside the cards, not above them
_LEAST_LINES = 2.5  # of the answer's text that are always in sight
_TEXT_SHARE = 0.24  # of the height, at most, for that text
CHOICE_KEYS = {Qt.Key.Key_1: 0, Qt.Key.Key_2: 1, Qt.Key.Key_3: 2}


class LessonPlayer(QWidget):
    """Shows the course's step, and moves it by buttons and keys."""

    left = Signal()  # back to the list

    def __init__(self, theme: Theme, course: Course, inspect: Callable[[], None]) -> None:
        """`inspect` opens the round of the step in the Inspector."""
        super().__init__()
        self._theme = theme
        self._course = course
        self.title, self.place = QLabel(), QLabel()
        self.title.setProperty("role", "title")
        self.place.setProperty("role", "secondary")
        self.asked = ElidedLabel()
        self.asked.setProperty("role", "secondary")
        self.inspect = QPushButton("Inspector")
        self.inspect.setToolTip("Open this round in the Inspector, with the timeline and the replay")
        self.inspect.clicked.connect(inspect)
        self.text = AnswerText(theme, course)
        self.coming = SlowMotion(theme)
        self.coming.setAccessibleName("Draft of the coming round")
        self.words = StepWords(theme, course)
        self.round = RoundView(theme)
        self.back = QPushButton("Back")
        self.next = QPushButton("Next")
        self.next.setProperty("kind", "primary")
        self.back.setToolTip("The step before (Left)")
        self.next.setToolTip("The next step (Right)")
        self.back.clicked.connect(course.back)
        self.next.clicked.connect(course.next)
        self._lay_out()
        for widget in (self.text, self._words_area, self._cards, self.next, self.back, *self.words.choices):
            widget.installEventFilter(self)
        course.moved.connect(self._show)
        theme.changed.connect(self._fit)
        self._show()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(24, 12, 24, 4)
        head.setSpacing(12)
        for widget in (self.title, self.place):
            head.addWidget(widget)
        head.addStretch(1)
        head.addWidget(self.inspect)
        about = QHBoxLayout()
        about.setContentsMargins(24, 0, 24, 8)
        about.addWidget(self.asked)
        self._words_area = _scrolled(self.words)
        self._cards = _scrolled(self.round)
        keeps = self._cards.sizePolicy()
        keeps.setRetainSizeWhenHidden(True)  # so that the question stays where it was
        self._cards.setSizePolicy(keeps)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addStretch(1)
        for button in (self.back, self.next):
            buttons.addWidget(button)
        side = QVBoxLayout()
        side.addWidget(self._words_area, 1)
        side.addLayout(buttons)
        self._body = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._body.setContentsMargins(24, 12, 24, 16)
        self._body.setSpacing(24)
        self._body.addLayout(side, 2)
        self._body.addWidget(self._cards, 3)
        line = QFrame()
        line.setProperty("kind", "line")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addLayout(about)
        for part in (line, self.text, self.coming):
            column.addWidget(part)
        column.addLayout(self._body, 1)

    @Slot()
    def _show(self) -> None:
        course, lesson, step = self._course, self._course.lesson, self._course.step
        header = lesson.trace.header
        self.title.setText(lesson.title)
        self.place.setText(f"Step {course.at.step + 1} of {len(lesson.steps)}")
        question = header.messages[-1].content if header.messages else header.prompt
        asked = (
            f"{' '.join(question.split())} · {header.strategy} · temperature {header.sampling.temperature:g}"
        )
        self.asked.set_text(asked)
        self.asked.setToolTip(as_text(question))
        if self.round.answer is not course.answer:
            self.round.set_answer(course.answer)
        record = lesson.trace.rounds[step.round]
        # While the question is open only the draft is there: the cards would tell.
        self.coming.show_phase(RoundPhase(record, len(record.drafted), 0) if course.asking else None)
        self._cards.setVisible(not course.asking)
        self.next.setText("Show the answer" if course.asking else "Next")
        self.back.setEnabled(not course.is_first)
        self._fit()
        self._cards.verticalScrollBar().setValue(0)
        self._words_area.verticalScrollBar().setValue(0)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the keys before areas that would scroll with them, and buttons that would pass them on."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and not event.modifiers():
            return self._act_on(event.key())
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Right and left go from step to step; 1, 2 and 3 answer; Esc goes back to the list."""
        if not self._act_on(event.key()):
            super().keyPressEvent(event)

    def _act_on(self, key: int) -> bool:
        course = self._course
        match key:
            case Qt.Key.Key_Right | Qt.Key.Key_PageDown:
                course.next()
            case Qt.Key.Key_Left | Qt.Key.Key_PageUp:
                course.back()
            case Qt.Key.Key_1 | Qt.Key.Key_2 | Qt.Key.Key_3 if course.asking:
                course.choose(CHOICE_KEYS[Qt.Key(key)])
            case Qt.Key.Key_Escape:
                self.left.emit()
            case _:
                return False
        return True

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @Slot()
    def _fit(self) -> None:
        """Put the words beside the cards where there is room, and give the text its share of the height."""
        wide = self.width() >= _WIDE * self._theme.scale
        directions = QBoxLayout.Direction
        self._body.setDirection(directions.LeftToRight if wide else directions.TopToBottom)
        line = QFontMetricsF(self._theme.sans(2)).height() * 1.6
        most = max(_LEAST_LINES * line, self.height() * _TEXT_SHARE)
        self.text.setFixedHeight(round(min(max(self.text.stack.height, _LEAST_LINES * line), most)))
        styles = self.text.stack.setting.styles
        self.text.setMaximumWidth(styles.column + 2 * styles.margin)


def _scrolled(widget: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidget(widget)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return area
