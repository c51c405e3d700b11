"""The Models place: catalogue, search, downloads and library, and the switch for offline mode."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from app.engine.errors import UserError
from app.hub.errors import HubError, Trouble
from app.hub.names import parse_address
from app.hub.repo import RepoHit, search
from app.ui.models.catalogue_page import CataloguePage
from app.ui.models.downloads_page import DownloadsPage, DownloadStrip
from app.ui.models.drafts_page import DraftsPage
from app.ui.models.entry_rows import hit_tooltip, hit_words, room_words
from app.ui.models.hub_session import HubSession
from app.ui.models.library_page import LibraryPage
from app.ui.models.model_details import ModelsInUse
from app.ui.models.repo_page import RepoPage, TokenPanel
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.widgets import kit
from app.ui.widgets.background import Query
from app.ui.widgets.entry_list import EntryList, ListEntry
from app.ui.widgets.icons import FieldIcons
from app.ui.widgets.lazy_place import PlaceWidget
from app.ui.widgets.notice import Placeholder
from app.ui.widgets.segmented import OfflineSwitch, Segmented

EMPTY = (
    "Search the Hub",
    "Type part of a model's name, such as “qwen3\N{NO-BREAK SPACE}4b”, or paste the address of a repository "
    "or file.",
)
OFFLINE = ("Offline mode is on", "Search needs the network. Turn off offline mode first.")


class SearchPage(QWidget):
    """A search field, its results, and the chosen repository."""

    library_wanted = Signal(object)
    downloads_wanted = Signal()

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._session = session
        self._words = ""
        self._hits: tuple[RepoHit, ...] = ()
        self.question: Query[tuple[RepoHit, ...]] = Query(session.askers, self._show, self._failed)
        hint = "Model name, or an address such as https://huggingface.co/owner/name"
        self.field = kit.field("Search the Hub", hint, entered=self.search, typed=self._refresh)
        FieldIcons(theme, self.field, "search")
        self.button = kit.button("Search", self.search)
        row = kit.row((self.field, 1), self.button, margins=(24, 16, 24, 12), spacing=8)
        self.list = EntryList(theme, "Repositories found")
        self.list.selectionModel().selectionChanged.connect(self._chosen)
        self.repo = RepoPage(theme, session)
        self.repo.library_wanted.connect(self.library_wanted)
        self.repo.downloads_wanted.connect(self.downloads_wanted)
        left = kit.holder(kit.column(self.list, margins=(16, 8, 8, 8)))
        self._splitter = kit.splitter((left, 2), (self.repo, 3))
        self.placeholder = Placeholder()
        self._again = self.placeholder.add_button("Try again", self.search)
        self.token = TokenPanel(theme, session)  # the Hub tells nobody else that a repository is private
        self.token.setContentsMargins(0, 16, 0, 0)
        self.token.saved.connect(self.search)
        self.placeholder.add(self.token)
        self._stack = kit.stack(self.placeholder, self._splitter)
        kit.column(row, (self._stack, 1), spacing=0, on=self)
        session.offline_changed.connect(self._offline_changed)
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
        self._hits = ()  # while the earlier ones leave the list
        self.list.clearSelection()
        self._hits = hits
        if not hits:
            self._say(
                "Nothing found", f"No GGUF repository has “{self._words[:80]}” in its name. Try fewer words."
            )
            return
        self.repo.clear()
        self.list.set_entries(ListEntry(hit.repo, "", hit_words(hit), hit_tooltip(hit)) for hit in hits)
        self.list.scrollToTop()
        self._stack.setCurrentIndex(1)
        self.list.select(0)
        if parse_address(self._words) is None:
            self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    def _failed(self, error: UserError) -> None:
        self._refresh()
        self._say(error.message, error.hint, again=True)
        address = parse_address(self._words)
        if isinstance(error, HubError) and error.trouble is Trouble.NOT_FOUND and address is not None:
            self.token.set_repo(address.repo, gated=False)
            self.token.show()

    def _chosen(self) -> None:
        row = self.list.current
        if 0 <= row < len(self._hits):
            address = parse_address(self._words)
            repo = self._hits[row].repo
            if address is not None:
                self.repo.open(repo, address.file, address.revision)
            else:
                self.repo.open(repo)

    def _say(self, title: str, words: str, again: bool = False) -> None:
        self.placeholder.say(title, words)
        self._again.setVisible(again)
        self.token.hide()
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


VIEWS = ("Catalogue", "Search", "Downloads", "Library", "Drafts")


class ModelsPlace(PlaceWidget):
    """Five views, one at a time."""

    def __init__(self, theme: Theme, session: HubSession, in_use: ModelsInUse, drafts: DraftsPage) -> None:
        """`in_use` gives the models of the chat."""
        super().__init__()
        self._theme = theme
        self.session = session
        session.setParent(self)
        self.catalogue = CataloguePage(theme, session)
        self.search = SearchPage(theme, session)
        self.downloads = DownloadsPage(theme, session)
        self.library = LibraryPage(theme, session, in_use)
        self.drafts = drafts
        self.strip = DownloadStrip(theme, session)
        self._pages = kit.stack(self.catalogue, self.search, self.downloads, self.library, self.drafts)
        kit.column(self._build_head(), kit.line(), (self._pages, 1), self.strip, spacing=0, on=self)
        self._connect()
        self._show_offline()
        self._show_room()
        self.show_view("Catalogue")

    def _build_head(self) -> QWidget:
        self.views = Segmented(self._theme, "View", VIEWS)
        self.views.picked.connect(self.show_view)
        self._room = kit.label("", "caption")
        self._room.setToolTip("Free memory on this machine. The dots show which models fit.")
        self._offline_words = QLabel("Offline")
        self.offline = OfflineSwitch()
        self.offline.toggled.connect(lambda offline: self.session.settings.change(offline=offline))
        head = QWidget()
        parts = self.views, kit.Spring(1), self._room, 16, self._offline_words, self.offline
        kit.row(*parts, margins=(24, 8, 22, 8), spacing=8, on=head)
        return head

    def _connect(self) -> None:
        session = self.session
        session.downloads_changed.connect(self._show_strip)
        session.room_changed.connect(self._show_room)
        session.offline_changed.connect(self._show_offline)
        for fetcher in (self.catalogue, self.search, self.strip):
            fetcher.downloads_wanted.connect(lambda: self.show_view("Downloads"))
        for finder in (self.search, self.downloads):
            finder.library_wanted.connect(self._show_in_library)
        self.library.details.drafts_wanted.connect(self._show_drafts)
        for empty in (self.downloads, self.library, self.drafts):
            empty.catalogue_wanted.connect(lambda: self.show_view("Catalogue"))

    @property
    def view(self) -> str:
        """The current view, one of VIEWS."""
        return VIEWS[self._pages.currentIndex()]

    def show_view(self, view: str) -> None:
        """Show one of VIEWS."""
        self.views.set_choice(view)
        held = QApplication.focusWidget()
        inside = held is not None and self._pages.isAncestorOf(held)  # the focused widget is being hidden
        self._pages.setCurrentIndex(VIEWS.index(view))
        if view == "Search" and not ring_shown(self.views):
            self.search.field.setFocus(Qt.FocusReason.OtherFocusReason)
        elif inside:
            self._pages.setFocus(Qt.FocusReason.OtherFocusReason)
        self._show_strip()

    def close_place(self) -> None:
        """Before the window closes: pause the downloads, end threads and processes."""
        self.drafts.close_page()
        self.session.close()

    def _show_in_library(self, path: Path | str | None) -> None:
        self.show_view("Library")
        if path:
            self.library.show_model(Path(path))

    def _show_drafts(self, target: Path) -> None:
        self.drafts.show_target(target)
        self.show_view("Drafts")

    def _show_strip(self) -> None:
        self.strip.refresh()
        self.strip.setVisible(self.strip.is_busy and self.view != "Downloads")

    def _show_room(self) -> None:
        room = self.session.room
        self._room.setText(room_words(room) if room is not None else "")
        self._fit()

    def _show_offline(self) -> None:
        session = self.session
        words = self.offline.show_mode(session.is_offline, forced=session.is_forced_offline)
        self.offline.setToolTip(words)
        self._offline_words.setToolTip(words)

    def _fit(self) -> None:
        """Show the free memory if there is room for it."""
        others = self.views.sizeHint().width() + self._offline_words.sizeHint().width()
        others += self.offline.sizeHint().width() + 120
        self._room.setVisible(self._room.sizeHint().width() + others <= self.width())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.session.measure_room()
        self.session.library.refresh()  # Compare and commands make and delete files

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
