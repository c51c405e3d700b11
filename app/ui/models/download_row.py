"""One item of the queue: its progress, its problem, and what can be done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from app.engine.errors import UserError
from app.hub.downloads import Download, DownloadQueue, State
from app.hub.errors import Trouble
from app.ui.models.hub_session import HubSession
from app.ui.models.repo_page import TokenPanel
from app.ui.models.words import progress_words, share, state_words
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.ask_first import AskFirst, Confirmation
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.words import file_size

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
            reserve_space(button)
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
        button = IconButton(self._theme, icon, tooltip, act=lambda: self._do(method))
        return button

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
        """A pair is taken off the list as a whole: by the button of its card, not by one of its rows."""
        self._in_pair = in_pair
        self._show_dismiss()

    def _show_dismiss(self) -> None:
        cancelled = self.download.trouble is Trouble.NOT_DELETED
        self.dismiss.setVisible(cancelled or (self.download.is_over and not self._in_pair))

    def tick(self) -> None:
        """Update what depends on the time."""
        self.state.setText(state_words(self.download, self._session.retry_in(self.download)))

    def _show_token(self) -> None:
        """Show the field for a token, where a token may help."""
        wanted = self.download.state is State.FAILED and self.download.trouble in (
            Trouble.GATED,
            Trouble.DENIED,
        )
        if wanted and self.token is None:
            self.token = TokenPanel(self._theme, self._session)
            self.token.set_repo(self.download.repo)
            self.token.words.hide()  # the message above says it
            self.token.saved.connect(self._token_saved)
            self._column.addWidget(self.token)
        if self.token is not None:
            self.token.setVisible(wanted)

    def _token_saved(self) -> None:
        self._do(DownloadQueue.resume)

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
            words = "These files were here before the download and stay. Remove it from this list?"
            return Confirmation(words, "Remove from list", delete, "found")
        return Confirmation(f"Delete {file_size(download.total)} from disk?", "Delete", delete, "all")


def reserve_space(widget: QWidget) -> None:
    """Let a widget keep its room while it is hidden, so that nothing else moves under the pointer."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)
