"""The inspected round: its facts, and a card for each of its tokens."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.base.numbers import ordinal
from app.engine.explain.copied import ContextText, Copied, is_copied
from app.engine.fates import Origin
from app.engine.types import Round, TraceHeader
from app.ui.inspector.card import CardGrid
from app.ui.inspector.content import copied_words, round_facts, source_words
from app.ui.inspector.contents import before_verdict, cards_of, in_plain_words
from app.ui.inspector.draft_block import BlockChain, DraftBlock, block_of, chain_of, kind_of
from app.ui.inspector.part import InspectorPart
from app.ui.inspector.round_time import RoundTime, RoundTimeView
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.labels import SteadyLabel

_NEWLINE = "↵"


class CopiedLabel(QLabel):
    """An excerpt of the conversation: what matched is underlined, what was copied has a ground."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._copied: Copied | None = None
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setAccessibleName("Copied text")
        theme.follow(self._show)

    def show_copied(self, copied: Copied | None) -> None:
        """Show a different excerpt; None, or one that was not found, hides it."""
        self._copied = copied
        self._show()

    def _show(self) -> None:
        copied, palette = self._copied, self._theme.palette
        self.setVisible(copied is not None and copied.places > 0)
        if copied is None:
            return
        self.setFont(self._theme.mono(-1))
        ground = palette.soft(palette.fate(Origin.ACCEPTED))
        self.setText(
            f'<div style="white-space: pre-wrap; color: {palette.secondary}">…{_shown(copied.before)}'
            f'<span style="color: {palette.text}; text-decoration: underline">{_shown(copied.matched)}</span>'
            f'<span style="color: {palette.text}; background: {ground}">{_shown(copied.copied)}</span>'
            f"{_shown(copied.after)}…</div>"
        )
        self.setAccessibleDescription(
            f"After {copied.matched!r}, as before this draft, comes {copied.copied!r}."
        )


def _shown(text: str) -> str:
    """A text of strangers as HTML: its characters, none of its markup."""
    return escape(text.replace("\n", _NEWLINE))


class RoundView(InspectorPart):
    """Shows the inspected round of an answer. Up and down go from card to card."""

    place_focused = Signal(QWidget)
    """The card of a place got the focus."""
    source_changed = Signal()  # the tokens that the draft was copied from

    def __init__(self, theme: Theme, for_learners: bool = False) -> None:
        """`for_learners` has words in place of letters."""
        super().__init__()
        self._for_learners = for_learners
        self.asks: int | None = None  # a round of which only the draft is shown
        self.in_whole = False  # the time is that of the whole answer
        self.title = SteadyLabel("strong")
        self.facts = kit.label("", "secondary", wrap=True, plain=True)
        self.origin = kit.label("", "caption", wrap=True, plain=True)
        self.source: tuple[int, int, int] | None = None
        """The tokens of the answer that the draft was copied from: round, place, number."""
        self.copied = CopiedLabel(theme)
        self.time = RoundTimeView(theme)
        self.block = DraftBlock(theme)
        self.chain = BlockChain(theme)
        self.grid = CardGrid(theme)
        self.grid.card_focused.connect(self.place_focused)
        head = kit.row((self.title, 0, Qt.AlignmentFlag.AlignTop), (self.facts, 1), spacing=12)
        kit.column(
            head,
            self.origin,
            self.copied,
            self.time,
            self.block,
            self.chain,
            4,
            self.grid,
            spacing=4,
            on=self,
        )
        self._text_of: TraceHeader | None = None  # whose answer was read
        self._text: ContextText
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Round")

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (  # a cursor may move with every frame; no one reads cards as fast
            (answer.began, self._redraw), (answer.grew, self._grow), (answer.ended, self._redraw),
            (answer.moved, self._grow), (answer.pinned, self._redraw), (answer.measured, self._redraw),
        )  # fmt: skip

    def draw(self) -> None:
        """Show the inspected round."""
        answer = self.answer
        index, header = answer.inspected if self.asks is None else self.asks, answer.header
        if index is None or header is None:
            self.source = None
            self.grid.show_cards(())
            return
        round = answer.rounds[index]
        if self.asks is not None:
            self._ask(round, header)
            return
        self.title.set_text(f"Round {ordinal(round.index)}")
        self.facts.setText(round_facts(round, header))
        copied = self._copied(round, header)
        said = [source_words(round, header)] + ([copied_words(copied, round)] if copied is not None else [])
        self.origin.setText(" ".join(filter(None, said)))
        self.origin.setVisible(bool(self.origin.text()))
        self.copied.show_copied(copied)
        source = copied.source if copied is not None else None
        self.source = (*source, len(round.drafted)) if source is not None else None
        self.source_changed.emit()
        self.setAccessibleDescription(f"{self.title.text()}. {self.facts.text()}. {self.origin.text()}")
        self.block.show_block(block_of(round, header), kind_of(header))
        whole = answer.measurement if self.in_whole else None
        time = RoundTime.of_answer(whole) if whole is not None else RoundTime.of(round, answer.priced)
        self.time.show_time(time)
        self.chain.show_links(chain_of(round, header))
        cards, place = cards_of(round, header), answer.pinned_place
        if self._for_learners:
            cards = tuple(map(in_plain_words, cards))
        if place is not None and place >= len(round.drafted):
            place = next((at for at, card in enumerate(cards) if card.own), None)
        self.grid.show_cards(cards, place)

    def _ask(self, round: Round, header: TraceHeader) -> None:
        """Show what is known before the verdict."""
        self.title.set_text(f"Round {ordinal(round.index)}: what the draft thinks")
        self.facts.clear()
        for part in (self.origin, self.copied, self.block, self.chain):
            part.hide()
        self.time.show_time(None)
        cards = cards_of(round, header)[: len(round.drafted)]
        self.grid.show_cards([before_verdict(in_plain_words(card)) for card in cards])

    def _copied(self, round: Round, header: TraceHeader) -> Copied | None:
        """Where the draft was copied from."""
        if not is_copied(round):
            return None
        if self._text_of is not header:
            self._text_of, self._text = header, ContextText(header)
        self._text.read(self.answer.rounds)
        return self._text.copied(round)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not KEYS.act(self, event):
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The keyboard continues to the first card; the round itself has nothing to press."""
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self.grid.step(1)


KEYS: KeyTable[RoundView] = KeyTable(
    ("Up", "Previous card", lambda view: view.grid.step(-1)),
    ("Down", "Next card", lambda view: view.grid.step(1)),
)
