"""An answer as it stands in the column, growing while rounds arrive."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from app.engine.trace import Trace
from app.engine.types import FinishReason, Round, Totals, TraceHeader, Verification
from app.ui.numbers import count
from app.ui.transcript.blocks import ParagraphBlock
from app.ui.transcript.heights import Heights
from app.ui.transcript.items import Item, TextItem
from app.ui.transcript.paragraphs import ParagraphBuilder
from app.ui.transcript.rendered import RenderedText
from app.ui.transcript.spans import Span, SpanBuilder, fit, text_of
from app.ui.transcript.styles import Setting
from app.ui.transcript.turns import AnswerTurn, Turn

_CAPTIONS = {
    FinishReason.END: "",
    FinishReason.STOP: "Ended at a stop string",
    FinishReason.LENGTH: "Ended at the token limit",
    FinishReason.CONTEXT: "Ended because the context is full",
    FinishReason.CANCELLED: "Stopped",
    FinishReason.FAILED: "Broken off",
}


class AnswerItem(Item):
    """An answer: tokens coloured by fate, or rendered."""

    def __init__(self, turn: AnswerTurn, setting: Setting, rendered: bool) -> None:
        super().__init__(turn.id, setting, turn.note)
        self.model = turn.model
        self.live = False
        self.rounds: list[Round] = []
        self.header: TraceHeader | None = None
        self.totals: Totals | None = None
        self.progress = ""  # what the engine does before the first round
        self._counted = 0  # rounds, as the label says
        self._all_code = turn.code
        self._spans: list[Span] = []
        self._builder = SpanBuilder()
        self._paragraphs = ParagraphBuilder(turn.code)
        self._rendered: RenderedText | None = RenderedText() if rendered else None
        if turn.trace is not None:
            self._load(turn.trace)
        self._rebuild()

    @property
    def label(self) -> str:
        parts = [self.model]
        if self._counted:
            parts.append(f"{count(self._counted)} round{'s' * (self._counted != 1)}")
        if self.header is not None:
            parts.append(_manner(self.header))
        return "  ·  ".join(parts)

    def count_rounds(self) -> None:
        """Let the label say how many rounds there are: not for every batch, people read it."""
        self._counted = len(self.rounds)

    @property
    def text(self) -> str:
        """Rendered or not, what was emitted."""
        return self._emitted()

    def start(self, header: TraceHeader) -> None:
        """The engine has understood the request."""
        self.header = header
        self._builder = SpanBuilder(header.stop)

    def append(self, rounds: Iterable[Round]) -> None:
        """More rounds; costs these, not those before."""
        spans: list[Span] = []
        for one in rounds:
            self.rounds.append(one)
            spans += self._builder.add(one)
        self.progress = ""
        self._extend(spans)
        self._set_caption()

    def finish(self, totals: Totals | None) -> None:
        """The answer is over: its text is exactly the totals'. None: it broke off, keep what came."""
        self.totals = totals
        self.live = False
        self.progress = ""
        shown = len(self._spans)
        fitted = self._spans + self._builder.finish()
        if totals is not None:
            fitted = fit(fitted, totals.text)
        if fitted[:shown] == self._spans:
            self._extend(fitted[shown:])
        else:
            self._spans = fitted
            self._rebuild()
        self.refresh_rendered()
        self.count_rounds()
        self._set_caption()

    def set_progress(self, text: str) -> None:
        self.progress = text
        self._set_caption()

    def set_rendered(self, rendered: bool) -> None:
        """Show Markdown instead of tokens, or tokens again."""
        self._rendered = RenderedText() if rendered else None
        self._rebuild()

    @property
    def rendered(self) -> bool:
        return self._rendered is not None

    def refresh_rendered(self) -> None:
        """Bring the rendered text up to date. Costs the last Markdown block, so not for every batch."""
        if self._rendered is None:
            return
        first = self._rendered.update(self._emitted())
        self.blocks[first:] = self._rendered.blocks[first:]
        self.heights.truncate(first)
        for block in self.blocks[first:]:
            self.heights.append(block.estimate(self.setting))

    def round(self, index: int) -> Round | None:
        """The round of that index, if it is here."""
        place = index - self.rounds[0].index if self.rounds else -1
        return self.rounds[place] if 0 <= place < len(self.rounds) else None

    def round_spans(self, span: Span, drafts_shown: bool) -> list[Span]:
        """The tokens of a span's round that are shown."""
        one = self.round(span.round)
        first = self.first_token(span.round, drafts_shown)
        if one is None or first is None:
            return []
        at = self._spans.index(first)
        most = at + len(one.drafted) + len(one.emitted) + 1
        return [
            other
            for other in self._spans[at:most]
            if other.round == span.round and (drafts_shown or not other.struck)
        ]

    def first_token(self, round_index: int, drafts_shown: bool) -> Span | None:
        """The first token that a round shows."""
        start = bisect_left(self._spans, round_index, key=lambda span: span.round)
        for span in self._spans[start:]:
            if span.round != round_index:
                return None
            if drafts_shown or not span.struck:
                return span
        return None

    def first_from(self, row: int) -> Span | None:
        """The first token that begins in a block or behind it."""
        for block in self.blocks[max(row, 0) :]:
            if isinstance(block, ParagraphBlock) and block.paragraph.spans:
                return block.paragraph.spans[0]
        return None

    def step(self, span: Span | None, by: int, drafts_shown: bool) -> Span | None:
        """The token `by` places on among those shown; None beyond the ends."""
        tokens = [one for one in self._spans if drafts_shown or not one.struck]
        if span is None:
            return tokens[0 if by > 0 else -1] if tokens else None
        for place, one in enumerate(tokens):
            if one.same_token(span):
                wanted = place + by
                while 0 <= wanted < len(tokens) and tokens[wanted].same_token(span):
                    wanted += by
                return tokens[wanted] if 0 <= wanted < len(tokens) else None
        return None

    def block_of(self, span: Span) -> int:
        """The block in which a token begins; -1 where none shows it."""
        for row, block in enumerate(self.blocks):
            if isinstance(block, ParagraphBlock) and block.holds(span):
                return row
        return -1

    def _load(self, trace: Trace) -> None:
        self.start(trace.header)
        self.rounds = list(trace.rounds)
        self.totals = trace.totals
        for one in self.rounds:
            self._spans += self._builder.add(one)
        if trace.totals is not None:
            self._spans = fit(self._spans + self._builder.finish(), trace.totals.text)
        self.count_rounds()
        self._set_caption()

    def _emitted(self) -> str:
        return text_of(self._spans)

    def _extend(self, spans: list[Span]) -> None:
        self._spans += spans
        if self._rendered is None:
            self._take(self._paragraphs, self._paragraphs.add(spans))

    def _rebuild(self) -> None:
        self.blocks = []
        self.heights = Heights()
        if self._rendered is not None:
            self._rendered = RenderedText()
            self.refresh_rendered()
        else:
            self._paragraphs = ParagraphBuilder(self._all_code)
            self._paragraphs.add(self._spans)
            if self._spans:
                self._take(self._paragraphs, 0)

    def _set_caption(self) -> None:
        self.caption = self.progress
        if self.totals is not None:
            self.caption = _CAPTIONS[self.totals.finish_reason]
            if self.totals.error and self.note is None:
                self.caption = self.totals.error


def _manner(header: TraceHeader) -> str:
    """How the answer was made, in a few words."""
    temperature = header.sampling.temperature
    if header.strategy == "none":
        words = "no draft"
    else:
        words = header.verification.value
    if header.verification is Verification.GREEDY or temperature == 0:
        return words
    return f"{words}  ·  temperature {temperature:g}"


def make_item(turn: Turn, setting: Setting, rendered: bool) -> Item:
    if isinstance(turn, AnswerTurn):
        return AnswerItem(turn, setting, rendered)
    return TextItem(turn, setting)
