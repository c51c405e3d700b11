"""The tour: steps of lessons, then the parts of the window, each marked where it is."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.lessons.lesson import TourPart, TourPlan
from app.ui.lessons.course import Course, StepAt
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.access import announce
from app.ui.widgets.popover import Popover

_RING = 4  # pixels around the part


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
        self._shown: list[tuple[TourPart, QWidget, QWidget]] = []  # framed, and beside which the words stand
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
