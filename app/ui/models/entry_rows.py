"""A list of entries, each with a title, a detail at the right and words below; and those words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

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

from app.hub.downloads import Download, State
from app.hub.errors import Trouble
from app.hub.fits import Fit, Light, Room
from app.hub.library.model import FileOrigin, LocalModel
from app.hub.repo import Repo, RepoHit
from app.ui.theme import Theme
from app.ui.theme.rings import by_mouse
from app.ui.theme.style import paint_row
from app.ui.widgets.labels import as_text
from app.ui.widgets.words import SPACE, count, file_size, parameters, percent, relative_time

DOT = " · "
ORIGINS = {
    FileOrigin.HUB: "Hub",
    FileOrigin.ADDED: "added",
    FileOrigin.BUNDLED: "bundled",
    FileOrigin.MADE: "made here",
    FileOrigin.SET_UP: "set-up",
}


def joined(*parts: str) -> str:
    """The parts that are not empty, with dots between."""
    return DOT.join(part for part in parts if part)


def capital(words: str) -> str:
    """A phrase with its first letter in upper case."""
    return words[:1].upper() + words[1:]


def time_left(seconds: float | None) -> str:
    """Coarse, so that it does not jitter: "42 s left", "12 min left", "3 h 05 min left"; "" for unknown."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{max(1, round(seconds))}{SPACE}s left"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}{SPACE}min left"
    return f"{minutes // 60}{SPACE}h {minutes % 60:02d}{SPACE}min left"


def share(download: Download) -> float:
    """The downloaded share, in [0, 1]."""
    return min(1.0, download.done / download.total) if download.total else 0.0


def speed(value: float | None) -> str:
    return f"{file_size(round(value))}/s" if value is not None else ""


def state_words(download: Download, retry_in: float) -> str:
    """What an item of the queue is doing."""
    match download.state:
        case State.QUEUED:
            return "queued"
        case State.RUNNING:
            return "downloading" if download.speed is not None or download.done else "starting"
        case State.CHECKING:
            return "checking the file"
        case State.WAITING:
            return f"retrying in {round(retry_in)}{SPACE}s"
        case State.PAUSED:
            return "paused"
        case State.FAILED:
            if download.trouble is Trouble.OFFLINE:
                return "resumes when offline mode is off"
            return "cancelled" if download.trouble is Trouble.NOT_DELETED else "stopped"
        case State.DONE:
            return "here"


def progress_words(download: Download) -> str:
    """Bytes, share, speed and time left, as far as they are known."""
    if download.state is State.DONE:
        parts = f"{len(download.files)} files" if len(download.files) > 1 else ""
        return joined(file_size(download.total), parts)
    sizes = f"{file_size(download.done)} of {file_size(download.total)}"
    return joined(sizes, percent(share(download)), speed(download.speed), time_left(download.seconds_left))


def fit_words(fit: Fit) -> str:
    """The light with its two numbers."""
    if fit.light is Light.GPU and fit.room.device:
        free = fit.room.device
    else:
        free = fit.room.memory if fit.light is Light.MEMORY else fit.room.together
    return f"{capital(fit.light)}: needs about {file_size(fit.needed)}, {file_size(free)} free"


def room_words(room: Room) -> str:
    """The free memory, as the lights count it."""
    memory = f"{file_size(room.memory)} of memory free"
    return memory if room.device is None else f"{file_size(room.device)} on the GPU and {memory}"


def hit_words(hit: RepoHit) -> str:
    """A found repository in one line."""
    size = parameters(hit.parameters) if hit.parameters else ""
    downloads = f"{parameters(hit.downloads)} downloads"
    return joined(size, hit.architecture, hit.licence, downloads, "gated" if hit.gated else "")


def hit_tooltip(hit: RepoHit) -> str:
    """Everything that is known of a found repository."""
    updated = f"updated {relative_time(hit.updated, datetime.now(UTC))}" if hit.updated else ""
    more = joined(f"{count(hit.downloads)} downloads", f"{count(hit.likes)} likes", updated)
    return f"{hit.repo}\n{more}"


def repo_words(repo: Repo) -> str:
    """What the Hub says of a repository."""
    size = f"{parameters(repo.parameters)} parameters" if repo.parameters else ""
    context = f"context {count(repo.context)} tokens" if repo.context else ""
    licence = f"licence {repo.licence}" if repo.licence else "no licence given"
    return joined(repo.architecture, size, context, licence)


def model_words(model: LocalModel) -> str:
    """What a file is, once it is read."""
    if model.facts is None:
        return joined(model.quantisation, file_size(model.size))
    facts = model.facts
    return joined(
        facts.architecture,
        f"{model.parameters} parameters" if model.parameters else "",
        model.quantisation,
        file_size(model.size),
    )


def more_words(model: LocalModel) -> str:
    """The second line about a file."""
    facts = model.facts
    if facts is None:
        return ""
    return joined(
        f"made from {model.made_from}" if model.made_from else "",
        f"context {count(facts.context)} tokens" if facts.context else "",
        f"{count(facts.layers + 1)} layers including output" if facts.layers else "",
        f"{count(facts.vocabulary_size)} tokens in the vocabulary" if facts.vocabulary_size else "",
        "chat template" if facts.chat else "no chat template",
        f"licence {facts.licence}" if facts.licence else "",
    )


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
