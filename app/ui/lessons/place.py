"""The Lessons place: the list of the lessons, the player, and the tour. The tour shows some steps, then the
parts of the window, each marked where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.lessons.lesson import ToldLesson, TourPart, TourPlan
from app.ui.lessons.course import Course, StepAt
from app.ui.lessons.player import LessonPlayer
from app.ui.lessons.stage import LessonStage
from app.ui.lessons.toy import LawToy
from app.ui.state.chat_side import Inspection
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.access import announce
from app.ui.widgets.buttons import TwoLineButton
from app.ui.widgets.keys import Grid, GridKeys, KeyTable
from app.ui.widgets.lazy_place import PlaceWidget
from app.ui.widgets.popover import Popover

_RING = 4  # pixels around a part of the window
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
            "SmolLM2 show a real model; the others use the small, fast pair. Right and Left change the "
            "step, and 1, 2 and 3 answer its question.",
            "secondary",
            wrap=True,
        )
        self.tour = kit.button("Take the tour (3 minutes)")
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
        self._grid = kit.grid((4, 4))
        for index, row in enumerate(self.rows):
            row.clicked.connect(lambda _checked=False, lesson=index: self.chosen.emit(lesson))
        for row in (*self.rows, self.toy):
            self._keys.watch(row)
        head = kit.row((kit.label("Lessons", "title"), 1), self.tour, self.stage, spacing=8)
        parts = head, help_line, self._grid, kit.Spring(1)
        area = kit.scroll("Lessons", kit.holder(kit.column(*parts, margins=(24, 16, 24, 16), spacing=12)))
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


class Tour(QObject):
    """Shows its steps in the course, then the parts of the window, with a panel beside each."""

    def __init__(
        self, theme: Theme, course: Course, plan: TourPlan, place: QWidget, go: Callable[[str], None]
    ) -> None:
        """`place` is in the window whose parts are shown; `go` shows a place of it."""
        super().__init__(place)
        names = [lesson.name for lesson in course.lessons]
        self._path = tuple(StepAt(names.index(step.lesson), step.step - 1) for step in plan.steps)
        self.running = False
        self._course = course
        self._parts = plan.parts
        self._place = place
        self._go = go
        self._shown: list[tuple[TourPart, QWidget, QWidget]] = []  # framed, and beside the words
        self._at = 0
        self._moving = False
        self.card = _PartCard()
        self._panel = Popover(theme, self.card, 380)
        self._panel.setParent(place)  # deleted with it; once opened it belongs to the window
        self._ring = _Ring(place)
        self.card.back.clicked.connect(lambda: self._show(self._at - 1))
        self.card.next.clicked.connect(lambda: self._show(self._at + 1))
        self._panel.closed.connect(self._closed)

    def start(self) -> None:
        """Start with the first step."""
        self.running = True
        self._course.follow(self._path)

    def stop(self) -> None:
        """Leave the tour."""
        self.running = False
        self._ring.mark(None)

    def show_parts(self) -> None:
        """Continue in the chat, with the parts that are on the screen there."""
        self._go("chat")
        self._shown = []
        for part in self._parts:
            framed, anchor = self._find(part.name), self._find(part.below or part.name)
            if framed is not None and anchor is not None:
                self._shown.append((part, framed, anchor))
        self._show(0)

    def _find(self, name: str) -> QWidget | None:
        """The first visible widget of the window whose name begins so."""
        widgets = self._place.window().findChildren(QWidget)
        return next((at for at in widgets if at.isVisible() and _name(at).startswith(name)), None)

    def _show(self, at: int) -> None:
        """Show a part; after the last one the tour is over. The keyboard is at the part."""
        self._moving = True
        self._panel.close_panel()
        self._moving = False
        if not 0 <= at < len(self._shown):
            self.stop()
            if self._shown:
                self._shown[-1][1].setFocus(Qt.FocusReason.OtherFocusReason)
            return
        self._at = at
        part, framed, anchor = self._shown[at]
        self._ring.mark(framed)
        self.card.show_part(part.words, at, len(self._shown))
        self._panel.open_below(anchor)
        self.card.next.setFocus(Qt.FocusReason.TabFocusReason)

    def _closed(self) -> None:
        """Esc or a click elsewhere leaves the tour."""
        if not self._moving:
            self.stop()


def _name(widget: QWidget) -> str:
    """A widget's accessible name; for a button without one, its text."""
    return widget.accessibleName() or (widget.text() if isinstance(widget, QAbstractButton) else "")


class _PartCard(QWidget):
    """The words about a part, and buttons to the next and the previous one; Left and Right do the same."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.place = kit.label(wrap=True, plain=True), kit.label(role="secondary")
        self.back, self.next = kit.button("Back"), kit.button(kind="primary")
        for button in (self.back, self.next):
            button.installEventFilter(self)
        row = kit.row((self.place, 1), self.back, self.next, spacing=8)
        kit.column(self.text, row, spacing=12, on=self)

    def show_part(self, text: str, at: int, count: int) -> None:
        """Show the words of a part."""
        self.text.setText(text)
        self.place.setText(f"{at + 1} of {count}")
        self.back.setEnabled(at > 0)
        self.next.setText("Next" if at + 1 < count else "Done")
        announce(self, text)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Continue with the arrow keys, with which buttons would pass on the focus."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Right:
                self.next.click()
                return True
            if event.key() == Qt.Key.Key_Left:
                self.back.click()
                return True
        return super().eventFilter(watched, event)


class _Ring(QWidget):
    """A frame around a part of the window; clicks go through it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._part: QWidget | None = None
        kit.ground(self, "ring")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def mark(self, part: QWidget | None) -> None:
        """Frame a part; None hides the frame."""
        if self._part is not None:
            self._part.removeEventFilter(self)
        self._part = part
        if part is not None:
            self.setParent(part.window())
            part.installEventFilter(self)
            self._follow()
            self.raise_()
        self.setVisible(part is not None)

    def _follow(self) -> None:
        part = self._part
        if part is not None:
            corner = part.mapTo(part.window(), part.rect().topLeft())
            self.setGeometry(part.rect().translated(corner).adjusted(-_RING, -_RING, _RING, _RING))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Move, QEvent.Type.Resize):
            self._follow()
        return super().eventFilter(watched, event)


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
        self.toy = LawToy(theme)
        self._stack = kit.stack(self.list, self.player, self.toy)
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
