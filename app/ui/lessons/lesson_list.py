"""The list of the lessons."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.lessons.told import ToldLesson
from app.ui.theme import Theme
from app.ui.widgets.fields.grid_keys import Grid, GridKeys
from app.ui.widgets.fields.two_line_button import TwoLineButton

_TWO_COLUMNS = 720  # pixels at text scale 1


class LessonList(QWidget):
    """All lessons by title, and what they show."""

    chosen = Signal(int)
    """The index of a lesson."""

    def __init__(self, theme: Theme, lessons: Sequence[ToldLesson]) -> None:
        super().__init__()
        self._theme = theme
        title = QLabel("Lessons")
        title.setProperty("role", "title")
        help_line = QLabel(
            "Recorded answers, step by step, each with a question. No model is needed. Lessons marked SmolLM2"
            " show a real model, the others the small pair, which is made to be fast. Right and Left go"
            " through the steps, 1, 2 and 3 answer."
        )
        help_line.setProperty("role", "secondary")
        help_line.setWordWrap(True)
        self.tour = QPushButton("Take the tour (3 minutes)")
        self.stage = QPushButton("Stage")
        self.stage.setToolTip("Show the lessons in large type on the whole screen, for an audience (F5)")
        self.rows = [
            TwoLineButton(
                theme, f"{number}  {lesson.title}{' · SmolLM2' if lesson.real else ''}", lesson.about
            )
            for number, lesson in enumerate(lessons, start=1)
        ]
        self.toy = TwoLineButton(
            theme,
            "Try the law",
            "Three letters: drag p and q, and draw a thousand times. Two letters: what a block gains.",
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
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(title, 1)
        head.addWidget(self.tour)
        head.addWidget(self.stage)
        column.addLayout(head)
        column.addWidget(help_line)
        column.addLayout(self._grid)
        column.addStretch(1)
        area = QScrollArea()
        area.setWidget(holder)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(area)
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
