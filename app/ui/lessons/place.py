"""The Lessons place: the list of the lessons, and the player."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout

from app.ui.lessons.course import Course
from app.ui.lessons.lesson_list import LessonList
from app.ui.lessons.player import LessonPlayer
from app.ui.lessons.stage import LessonStage
from app.ui.state.inspection import Inspection
from app.ui.theme import Theme
from app.ui.widgets.lazy_place import PlaceWidget


class LessonsPlace(PlaceWidget):
    """Shows the list until a lesson is chosen."""

    def __init__(self, theme: Theme, course: Course, inspection: Inspection) -> None:
        super().__init__()
        self._course = course
        self._inspection = inspection
        self.list = LessonList(theme, course.lessons)
        self.player = LessonPlayer(theme, course, self._inspect)
        self._stack = QStackedWidget()
        for part in (self.list, self.player):
            self._stack.addWidget(part)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._stack)
        self.list.chosen.connect(self.open)
        self.player.left.connect(self.show_list)
        course.finished.connect(self.show_list)
        self.stage = LessonStage(theme, course, self)
        self.list.stage.clicked.connect(self.open_stage)

    @Slot(int)
    def open(self, lesson: int) -> None:
        """Begin a lesson."""
        self._course.open(lesson)
        self._stack.setCurrentWidget(self.player)

    @Slot()
    def show_list(self) -> None:
        """Show the list, at the lesson that was on the screen."""
        self._stack.setCurrentWidget(self.list)
        self.list.set_current(self._course.at.lesson)

    @Slot()
    def open_stage(self) -> None:
        """Show the step on the whole screen."""
        self._stack.setCurrentWidget(self.player)
        self.stage.showFullScreen()
        self.stage.setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_F5:
            self.open_stage()
        else:
            super().keyPressEvent(event)

    def close_place(self) -> None:
        self.stage.close()

    @Slot()
    def _inspect(self) -> None:
        """Open the step's round in the Inspector; Esc comes back."""
        answer = self._course.answer
        if answer.inspected is not None:
            self._inspection.open(answer, answer.inspected, self._course.lesson.title)
