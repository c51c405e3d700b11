"""The inspected round: its facts, and a card for each of its tokens."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.engine.explain.copied import ContextText, Copied, is_copied
from app.engine.types import Round, TraceHeader
from app.ui.inspector.part import InspectorPart
from app.ui.inspector.round.card_grid import CardGrid
from app.ui.inspector.round.chain import BlockChain, chain_of
from app.ui.inspector.round.contents import cards_of
from app.ui.inspector.round.copied_label import CopiedLabel
from app.ui.inspector.round.facts import copied_words, round_facts, source_words
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.text.steady_label import SteadyLabel
from app.ui.widgets.words.numbers import count


class RoundView(InspectorPart):
    """Shows the inspected round of an answer. Up and down go from card to card."""

    place_focused = Signal(QWidget)
    """The card of a place got the focus."""
    source_changed = Signal()  # the tokens that the draft was copied from

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.title = SteadyLabel()
        self.title.setProperty("role", "strong")
        self.facts = QLabel()
        self.facts.setProperty("role", "secondary")
        self.origin = QLabel()
        self.origin.setProperty("role", "caption")
        for label in (self.facts, self.origin):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        self.source: tuple[int, int, int] | None = None
        """The tokens of the answer that the draft was copied from: round, place, number."""
        self.copied = CopiedLabel(theme)
        self.chain = BlockChain(theme)
        self.grid = CardGrid(theme)
        self.grid.card_focused.connect(self.place_focused)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self.title, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self.facts, 1)
        column.addLayout(head)
        for widget in (self.origin, self.copied, self.chain):
            column.addWidget(widget)
        column.addSpacing(4)
        column.addWidget(self.grid)
        self._text_of: TraceHeader | None = None  # whose answer was read
        self._text: ContextText
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Round")

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (  # a cursor may move with every frame; nobody reads cards as fast
            (answer.began, self._redraw), (answer.grew, self._grow), (answer.ended, self._redraw),
            (answer.moved, self._grow), (answer.pinned, self._redraw),
        )  # fmt: skip

    def draw(self) -> None:
        """Show the inspected round."""
        answer = self.answer
        index, header = answer.inspected, answer.header
        if index is None or header is None:
            self.source = None
            self.grid.show_cards(())
            return
        round = answer.rounds[index]
        self.title.set_text(f"Round {count(round.index)}")
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
        self.chain.show_links(chain_of(round, header))
        self.grid.show_cards(cards_of(round, header))

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
        """The keyboard goes on to the first card; the round itself has nothing to press."""
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self.grid.step(1)


KEYS: KeyTable[RoundView] = KeyTable(
    ("Up", "The card before", lambda view: view.grid.step(-1)),
    ("Down", "The next card", lambda view: view.grid.step(1)),
)
