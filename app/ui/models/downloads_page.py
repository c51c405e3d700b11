"""The queue of downloads: a row for each item, models that were requested together shown together, and one
line about it below the other views."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QWidget

from app.engine.errors import UserError
from app.hub.downloads import Download, DownloadQueue, State
from app.hub.errors import Trouble
from app.ui.models.entry_rows import joined, progress_words, share, speed, state_words, time_left
from app.ui.models.hub_session import HubSession
from app.ui.models.repo_page import TokenPanel
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.ask_first import AskFirst, Confirmation
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.notice import Notice, Placeholder
from app.ui.widgets.words import file_size, percent

BARS = 1000
PAUSABLE = (State.QUEUED, State.RUNNING, State.CHECKING, State.WAITING)
RESUMABLE = (State.PAUSED, State.FAILED, State.WAITING)


class DownloadRow(QWidget):
    """Shows the snapshots of one item; what the user chooses goes to the queue at once."""

    library_wanted = Signal(object)

    def __init__(self, theme: Theme, session: HubSession, download: Download) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.download = download
        self._in_pair = False
        title = ElidedLabel(Qt.TextElideMode.ElideMiddle, text=download.title, role="strong")
        title.setToolTip(as_text("\n".join([download.repo, *(file.name for file in download.files[:12])])))
        self.state = kit.label("", "caption")
        self.pause = self._button("pause", "Pause", DownloadQueue.pause)
        self.resume = self._button("demos", "Resume", DownloadQueue.resume)
        self.show_here = IconButton(
            theme,
            "folder",
            "Show it in the library",
            act=lambda: self.library_wanted.emit(self.download.path),
        )
        self.dismiss = self._button(
            "check", "Remove it from this list. The files stay.", DownloadQueue.dismiss
        )
        self.cancel = IconButton(theme, "trash", "", act=self._ask_to_delete)
        head = kit.row((title, 1), self.state, spacing=8)
        for button in (self.pause, self.resume, self.show_here, self.dismiss, self.cancel):
            kit.reserve_space(button)
            head.addWidget(button)
        self._bar = kit.progress(BARS)
        self._progress = kit.label("", "caption")
        self.message = kit.label("", "error", wrap=True, plain=True)
        self.asking = AskFirst()
        self.token: TokenPanel | None = None
        self._column = kit.column(
            head, self._bar, self._progress, self.message, self.asking, spacing=4, on=self
        )
        self.show_download(download)

    def _button(self, icon: str, tooltip: str, method: Callable[[DownloadQueue, str], None]) -> IconButton:
        return IconButton(self._theme, icon, tooltip, act=lambda: self._do(method))

    def show_download(self, download: Download) -> None:
        """Show the item as it is now."""
        self.download = download
        self.asking.refresh()
        self.tick()
        cancelled = download.trouble is Trouble.NOT_DELETED
        self._bar.setValue(round(BARS * share(download)))
        # Hiding the bar at the end would move the rows below under the pointer.
        self._bar.setVisible(not cancelled)
        self._bar.setAccessibleName(f"{download.title}, {self.state.text()}")
        self._progress.setText(progress_words(download))
        self._progress.setVisible(not cancelled)
        self.message.setText(f"{download.message} {download.hint}".strip())
        waits = download.trouble is Trouble.OFFLINE  # the state says it already
        self.message.setVisible(bool(download.message) and not waits)
        held = self.pause.hasFocus() or self.resume.hasFocus()
        self.pause.setVisible(download.state in PAUSABLE)
        self.resume.setVisible(download.state in RESUMABLE and not waits and not download.is_over)
        self.resume.set_tooltip(
            {State.PAUSED: "Resume", State.WAITING: "Try now"}.get(download.state, "Try again")
        )
        done = download.state is State.DONE
        self.show_here.setVisible(done)
        self._show_dismiss()
        if held:  # the focus goes to the next action, and never to the waste bin
            others = (self.pause, self.resume, self.show_here, self)
            next(button for button in others if not button.isHidden()).setFocus()
        self.cancel.set_tooltip(
            "Delete the files…" if download.is_over else "Cancel and delete what was downloaded"
        )
        self._show_token()

    def set_in_pair(self, in_pair: bool) -> None:
        """A pair is removed from the list as a whole, by the button of its card, not by one of its rows."""
        self._in_pair = in_pair
        self._show_dismiss()

    def _show_dismiss(self) -> None:
        cancelled = self.download.trouble is Trouble.NOT_DELETED
        self.dismiss.setVisible(cancelled or (self.download.is_over and not self._in_pair))

    def tick(self) -> None:
        """Update what depends on the time."""
        self.state.setText(state_words(self.download, self._session.retry_in(self.download)))

    def _show_token(self) -> None:
        """Show the field for a token, if a token may help."""
        wanted = self.download.state is State.FAILED and self.download.trouble in (
            Trouble.GATED,
            Trouble.DENIED,
        )
        if wanted and self.token is None:
            self.token = TokenPanel(self._theme, self._session)
            self.token.set_repo(self.download.repo)
            self.token.words.hide()  # the message above says it
            self.token.saved.connect(lambda: self._do(DownloadQueue.resume))
            self._column.addWidget(self.token)
        if self.token is not None:
            self.token.setVisible(wanted)

    def _do(self, method: Callable[[DownloadQueue, str], None]) -> None:
        try:
            method(self._session.downloads_queue(), self.download.id)
        except UserError as error:
            self.message.setText(str(error))
            self.message.show()

    def _ask_to_delete(self) -> None:
        if self._confirmation() is None:
            self._do(DownloadQueue.delete if self.download.is_over else DownloadQueue.cancel)
        else:
            self.asking.ask(self._confirmation)

    def _confirmation(self) -> Confirmation | None:
        """What to ask before files are deleted; None if nothing is deleted, or the user was asked
        before."""
        download = self.download
        if download.trouble is Trouble.NOT_DELETED:
            return None
        if download.state is not State.DONE:
            words = f"Cancel and delete the {file_size(download.done)} downloaded so far?"
            return (
                Confirmation(words, "Delete", partial(self._do, DownloadQueue.cancel), "a part")
                if download.done
                else None
            )
        delete = partial(self._do, DownloadQueue.delete)
        if all(file.found for file in download.files):
            words = "These files were here before the download, so they are kept. Remove it from this list?"
            return Confirmation(words, "Remove from list", delete, "found")
        return Confirmation(f"Delete {file_size(download.total)} from disk?", "Delete", delete, "all")


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
        parts = (self._bar, 0, Qt.AlignmentFlag.AlignVCenter), (self.words, 1), show
        kit.row(*parts, margins=(24, 4, 16, 4), spacing=16, on=self)
        kit.ground(self, "foot")
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
        kit.reserve_space(self.use)
        self.dismiss = IconButton(
            theme, "check", "Remove this pair from the list. The files stay.", act=self._dismiss
        )
        kit.reserve_space(self.dismiss)
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
        self._catalogue = self.placeholder.add_button("Open the catalogue", self.catalogue_wanted)
        self.notice = Notice(theme)
        self._list = kit.column(spacing=12)
        self._inner = QWidget()
        kit.column(
            self.notice, self._list, kit.Spring(1), margins=(24, 16, 24, 24), spacing=12, on=self._inner
        )
        self._stack = kit.stack(self.placeholder, kit.scroll("Downloads", self._inner))
        kit.column(self._stack, on=self)
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
