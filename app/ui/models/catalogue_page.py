"""The catalogue: curated pairs as cards, confirmed with the Hub when they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QWidget

from app.engine.errors import UserError
from app.hub.catalogue import CataloguePair, Confirmed, confirm
from app.hub.errors import HubError, Trouble
from app.ui.models.hub_session import HubSession
from app.ui.models.pair_card import PairCard
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.background import Query
from app.ui.widgets.icons import IconButton
from app.ui.widgets.notice import Notice

CARD_WIDTH = 400  # pixels at text scale 1, at least
MOST_COLUMNS = 4
# These concern the network, not a pair: after one of them the rest is not asked for.
OF_ALL = frozenset({Trouble.OFFLINE, Trouble.UNREACHABLE, Trouble.BUSY, Trouble.SERVER})
INTRO = (
    "Pairs known to work together: a target that writes, and a small draft with the same vocabulary that "
    "guesses ahead. If a target is listed alone, its card says why."
)


class CataloguePage(QScrollArea):
    """All pairs, the first choice first."""

    downloads_wanted = Signal()

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.question: Query[tuple[CataloguePair, tuple[Confirmed, ...]]] = Query(
            session.askers, self._confirmed, self._failed, self._show_state
        )
        self._known: dict[str, bool] = {}  # pairs that the Hub has answered about: whether it has their files
        self._answered = 0  # of those that were asked about last
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.cards = [PairCard(theme, session, pair) for pair in session.catalogue]
        self._build()
        for card in self.cards:
            card.downloads_wanted.connect(self.downloads_wanted)
        session.room_changed.connect(self._show_room)
        session.downloads_changed.connect(self._show_progress)
        session.library_changed.connect(self._look)
        session.offline_changed.connect(self._offline_changed)
        theme.changed.connect(self._arrange)
        self._show_state()

    def _build(self) -> None:
        self.state = kit.label("", "caption", wrap=True)
        self.refresh = IconButton(
            self._theme, "refresh", "Ask the Hub again for names and sizes", act=self.ask
        )
        state = kit.row((self.state, 1), self.refresh, spacing=8)
        head = kit.column(kit.label(INTRO, "secondary", wrap=True), state, spacing=0)
        self.notice = Notice(self._theme)
        self._grid = kit.grid((16, 16))
        parts = head, self.notice, self._grid, kit.Spring(1)
        self.setWidget(kit.holder(kit.column(*parts, margins=(24, 16, 24, 24), spacing=16)))
        self._columns = 0
        self._arrange()

    # ------------------------------------------------------------------ asking the Hub

    def ask(self) -> None:
        """Ask the Hub for names and sizes of all pairs, one after the other."""
        self.notice.clear()
        if self._session.is_offline:
            self._show_state()
            return
        self._answered = 0
        self.question.ask_each(self._answers)
        self._show_state()

    def _answers(self) -> Iterator[tuple[CataloguePair, tuple[Confirmed, ...]]]:
        """Confirm pair after pair, on an asking thread."""
        for pair in self._session.catalogue:
            found = tuple(confirm(self._session.hub, pair.models))
            for entry in found:
                if isinstance(entry.problem, HubError) and entry.problem.trouble in OF_ALL:
                    raise entry.problem
            yield pair, found

    def _confirmed(self, answer: tuple[CataloguePair, tuple[Confirmed, ...]]) -> None:
        pair, found = answer
        self._answered += 1
        self._known[pair.id] = all(entry.problem is None for entry in found)
        next(card for card in self.cards if card.pair is pair).show_confirmed(found)
        self._show_state()

    def _failed(self, error: UserError) -> None:
        if not self._session.is_offline:
            self.notice.tell(error)

    def _show_state(self) -> None:
        if self._session.is_offline:
            words = (
                "Offline: names and sizes are from the built-in list. Turn off offline mode to download "
                "pairs."
            )
        elif self.question.pending:
            words = f"Asking the Hub, {self._answered} of {len(self.cards)}"
        elif self._known:
            confirmed, of = sum(self._known.values()), len(self.cards)
            words = (
                "Names and sizes confirmed with the Hub"
                if confirmed == of
                else f"{confirmed} of {of} pairs confirmed with the Hub"
            )
        else:
            words = "Names and sizes from the built-in list, not confirmed"
        self.state.setText(words)
        self.refresh.setEnabled(not self._session.is_offline and not self.question.pending)

    # ------------------------------------------------------------------ what changed elsewhere

    def _show_room(self) -> None:
        for card in self.cards:
            card.show_room()

    def _show_progress(self) -> None:
        if self.isVisible():
            for card in self.cards:
                card.show_progress()

    def _look(self) -> None:
        if self.isVisible():
            for card in self.cards:
                card.refresh()

    def _offline_changed(self) -> None:
        self.question.drop()
        self.notice.clear()
        self._look()
        if self.isVisible() and len(self._known) < len(self.cards):
            self.ask()
        self._show_state()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._look()
        if len(self._known) < len(self.cards) and not self.question.pending:
            self.ask()
        self._show_state()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Use as many columns as there is room for; the cards of a row are equally high."""
        room = self.viewport().width() - 48
        columns = max(1, min(MOST_COLUMNS, room // round(CARD_WIDTH * self._theme.scale)))
        if columns == self._columns:
            return
        for column in range(self._columns):
            self._grid.setColumnStretch(column, 0)
        self._columns = columns
        _fill(self._grid, self.cards, columns)


def _fill(grid: QGridLayout, cards: Sequence[QWidget], columns: int) -> None:
    for column in range(columns):
        grid.setColumnStretch(column, 1)
    for index, card in enumerate(cards):
        grid.addWidget(card, index // columns, index % columns)
