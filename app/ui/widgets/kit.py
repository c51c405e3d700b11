"""Rows, columns, labels and buttons as expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from PySide6.QtCore import QPoint, QRect, QSize, Qt, SignalInstance
from PySide6.QtWidgets import (
    QBoxLayout,
    QCheckBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLayoutItem,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSlider,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
    QWidgetItem,
)

from app.ui.widgets.labels import WrappedLabel


@dataclass(frozen=True, slots=True)
class Spring:
    """Takes the remaining room in a row or a column, in proportion to its factor."""

    factor: int = 0


Box = TypeVar("Box", bound=QBoxLayout)
Margins = tuple[int, int, int, int]
Item = QWidget | QLayout
Part = Item | Spring | int | tuple[Item, int] | tuple[QWidget, int, Qt.AlignmentFlag]
"""A widget or a layout, with its stretch and alignment; or pixels of space."""


def row(
    *parts: Part, on: QWidget | None = None, margins: Margins | None = None, spacing: int | None = None
) -> QHBoxLayout:
    """The parts from left to right, laid out `on` a widget. By default there are no margins, and the spacing
    is the style's."""
    return _filled(QHBoxLayout() if on is None else QHBoxLayout(on), parts, margins, spacing)


def column(
    *parts: Part, on: QWidget | None = None, margins: Margins | None = None, spacing: int | None = None
) -> QVBoxLayout:
    """The parts from top to bottom, as in `row`."""
    return _filled(QVBoxLayout() if on is None else QVBoxLayout(on), parts, margins, spacing)


def _filled(box: Box, parts: tuple[Part, ...], margins: Margins | None, spacing: int | None) -> Box:
    box.setContentsMargins(*(margins or (0, 0, 0, 0)))
    if spacing is not None:
        box.setSpacing(spacing)
    fill(box, *parts)
    return box


def fill(box: QBoxLayout, *parts: Part) -> None:
    """Add the parts at the end of a row or a column."""
    for part in parts:
        if isinstance(part, Spring):
            box.addStretch(part.factor)
        elif isinstance(part, int):
            box.addSpacing(part)
        else:
            item, factor, *side = part if isinstance(part, tuple) else (part, 0)
            if isinstance(item, QLayout):
                box.addLayout(item, factor)
            else:
                box.addWidget(item, factor, *side)


def holder(layout: QLayout) -> QWidget:
    """A widget that contains a layout."""
    made = QWidget()
    made.setLayout(layout)
    return made


def grid(gaps: tuple[int, int], *, stretch: int = -1, on: QWidget | None = None) -> QGridLayout:
    """An empty grid without margins, laid out `on` a widget. `gaps` are between columns and between rows;
    column `stretch` takes the remaining room."""
    made = QGridLayout(on) if on is not None else QGridLayout()
    made.setContentsMargins(0, 0, 0, 0)
    made.setHorizontalSpacing(gaps[0])
    made.setVerticalSpacing(gaps[1])
    if stretch >= 0:
        made.setColumnStretch(stretch, 1)
    return made


def scroll(name: str, inner: QWidget | None = None) -> QScrollArea:
    """An area without a frame that scrolls `inner` up and down, and gives it its own width."""
    made = QScrollArea()
    made.setAccessibleName(name)
    made.setWidgetResizable(True)
    made.setFrameShape(QFrame.Shape.NoFrame)
    if inner is not None:
        made.setWidget(inner)
    return made


def splitter(*parts: tuple[QWidget, int], upright: bool = False) -> QSplitter:
    """Widgets from left to right, or from top to bottom, each with its stretch, between lines that can be
    moved."""
    made = QSplitter(Qt.Orientation.Vertical if upright else Qt.Orientation.Horizontal)
    made.setChildrenCollapsible(False)
    for at, (part, stretch) in enumerate(parts):
        made.addWidget(part)
        made.setStretchFactor(at, stretch)
    return made


def stack(*pages: QWidget) -> QStackedWidget:
    """Shows one of several pages, the first one at the start."""
    made = QStackedWidget()
    for page in pages:
        made.addWidget(page)
    return made


def label(
    text: str = "",
    role: str = "",
    *,
    wrap: bool = False,
    plain: bool = False,
    selectable: bool = False,
    tip: str = "",
    side: Qt.AlignmentFlag | None = None,
    on: QWidget | None = None,
) -> QLabel:
    """A label in one of the roles of the style sheet. `plain`: its text may look like markup but is none;
    `selectable`: the mouse can select it; `side`: its alignment; `on`: its parent."""
    made = WrappedLabel(text, on, selectable=selectable) if wrap else QLabel(text, on)
    made.setToolTip(tip)
    if side is not None:
        made.setAlignment(side)
    if role:
        made.setProperty("role", role)
    if plain:
        made.setTextFormat(Qt.TextFormat.PlainText)
    if selectable:
        made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made


def button(
    text: str = "",
    act: Callable[..., object] | SignalInstance | None = None,
    *,
    kind: str = "",
    tip: str = "",
    name: str = "",
) -> QPushButton:
    """A button that calls `act` when it is clicked. A screen reader says `name` instead of its text."""
    made = QPushButton(text)
    made.setToolTip(tip)
    made.setAccessibleName(name)
    if kind:
        made.setProperty("kind", kind)
    if act is not None:
        made.clicked.connect(act)
    return made


def check(text: str = "", name: str = "", kind: str = "") -> QCheckBox:
    """A check box. A screen reader says `name` if the box has no words of its own."""
    made = QCheckBox(text)
    made.setAccessibleName(name)
    if kind:
        made.setProperty("kind", kind)
    return made


def field(
    name: str,
    hint: str = "",
    *,
    entered: Callable[[], object] | None = None,
    typed: Callable[[], object] | None = None,
    most: int = 0,
    secret: bool = False,
) -> QLineEdit:
    """A line to type in, with its accessible name and what it shows while it is empty. `entered` is called on
    Enter, `typed` on every change; `most` limits the characters; a `secret` is not shown."""
    made = QLineEdit()
    made.setAccessibleName(name)
    made.setPlaceholderText(hint)
    if secret:
        made.setEchoMode(QLineEdit.EchoMode.Password)
    if most:
        made.setMaxLength(most)
    if typed is not None:
        made.textChanged.connect(typed)
    if entered is not None:
        made.returnPressed.connect(entered)
    return made


def text_box(name: str, hint: str = "") -> QPlainTextEdit:
    """A box for several lines, with its accessible name and what it shows while empty; Tab leaves it."""
    made = QPlainTextEdit()
    made.setProperty("kind", "field")
    made.setAccessibleName(name)
    made.setPlaceholderText(hint)
    made.setTabChangesFocus(True)
    return made


def slider(name: str, low: int = 0, high: int = 99) -> QSlider:
    """A slider from left to right."""
    made = QSlider(Qt.Orientation.Horizontal)
    made.setAccessibleName(name)
    made.setRange(low, high)
    return made


def progress(most: int = 100) -> QProgressBar:
    """A bar of `most` steps, without a text."""
    made = QProgressBar(textVisible=False)
    made.setRange(0, most)
    return made


def line() -> QFrame:
    """A horizontal line."""
    made = QFrame()
    made.setProperty("kind", "line")
    return made


def ground(widget: QWidget, kind: str) -> None:
    """Let the style sheet paint the ground and the edges of its `kind`, where Qt gives a widget none."""
    widget.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    widget.setProperty("kind", kind)


def open_below(button: QWidget, menu: QMenu) -> None:
    """Open a menu under a button, within the window if it has room."""
    menu.popup(button.mapToGlobal(button.rect().bottomLeft()))
    window = button.window()  # the menu may have been filled only now
    most = window.mapToGlobal(QPoint(max(window.width() - menu.width(), 0), 0)).x()
    menu.move(min(menu.x(), most), menu.y())


def reserve_space(widget: QWidget) -> None:
    """Keep a widget's room while it is hidden, so that nothing else moves under the pointer."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


def empty(layout: QLayout) -> None:
    """Take all widgets out of a layout and delete them."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()


def reveal(control: QWidget) -> None:
    """Scroll a control into view, if it is in a scroll area."""
    above = control.parentWidget()
    while above is not None and not isinstance(above, QScrollArea):
        above = above.parentWidget()
    if above is not None:
        above.ensureWidgetVisible(control, 0, 80)  # with pixels of its surroundings


LINE_GAP = 4


class WrapLayout(QLayout):
    """Widgets in their own size from the left; some at the right end, together, on the last line.

    A widget that is wider than its line gets taller instead, where it has a height for a width.
    """

    def __init__(self, parent: QWidget, gap: int) -> None:
        """`gap` is kept between neighbours, in pixels."""
        super().__init__(parent)
        self._gap = gap
        self._items: list[QLayoutItem] = []
        self._at_right: set[QWidget] = set()
        self.setContentsMargins(0, 0, 0, 0)

    def addWidget(self, widget: QWidget) -> None:  # noqa: N802
        # Not by Qt, whose item PySide finds by its address: there it may know an item that was deleted, and
        # the process crashes.
        self.addChildWidget(widget)
        self.addItem(QWidgetItem(widget))
        self.invalidate()

    def add_at_right(self, widget: QWidget) -> None:
        """Add a widget to those at the right end."""
        self._at_right.add(widget)
        self.addWidget(widget)

    # ------------------------------------------------------------------ what Qt asks

    def addItem(self, item: QLayoutItem) -> None:  # noqa: N802
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # noqa: N802
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # noqa: N802
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._lay_out(QRect(0, 0, width, 0), move=False)

    def sizeHint(self) -> QSize:
        sizes = [item.sizeHint() for item in self._shown()]
        width = sum(size.width() for size in sizes) + self._gap * max(0, len(sizes) - 1)
        return QSize(width, max((size.height() for size in sizes), default=0))

    def minimumSize(self) -> QSize:  # noqa: N802
        sizes = [item.minimumSize() for item in self._shown()]
        right = [item.minimumSize().width() for item in self._shown() if item.widget() in self._at_right]
        return QSize(
            max([size.width() for size in sizes] + [sum(right) + self._gap * max(0, len(right) - 1)]),
            max((size.height() for size in sizes), default=0),
        )

    def setGeometry(self, rect: QRect) -> None:  # noqa: N802
        super().setGeometry(rect)
        self._lay_out(rect, move=True)

    # ------------------------------------------------------------------ inside

    def _shown(self) -> list[QLayoutItem]:
        """The visible items: hidden ones take no room."""
        return [item for item in self._items if not item.isEmpty()]

    def _lay_out(self, rect: QRect, *, move: bool) -> int:
        """Place the items into `rect` if `move` is set; returns the height that they take."""
        left = [item for item in self._shown() if item.widget() not in self._at_right]
        right = [item for item in self._shown() if item.widget() in self._at_right]
        lines: list[tuple[int, list[QLayoutItem]]] = []
        for item in left:
            self._append(lines, [item], rect.width())
        ends = [item.sizeHint().width() for item in right]
        before = len(lines)
        self._append(lines, right, rect.width())
        y = rect.y()
        for _, items in lines:
            height = max((_size(item, rect.width()).height() for item in items), default=0)
            x = rect.x()
            for item in items:
                if right and item is right[0] and len(lines) == max(before, 1):
                    x = rect.x() + rect.width() - sum(ends) - self._gap * (len(right) - 1)
                size = _size(item, rect.width())
                if move:
                    item.setGeometry(QRect(QPoint(x, y + (height - size.height()) // 2), size))
                x += size.width() + self._gap
            y += height + LINE_GAP
        return max(0, y - LINE_GAP - rect.y())

    def _append(
        self, lines: list[tuple[int, list[QLayoutItem]]], items: list[QLayoutItem], room: int
    ) -> None:
        """Put items that stay together on the last line, or on a new one if they do not fit."""
        width = sum(item.sizeHint().width() + self._gap for item in items)
        if lines and lines[-1][0] + width - self._gap <= room:
            lines[-1] = (lines[-1][0] + width, lines[-1][1] + items)
        elif items:
            lines.append((width, list(items)))


def _size(item: QLayoutItem, room: int) -> QSize:
    """The size of an item on a line of `room` pixels."""
    size = item.sizeHint()
    if size.width() > room and item.hasHeightForWidth():
        return QSize(room, item.heightForWidth(room))
    return size
