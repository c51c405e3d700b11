"""Search for GGUF repositories by words or by a pasted address."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLineEdit, QSplitter, QStackedWidget, QWidget

from app.engine.errors import UserError
from app.hub.names import parse_address
from app.hub.repo import RepoHit, search
from app.ui.models.entry_rows import EntryList, ListEntry
from app.ui.models.hub_session import HubSession
from app.ui.models.repo_page import RepoPage
from app.ui.models.words import hit_tooltip, hit_words
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.background import Query
from app.ui.widgets.icons import icon
from app.ui.widgets.notice import Placeholder

EMPTY = (
    "Search the Hub",
    "Words of a model's name, such as “qwen3 4b”; or paste the address of a repository or of a file in it.",
)
OFFLINE = ("Offline mode is on", "Search needs the network: turn offline mode off first.")


class SearchPage(QWidget):
    """A search field, its results, and the chosen repository."""

    library_wanted = Signal(object)
    downloads_wanted = Signal()

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self._words = ""
        self._hits: tuple[RepoHit, ...] = ()
        self.question: Query[tuple[RepoHit, ...]] = Query(session.askers, self._show, self._failed)
        self.field = QLineEdit()
        self.field.setPlaceholderText("Words, or an address such as https://huggingface.co/owner/name")
        self.field.setAccessibleName("Search the Hub")
        self.field.setClearButtonEnabled(False)
        self._lens = self.field.addAction(
            icon("search", theme.palette.secondary), QLineEdit.ActionPosition.LeadingPosition
        )
        self.field.returnPressed.connect(self.search)
        self.field.textChanged.connect(self._refresh)
        self.button = kit.button("Search", self.search)
        row = kit.row((self.field, 1), self.button, margins=(24, 16, 24, 12), spacing=8)
        self.list = EntryList(theme, "Repositories found")
        self.list.selectionModel().selectionChanged.connect(self._chosen)
        self.repo = RepoPage(theme, session)
        self.repo.library_wanted.connect(self.library_wanted)
        self.repo.downloads_wanted.connect(self.downloads_wanted)
        left = QWidget()
        kit.column(self.list, margins=(16, 8, 8, 8), on=left)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(left)
        self._splitter.addWidget(self.repo)
        self._splitter.setStretchFactor(0, 2)
        self._splitter.setStretchFactor(1, 3)
        self.placeholder = Placeholder()
        self._again = self.placeholder.add_button("Try again")
        self._again.clicked.connect(self.search)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.placeholder)
        self._stack.addWidget(self._splitter)
        kit.column(row, (self._stack, 1), spacing=0, on=self)
        session.offline_changed.connect(self._offline_changed)
        theme.changed.connect(self._restyle)
        self._restyle()
        self._offline_changed()

    def search(self) -> None:
        """Ask the Hub for the text in the field."""
        words = self.field.text().strip()
        if not words or self._session.is_offline:
            return
        self._words = words
        self._say("", f"Searching the Hub for “{words[:80]}”…")
        self.question.ask(partial(search, self._session.hub, words))
        self._refresh()

    def _show(self, hits: tuple[RepoHit, ...]) -> None:
        self._refresh()
        self._hits = hits
        if not hits:
            self._say(
                "Nothing found", f"No GGUF repository has “{self._words[:80]}” in its name. Try fewer words."
            )
            return
        self.list.clearSelection()
        self.repo.clear()
        self.list.rows.set_entries(
            [ListEntry(hit.repo, "", hit_words(hit), hit_tooltip(hit)) for hit in hits]
        )
        self.list.scrollToTop()
        self._stack.setCurrentIndex(1)
        self.list.select(0)
        if parse_address(self._words) is None:
            self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    def _failed(self, error: UserError) -> None:
        self._refresh()
        self._say(error.message, error.hint, again=True)

    def _chosen(self) -> None:
        row = self.list.current
        if row >= 0:
            address = parse_address(self._words)
            repo = self._hits[row].repo
            if address is not None:
                self.repo.open(repo, address.file, address.revision)
            else:
                self.repo.open(repo)

    def _say(self, title: str, words: str, again: bool = False) -> None:
        self.placeholder.say(title, words)
        self._again.setVisible(again)
        self._stack.setCurrentIndex(0)

    def _offline_changed(self) -> None:
        self.question.drop()
        self._refresh()
        if self._session.is_offline:
            self._say(*OFFLINE)
        elif self._hits:
            self._stack.setCurrentIndex(1)
        else:
            self._say(*EMPTY)

    def _refresh(self) -> None:
        offline = self._session.is_offline
        self.field.setEnabled(not offline)
        self.button.setEnabled(not offline and bool(self.field.text().strip()) and not self.question.pending)
        self.button.setToolTip("Offline mode is on." if offline else "")

    def _restyle(self) -> None:
        self._lens.setIcon(icon("search", self._theme.palette.secondary))
