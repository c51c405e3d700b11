"""A round in detail: every drafted token, its probabilities under both models, and its verdict."""

from __future__ import annotations

from enum import IntEnum

from PySide6 import QtWidgets
from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QPainter

from app.base.numbers import ordinal
from app.engine.types import Round
from app.ui.instruments import definitions
from app.ui.instruments.round_rows import (
    RoundRow,
    cells,
    draft_text,
    has_q,
    round_rows,
    times_details,
    times_text,
)
from app.ui.instruments.styles import word_button
from app.ui.theme import LOOKS, Theme
from app.ui.widgets import kit
from app.ui.widgets.labels import GivingLabel, as_text
from app.ui.widgets.tables import alignment

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


class CellDelegate(QtWidgets.QStyledItemDelegate):
    """Draws text flush with the column's edges, and p as a bar in the colour of the token's fate."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def paint(self, painter: QPainter, option: QtWidgets.QStyleOptionViewItem, index: Index) -> None:
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


class RoundTable(QtWidgets.QWidget):
    """Shows the round that the panel chooses."""

    unpin_requested = Signal()
    inspect_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._round: Round | None = None
        self._has_q = self._has_draft_p = False
        self.title = kit.label("Round", "strong")
        self.times, self.draft = GivingLabel(), GivingLabel()
        for label in (self.times, self.draft):
            label.setProperty("role", "fine")
        follow = "Follow the latest round again (Esc)"
        self.unpin = word_button("Pinned", follow, "Pinned: follow the latest round again")
        policy = self.unpin.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # the row keeps its height
        self.unpin.setSizePolicy(policy)
        self.unpin.hide()
        self.unpin.clicked.connect(self.unpin_requested)
        shows = "Show this round in the Inspector (Ctrl+E)"
        self.inspect = word_button("Inspect", shows, "Inspect this round")
        self.inspect.clicked.connect(self.inspect_requested)
        self.model = RoundModel(theme, self)
        self.view = QtWidgets.QTableView()
        self.view.setModel(self.model)
        self.view.setAccessibleName("Tokens of the round")
        self.view.setItemDelegate(CellDelegate(theme, self.view))
        self.view.setFrameShape(QtWidgets.QFrame.Shape.NoFrame)
        self.view.setShowGrid(False)
        self.view.setWordWrap(False)
        self.view.setSelectionMode(QtWidgets.QAbstractItemView.SelectionMode.NoSelection)
        self.view.setTabKeyNavigation(False)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setVerticalScrollMode(QtWidgets.QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.verticalHeader().hide()
        header = self.view.horizontalHeader()
        header.setSectionsClickable(False)
        header.setHighlightSections(False)
        header.setMinimumSectionSize(20)
        header.setSectionResizeMode(QtWidgets.QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(RoundColumn.TOKEN, QtWidgets.QHeaderView.ResizeMode.Stretch)
        self.view.viewport().installEventFilter(self)

        row = kit.row((self.title, 1), self.unpin, self.inspect, spacing=8)
        kit.column(row, self.times, self.draft, 4, (self.view, 1), spacing=2, on=self)
        theme.follow(self._apply_theme)
        self.show_round(None)

    @property
    def shown(self) -> Round | None:
        """The round that is shown."""
        return self._round

    def show_round(self, round: Round | None, *, pinned: bool = False) -> None:
        """Show a round; None shows the state before the first round."""
        self._round = round
        self.unpin.setVisible(pinned and round is not None)
        self.inspect.setEnabled(round is not None)
        if round is None:
            self.title.setText("Round")
            self.times.setText("every drafted token and its verdict")
            self.draft.setText("")
            self.model.show_rows(())
            return
        self.title.setText(f"Round {ordinal(round.index)}")
        self.times.setText(times_text(round))
        details = times_details(round)
        self.title.setToolTip(as_text(details))
        self.times.setToolTip(as_text(details))
        self.draft.setText(draft_text(round))
        self.draft.setToolTip(as_text(draft_text(round)))
        self.model.show_rows(round_rows(round))
        if round.drafted:  # a round without a draft does not change the columns
            self._has_q, before = has_q(round), (self._has_q, self._has_draft_p)
            self._has_draft_p = round.drafted[0].draft_p is not None
            if before != (self._has_q, self._has_draft_p):
                self._fit_columns()

    def sizeHint(self) -> QSize:
        return QSize(300, self._chrome_height() + 6 * self._row_height)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self._chrome_height() + 6 * self._row_height)

    def _chrome_height(self) -> int:
        header = self.view.horizontalHeader()
        above = self.inspect, self.times, self.draft, header
        return sum(part.sizeHint().height() for part in above) + 8

    def _apply_theme(self) -> None:
        mono = self._theme.mono(-1)
        self.view.setFont(mono)
        self.view.horizontalHeader().setFont(self._theme.sans(-1.5))
        self._row_height = QFontMetrics(mono).height() + 8
        self.view.verticalHeader().setDefaultSectionSize(self._row_height)
        self._fit_columns()
        self.view.viewport().update()

    def _fit_columns(self) -> None:
        """Give numbers and verdicts fixed widths, and the token the rest. If that is too little, first the
        bar becomes narrower. Then draft_p is hidden, because sampled drafts repeat it as q."""
        mono, small = QFontMetrics(self._theme.mono(-1)), QFontMetrics(self._theme.sans(-1.5))
        number = mono.horizontalAdvance("0.000") + 10
        widths = {
            RoundColumn.DRAFT_P: max(number, small.horizontalAdvance("draft_p") + 10),
            RoundColumn.Q: number,
            RoundColumn.P: number,
            RoundColumn.BAR: 70,
            RoundColumn.VERDICT: QFontMetrics(self._theme.sans(-1)).horizontalAdvance("resampled") + 16,
        }
        if not self._has_q:
            del widths[RoundColumn.Q]
        if not self._has_draft_p:
            del widths[RoundColumn.DRAFT_P]
        room = self.view.viewport().width() - mono.horizontalAdvance("·average")
        if sum(widths.values()) > room:
            widths[RoundColumn.BAR] = 48
        if sum(widths.values()) > room and RoundColumn.Q in widths:
            widths.pop(RoundColumn.DRAFT_P, None)
        for column in (
            RoundColumn.DRAFT_P,
            RoundColumn.Q,
            RoundColumn.P,
            RoundColumn.BAR,
            RoundColumn.VERDICT,
        ):
            self.view.setColumnHidden(column, column not in widths)
            self.view.setColumnWidth(column, widths.get(column, 0))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:  # of the viewport: a scroll bar may have appeared
            self._fit_columns()
        return super().eventFilter(watched, event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.updateGeometry()
