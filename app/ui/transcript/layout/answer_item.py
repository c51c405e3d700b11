"""An answer as it stands in the column, growing while rounds arrive."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import groupby

from app.engine.record.trace import Trace
from app.engine.types import Round, Totals, TraceHeader
from app.ui.transcript.layout.blocks import ParagraphBlock
from app.ui.transcript.layout.heights import Heights
from app.ui.transcript.layout.items import Item, TextItem
from app.ui.transcript.layout.rendered import RenderedBlock
from app.ui.transcript.layout.styles import Setting
from app.ui.transcript.text.answer_words import CAPTIONS, manner
from app.ui.transcript.text.folds import Fold, FoldLine
from app.ui.transcript.text.paragraphs import open_fence
from app.ui.transcript.text.reasoning import Part, ReasoningReader
from app.ui.transcript.text.sections import Section
from app.ui.transcript.text.spans import Span, SpanBuilder, coloured, fit, text_of
from app.ui.transcript.text.turns import AnswerTurn, Note, Turn
from app.ui.widgets.words.numbers import count


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
        self.folds: dict[int, Fold] = {}  # by section: what the reader chose outlives a change of view
        self._counted = 0  # rounds, as the label says
        self._all_code = turn.code
        self._fence = open_fence(turn.goes_on_from)  # of the code that it begins in
        self._before: list[int] = []  # tokens emitted before each round
        self._emitted_tokens = 0
        self._spans: list[Span] = []
        self._builder = SpanBuilder()
        self._reader = ReasoningReader()
        self._sections: list[Section] = []
        self._numbers: list[int] = []  # of the sections
        self._settled = 0  # sections whose rendered text does not change any more
        self.rendered = rendered
        if turn.trace is not None:
            self._load(turn.trace)
        self._put_words(turn.text)
        self._rebuild()
        self.count()
        self.fold_over()

    @property
    def label(self) -> str:
        parts = [self.model] if self.model else []
        if self._counted:
            parts.append(f"{count(self._counted)} round{'s' * (self._counted != 1)}")
        if self.header is not None:
            parts.append(manner(self.header))
        return "  ·  ".join(parts)

    def count(self) -> None:
        """Let the labels say how much there is: not for every batch, people read it."""
        self._counted = len(self.rounds)
        for section in self._sections:
            if section.fold is not None and section.first is not None and section.last is not None:
                first, last = section.first, section.last
                section.fold.tokens = self._ordinal(last) - self._ordinal(first) + 1
                begun, ended = self.round(first.round), self.round(last.round)
                if begun is not None and ended is not None:
                    section.fold.seconds = ended.offset + ended.seconds - begun.offset

    @property
    def text(self) -> str:
        """Rendered or not, what was emitted."""
        return text_of(self._spans)

    @property
    def text_without_reasoning(self) -> str:
        """What it says, less how it came to say it."""
        return "".join(section.text for section in self._sections if section.fold is None)

    def start(self, header: TraceHeader) -> None:
        """The engine has understood the request."""
        self.header = header
        self._builder = SpanBuilder(header.stop)
        self._rebuild()

    def append(self, rounds: Iterable[Round]) -> None:
        """More rounds; costs these, not those before."""
        spans: list[Span] = []
        for one in rounds:
            self._note(one)
            spans += self._builder.add(one)
        self.progress = ""
        self._extend(spans)
        self._set_caption()

    def finish(self, totals: Totals | None) -> None:
        """The answer is over: its text is exactly the totals'. None: it broke off, keep what came."""
        self.totals = totals
        self.live = False
        self.progress = ""
        shown, rest = len(self._spans), self._builder.finish()
        fitted: list[Span] | None = None
        if totals is not None and text_of(self._spans) + text_of(rest) != totals.text:
            fitted = fit(self._spans + rest, totals.text)
            if fitted[:shown] == self._spans:
                rest, fitted = fitted[shown:], None
        if fitted is None:
            self._extend(rest)
            self._place(self._reader.finish())
        else:
            self._spans = fitted
            self._rebuild()
        self.refresh_rendered()
        self.count()
        self._set_caption()

    def set_progress(self, text: str) -> None:
        self.progress = text
        self._set_caption()

    def set_rendered(self, rendered: bool) -> None:
        """Show Markdown instead of tokens, or tokens again."""
        self.rendered = rendered
        self._rebuild()

    def refresh_rendered(self) -> None:
        """Bring the rendered text up to date. Costs the last Markdown block, so not for every batch."""
        for section in self._sections[self._settled :] if self.rendered else ():
            stayed = section.render()
            if section is self._sections[self._settled] and section.row < len(self.blocks):
                del self.blocks[section.base + stayed :]
                self.heights.truncate(len(self.blocks))
            else:
                section.row, stayed = len(self.blocks), 0
                if section.fold is not None:
                    self._put(FoldLine(section.fold))
            for block in section.rendered.blocks[stayed:] if section.rendered else ():
                self._put(block)
        self._settled = max(len(self._sections) - 1, 0)

    # ------------------------------------------------------------------------------------ reasoning

    def fold_over(self) -> bool:
        """Fold the reasoning that is over, unless the reader wanted otherwise; True where any did."""
        folding = [fold for fold in self.folds.values() if fold.over and fold.fold_by_itself()]
        for fold in folding:
            self._refit(fold)
        return bool(folding)

    def set_folded(self, fold: Fold, folded: bool) -> None:
        """Fold reasoning, or unfold it, because the reader wants it so."""
        if fold.folded != folded:
            fold.choose(folded)
            self._refit(fold)

    def fold_of(self, row: int) -> Fold | None:
        """What the reasoning in a block, or the line above it, is folded by."""
        block = self.blocks[row] if 0 <= row < len(self.blocks) else None
        return block.fold if isinstance(block, FoldLine | ParagraphBlock | RenderedBlock) else None

    def row_of(self, fold: Fold) -> int:
        """The line of that fold."""
        row = next(section.row for section in self._sections if section.fold is fold)
        return min(row, len(self.blocks) - 1)  # rendered text may not have come so far

    def _refit(self, fold: Fold) -> None:
        """The blocks of a fold came or went."""
        for row in range(self.row_of(fold), len(self.blocks)):
            if self.fold_of(row) is not fold:
                return
            self.blocks[row].drop()
            self.heights.set(row, self.blocks[row].estimate(self.setting))

    # --------------------------------------------------------------------------------------- tokens

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
            if span.fate and (drafts_shown or not span.struck):
                return span
        return None

    def first_from(self, row: int) -> Span | None:
        """The first token that begins in a block or behind it."""
        for block in self.blocks[max(row, 0) :]:
            if isinstance(block, ParagraphBlock) and not block.hidden:
                for span in block.paragraph.spans:
                    if span.fate:
                        return span
        return None

    def step(self, span: Span | None, by: int, drafts_shown: bool) -> Span | None:
        """The token `by` places on among those shown; None beyond the ends."""
        tokens = [one for one in self._spans if one.fate and (drafts_shown or not one.struck)]
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
        self.totals = trace.totals
        for one in trace.rounds:
            self._note(one)
            self._spans += self._builder.add(one)
        self._set_caption()

    def _put_words(self, text: str | None) -> None:
        """Of a stored answer: show exactly its words, in the colours that are known."""
        if text is None and self.totals is not None:
            text = self.totals.text
        if text is not None:
            spans = self._spans + self._builder.finish()
            whole = self.totals is not None and self.totals.text == text
            fitted = fit(spans, text) if whole else []
            self._spans = fitted if text_of(fitted) == text else coloured(spans, text)

    def _note(self, one: Round) -> None:
        self.rounds.append(one)
        self._before.append(self._emitted_tokens)
        self._emitted_tokens += len(one.emitted)

    def _ordinal(self, span: Span) -> int:
        """Which of the emitted tokens it is."""
        return self._before[span.round - self.rounds[0].index] + span.place

    def _extend(self, spans: list[Span]) -> None:
        self._spans += spans
        if self._all_code:
            self._place([Part(0, span) for span in spans])
        else:
            self._place(self._reader.add(spans))

    def _place(self, parts: list[Part]) -> None:
        """Put spans where they belong."""
        for number, group in groupby(parts, key=lambda part: part.section):
            section = self._section(number)
            spans = [part.span for part in group]
            for span in spans:
                section.note(span)
            if not self.rendered:
                self._take(section.paragraphs, section.paragraphs.add(spans), section.base, section.fold)
        for number, fold in self.folds.items():
            fold.over = number <= self._reader.closed

    def _section(self, number: int) -> Section:
        if self._numbers and self._numbers[-1] == number:
            return self._sections[-1]
        if self._sections and not self.rendered:
            self._end_section(self._sections[-1])
        fold = self.folds.setdefault(number, Fold()) if number % 2 else None
        fence = "" if self._sections else self._fence
        section = Section(len(self.blocks), fold, self._all_code, self.rendered, fence)
        self._numbers.append(number)
        self._sections.append(section)
        if fold is not None and not self.rendered:
            self._put(FoldLine(fold))
        return section

    def _end_section(self, section: Section) -> None:
        """What comes next stands on a line of its own, whether or not a newline was emitted."""
        last = self.blocks[-1]
        if not isinstance(last, ParagraphBlock):
            return
        if last.paragraph.spans or len(self.blocks) == section.base + 1:
            last.paragraph.cut = True
        else:
            self.blocks.pop()
            self.heights.truncate(len(self.blocks))

    def _rebuild(self) -> None:
        self.blocks = []
        self.heights = Heights()
        self._sections, self._numbers, self._settled = [], [], 0
        self._reader = ReasoningReader(self.header.prompt if self.header is not None else "")
        spans, self._spans = self._spans, []
        self._extend(spans)
        if not self.live:
            self._place(self._reader.finish())
        self.refresh_rendered()

    def set_note(self, note: Note | None) -> None:
        """Put a note below the answer, or take it away."""
        super().set_note(note)
        self._set_caption()

    def _set_caption(self) -> None:
        self.caption = self.progress
        if self.totals is not None:
            said = self.note is not None  # the note says how it ended, and what to do about it
            self.caption = "" if said else self.totals.error or CAPTIONS[self.totals.finish_reason]


def make_item(turn: Turn, setting: Setting, rendered: bool) -> Item:
    if isinstance(turn, AnswerTurn):
        return AnswerItem(turn, setting, rendered)
    return TextItem(turn, setting)
