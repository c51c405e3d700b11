"""A repository on the Hub: what it is and its quantisations; if it is gated, also its conditions and a token
field."""

from __future__ import annotations

from collections import Counter
from functools import partial

from PySide6.QtCore import Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QShowEvent
from PySide6.QtWidgets import QWidget

from app.engine.errors import UserError
from app.hub.errors import HubError, Trouble
from app.hub.hub import kept_token, save_token
from app.hub.repo import Quantisation, Repo, read_repo
from app.ui.models.entry_rows import repo_words
from app.ui.models.hub_session import HubSession
from app.ui.models.quantisation_row import QuantisationRow
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.background import Query
from app.ui.widgets.notice import Notice, Placeholder
from app.ui.widgets.words import count

WITHOUT = (
    "This repository is gated. Accept its conditions on its page, then enter a Hugging Face token with "
    "read access. The token is saved in Hugging Face's own token file."
)
WITH = (
    "This repository is gated. Your Hugging Face token gives access once you accept the conditions on its "
    "page."
)
PRIVATE_WITHOUT = "The token is saved in Hugging Face's own token file."
PRIVATE_WITH = "If the repository is private, your Hugging Face token cannot read it."


class TokenPanel(QWidget):
    """Saves a token, and does not keep what was typed."""

    saved = Signal()
    """The Hub accepted the token, and it was saved."""

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._session = session
        self._repo = ""
        self._gated = True
        self._question: Query[None] = Query(session.askers, self._done, self._failed)
        self.words = kit.label("", "secondary", wrap=True)
        self.page = kit.button("Open its page", self._open_page, tip="Show the repository in the browser")
        self.other = kit.button("Use a different token", self._show_field)
        self.field = kit.field(
            "Hugging Face token", "hf_…", entered=self._save, typed=self._refresh, secret=True
        )
        self.save = kit.button("Save token", self._save)
        self.notice = Notice(theme)
        row = kit.row(self.page, self.other, (self.field, 1), self.save, kit.Spring(), spacing=8)
        kit.column(self.words, row, self.notice, spacing=8, on=self)
        session.offline_changed.connect(self._refresh)
        session.token_changed.connect(self._show_token)
        self._show_token()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if kept_token() is None:  # it may have been removed in the settings
            self._show_token()

    def set_repo(self, repo: str, *, gated: bool = True) -> None:
        """Set the repository that the token is for: a gated one, or one that may be private."""
        self._repo, self._gated = repo, gated
        self.notice.clear()
        self._show_token()

    def _show_token(self) -> None:
        known = kept_token() is not None
        words = (WITHOUT, WITH) if self._gated else (PRIVATE_WITHOUT, PRIVATE_WITH)
        self.words.setText(words[known])
        self.other.setVisible(known)
        self.field.setVisible(not known)
        self.save.setVisible(not known)
        self._refresh()

    def _show_field(self) -> None:
        self.other.hide()
        self.field.show()
        self.save.show()
        self.field.setFocus()

    def _refresh(self) -> None:
        offline = self._session.is_offline
        self.field.setEnabled(not offline)
        self.field.setReadOnly(self._question.pending)  # not disabled: the keyboard focus would move
        self.save.setEnabled(not offline and bool(self.field.text().strip()))
        self.save.setText("Asking the Hub…" if self._question.pending else "Save token")
        self.save.setToolTip("Offline: the Hub must check a token first." if offline else "")
        self.page.setEnabled(not offline)

    def _save(self) -> None:
        if self.save.isEnabled() and not self._question.pending:
            self.notice.clear()
            self._question.ask(partial(save_token, self._session.hub, self.field.text()))
            self._refresh()

    def _done(self, _answer: None) -> None:
        self.field.clear()
        self._session.token_changed.emit()
        self.saved.emit()

    def _failed(self, error: UserError) -> None:
        self.field.clear()
        self.notice.tell(error)
        self._refresh()

    def _open_page(self) -> None:
        QDesktopServices.openUrl(QUrl(f"{self._session.hub.endpoint}/{self._repo}"))


MOST_ROWS = 100
MOST_NOTICES = 10
EMPTY = ("", "Choose a repository to see its quantisations.")


class RepoPage(QWidget):
    """Shows a repository; others can be shown later."""

    library_wanted = Signal(object)
    downloads_wanted = Signal()

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self._name = ""
        self._revision = "main"
        self._file = ""  # from a pasted address
        self._repo: Repo | None = None
        self._question: Query[Repo] = Query(session.askers, self._show, self._failed)
        self.rows: list[QuantisationRow] = []
        self.placeholder = Placeholder()
        self._again = self.placeholder.add_button("Try again", self.ask)
        self.lost_token = TokenPanel(theme, session)  # for a repository that cannot be read without a token
        self.lost_token.saved.connect(self.ask)
        self.lost_token.hide()
        waiting = kit.column((self.placeholder, 1), self.lost_token, margins=(24, 16, 24, 24))
        self._stack = kit.stack(kit.holder(waiting), self._build())
        kit.column(self._stack, on=self)
        session.room_changed.connect(self._show_room)
        session.downloads_changed.connect(self._show_progress)
        session.library_changed.connect(self._look)
        session.offline_changed.connect(self._offline_changed)
        self.clear()

    def _build(self) -> QWidget:
        self._title = kit.label("", "title", wrap=True, plain=True)  # not cut: the middle has the size
        browse = kit.button("Open its page", self._browse, tip="Show the repository in the browser")
        self._facts = kit.label("", "secondary", wrap=True, plain=True)
        self.limits = kit.label(wrap=True, plain=True)
        self.token = TokenPanel(self._theme, self._session)
        self.token.page.hide()  # the one above does the same
        self._notices = kit.label("", "caption", wrap=True, plain=True)
        self.notice = Notice(self._theme)
        self._list = kit.column(spacing=0)
        upper = kit.row((self._title, 1), (browse, 0, Qt.AlignmentFlag.AlignTop), spacing=8), self._facts
        lower = self.limits, self.token, self._notices, self.notice, 8, self._list, kit.Spring(1)
        inner = kit.column(*upper, *lower, margins=(24, 16, 24, 24), spacing=8)
        self._scroll = kit.scroll("Repository", kit.holder(inner))
        return self._scroll

    # ------------------------------------------------------------------ what the search says

    def clear(self) -> None:
        """Show that no repository is chosen."""
        self._question.drop()
        self._name = ""
        self._repo = None
        self._say(*EMPTY)

    def open(self, repo: str, file: str = "", revision: str = "main") -> None:
        """Show a repository; `file` is marked and gets the focus, if the repository contains it."""
        if (repo, revision) == (self._name, self._revision) and self._repo is not None and not file:
            return
        self._name, self._file, self._revision = repo, file, revision
        self.ask()

    def ask(self) -> None:
        """Ask the Hub what the repository contains."""
        self._repo = None
        self._say("", f"Asking the Hub for {self._name}…")
        self._question.ask(partial(read_repo, self._session.hub, self._name, self._revision))

    # ------------------------------------------------------------------ showing

    def _say(self, title: str, words: str, again: bool = False) -> None:
        self.placeholder.say(title, words)
        self._again.setVisible(again)
        self.lost_token.hide()
        self._stack.setCurrentIndex(0)

    def _failed(self, error: UserError) -> None:
        self._say(error.message, error.hint, again=True)
        if isinstance(error, HubError) and error.trouble in (Trouble.GATED, Trouble.DENIED):
            self.lost_token.set_repo(self._name)
            self.lost_token.show()

    def _show(self, repo: Repo) -> None:
        self._repo = repo
        self._title.setText(repo.repo)
        self._facts.setText(repo_words(repo))
        self.limits.setText(repo.limits)
        self.limits.setVisible(bool(repo.limits))
        self.token.set_repo(repo.repo)
        self.token.setVisible(repo.gated)
        notices = list(repo.notices[:MOST_NOTICES])
        if (more := len(repo.notices) - MOST_NOTICES) > 0:
            notices.append(f"{count(more)} more files are not shown.")
        if (many := len(repo.quantisations)) > MOST_ROWS:
            notices.append(
                f"The {MOST_ROWS} smallest of {count(many)} models are listed. To see a different one, "
                "search for the address of its file."
            )
        self._notices.setText("\n".join(notices))
        self._notices.setVisible(bool(notices))
        self.notice.clear()
        self._fill(repo)
        self._scroll.verticalScrollBar().setValue(0)
        self._stack.setCurrentIndex(1)

    def _fill(self, repo: Repo) -> None:
        for row in self.rows:
            row.drop()
        self.rows = []
        kit.empty(self._list)
        if not repo.quantisations:
            none = kit.label("It contains no GGUF file that can be loaded.", "secondary")
            self._list.addWidget(none)
        names = Counter(quantisation.name for quantisation in repo.quantisations)
        for quantisation in self._shown(repo):
            row = QuantisationRow(
                self._theme, self._session, repo, quantisation, tell_file=names[quantisation.name] > 1
            )
            row.failed.connect(self._not_queued)
            row.library_wanted.connect(self.library_wanted)
            row.downloads_wanted.connect(self.downloads_wanted)
            if self.rows:
                self._list.addWidget(kit.line())
            self._list.addWidget(row)
            self.rows.append(row)
            if self._file and any(file.name == self._file for file in quantisation.files):
                # Only after the row has its place.
                QTimer.singleShot(0, row, partial(self._mark, row))

    def _shown(self, repo: Repo) -> tuple[Quantisation, ...]:
        """The quantisations that get a row: with 100,000 rows the window could not be used."""
        more = repo.quantisations[MOST_ROWS:]
        pasted = (
            quantisation
            for quantisation in more
            if any(file.name == self._file for file in quantisation.files)
        )
        return (*repo.quantisations[:MOST_ROWS], *pasted)

    def _mark(self, row: QuantisationRow) -> None:
        row.setProperty("kind", "card")
        row.style().unpolish(row)
        row.style().polish(row)
        row.button.setFocus(Qt.FocusReason.OtherFocusReason)
        self._scroll.ensureWidgetVisible(row)

    def _not_queued(self, error: UserError) -> None:
        self.notice.tell(error)
        if isinstance(error, HubError) and error.trouble in (Trouble.GATED, Trouble.DENIED):
            self.token.show()
        self._scroll.ensureWidgetVisible(self.notice)

    def _show_room(self) -> None:
        for row in self.rows:
            row.show_room()

    def _show_progress(self) -> None:
        if self.isVisible():
            for row in self.rows:
                row.show_progress()

    def _look(self) -> None:
        for row in self.rows:
            row.refresh()

    def _offline_changed(self) -> None:
        if self._repo is None and self._name:
            self.ask()
        for row in self.rows:
            row.show_progress()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._look()  # a hidden page is not kept up to date

    def _browse(self) -> None:
        QDesktopServices.openUrl(QUrl(f"{self._session.hub.endpoint}/{self._name}"))
