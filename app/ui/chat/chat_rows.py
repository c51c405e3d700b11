"""The rows of the chat list: a model of chat heads, and the painter of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.saved.chats import ChatHead
from app.ui.theme import Theme
from app.ui.theme.rings import by_mouse
from app.ui.theme.style import paint_row
from app.ui.widgets.labels import as_text
from app.ui.widgets.words import relative_time

Index = QModelIndex | QPersistentModelIndex

ID = Qt.ItemDataRole.UserRole
TIME = Qt.ItemDataRole.UserRole + 1
DAMAGED = Qt.ItemDataRole.UserRole + 2
IS_OPEN = Qt.ItemDataRole.UserRole + 3
NUMBER = Qt.ItemDataRole.UserRole + 4  # " (2)" after a title that an older chat has too

PADDING = 8


class ChatRows(QAbstractListModel):
    """The chats in the given order."""

    renamed = Signal(str, str)
    """(id, title): the user changed the title, and the list shows it already."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._heads: list[ChatHead] = []
        self._titles: dict[str, str] = {}
        self._numbers: dict[str, str] = {}
        self._open = ""
        self._now = datetime.now(UTC).astimezone()

    def set_heads(self, heads: Sequence[ChatHead]) -> None:
        """Show these chats."""
        self.beginResetModel()
        self._heads = list(heads)
        self._titles = {}
        self._numbers = _numbers(heads)
        self._now = datetime.now(UTC).astimezone()
        self.endResetModel()

    def set_open(self, chat_id: str) -> None:
        """Mark the chat that is on the screen; the caller repaints the view."""
        # No dataChanged, here and in tick(): it would put the old title back into an open editor.
        self._open = chat_id

    def tick(self) -> None:
        """Update the time from which the ages of chats count; the caller repaints the view."""
        self._now = datetime.now(UTC).astimezone()

    def row_of(self, chat_id: str) -> int:
        """The row of a chat, -1 if it is not there."""
        return next((row for row, head in enumerate(self._heads) if head.id == chat_id), -1)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._heads)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        head = self._heads[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return self._titles.get(head.id, head.title)
        if role == ID:
            return head.id
        if role == TIME:
            return relative_time(datetime.fromisoformat(head.updated), self._now)
        if role == DAMAGED:
            return head.damaged
        if role == IS_OPEN:
            return head.id == self._open
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_text(head.damaged or f"{self.data(index)}{self.data(index, NUMBER)}")
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{self.data(index)}{self.data(index, NUMBER)}, {self.data(index, TIME)}"
        if role == NUMBER:
            return self._numbers.get(head.id, "")
        return None

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        title = " ".join(str(value).split())
        if role != Qt.ItemDataRole.EditRole or not title or title == self.data(index):
            return False
        head = self._heads[index.row()]
        self._titles[head.id] = title
        self.dataChanged.emit(index, index)
        self.renamed.emit(head.id, title)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if index.isValid() and not self._heads[index.row()].damaged:
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags


def _numbers(heads: Sequence[ChatHead]) -> dict[str, str]:
    """What distinguishes chats of the same title, by id; the oldest has nothing."""
    seen: Counter[str] = Counter()
    numbers: dict[str, str] = {}
    for head in sorted(heads, key=lambda head: head.created):
        seen[head.title] += 1
        if seen[head.title] > 1:
            numbers[head.id] = f" ({seen[head.title]})"
    return numbers


class ChatRowPainter(QStyledItemDelegate):
    """Paints a title and, at the right, how long ago; edits the title in place."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        height = QFontMetrics(self._theme.sans()).height() + round(16 * self._theme.scale)
        return QSize(0, height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours = self._theme.palette
        is_open = bool(index.data(IS_OPEN))
        damaged = bool(index.data(DAMAGED))
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        card, under = QRectF(rect).adjusted(1, 1, -1, -1), bool(state & QStyle.StateFlag.State_MouseOver)
        focused = state & QStyle.StateFlag.State_HasFocus and not by_mouse(option.widget)
        ring = card.adjusted(0.5, 0.5, -0.5, -0.5) if focused else None
        paint_row(painter, colours, card, on=is_open, under=under, ring=ring)
        inner = rect.adjusted(PADDING, 0, -PADDING, 0)
        small = self._theme.sans(-1)
        when = str(index.data(TIME))
        when_width = QFontMetrics(small).horizontalAdvance(when)
        painter.setFont(small)
        painter.setPen(QColor(colours.secondary))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(inner, middle | Qt.AlignmentFlag.AlignRight, when)
        font = self._theme.sans(0, QFont.Weight.Medium if is_open else QFont.Weight.Normal)
        font.setItalic(damaged)
        painter.setFont(font)
        painter.setPen(QColor(colours.secondary if damaged else colours.text))
        room = inner.adjusted(0, 0, -when_width - PADDING, 0)
        metrics, number = QFontMetrics(font), str(index.data(NUMBER))
        left = room.width() - metrics.horizontalAdvance(number)
        title = metrics.elidedText(str(index.data()), Qt.TextElideMode.ElideRight, left)
        painter.drawText(room, middle | Qt.AlignmentFlag.AlignLeft, f"{title}{number}")
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setAccessibleName("Title of the chat")
        editor.setMaxLength(200)
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        editor.setGeometry(option.rect)
