"""A list of entries, each with a title, a detail at the right and words below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.ui.theme import Theme
from app.ui.theme.rings import by_mouse
from app.ui.theme.style import paint_row
from app.ui.widgets.labels import as_text

Index = QModelIndex | QPersistentModelIndex
ENTRY = Qt.ItemDataRole.UserRole
PADDING = 8


@dataclass(frozen=True, slots=True)
class ListEntry:
    """One row; a dim one cannot be used."""

    title: str
    detail: str = ""
    words: str = ""
    tooltip: str = ""
    dim: bool = False


class EntryRows(QAbstractListModel):
    """Entries in the given order."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries: tuple[ListEntry, ...] = ()

    def set_entries(self, entries: Sequence[ListEntry]) -> None:
        """Show these entries; if there are as many as before, the selection stays."""
        new = tuple(entries)
        if new == self._entries:
            return
        if len(new) == len(self._entries):
            self._entries = new
            self.dataChanged.emit(self.index(0), self.index(len(new) - 1))
            return
        self.beginResetModel()
        self._entries = new
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._entries)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        entry = self._entries[index.row()]
        if role == ENTRY:
            return entry
        if role == Qt.ItemDataRole.DisplayRole:
            return entry.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_text(entry.tooltip) or None
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return ", ".join(part for part in (entry.title, entry.detail, entry.words) if part)
        return None


class EntryPainter(QStyledItemDelegate):
    """Paints an entry; its words take as many lines as they need."""

    def __init__(self, theme: Theme, parent: QListView) -> None:
        super().__init__(parent)
        self._theme = theme
        self._view = parent

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        entry: ListEntry = index.data(ENTRY)
        room = self._view.viewport().width() - 2 * PADDING
        height = QFontMetrics(self._theme.sans()).height() + 2 * PADDING
        if entry.words:
            height += 2 + self._words_height(entry.words, room)
        return QSize(0, height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours = self._theme.palette
        entry: ListEntry = index.data(ENTRY)
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        card, flags = QRectF(rect).adjusted(1, 1, -1, -1), QStyle.StateFlag
        on, under = bool(state & flags.State_Selected), bool(state & flags.State_MouseOver)
        focused = state & flags.State_HasFocus and not by_mouse(self._view)
        ring = card.adjusted(0.5, 0.5, -0.5, -0.5) if focused else None
        paint_row(painter, colours, card, on=on, under=under, ring=ring)
        inner = rect.adjusted(PADDING, PADDING, -PADDING, -PADDING)
        small, font = self._theme.sans(-1), self._theme.sans(0, QFont.Weight.Medium)
        line = QFontMetrics(font).height()
        top = QRect(inner.x(), inner.y(), inner.width(), line)
        detail_width = QFontMetrics(small).horizontalAdvance(entry.detail)
        middle, left = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignLeft
        painter.setFont(small)
        painter.setPen(QColor(colours.secondary))
        painter.drawText(top, middle | Qt.AlignmentFlag.AlignRight, entry.detail)
        if entry.words:
            below = inner.adjusted(0, line + 2, 0, 0)
            painter.drawText(below, int(left | Qt.TextFlag.TextWordWrap), entry.words)
        painter.setFont(font)
        painter.setPen(QColor(colours.secondary if entry.dim else colours.text))
        room = top.adjusted(0, 0, -detail_width - PADDING, 0)
        title = QFontMetrics(font).elidedText(entry.title, Qt.TextElideMode.ElideMiddle, room.width())
        painter.drawText(room, middle | left, title)
        painter.restore()

    def _words_height(self, words: str, room: int) -> int:
        metrics = QFontMetrics(self._theme.sans(-1))
        return metrics.boundingRect(0, 0, max(room, 1), 10_000, Qt.TextFlag.TextWordWrap, words).height()


class EntryList(QListView):
    """Shows entries; Enter or a double click chooses one."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.rows = EntryRows(self)
        self.setModel(self.rows)
        self.setItemDelegate(EntryPainter(theme, self))
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        theme.changed.connect(self.scheduleDelayedItemsLayout)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()

    @property
    def current(self) -> int:
        """The selected row, -1 for none."""
        rows = self.selectionModel().selectedRows()
        return rows[0].row() if rows else -1

    def select(self, row: int) -> None:
        """Select a row; -1 for none."""
        if row < 0:
            self.clearSelection()
        else:
            self.setCurrentIndex(self.rows.index(row))
