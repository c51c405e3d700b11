"""Messages where the user acted: what went wrong and what to do, or what is happening. Also the contents of
an empty view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal, SignalInstance
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QSizePolicy, QWidget

from app.engine.errors import UserError
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.icons import IconButton

WIDTH = 27  # times the height of a line


class Placeholder(QWidget):
    """A title, a sentence and, if there is something to do, buttons."""

    def __init__(self) -> None:
        super().__init__()
        middle, side = Qt.AlignmentFlag.AlignCenter, kit.Spring(1)
        self._limited: list[QWidget] = []
        self._title = kit.label("", "title", plain=True, side=middle)
        self._words = kit.label("", "secondary", wrap=True, plain=True, side=middle)
        self._words.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._buttons = kit.row(spacing=8)
        upper = kit.Spring(2), (self._title, 0, Qt.AlignmentFlag.AlignHCenter)
        lower = self._limit(self._words), 8, kit.row(side, self._buttons, side), kit.Spring(3)
        self._column = kit.column(*upper, *lower, margins=(24, 24, 24, 24), spacing=8, on=self)

    def _limit(self, part: QWidget) -> QHBoxLayout:
        """A part in the middle, of a limited width."""
        self._limited.append(part)
        self._fit()
        # Not by alignment, which would take a label's height at its narrowest.
        return kit.row(kit.Spring(1), (part, 1000), kit.Spring(1))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        for part in self._limited:
            part.setMaximumWidth(WIDTH * self.fontMetrics().height())

    @property
    def text(self) -> str:
        return f"{self._title.text()} {self._words.text()}".strip()

    def say(self, title: str, words: str = "") -> None:
        """Show these words."""
        self._title.setText(title)
        self._title.setVisible(bool(title))
        self._words.setText(words)
        self._words.setVisible(bool(words))

    def add_button(self, words: str, act: Callable[..., object] | SignalInstance) -> QPushButton:
        """Add a button that does `act`."""
        button = kit.button(words, act)
        self._buttons.addWidget(button)
        return button

    def add(self, part: QWidget) -> None:
        """Add a part below the buttons."""
        self._column.insertLayout(self._column.count() - 1, self._limit(part))


_LEAST_LINES = 6  # of messages in sight in a low window: one with a hint and a button
_MOST = 4  # notices at once: older ones have been seen


@dataclass(frozen=True, slots=True)
class WayOut:
    """The text and the action of a button beside a message."""

    words: str
    act: Callable[[], object]


class MessageStrip(QWidget):
    """A message and its hint beside a line; hidden if there is none."""

    dismissed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, selectable: bool = True) -> None:
        super().__init__(parent)
        self._theme = theme
        # Messages may name untrusted files: they are shown as plain text.
        self._message = kit.label("", wrap=True, plain=True, selectable=selectable)
        self._hint = kit.label("", "secondary", wrap=True, plain=True, selectable=selectable)
        self._offers: tuple[WayOut, ...] = ()
        first, second = (lambda: self._take(0)), (lambda: self._take(1))
        self._buttons = kit.button("", first), kit.button("", second)  # as many ways out as there may be
        self._close = IconButton(theme, "close", "Dismiss", act=self._dismiss)
        self._way_out = kit.holder(kit.row(*self._buttons, kit.Spring(), margins=(0, 6, 0, 2)))
        words = kit.column(self._message, self._hint, self._way_out, spacing=2)
        kit.row((words, 1), (self._close, 0, Qt.AlignmentFlag.AlignTop), margins=(16, 8, 8, 8), on=self)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def message(self) -> str:
        return self._message.text()

    @property
    def hint(self) -> str:
        return self._hint.text()

    @property
    def ways_out(self) -> list[str]:
        """The buttons' words, in order."""
        return [offer.words for offer in self._offers]

    def tell(self, problem: UserError | str, hint: str = "", *offers: WayOut) -> None:
        """Show what is wrong, or good to know, with up to two buttons; an error brings its own hint."""
        message, hint = (problem.message, problem.hint) if isinstance(problem, UserError) else (problem, hint)
        self._message.setText(message)
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        self._offers = offers
        self._show_actions()
        self.setAccessibleName(f"{message} {hint}".strip())
        self.show()

    def _show_actions(self) -> None:
        self._way_out.setVisible(bool(self._offers))
        for button, words in zip_longest(self._buttons, self.ways_out, fillvalue=""):
            assert isinstance(button, QPushButton), "more ways out than buttons"
            button.setText(words)
            button.setVisible(bool(words))

    def clear(self) -> None:
        """Hide the message."""
        self._message.clear()
        self._hint.clear()
        self._offers = ()
        self._show_actions()
        self.hide()

    def paintEvent(self, event: QPaintEvent) -> None:
        ground, line = self._colours()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(ground))
        painter.drawRoundedRect(self.rect(), 6, 6)
        painter.setBrush(QColor(line))
        painter.drawRoundedRect(0, 0, 3, self.height(), 1.5, 1.5)

    def _colours(self) -> tuple[str, str]:
        """The colours of the ground and of the line."""
        raise NotImplementedError

    def _take(self, at: int) -> None:
        self._offers[at].act()

    def _dismiss(self) -> None:
        self.clear()
        self.dismissed.emit()


class Notice(MessageStrip):
    """A message about what went wrong."""

    def _colours(self) -> tuple[str, str]:
        palette = self._theme.palette
        return palette.soft(palette.error), palette.error


class Notices(QWidget):
    """Messages about what went wrong, a strip for each cause, the newest below. It is hidden while there are
    none."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._strips: dict[str, Notice] = {}  # by cause, the newest last
        self._column = kit.column(spacing=8, on=self)
        self.hide()

    @property
    def message(self) -> str:
        """The last message; "" if there is none."""
        return next((strip.message for strip in reversed(self._strips.values())), "")

    @property
    def strips(self) -> tuple[Notice, ...]:
        return tuple(self._strips.values())

    def tell(self, problem: UserError | str, hint: str = "", *offers: WayOut, cause: str = "") -> None:
        """Show what is wrong, until it is dismissed or withdrawn; replaces a message of the same cause, or in
        the same words."""
        message = problem.message if isinstance(problem, UserError) else problem
        cause = cause or message
        for known, strip in list(self._strips.items()):
            if known == cause or strip.message == message:
                self.withdraw(known)
        strip = self._strips[cause] = Notice(self._theme, self)
        strip.tell(problem, hint, *offers)
        strip.dismissed.connect(lambda: self.withdraw(cause))
        self._column.addWidget(strip)
        for oldest in list(self._strips)[:-_MOST]:
            self.withdraw(oldest)
        self.show()

    def withdraw(self, cause: str) -> None:
        """Remove the message of a cause that no longer exists."""
        strip = self._strips.pop(cause, None)
        if strip is not None:
            box = self.parent()
            if isinstance(box, QWidget) and any(part.hasFocus() for part in strip.findChildren(QWidget)):
                box.setFocus(Qt.FocusReason.OtherFocusReason)  # Qt would focus any other widget
            strip.hide()
            self._column.removeWidget(strip)
            strip.deleteLater()
        self.setVisible(bool(self._strips))

    def clear(self) -> None:
        """Remove all messages."""
        for cause in list(self._strips):
            self.withdraw(cause)

    def clear_passing(self) -> None:
        """Remove messages without a cause; nothing else removes them."""
        for cause, strip in list(self._strips.items()):
            if cause == strip.message:
                self.withdraw(cause)


class Remark(MessageStrip):
    """A message that is good to know and no failure; quieter."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, selectable=False)  # our own words, and a strategy stays whole
        for button in self._buttons:
            set_role(button, kind="flat")
        self._close.set_tooltip("Dismiss this notice")

    def _colours(self) -> tuple[str, str]:
        return self._theme.palette.panel, self._theme.palette.secondary


class MessageArea(QScrollArea):
    """A remark, and notices below. It is as high as they need; with less room it scrolls, so that no text is
    cut. It is hidden while both are."""

    def __init__(self, remark: Remark, notices: Notices) -> None:
        super().__init__()
        self._remark, self._notices = remark, notices
        self._inner = kit.holder(kit.column(remark, notices, spacing=8))
        for watched in (remark, notices, self._inner):
            watched.installEventFilter(self)
        self.setWidget(self._inner)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.setAccessibleName("Messages")
        self.verticalScrollBar().rangeChanged.connect(self._show_newest)
        self.hide()

    def _show_newest(self) -> None:
        if strips := self._notices.strips:
            self.verticalScrollBar().setValue(strips[-1].mapTo(self._inner, QPoint()).y())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.ShowToParent, QEvent.Type.HideToParent):
            self.setHidden(self._remark.isHidden() and self._notices.isHidden())
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), max(0, self._inner.heightForWidth(self.width())))

    def minimumSizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(0, min(_LEAST_LINES * line, self.sizeHint().height()))
