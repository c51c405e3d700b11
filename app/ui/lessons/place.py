"""The Lessons place: the list of the lessons, and the player."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.lessons.lesson import ToldLesson, TourPlan
from app.ui.lessons.course import Course
from app.ui.lessons.player import LessonPlayer
from app.ui.lessons.stage import LessonStage
from app.ui.lessons.tour import Tour
from app.ui.lessons.toy import LawToy
from app.ui.state.chat_side import Inspection
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.buttons import TwoLineButton
from app.ui.widgets.keys import Grid, GridKeys, KeyTable
from app.ui.widgets.lazy_place import PlaceWidget

_TWO_COLUMNS = 1100  # pixels at text scale 1: the longest line fits into half of them


class LessonList(QWidget):
    """All lessons by title, and what they show."""

    chosen = Signal(int)
    """The index of a lesson."""

    def __init__(self, theme: Theme, lessons: Sequence[ToldLesson]) -> None:
        super().__init__()
        self._theme = theme
        help_line = kit.label(
            "Recorded answers, step by step, each with a question. No model is needed. Lessons marked "
            "SmolLM2 show a real model; the others use the small, fast pair. Right and Left move between "
            "steps; 1, 2 and 3 answer.",
            "secondary",
            wrap=True,
        )
        self.tour = QPushButton("Take the tour (3 minutes)")
        self.stage = kit.button(
            "Stage", tip="Show the lessons full screen in large type, for an audience (F5)"
        )
        self.rows = [
            TwoLineButton(
                theme, f"{number}  {lesson.title}{' · SmolLM2' if lesson.real else ''}", lesson.about
            )
            for number, lesson in enumerate(lessons, start=1)
        ]
        self.toy = TwoLineButton(
            theme,
            "Try the rule",
            "Drag p and q, then draw a thousand times. See what block verification gains.",
        )
        self._keys = GridKeys(self, self._grid_shown)
        holder = QWidget()
        self._grid = QGridLayout()
        self._grid.setSpacing(4)
        for index, row in enumerate(self.rows):
            row.clicked.connect(lambda _checked=False, lesson=index: self.chosen.emit(lesson))
        for row in (*self.rows, self.toy):
            self._keys.watch(row)
        column = QVBoxLayout(holder)
        column.setContentsMargins(24, 16, 24, 16)
        column.setSpacing(12)
        head = kit.row((kit.label("Lessons", "title"), 1), self.tour, self.stage, spacing=8)
        column.addLayout(head)
        column.addWidget(help_line)
        column.addLayout(self._grid)
        column.addStretch(1)
        area = kit.scroll("Lessons", holder)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        kit.column(area, on=self)
        self._lay_out()

    def set_current(self, lesson: int) -> None:
        """Mark the lesson that was opened last, and give it the focus."""
        for index, row in enumerate(self.rows):
            row.set_current(index == lesson)
        self.rows[lesson].setFocus(Qt.FocusReason.OtherFocusReason)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        current = next((row for row in self.rows if row.current), self.rows[0])
        current.setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _grid_shown(self) -> Grid:
        columns = 2 if self.width() >= _TWO_COLUMNS * self._theme.scale else 1
        rows = [*self.rows, self.toy]
        return [rows[at : at + columns] for at in range(0, len(rows), columns)]

    def _lay_out(self) -> None:
        grid = self._grid_shown()
        for column in range(2):
            self._grid.setColumnStretch(column, int(column < len(grid[0])))
        for y, row in enumerate(grid):
            for x, button in enumerate(row):
                self._grid.addWidget(button, y, x)


class LessonsPlace(PlaceWidget):
    """Shows the list until a lesson is chosen."""

    def __init__(
        self,
        theme: Theme,
        course: Course,
        plan: TourPlan,
        inspection: Inspection,
        go: Callable[[str], None],
        tour_wanted: Callable[[], bool],
    ) -> None:
        """`go` shows a place of the window; `tour_wanted` says, once, whether another place asked for the
        tour."""
        super().__init__()
        self._tour_wanted = tour_wanted
        self._course = course
        self._inspection = inspection
        self.list = LessonList(theme, course.lessons)
        self.player = LessonPlayer(theme, course, self._inspect)
        self._stack = QStackedWidget()
        self.toy = LawToy(theme)
        for part in (self.list, self.player, self.toy):
            self._stack.addWidget(part)
        kit.column(self._stack, on=self)
        self.list.chosen.connect(self.open)
        self.player.left.connect(self.show_list)
        self.list.toy.clicked.connect(self.open_toy)
        self.toy.left.connect(self.show_list)
        course.finished.connect(self._finish)
        course.moved.connect(self._watch)
        self._stack.currentChanged.connect(self._watch)
        self.tour = Tour(theme, course, plan, self, go)
        self.list.tour.clicked.connect(self.take_tour)
        self.stage = LessonStage(theme, course, self)
        self.list.stage.clicked.connect(self.open_stage)

    def open(self, lesson: int) -> None:
        """Start a lesson."""
        self.tour.stop()
        self._course.open(lesson)
        self._stack.setCurrentWidget(self.player)

    def open_toy(self) -> None:
        """Show the toy."""
        self._stack.setCurrentWidget(self.toy)
        self.toy.bars[0].setFocus(Qt.FocusReason.TabFocusReason)

    def take_tour(self) -> None:
        """Start the tour."""
        self.tour.start()
        self._stack.setCurrentWidget(self.player)

    def _finish(self) -> None:
        """After the last step the tour continues in the chat; otherwise the list is shown again."""
        if self.tour.running:
            self.stage.close()
            self.tour.show_parts()
        else:
            self.show_list()

    def show_list(self) -> None:
        """Show the list, at the lesson that was on the screen."""
        self.tour.stop()
        self._stack.setCurrentWidget(self.list)
        self.list.set_current(self._course.at.lesson)

    def open_stage(self) -> None:
        """Show the step on the whole screen, or from the list the last opened lesson from its start."""
        if self.list.isVisible():
            self.open(self._course.at.lesson)
        self._stack.setCurrentWidget(self.player)
        self.stage.showFullScreen()
        self.stage.setFocus(Qt.FocusReason.OtherFocusReason)

    def _watch(self) -> None:
        """Let the status bar show the numbers of the lesson on the screen."""
        shown = self.isVisible() and self._stack.currentWidget() is self.player
        self._inspection.watch_lesson(self._course.answer if shown else None)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._watch()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._watch()
        if self._tour_wanted():
            self.take_tour()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not KEYS.act(self, event):
            super().keyPressEvent(event)

    def close_place(self) -> None:
        self.stage.close()

    def _inspect(self) -> None:
        """Open the step's round in the Inspector; Esc comes back."""
        answer = self._course.answer
        if answer.inspected is not None:
            self._inspection.open(answer, answer.inspected, self._course.lesson.title)


KEYS: KeyTable[LessonsPlace] = KeyTable(("F5", "Show the lessons to an audience", LessonsPlace.open_stage))
