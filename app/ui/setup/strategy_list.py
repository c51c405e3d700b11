"""The list of all strategies, opened from a control that needs one, and the button that opens it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QFrame,
    QLabel,
    QListView,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import paint_row
from app.ui.widgets import kit
from app.ui.widgets.icons import pixmap

WIDTH = 600  # at text scale 1
PADDING = 10
_MARK = Qt.ItemDataRole.UserRole
_SUMMARY = Qt.ItemDataRole.UserRole + 1
_TAKES = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Select)


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy to choose: its name, when it helps, and a remark, such as what it needs."""

    name: str
    summary: str
    mark: str = ""
    possible: bool = True  # else the mark says why not


class StrategyList(QFrame):
    """A popup: arrow keys move, letters jump to a name, Enter or a click chooses, Escape closes."""

    picked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._theme = theme
        self._model = QStandardItemModel(self)
        self._view = _View()
        self._view.setModel(self._model)
        self._delegate = _Delegate(theme, self._view)
        self._view.setItemDelegate(self._delegate)
        self._view.taken.connect(self._take)
        self._view.clicked.connect(self._take)
        self.setProperty("kind", "list")
        kit.column(self._view, margins=(5, 5, 5, 5), on=self)

    def open_at(self, anchor: QWidget, name: str, choices: Sequence[Choice], current: str = "") -> None:
        """Open below a control, or as near as the screen allows; `name` says what the list is."""
        self._view.setAccessibleName(name)
        self._model.clear()
        for choice in choices:
            item = QStandardItem(choice.name)
            item.setData(choice.summary, _SUMMARY)
            item.setData(choice.mark, _MARK)
            told = f"{choice.mark}. {choice.summary}" if choice.mark else choice.summary
            item.setData(told, Qt.ItemDataRole.AccessibleDescriptionRole)
            item.setEditable(False)
            item.setEnabled(choice.possible)
            self._model.appendRow(item)
        self._place(anchor)
        names = [choice.name for choice in choices]
        possible = [at for at, choice in enumerate(choices) if choice.possible]
        start = names.index(current) if current in names else next(iter(possible), 0)
        self._view.setCurrentIndex(self._model.index(start, 0))
        self.show()
        self._view.setFocus(Qt.FocusReason.PopupFocusReason)

    def _place(self, anchor: QWidget) -> None:
        """Inside the window if there is room, else anywhere on the screen."""
        screen = anchor.screen().availableGeometry()
        window = anchor.window().frameGeometry().intersected(screen)
        width = min(round(WIDTH * self._theme.scale), screen.width())
        self._delegate.width = width - 12
        height = sum(self._view.sizeHintForRow(row) for row in range(self._model.rowCount())) + 12
        height = min(height, screen.height())
        corner = anchor.mapToGlobal(QPoint(0, anchor.height() + 2))
        room = window if window.width() >= width and window.height() >= height else screen
        left = max(room.left(), min(corner.x(), room.right() + 1 - width))
        top = max(room.top(), min(corner.y(), room.bottom() + 1 - height))
        self.setGeometry(left, top, width, height)

    def _take(self, index: QModelIndex) -> None:
        if index.flags() & Qt.ItemFlag.ItemIsEnabled:
            self.close()
            self.picked.emit(index.data())


class _View(QListView):
    """A list that reports when a key chooses the current row."""

    taken = Signal(QModelIndex)

    def __init__(self) -> None:
        super().__init__()
        self.setMouseTracking(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _TAKES:
            self.taken.emit(self.currentIndex())
        else:
            super().keyPressEvent(event)


class _Delegate(QStyledItemDelegate):
    """Paints the name, the mark at its right, and below them the summary in as many lines as it takes."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.width = WIDTH

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        name = QFontMetrics(self._theme.mono()).height()
        below = self._wrapped(index.data(_SUMMARY), QRect(0, 0, self.width - 2 * PADDING, 1000)).height()
        return QSize(self.width, name + below + 2 + PADDING)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        colours, theme = self._theme.palette, self._theme
        enabled = bool(index.flags() & Qt.ItemFlag.ItemIsEnabled)
        row: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        under = enabled and bool(state & QStyle.StateFlag.State_MouseOver)
        on = bool(state & QStyle.StateFlag.State_Selected)
        paint_row(painter, colours, QRectF(row), on=on, under=under)
        inner = row.adjusted(PADDING, PADDING // 2, -PADDING, -PADDING // 2)
        painter.setFont(theme.mono())
        painter.setPen(QColor(colours.text if enabled else colours.secondary))
        painter.drawText(inner, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft, index.data())
        painter.setPen(QColor(colours.secondary))
        painter.setFont(theme.sans(-1))
        painter.drawText(inner, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight, index.data(_MARK))
        below = inner.adjusted(0, QFontMetrics(theme.mono()).height() + 2, 0, 0)
        painter.drawText(below, Qt.TextFlag.TextWordWrap, index.data(_SUMMARY))
        painter.restore()

    def _wrapped(self, text: str, room: QRect) -> QRect:
        return QFontMetrics(self._theme.sans(-1)).boundingRect(room, Qt.TextFlag.TextWordWrap, text)


_OPENS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down)


class StrategyPicker(QAbstractButton):
    """The name and when the strategy helps; a click, Space, Enter or Down asks to change it."""

    def __init__(self, theme: Theme, name: str, summary: str) -> None:
        super().__init__()
        self._theme = theme
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(f"Strategy {name}")
        self.setAccessibleDescription(summary)
        self.setToolTip("Choose a different strategy")
        title = kit.label(name, "mono")
        self._chevron = QLabel()
        self.summary = kit.label(summary, "caption", wrap=True)
        head = kit.row(title, self._chevron, kit.Spring(1), spacing=6)
        kit.column(head, self.summary, margins=(8, 6, 8, 6), spacing=2, on=self)
        for label in (title, self._chevron, self.summary):
            label.setTextFormat(Qt.TextFormat.PlainText)  # a strategy from outside may contain any text
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.follow(self._restyle)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _OPENS:
            self.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        card = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        ring = card if ring_shown(self) else None
        paint_row(painter, colours, card, on=False, under=self.isDown() or self.underMouse(), ring=ring)

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Enter, QEvent.Type.Leave):
            self.update()
        return super().event(event)

    def sizeHint(self) -> QSize:
        layout = self.layout()
        assert layout is not None
        return layout.sizeHint()

    def _restyle(self) -> None:
        side = round(14 * self._theme.scale)
        ratio = self.devicePixelRatio()
        picture = pixmap("chevron-down", self._theme.palette.secondary, round(side * ratio))
        picture.setDevicePixelRatio(ratio)
        self._chevron.setPixmap(picture)
        self.update()
