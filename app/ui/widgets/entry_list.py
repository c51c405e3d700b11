"""A list of entries, each with a title, a detail at the right and words below."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QPainter,
    QResizeEvent,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.ui.theme import Theme
from app.ui.theme.rings import by_mouse
from app.ui.theme.style import paint_row
from app.ui.widgets.labels import as_text, whole

Index = QModelIndex | QPersistentModelIndex
ENTRY = Qt.ItemDataRole.UserRole
PADDING = 8


@dataclass(frozen=True, slots=True)
class ListEntry:
    """One row. A dim one is useless; one that is not possible cannot be chosen."""

    title: str
    detail: str = ""
    words: str = ""
    tooltip: str = ""
    dim: bool = False
    possible: bool = True


class EntryList(QListView):
    """Shows entries; Enter or a double click chooses one."""

    def __init__(self, theme: Theme, name: str = "", *, code: bool = False) -> None:
        """`name` is what a screen reader calls the list; with `code` the titles are in the font for code."""
        super().__init__()
        self._theme = theme
        self.entries: tuple[ListEntry, ...] = ()
        self._rows = QStandardItemModel(self)
        self.setModel(self._rows)
        self.painter = EntryPainter(theme, self, code)
        self.setItemDelegate(self.painter)
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

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.activated.emit(self.currentIndex())  # on macOS Qt would edit the entry
        else:
            super().keyPressEvent(event)

    def set_entries(self, entries: Iterable[ListEntry]) -> None:
        """Show these entries; if there are as many as before, the selection stays."""
        before, self.entries = self.entries, tuple(entries)
        if self.entries == before:
            return
        if len(self.entries) != len(before):
            self._rows.clear()
        for at, entry in enumerate(self.entries):
            item = QStandardItem(entry.title)
            item.setData(entry, ENTRY)
            item.setToolTip(as_text(entry.tooltip))
            told = ", ".join(part for part in (entry.title, entry.detail, entry.words) if part)
            item.setData(told, Qt.ItemDataRole.AccessibleTextRole)
            item.setEditable(False)
            item.setEnabled(entry.possible)
            self._rows.setItem(at, item)

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
            self.setCurrentIndex(self._rows.index(row, 0))


class EntryPainter(QStyledItemDelegate):
    """Paints an entry, with its words on as many lines as they need."""

    def __init__(self, theme: Theme, view: EntryList, code: bool) -> None:
        super().__init__(view)
        self._theme = theme
        self._view = view
        self._code = code
        self._above = PADDING // 2 if code else PADDING  # and below; a list of code is long

    @property
    def _title(self) -> QFont:
        return self._theme.mono() if self._code else self._theme.sans(0, QFont.Weight.Medium)

    def height(self, entry: ListEntry, width: int) -> int:
        """The height in pixels of an entry in a list of that width."""
        height = QFontMetrics(self._title).height() + 2 * self._above
        if entry.words:
            room = QRect(0, 0, max(width - 2 * PADDING, 1), 10_000)
            small = QFontMetrics(self._theme.sans(-1))
            height += 2 + small.boundingRect(room, Qt.TextFlag.TextWordWrap, whole(entry.words)).height()
        return height

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, self.height(index.data(ENTRY), self._view.viewport().width()))

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
        paint_row(painter, colours, card, on=on, under=under and entry.possible, ring=ring)
        inner = rect.adjusted(PADDING, self._above, -PADDING, -self._above)
        small, font = self._theme.sans(-1), self._title
        line = QFontMetrics(font).height()
        top = QRect(inner.x(), inner.y(), inner.width(), line)
        detail_width = QFontMetrics(small).horizontalAdvance(entry.detail)
        middle, left = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignLeft
        painter.setFont(small)
        painter.setPen(QColor(colours.secondary))
        painter.drawText(top, middle | Qt.AlignmentFlag.AlignRight, entry.detail)
        if entry.words:
            below = inner.adjusted(0, line + 2, 0, 0)
            painter.drawText(below, int(left | Qt.TextFlag.TextWordWrap), whole(entry.words))
        painter.setFont(font)
        painter.setPen(QColor(colours.secondary if entry.dim or not entry.possible else colours.text))
        room = top.adjusted(0, 0, -detail_width - PADDING, 0)
        title = QFontMetrics(font).elidedText(entry.title, Qt.TextElideMode.ElideMiddle, room.width())
        painter.drawText(room, middle | left, title)
        painter.restore()
