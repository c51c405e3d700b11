"""The inspected round: its facts, and a card for each of its tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from html import escape

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.base.numbers import listed, ordinal, percent
from app.engine.explain.copied import ContextText, Copied, is_copied
from app.engine.explain.decision import q_follows
from app.engine.fates import UNTOLD_DRAFT, Origin, Verdict
from app.engine.rules.registry import rule_of
from app.engine.types import HeadInput, Round, TraceHeader
from app.ui.inspector.card import CardGrid
from app.ui.inspector.contents import asked_of, before_verdict, cards_of, in_plain_words
from app.ui.inspector.draft_block import BlockChain, DraftBlock, block_of, chain_of, kind_of
from app.ui.inspector.part import InspectorPart
from app.ui.inspector.round_time import RoundTime, RoundTimeView
from app.ui.inspector.tracks import TIME_NAMES
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.labels import SteadyLabel
from app.ui.widgets.words import count, dotted, duration, end_words, whole

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
        parts = head, self.origin, self.copied, self.time, self.block, self.chain, 4, self.grid
        kit.column(*parts, spacing=4, on=self)
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
        words = " ".join(filter(None, said))
        self.origin.setText(words.replace("draft_p is", "“draft” is") if self._for_learners else words)
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
        known = "what was copied" if is_copied(round) else "what the draft thinks"
        self.title.set_text(f"Round {ordinal(round.index)}: {known}")
        self.facts.clear()
        self.copied.show_copied(None)  # for good: it shows itself again in another theme
        for part in (self.origin, self.block, self.chain):
            part.hide()
        self.time.show_time(None)
        cards = asked_of(round, header)
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


def round_facts(round: Round, header: TraceHeader) -> str:
    """How many tokens of each fate, how long it took, and the rule."""
    verdicts = Counter(token.verdict for token in round.drafted)
    own = [token for token in round.emitted if token.origin is not Origin.ACCEPTED]
    facts = [f"{count(len(round.drafted))} drafted"]
    if not round.drafted:
        facts = ["draft unknown" if round.untold else "no draft"]
    facts += [f"{count(verdicts[verdict])} {verdict}" for verdict in Verdict if verdicts[verdict]]
    facts += [f"1 {round.fate_word(token)}" for token in own]
    if header.pair.server is not None:
        times = [duration(round.seconds)]
    else:
        seconds = round.draft_seconds, round.verify_seconds, round.sample_seconds
        times = [f"{name} {duration(each)}" for name, each in zip(TIME_NAMES, seconds, strict=True)]
    rule = f"{header.verification} verification" if round.drafted else ""
    return dotted([*map(whole, facts), ", ".join(map(whole, times)), whole(rule)])


def source_words(round: Round, header: TraceHeader) -> str:
    """Which strategies were asked, which one drafted, and what q is, in a few sentences."""
    if header.pair.server is not None:
        kind = header.pair.server.kind
        if round.untold:
            return UNTOLD_DRAFT
        return f"{kind} drafted. It does not report p, q or the rejected tokens." if round.drafted else ""
    said = [_asked(round), _read(round.head, header), _drawn(round, header)]
    at_zero = header.sampling.temperature == 0 and rule_of(header.verification).draws
    if at_zero:
        said.append(
            "At temperature 0 p is 1 for the most probable token; the bars are the model's own probabilities."
        )
    return " ".join(filter(None, said))


def _asked(round: Round) -> str:
    if not round.drafted:
        asked = listed(round.asked or ())
        return f"{asked} had no draft: {end_words(round.draft_end)}." if asked and round.draft_end else ""
    name = round.strategy or "A strategy"
    before = [asked for asked in round.asked or () if asked != round.strategy]
    were = "were" if before[1:] else "was"
    silent = f"{listed(before)} {were} asked first and had no draft. " if before else ""
    why = round.draft_end and end_words(round.draft_end)
    if why and why.startswith("the draft ended"):  # a sentence of its own: the draft model ended the answer
        return f"{silent}{name} drafted; {why}."
    ended = f"; reason for the length: {why}" if why else ""
    return f"{silent}{name} drafted{ended}."


def _read(head: HeadInput | None, header: TraceHeader) -> str:
    """The target's rows that a head read, and the share of each."""
    if head is None:
        return ""
    inner = [f"{layer}" for layer in head.layers if layer != header.pair.target.n_layers]
    named = [f"before layer{'s' if inner[1:] else ''} {listed(inner)}"] if inner else []
    named += ["after the last layer"] if len(inner) < len(head.layers) else []
    sizes = listed([f"{norm:,.1f}" for norm in head.norms])
    said = f"It read the target's rows {listed(named)}, of length {sizes}."
    if not head.shares:
        return said
    return f"{said} They make up {listed([percent(share, 0) for share in head.shares])} of its input."


def _drawn(round: Round, header: TraceHeader) -> str:
    """What q is in this round."""
    if not round.drafted:
        return ""
    first = round.drafted[0]
    if first.draft_drawn is not None and q_follows(header.sampling):
        return (
            "The tokens were drawn from q. The trace records q of the drafted tokens alone. For the others, "
            "q is computed from the draft's recorded probabilities."
        )
    if first.draft_drawn is not None:
        return "The tokens were drawn from q. For the other tokens, q was not recorded."
    if first.draft_p is not None:
        taken = "The draft's most likely token was taken, not drawn, so q is 1 for it and 0 for the others"
        return (
            f"{taken}. draft_p is the draft model's own probability of each token, marked across its bar."
            if not _by_law(header)
            else f"{taken}."
        )
    return "The tokens were copied, not drawn, so q is 1 for them and 0 for the others."


def _by_law(header: TraceHeader) -> bool:
    """Whether p and q decide."""
    rule = rule_of(header.verification)
    return rule.keeps_law and rule.from_residual and not rule.whole and header.sampling.temperature > 0


def copied_words(copied: Copied, round: Round) -> str:
    """The source of the copied text, and what the trace does not say."""
    name = round.strategy or "The strategy"
    places = f"{count(copied.places)} places" if copied.places > 1 else ""
    if round.match is None:
        if not copied.places:
            return (
                f"{name} does not record where it copies from, and the text is not found earlier in this "
                "conversation."
            )
        where = places or "one place"
        shown = ", the last of which is shown" if places else ""
        return f"{name} does not record where it copies from. The text occurs earlier at {where}{shown}."
    if not copied.in_prompt:
        if copied.source is None:
            return (
                f"Copied from token {ordinal(round.match)} of the conversation, which is not in this trace."
            )
        return f"Copied from the answer, from round {ordinal(copied.source[0])} on, dashed in the text above."
    begin = f"Copied from token {ordinal(round.match)} of the prompt"
    if not copied.places:
        return f"{begin}. The trace does not say where that is, and the text is not found."
    if places:
        return f"{begin}. The text occurs at {places} that fit; the last one is shown."
    return f"{begin}."
