"""The queue of downloads, where models that were requested together are shown together, and one line about it
below the other views."""

from __future__ import annotations

import contextlib

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QStackedLayout, QWidget

from app.engine.errors import UserError
from app.hub.downloads import Download, DownloadQueue, State
from app.ui.models.download_row import BARS, PAUSABLE, DownloadRow, reserve_space
from app.ui.models.hub_session import HubSession
from app.ui.models.words import joined, speed, time_left
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import ElidedLabel
from app.ui.widgets.notice import Notice, Placeholder
from app.ui.widgets.words import percent


class DownloadStrip(QWidget):
    """Hidden while nothing is being downloaded."""

    downloads_wanted = Signal()

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.words = ElidedLabel(role="caption")
        self._bar = kit.progress(BARS)
        self._bar.setFixedWidth(160)
        show = kit.button("Show downloads", self.downloads_wanted, kind="flat")
        kit.row(
            (self._bar, 0, Qt.AlignmentFlag.AlignVCenter),
            (self.words, 1),
            show,
            margins=(24, 4, 16, 4),
            spacing=16,
            on=self,
        )
        theme.changed.connect(self.update)
        self.is_busy = False
        self.refresh()

    def refresh(self) -> None:
        """Sum up the queue."""
        items = self._session.downloads.values()
        coming = [item for item in items if item.state in PAUSABLE]
        failed = [item for item in items if item.state is State.FAILED]
        self.is_busy = bool(coming or failed)
        done, total = sum(item.done for item in coming), sum(item.total for item in coming)
        rate = sum(item.speed or 0.0 for item in coming)
        self._bar.setValue(BARS * done // total if total else 0)
        self._bar.setVisible(bool(coming))
        one_or_more = f"{len(coming)} download{'s' if len(coming) != 1 else ''}"
        self.words.set_text(
            joined(
                one_or_more if coming else "",
                percent(done / total) if total else "",
                speed(rate) if rate else "",
                time_left((total - done) / rate) if rate else "",
                f"{len(failed)} stopped" if failed else "",
            )
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.palette.panel)
        painter.fillRect(0, 0, self.width(), 1, self._theme.palette.line)


WIDTH = 960  # pixels at text scale 1
TICK_MILLISECONDS = 1000
EMPTY = (
    "No downloads",
    "Download a pair from the catalogue, or a quantisation found by search. It appears here.",
)


class GroupCard(QFrame):
    """The items of one request. A complete pair can be used at once."""

    library_wanted = Signal(object)

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.rows: dict[str, DownloadRow] = {}
        self.setProperty("kind", "card")
        self._title = kit.label("", "strong", plain=True)
        self.use = kit.button(
            "Use this pair", self._use, kind="primary", tip="Load both models into the chat"
        )
        reserve_space(self.use)
        self.dismiss = IconButton(
            theme, "check", "Remove this pair from the list. The files stay.", act=self._dismiss
        )
        reserve_space(self.dismiss)
        self._head = kit.holder(kit.row((self._title, 1), self.use, self.dismiss, spacing=8))
        self.notice = Notice(theme)
        self._column = kit.column(self._head, self.notice, margins=(16, 12, 16, 16), spacing=12, on=self)

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

    def _use(self) -> None:
        self.notice.clear()
        target, draft = self._items
        self._session.use(self.notice.tell, target=target.path, draft=draft.path)

    def _dismiss(self) -> None:
        try:
            for item in self._items:
                self._session.downloads_queue().dismiss(item.id)
        except UserError as error:
            self.notice.tell(error)


class DownloadsPage(QWidget):
    """All items, the latest request first."""

    library_wanted = Signal(object)
    catalogue_wanted = Signal()

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.groups: dict[str, GroupCard] = {}
        self._tick = QTimer(self, interval=TICK_MILLISECONDS)
        self._tick.timeout.connect(self._show_time)
        self.placeholder = Placeholder()
        self.placeholder.say(*EMPTY)
        self._catalogue = self.placeholder.add_button("Open the catalogue")
        self._catalogue.clicked.connect(self.catalogue_wanted)
        self.notice = Notice(theme)
        self._list = kit.column(spacing=12)
        self._inner = QWidget()
        kit.column(
            self.notice, self._list, kit.Spring(1), margins=(24, 16, 24, 24), spacing=12, on=self._inner
        )
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.placeholder)
        self._stack.addWidget(kit.scroll(self._inner))
        session.downloads_changed.connect(self.refresh)
        theme.follow(self._fit)
        if session.queue is not None:
            self._show_notice(session.queue)
        self.refresh()

    def _show_notice(self, queue: DownloadQueue) -> None:
        if queue.notice:
            self.notice.tell(queue.notice)

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
                card.library_wanted.connect(self.library_wanted)
                self._list.insertWidget(0, card)
            card.show_downloads(items)
        self._stack.setCurrentIndex(1 if by_group or not self.notice.isHidden() else 0)

    @property
    def rows(self) -> list[DownloadRow]:
        return [row for card in self.groups.values() for row in card.rows.values()]

    def _show_time(self) -> None:
        for row in self.rows:
            if row.download.state is State.WAITING:
                row.tick()

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
