"""The Lessons place: the list of the lessons, and the player."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout

from app.lessons.lesson import TourPlan
from app.ui.lessons.course import Course
from app.ui.lessons.lesson_list import LessonList
from app.ui.lessons.player import LessonPlayer
from app.ui.lessons.stage import LessonStage
from app.ui.lessons.tour import Tour
from app.ui.lessons.toy import LawToy
from app.ui.state.inspection import Inspection
from app.ui.theme import Theme
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.lazy_place import PlaceWidget


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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._stack)
        self.list.chosen.connect(self.open)
        self.player.left.connect(self.show_list)
        self.list.toy.clicked.connect(self.open_toy)
        self.toy.left.connect(self.show_list)
        course.finished.connect(self._finish)
        self.tour = Tour(theme, course, plan, self, go)
        self.list.tour.clicked.connect(self.take_tour)
        self.stage = LessonStage(theme, course, self)
        self.list.stage.clicked.connect(self.open_stage)

    @Slot(int)
    def open(self, lesson: int) -> None:
        """Begin a lesson."""
        self.tour.stop()
        self._course.open(lesson)
        self._stack.setCurrentWidget(self.player)

    @Slot()
    def open_toy(self) -> None:
        """Show the toy."""
        self._stack.setCurrentWidget(self.toy)
        self.toy.bars[0].setFocus(Qt.FocusReason.TabFocusReason)

    @Slot()
    def take_tour(self) -> None:
        """Begin the tour."""
        self.tour.start()
        self._stack.setCurrentWidget(self.player)

    @Slot()
    def _finish(self) -> None:
        """Behind the last step the tour goes on in the chat; otherwise the list is shown again."""
        if self.tour.running:
            self.stage.close()
            self.tour.show_parts()
        else:
            self.show_list()

    @Slot()
    def show_list(self) -> None:
        """Show the list, at the lesson that was on the screen."""
        self.tour.stop()
        self._stack.setCurrentWidget(self.list)
        self.list.set_current(self._course.at.lesson)

    @Slot()
    def open_stage(self) -> None:
        """Show the step on the whole screen, or from the list the last opened lesson from its start."""
        if self.list.isVisible():
            self.open(self._course.at.lesson)
        self._stack.setCurrentWidget(self.player)
        self.stage.showFullScreen()
        self.stage.setFocus(Qt.FocusReason.OtherFocusReason)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._tour_wanted():
            self.take_tour()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not KEYS.act(self, event):
            super().keyPressEvent(event)

    def close_place(self) -> None:
        self.stage.close()

    @Slot()
    def _inspect(self) -> None:
        """Open the step's round in the Inspector; Esc comes back."""
        answer = self._course.answer
        if answer.inspected is not None:
            self._inspection.open(answer, answer.inspected, self._course.lesson.title)


KEYS: KeyTable[LessonsPlace] = KeyTable(("F5", "Show the lessons to an audience", LessonsPlace.open_stage))
