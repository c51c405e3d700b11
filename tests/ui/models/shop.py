"""The Models place and a person in front of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QAbstractButton
from pytestqt.exceptions import TimeoutError
from pytestqt.qtbot import QtBot

from app.engine.errors import UserError
from app.ui.models.downloads_page import DownloadRow
from app.ui.models.hub_session import HubSession
from app.ui.models.pair_card import PairCard
from app.ui.models.place import ModelsPlace
from app.ui.models.quantisation_row import QuantisationRow
from app.ui.state.chat_side import KEEP, Keep, Tell

PATIENCE = 60_000  # milliseconds; the machine may be busy

FIRST = "SmolLM2 1.7B with 135M"


class Shop:
    """Clicks, waits and reads. What would be loaded into the chat is kept in `used`."""

    def __init__(self, qtbot: QtBot, make: Callable[..., HubSession]) -> None:
        self.qtbot = qtbot
        self.session = make(self.use)
        self.used: list[tuple[str | Keep | None, str | Keep | None]] = []
        self.in_use: tuple[str, str] = ("", "")
        self.refusal: UserError | None = None
        self.place: ModelsPlace

    def open(self, build: Callable[..., ModelsPlace]) -> None:
        self.place = build(lambda: self.in_use)
        self.place.resize(1044, 660)
        self.place.show()

    def close(self) -> None:
        self.place.close()
        self.place.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    def use(
        self, tell: Tell, *, target: Path | str | Keep = KEEP, draft: Path | str | Keep | None = KEEP
    ) -> None:
        if self.refusal is not None:
            tell(self.refusal)
        else:
            self.used.append((self._named(target), self._named(draft)))

    def _named(self, model: Path | str | Keep | None) -> str | Keep | None:
        return model if isinstance(model, Keep | None) else self.session.settings.named(model).path

    def loaded(self) -> tuple[str, str]:
        """Target and draft of the one pair that was loaded; "" without a draft."""
        ((target, draft),) = self.used
        return str(target), str(draft or "")

    # ------------------------------------------------------------------ acting

    def until(self, condition: Callable[[], object], timeout: int = PATIENCE) -> None:
        """Wait. If the Hub could not be asked, a person asks once more. A failure says what the page says."""
        page, asked = self.place.catalogue, False

        def met() -> bool:
            nonlocal asked
            if condition():
                return True
            if page.notice.message and not page.question.pending and not asked:
                asked = True
                page.ask()
            return False

        for third in (2, 1):  # a machine that stood still until the time was over gets the rest of it
            try:
                self.qtbot.waitUntil(met, timeout=timeout * third // 3)
                return
            except TimeoutError:
                said = page.state.text(), page.notice.message, page.question.pending, page.cards[0].state
        pytest.fail(f"The catalogue said {said}.")

    def click(self, button: QAbstractButton) -> None:
        assert button.isVisible() and button.isEnabled(), button.text() or button.toolTip()
        self.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def view(self, name: str) -> None:
        self.place.show_view(name)

    def search(self, words: str) -> None:
        """Type into the field, press Enter, wait for the answer."""
        self.view("Search")
        page = self.place.search
        page.field.setText(words)
        self.qtbot.keyClick(page.field, Qt.Key.Key_Return)
        self.until(lambda: not page.question.pending)

    def open_repo(self, repo: str) -> None:
        self.search(repo)
        self.until(lambda: self.place.search.repo.rows or "Asking" not in self.repo_words())

    # ------------------------------------------------------------------ looking

    def card(self, title: str = FIRST) -> PairCard:
        return next(card for card in self.place.catalogue.cards if card.pair.title == title)

    def row(self, quantisation: str) -> QuantisationRow:
        return next(row for row in self.place.search.repo.rows if row.quantisation.name == quantisation)

    def download(self, words: str = "") -> DownloadRow:
        return next(row for row in self.place.downloads.rows if words in row.download.title)

    def hits(self) -> list[str]:
        return [entry.title for entry in self.place.search.list.entries]

    def search_words(self) -> str:
        """What the search says instead of results."""
        return self.place.search.placeholder.text if self.place.search.placeholder.isVisible() else ""

    def repo_words(self) -> str:
        """The text shown instead of a repository."""
        placeholder = self.place.search.repo.placeholder
        return placeholder.text if placeholder.isVisible() else ""

    def library_names(self) -> list[str]:
        return [model.path.name for model in self.session.models]

    def select(self, path: Path) -> None:
        """Choose a model of the library, and wait for its drafts."""
        self.view("Library")
        self.until(lambda: not self.session.reading and self.place.library.table.select(path))
        details = self.place.library.details
        self.until(lambda: details.model is not None and not details.reading)
