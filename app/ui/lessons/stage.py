"""The stage: the lessons on a screen of their own, in large type, for an audience."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QColor, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLayout, QVBoxLayout, QWidget

from app.ui.inspector.replay.slow_motion import RoundPhase, SlowMotion
from app.ui.inspector.round.card import Card
from app.ui.inspector.round.content import CardContent
from app.ui.inspector.round.contents import cards_of
from app.ui.lessons.answer_text import AnswerText
from app.ui.lessons.course import Course
from app.ui.lessons.words import StepWords
from app.ui.theme import Theme
from app.ui.theme.following import LargeTheme
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.text.elided import ElidedLabel

LEAST = 28  # pixels of the smallest letters on a screen 768 pixels high
_HEIGHT = 768
_LINES = 2.3  # of the answer's text


class LessonStage(QWidget):
    """Shows the course's step: the line of the answer, the words, and the card that they are about.

    Right, Space, Enter or Page Down go on, to the next lesson too; Left or Page Up go back; 1, 2 and 3
    answer; Esc leaves. There is nothing else to press.
    """

    left = Signal()

    def __init__(self, theme: Theme, course: Course, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self._theme = theme
        self.course = course
        self._large = LargeTheme(theme, self, least=-1.5)  # of cards
        self._prose = LargeTheme(theme, self, least=1)  # of running text
        self.setWindowTitle("Lessons")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.title = ElidedLabel()
        self.text = AnswerText(self._prose, course)
        self.text.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.text.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.coming = SlowMotion(self._large)
        self.coming.setAccessibleName("Draft of the coming round")
        self.words = StepWords(self._prose, course)
        self.words.keeps_question = False
        for row in self.words.choices:
            row.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.card = Card(self._large, self)
        self.card.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        body = QHBoxLayout()
        body.setSpacing(24)
        side = QVBoxLayout()
        side.addWidget(self.words)
        side.addStretch(1)
        body.addLayout(side, 4)
        body.addWidget(self.card, 5, Qt.AlignmentFlag.AlignTop)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(24, 8, 24, 4)
        self._column.setSpacing(2)
        # Letters follow the height; a window that grew with its letters would never end growing.
        self._column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        for part in (self.title, self.text, self.coming):
            self._column.addWidget(part)
        self._column.addLayout(body, 1)
        course.moved.connect(self._show)
        theme.changed.connect(self._fit)
        self._show()

    @Slot()
    def _show(self) -> None:
        course, lesson, step = self.course, self.course.lesson, self.course.step
        record = lesson.trace.rounds[step.round]
        number = course.at.lesson + 1
        self.title.set_text(f"{number}  {lesson.title} · {course.at.step + 1} of {len(lesson.steps)}")
        self.coming.show_phase(RoundPhase(record, len(record.drafted), 0) if course.asking else None)
        shown = step.card != "none" and not course.asking
        if shown:
            cards = cards_of(record, lesson.trace.header)
            place = step.place if step.card == "drafted" and step.place is not None else -1
            self.card.show_content(for_stage(cards[place]))
        self.card.setVisible(shown)
        self._fit()

    # ------------------------------------------------------------------ keys

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not KEYS.act(self, event):
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.left.emit()

    # ------------------------------------------------------------------ the look

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @Slot()
    def _fit(self) -> None:
        """Give the letters their size, and the answer's text its lines."""
        pixels = LEAST * max(self.height() / _HEIGHT, 1.0)
        for theme in (self._large, self._prose):
            theme.set_pixels(pixels)
        self.title.setFont(self._prose.sans(1))
        self.text.setFixedHeight(round(_LINES * self.text.stack.setting.styles.empty_line * 1.8))
        margins = self._column.contentsMargins()
        room = (self.width() - margins.left() - margins.right() - 24) * 5 // 9
        if not self.card.isHidden():
            self.card.setFixedSize(room, self.card.height_for(room))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.palette.ground))
        painter.end()


def for_stage(content: CardContent) -> CardContent:
    """A card with what can be read from far: the tokens that it is about, the first sum and the last; of a
    residual, where the first is long, the last."""
    return replace(
        content,
        word=content.fate,
        bars=tuple(row for row in content.bars if row.chosen) or content.bars[:1],
        sums=tuple(dict.fromkeys((*content.sums[: int(not content.wide)], *content.sums[-1:]))),
        notes=(),
        wide=False,
    )


KEYS: KeyTable[LessonStage] = KeyTable(
    ("Space Right PgDown Return Enter", "Stage: the next step or lesson", lambda stage: stage.course.next()),
    ("Left PgUp Backspace", "Stage: the step before", lambda stage: stage.course.back()),
    ("1", "Stage: the first answer", lambda stage: stage.course.choose(0)),
    ("2", "Stage: the second answer", lambda stage: stage.course.choose(1)),
    ("3", "Stage: the third answer", lambda stage: stage.course.choose(2)),
    ("Escape", "Stage: leave it", lambda stage: stage.close()),
)
