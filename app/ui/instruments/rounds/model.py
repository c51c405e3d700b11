"""The rows of a round for a table view, and how their cells are drawn."""

from __future__ import annotations

from enum import IntEnum

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    Qt,
)
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from app.ui.instruments import definitions
from app.ui.instruments.rounds.rows import RoundRow, cells
from app.ui.theme import LOOKS, Theme
from app.ui.widgets.data.quiet_table import alignment
from app.ui.widgets.text.tips import as_text

_HEADERS = ("draft", "draft_p", "q", "p", "", "verdict")


class RoundColumn(IntEnum):
    """The columns, in order."""

    TOKEN = 0
    DRAFT_P = 1
    Q = 2
    P = 3
    BAR = 4
    VERDICT = 5


_HEADER_TIPS = {
    RoundColumn.TOKEN: "The drafted tokens in order, then the token that the target itself gave.",
    RoundColumn.DRAFT_P: definitions.DRAFT_P,
    RoundColumn.Q: definitions.Q,
    RoundColumn.P: definitions.P,
    RoundColumn.BAR: definitions.P,
    RoundColumn.VERDICT: definitions.VERDICT,
}
_FATE = int(Qt.ItemDataRole.UserRole)
_VALUE = _FATE + 1
Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class RoundModel(QAbstractTableModel):
    """The rows of one round."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[RoundRow, ...] = ()

    def show_rows(self, rows: tuple[RoundRow, ...]) -> None:
        if len(rows) == len(self._rows):
            # Live rounds often have as many rows as the one before: the view keeps its position and
            # selection.
            self._rows = rows
            if rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, RoundColumn.VERDICT))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(_HEADERS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is Qt.Orientation.Vertical:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _HEADERS[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return _HEADER_TIPS[RoundColumn(section)]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=section != RoundColumn.TOKEN)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self._rows[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return cells(row)[column]
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_text(row.details)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=column != RoundColumn.TOKEN)
        if role == Qt.ItemDataRole.ForegroundRole:
            palette = self._theme.palette
            coloured = column == RoundColumn.VERDICT or LOOKS[row.fate].neutral
            return QColor(palette.fate(row.fate) if coloured else palette.text)
        if role == Qt.ItemDataRole.FontRole and column == RoundColumn.VERDICT:
            return self._theme.sans(-1)
        if role == Qt.ItemDataRole.AccessibleTextRole and column == RoundColumn.BAR:
            return cells(row)[RoundColumn.P]
        if role == _FATE:
            return row.fate
        if role == _VALUE:
            return row.p
        return None


class CellDelegate(QStyledItemDelegate):
    """Draws text flush with the column's edges, and p as a bar in the colour of the token's fate."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        if index.column() == RoundColumn.BAR:
            self._paint_bar(painter, QRectF(option.rect), index)
            return
        painter.save()
        words = index.data(Qt.ItemDataRole.FontRole)
        painter.setFont(words or option.font)
        painter.setPen(index.data(Qt.ItemDataRole.ForegroundRole))
        text = painter.fontMetrics().elidedText(
            index.data(), Qt.TextElideMode.ElideRight, option.rect.width()
        )
        painter.drawText(option.rect, alignment(right=index.column() != RoundColumn.TOKEN), text)
        painter.restore()

    def _paint_bar(self, painter: QPainter, rect: QRectF, index: Index) -> None:
        p = index.data(_VALUE)
        if p is None:
            return
        palette = self._theme.palette
        track = QRectF(rect.left() + 16, rect.center().y() - 3, rect.width() - 16, 7)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(palette.line))
        painter.drawRoundedRect(track, 2, 2)
        if p > 0:
            painter.setBrush(QColor(palette.fate(index.data(_FATE))))
            track.setWidth(max(track.width() * p, 2))
            painter.drawRoundedRect(track, 2, 2)
        painter.restore()
