"""One item of the queue: how far it is, what is the matter, and what can be done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from app.engine.errors import UserError
from app.hub.downloads import Download, DownloadQueue, State
from app.hub.errors import Trouble
from app.ui.models.hub.token_panel import TokenPanel
from app.ui.models.hub_session import HubSession
from app.ui.models.words import progress_words, share, state_words
from app.ui.theme import Theme
from app.ui.widgets.icons import IconButton
from app.ui.widgets.text.elided import ElidedLabel
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.words.numbers import file_size
from app.ui.widgets.work.ask_first import AskFirst, Confirmation

BARS = 1000
PAUSABLE = (State.QUEUED, State.RUNNING, State.CHECKING, State.WAITING)
RESUMABLE = (State.PAUSED, State.FAILED, State.WAITING)


class DownloadRow(QWidget):
    """Shows pictures of one item; what the user wants goes to the queue at once."""

    library_wanted = Signal(object)

    def __init__(self, theme: Theme, session: HubSession, one: Download) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.one = one
        self._in_pair = False
        title = ElidedLabel(Qt.TextElideMode.ElideMiddle)
        title.set_text(one.title)
        title.setProperty("role", "strong")
        title.setToolTip(as_text("\n".join([one.repo, *(file.name for file in one.files[:12])])))
        self._state = QLabel()
        self._state.setProperty("role", "caption")
        self.pause = self._button("pause", "Pause", lambda queue: queue.pause)
        self.resume = self._button("demos", "Resume", lambda queue: queue.resume)
        self.show_here = IconButton(theme, "folder", "Show it in the library")
        self.show_here.clicked.connect(lambda: self.library_wanted.emit(self.one.path))
        self.dismiss = self._button("check", "Take it off this list. The files stay.", _dismiss)
        self.cancel = IconButton(theme, "trash", "")
        self.cancel.clicked.connect(self._ask_to_delete)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(title, 1)
        head.addWidget(self._state)
        for button in (self.pause, self.resume, self.show_here, self.dismiss, self.cancel):
            keep_place(button)
            head.addWidget(button)
        self._bar = QProgressBar()
        self._bar.setRange(0, BARS)
        self._bar.setTextVisible(False)
        self._progress = QLabel()
        self._progress.setProperty("role", "caption")
        self._message = QLabel()
        self._message.setProperty("role", "error")
        self._message.setWordWrap(True)
        self._message.setTextFormat(Qt.TextFormat.PlainText)
        self.asking = AskFirst()
        self.token: TokenPanel | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._column.addLayout(head)
        self._column.addWidget(self._bar)
        self._column.addWidget(self._progress)
        self._column.addWidget(self._message)
        self._column.addWidget(self.asking)
        self.show_download(one)

    def _button(
        self, icon: str, tooltip: str, method: Callable[[DownloadQueue], Callable[[str], None]]
    ) -> IconButton:
        button = IconButton(self._theme, icon, tooltip)
        button.clicked.connect(lambda: self._do(method))
        return button

    def show_download(self, one: Download) -> None:
        """Show the item as it is now."""
        self.one = one
        self.asking.refresh()
        self.tick()
        cancelled = one.trouble is Trouble.LEFT
        self._bar.setValue(round(BARS * share(one)))
        # A bar that goes when all is here would move the rows below under a pointer.
        self._bar.setVisible(not cancelled)
        self._bar.setAccessibleName(f"{one.title}, {self._state.text()}")
        self._progress.setText(progress_words(one))
        self._progress.setVisible(not cancelled)
        self._message.setText(f"{one.message} {one.hint}".strip())
        waits = one.trouble is Trouble.OFFLINE  # what it does says it all
        self._message.setVisible(bool(one.message) and not waits)
        held = self.pause.hasFocus() or self.resume.hasFocus()
        self.pause.setVisible(one.state in PAUSABLE)
        self.resume.setVisible(one.state in RESUMABLE and not waits and not one.is_over)
        self.resume.set_tooltip(
            {State.PAUSED: "Resume", State.WAITING: "Try now"}.get(one.state, "Try again")
        )
        done = one.state is State.DONE
        self.show_here.setVisible(done)
        self._show_dismiss()
        if held:  # the keyboard stays at what can be done next, and does not fall on the waste bin
            others = (self.pause, self.resume, self.show_here, self)
            next(one for one in others if not one.isHidden()).setFocus()
        self.cancel.set_tooltip(
            "Delete the files…" if one.is_over else "Cancel and delete what was downloaded"
        )
        self._show_token()

    def set_in_pair(self, in_pair: bool) -> None:
        """A pair leaves the list as a whole: by the button of its card, not by one of its rows."""
        self._in_pair = in_pair
        self._show_dismiss()

    def _show_dismiss(self) -> None:
        cancelled = self.one.trouble is Trouble.LEFT
        self.dismiss.setVisible(cancelled or (self.one.is_over and not self._in_pair))

    @Slot()
    def tick(self) -> None:
        """Time has passed."""
        self._state.setText(state_words(self.one, self._session.retry_in(self.one)))

    @property
    def state(self) -> str:
        return self._state.text()

    @property
    def message(self) -> str:
        return self._message.text()

    def _show_token(self) -> None:
        """A token may help: the field for it stands right here."""
        wanted = self.one.state is State.FAILED and self.one.trouble in (Trouble.GATED, Trouble.DENIED)
        if wanted and self.token is None:
            self.token = TokenPanel(self._theme, self._session)
            self.token.set_repo(self.one.repo)
            self.token.words.hide()  # the message above says it
            self.token.saved.connect(self._token_saved)
            self._column.addWidget(self.token)
        if self.token is not None:
            self.token.setVisible(wanted)

    @Slot()
    def _token_saved(self) -> None:
        self._do(lambda queue: queue.resume)

    def _do(self, method: Callable[[DownloadQueue], Callable[[str], None]]) -> None:
        try:
            method(self._session.downloads_queue())(self.one.id)
        except UserError as error:
            self._message.setText(str(error))
            self._message.show()

    @Slot()
    def _ask_to_delete(self) -> None:
        if self._confirmation() is None:
            self._do(_delete if self.one.is_over else _cancel)
        else:
            self.asking.ask(self._confirmation)

    def _confirmation(self) -> Confirmation | None:
        """What is asked before something goes from the disk; None where nothing does, or it was asked."""
        one = self.one
        if one.trouble is Trouble.LEFT:
            return None
        if one.state is not State.DONE:
            words = f"Cancel and delete the {file_size(one.done)} downloaded so far?"
            return Confirmation(words, "Delete", partial(self._do, _cancel), "a part") if one.done else None
        delete = partial(self._do, _delete)
        if all(file.found for file in one.files):
            words = "These files were here before the download and stay. Take it off this list?"
            return Confirmation(words, "Take off the list", delete, "found")
        return Confirmation(f"Delete {file_size(one.total)} from the disk?", "Delete", delete, "all")


def keep_place(widget: QWidget) -> None:
    """Let a widget keep its room while it is hidden: nothing else comes under a pointer there."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


def _dismiss(queue: DownloadQueue) -> Callable[[str], None]:
    return queue.dismiss


def _cancel(queue: DownloadQueue) -> Callable[[str], None]:
    return queue.cancel


def _delete(queue: DownloadQueue) -> Callable[[str], None]:
    return queue.delete
