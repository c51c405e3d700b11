"""The queue of downloads; models that were requested together are shown together."""

from __future__ import annotations

import contextlib
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.engine.errors import UserError
from app.hub.downloads import Download, DownloadQueue, State
from app.ui.models.here.download_row import DownloadRow, keep_place
from app.ui.models.hub_session import HubSession
from app.ui.theme import Theme
from app.ui.widgets.icons import IconButton
from app.ui.widgets.notice import Notice
from app.ui.widgets.text.placeholder import Placeholder

WIDTH = 960  # pixels at text scale 1
TICK_MILLISECONDS = 1000
EMPTY = (
    "No downloads",
    "Fetch a pair from the catalogue, or a quantisation found by search: it appears here.",
)


class GroupCard(QFrame):
    """The items of one request. A complete pair can be used at once."""

    use_wanted = Signal(object, object)
    library_wanted = Signal(object)

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.rows: dict[str, DownloadRow] = {}
        self.setProperty("kind", "card")
        self._title = QLabel()
        self._title.setProperty("role", "strong")
        self._title.setTextFormat(Qt.TextFormat.PlainText)
        self.use = QPushButton("Use this pair")
        self.use.setProperty("kind", "primary")
        self.use.setToolTip("Load both models into the chat")
        self.use.clicked.connect(self._use)
        keep_place(self.use)
        self.dismiss = IconButton(theme, "check", "Take this pair off the list. The files stay.")
        self.dismiss.clicked.connect(self._dismiss)
        keep_place(self.dismiss)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._title, 1)
        head.addWidget(self.use)
        head.addWidget(self.dismiss)
        self._head = QWidget()
        self._head.setLayout(head)
        head.setContentsMargins(0, 0, 0, 0)
        self.notice = Notice(theme)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(16, 12, 16, 16)
        self._column.setSpacing(12)
        self._column.addWidget(self._head)
        self._column.addWidget(self.notice)

    def show_downloads(self, items: list[Download]) -> None:
        """Show exactly these items, the target first."""
        ids = {item.id for item in items}
        for id in [id for id in self.rows if id not in ids]:
            gone = self.rows.pop(id)
            gone.hide()
            gone.deleteLater()
        for item in items:
            row = self.rows.get(item.id)
            if row is None:
                row = self.rows[item.id] = DownloadRow(self._theme, self._session, item)
                row.library_wanted.connect(self.library_wanted)
                self._column.addWidget(row)
            elif row.download is not item:
                row.show_download(item)
        self._items = items
        is_pair = len(items) == 2  # only pairs are requested in twos
        self._head.setVisible(is_pair)
        for row in self.rows.values():
            row.set_in_pair(is_pair)
        if is_pair:
            self._title.setText(_pair_title(self._session, items))
            whole = all(item.state is State.DONE for item in items)
            self.use.setVisible(whole)
            self.dismiss.setVisible(whole)

    @property
    def error(self) -> str:
        return self.notice.message

    @Slot()
    def _use(self) -> None:
        self.notice.clear()
        target, draft = self._items
        self.use_wanted.emit(Path(target.path), Path(draft.path))

    @Slot()
    def _dismiss(self) -> None:
        try:
            for item in self._items:
                self._session.downloads_queue().dismiss(item.id)
        except UserError as error:
            self.notice.tell(error)


class DownloadsPage(QWidget):
    """All items, the latest request first."""

    use_wanted = Signal(object, object)
    library_wanted = Signal(object)
    catalogue_wanted = Signal()

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.groups: dict[str, GroupCard] = {}
        self._asked: GroupCard | None = None
        self._tick = QTimer(self, interval=TICK_MILLISECONDS)
        self._tick.timeout.connect(self._show_time)
        self.placeholder = Placeholder()
        self.placeholder.say(*EMPTY)
        self._catalogue = self.placeholder.add_button("Open the catalogue")
        self._catalogue.clicked.connect(self.catalogue_wanted)
        self.notice = Notice(theme)
        self._list = QVBoxLayout()
        self._list.setSpacing(12)
        self._inner = QWidget()
        column = QVBoxLayout(self._inner)
        column.setContentsMargins(24, 16, 24, 24)
        column.setSpacing(12)
        column.addWidget(self.notice)
        column.addLayout(self._list)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setWidget(self._inner)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.placeholder)
        self._stack.addWidget(scroll)
        session.downloads_changed.connect(self.refresh)
        theme.changed.connect(self._fit)
        self._fit()
        if session.queue is not None:
            self._show_notice(session.queue)
        self.refresh()

    def _show_notice(self, queue: DownloadQueue) -> None:
        if queue.notice:
            self.notice.tell(queue.notice)

    @Slot()
    def refresh(self) -> None:
        """Show the queue as it is now."""
        problem = self._session.queue_problem
        self.placeholder.say(*((problem.message, problem.hint) if problem else EMPTY))
        self._catalogue.setVisible(problem is None)
        by_group: dict[str, list[Download]] = {}
        for download in self._session.downloads.values():
            by_group.setdefault(download.group, []).append(download)
        for group in [group for group in self.groups if group not in by_group]:
            gone = self.groups.pop(group)
            gone.hide()
            gone.deleteLater()
        for group, items in by_group.items():
            card = self.groups.get(group)
            if card is None:
                card = self.groups[group] = GroupCard(self._theme, self._session)
                card.use_wanted.connect(lambda target, draft, card=card: self._use(card, target, draft))
                card.library_wanted.connect(self.library_wanted)
                self._list.insertWidget(0, card)
            card.show_downloads(items)
        self._stack.setCurrentIndex(1 if by_group or not self.notice.isHidden() else 0)

    def show_use_error(self, error: UserError) -> None:
        """Say why the pair was not loaded."""
        if self._asked is not None:
            self._asked.notice.tell(error)

    @property
    def rows(self) -> list[DownloadRow]:
        return [row for card in self.groups.values() for row in card.rows.values()]

    def _use(self, card: GroupCard, target: object, draft: object) -> None:
        self._asked = card
        self.use_wanted.emit(target, draft)

    @Slot()
    def _show_time(self) -> None:
        for row in self.rows:
            if row.download.state is State.WAITING:
                row.tick()

    @Slot()
    def _fit(self) -> None:
        self._inner.setMaximumWidth(round(WIDTH * self._theme.scale) + 48)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tick.start()
        if self._session.queue is None:  # another window had it, and may have closed
            with contextlib.suppress(UserError):  # `refresh` shows it
                self._show_notice(self._session.downloads_queue())
            self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._tick.stop()


def _pair_title(session: HubSession, items: list[Download]) -> str:
    """The catalogue's name of a pair, else the names of its models."""
    repos = [item.repo for item in items]
    for pair in session.catalogue:
        if repos == [model.repo for model in (pair.target, pair.draft) if model is not None]:
            return pair.title
    return " and ".join(item.title for item in items)
