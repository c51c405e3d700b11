"""An answer in the column of the transcript, growing while rounds arrive."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from sys import maxsize
from typing import NamedTuple

from app.engine.types import Round, TraceHeader
from app.ui.transcript.layout.around_gap import AroundGap
from app.ui.transcript.layout.blocks import Block, ParagraphBlock
from app.ui.transcript.layout.heights import Heights
from app.ui.transcript.layout.items import Item, TextItem
from app.ui.transcript.layout.styles import Setting
from app.ui.transcript.text.answer_words import CAPTIONS, manner
from app.ui.transcript.text.folds import FoldLine, ReasoningFold, TextFold
from app.ui.transcript.text.paragraphs import open_fence
from app.ui.transcript.text.reasoning import Part, ReaderState, ReasoningReader
from app.ui.transcript.text.sections import Section, SectionMark
from app.ui.transcript.text.span_list import SpanList
from app.ui.transcript.text.spans import BuilderState, Span, SpanBuilder, coloured, fit, spans_of, text_of
from app.ui.transcript.text.turns import AnswerTurn, Turn
from app.ui.widgets.words.numbers import count

_MARKED = 64
"""Rounds between two marks."""
_NEAR = 8
"""Rounds between two marks where the cursor went back: it may do so again."""


class Mark(NamedTuple):
    """How far an answer was laid out."""

    rounds: int
    spans: int
    builder: BuilderState
    reader: ReaderState
    section: SectionMark


class AnswerItem(Item):
    """An answer, as tokens coloured by fate or as rendered Markdown."""

    def __init__(self, turn: AnswerTurn, setting: Setting, rendered: bool, *, in_sight: bool = True) -> None:
        """An answer that is not in sight is laid out when it is first caught up with."""
        super().__init__(turn, setting)
        self.answer = turn.answer
        self._name = turn.name
        self._words = turn.text
        # By section; kept when the view changes, so that the reader's choice outlives it.
        self.folds: dict[int, ReasoningFold] = {}
        self._header: TraceHeader | None = None  # the header of the shown rounds
        self._shown = 0  # rounds
        self._finished = False
        self._seen: tuple[object, ...] = ()
        self._counted = 0  # rounds, as shown in the label
        self._gap: AroundGap | None = None
        self._behind = 0  # blocks after the gap
        if turn.suffix is not None:
            self._gap = AroundGap(turn.goes_on_from, turn.suffix)
        self._fence = open_fence(turn.goes_on_from)  # of the code in which it begins
        self._spans = SpanList()
        self._builder = SpanBuilder()
        self._reader = ReasoningReader()
        self._sections: list[Section] = []
        self._numbers: list[int] = []  # the numbers of the sections
        self._settled = 0  # sections whose rendered text no longer changes
        self._marks: list[Mark] = []  # to go back without laying everything out anew
        self.rendered = rendered and self._gap is None
        if in_sight:
            self._begin()
            self.fold_over()

    @property
    def label(self) -> str:
        parts = [self._name] if self._name else []
        if self._counted:
            parts.append(f"{count(self._counted)} round{'s' * (self._counted != 1)}")
        if self._header is not None:
            parts.append(manner(self._header))
        return "  ·  ".join(parts)

    def count(self) -> None:
        """Update the counts in the labels; not with every batch, so that they can be read."""
        self._counted = self._shown
        for section in self._sections:
            if section.fold is not None and section.first is not None and section.last is not None:
                first, last = section.first, section.last
                section.fold.tokens = self._ordinal(last) - self._ordinal(first) + 1
                begun, ended = self.round(first.round), self.round(last.round)
                if begun is not None and ended is not None:
                    section.fold.seconds = ended.offset + ended.seconds - begun.offset

    # --------------------------------------------------------------------------------- its answer

    @property
    def live(self) -> bool:
        """Whether more of the answer will be shown."""
        return not self._finished

    @property
    def behind(self) -> bool:
        """Whether the answer changed since `catch_up`."""
        return self._seen != self._state()

    def catch_up(self) -> bool:
        """Show the current state of the answer. True where the text only grew at its end, which costs only
        what was added; False where the answer was laid out anew."""
        answer = self.answer
        ends = answer.whole and not (self._finished and answer.cursor == self._shown)
        same = self._header is answer.header and not (ends and self._words is not None)
        grows = same and self._shown <= answer.cursor and (answer.whole or not self._finished)
        if grows:
            self._show_rounds(_MARKED)
        elif not (same and self._go_back()):
            self._begin()
            return False
        if ends:
            self._finish()
        self._say()
        return grows

    def _show_rounds(self, step: int) -> None:
        """Show the rounds up to the cursor that are not shown yet, with a mark every `step` rounds."""
        cursor = self.answer.cursor
        while self._shown < cursor:
            end = min(cursor, (self._shown // step + 1) * step)
            spans: list[Span] = []
            for round in self.answer.rounds[self._shown : end]:
                spans += self._builder.add(round)
            self._shown = end
            self._extend(spans)
            if end % step == 0 and self._is_plain:
                states = self._builder.state, self._reader.state, self._sections[0].mark()
                self._marks.append(Mark(end, len(self._spans), *states))

    @property
    def _is_plain(self) -> bool:
        """Whether the text is a single section of tokens, which can be cut anywhere."""
        return len(self._sections) == 1 and not (self.rendered or self.folds or self._gap is not None)

    def _go_back(self) -> bool:
        """Show the rounds up to an earlier cursor, from the last mark before it; False where there is none.
        Blocks that come out as they were keep their layouts."""
        while self._marks and self._marks[-1].rounds > self.answer.cursor:
            self._marks.pop()
        if not self._marks or not self._is_plain:
            return False
        mark = self._marks[-1]
        self._shown, self._finished = mark.rounds, False
        self._builder.go_on_from(mark.builder)
        self._reader.go_on_from(mark.reader)
        del self._spans[mark.spans :]
        section = self._sections[0]
        section.cut_back(mark.section)
        rows = mark.section.paragraphs.paragraphs - 1
        before = [(block, self.heights[row]) for row, block in enumerate(self.blocks[rows:], rows)]
        del self.blocks[rows:]
        self.heights.truncate(rows)
        self._take(section.paragraphs, rows)
        self._show_rounds(_NEAR)
        self._keep(rows, before)
        self.count()
        return True

    def _keep(self, row: int, before: Sequence[tuple[Block, int]]) -> None:
        """Keep the blocks from a row on, given with their heights, as far as the new ones are the same."""
        last = None
        for at, (block, height) in enumerate(before[: len(self.blocks) - row], row):
            new = self.blocks[at]
            assert isinstance(block, ParagraphBlock) and isinstance(new, ParagraphBlock)
            if not block.paragraph.same_as(new.paragraph):
                if last is not None:
                    new.follow(last)
                return
            block.paragraph = new.paragraph  # which may grow
            self.blocks[at] = last = block
            self.heights.set(at, height)

    def _begin(self) -> None:
        """Show the answer anew, from its first round on."""
        answer = self.answer
        self._header = answer.header
        self._builder = SpanBuilder(self._header.stop if self._header is not None else ())
        for fold in self.folds.values():
            fold.begin_again()
        self._shown, self._spans, self._finished = 0, SpanList(), False
        if answer.whole and self._words is not None:
            self._shown, self._finished = answer.cursor, True
            self._spans = SpanList(span for round in answer.rounds for span in self._builder.add(round))
            self._put_words()
        self._rebuild()
        if not self._finished:
            self._show_rounds(_MARKED)
            if answer.whole:
                self._finish()
            else:
                self.refresh_rendered()
        self.folds = {number: self.folds[number] for number in self._numbers if number in self.folds}
        self.count()
        self._say()

    def _finish(self) -> None:
        """Make the text of an answer that has ended exactly that of its totals; without totals the spans
        stay."""
        self._finished = True
        totals = self.answer.totals
        shown, rest = len(self._spans), self._builder.finish()
        fitted: list[Span] | None = None
        if totals is not None and text_of(self._spans) + text_of(rest) != totals.text:
            fitted = fit(self._spans + rest, totals.text)
            if text_of(fitted) != totals.text:
                fitted = coloured(self._spans + rest, totals.text)
            if fitted[:shown] == self._spans:
                rest, fitted = fitted[shown:], None
        if fitted is None:
            self._extend(rest)
            self._place(self._reader.finish())
        else:
            self._spans = SpanList(fitted)
            self._rebuild()
        self.refresh_rendered()
        self.count()

    def _put_words(self) -> None:
        """Show exactly the stored text of an answer that has ended, coloured as far as its tokens are
        known."""
        totals = self.answer.totals
        text = self._words if self._words is not None or totals is None else totals.text
        spans = self._spans + self._builder.finish()
        if text is not None and text_of(spans) != text:
            whole = totals is not None and totals.text == text
            fitted = fit(spans, text) if whole else []
            spans = fitted if text_of(fitted) == text else coloured(spans, text)
        self._spans = SpanList(spans)

    def _state(self) -> tuple[object, ...]:
        answer = self.answer
        return id(answer.header), answer.cursor, answer.whole, answer.progress, answer.note

    def _say(self) -> None:
        """Update the note and the caption below the text."""
        answer = self.answer
        self._seen = self._state()
        self.note = answer.note if self._finished else None
        self.caption = "" if self._finished else answer.progress
        if self._finished and answer.totals is not None and self.note is None:
            self.caption = answer.totals.error or CAPTIONS[answer.totals.finish_reason]

    @property
    def spans(self) -> SpanList:
        """The tokens as they are shown, drafts that were struck among them."""
        return self._spans

    @property
    def text(self) -> str:
        """The emitted text, rendered or not."""
        if self._seen:
            return text_of(self._spans)
        answer = self.answer  # it is not laid out
        if self._words is not None and answer.whole:
            return self._words
        return text_of(spans_of(answer.trace, answer.cursor)) if answer.trace is not None else ""

    @property
    def text_with_gap(self) -> str:
        """The emitted text between the texts around the gap that it fills; "" where it fills none."""
        return super().text if self._gap is not None else ""

    @property
    def last_row(self) -> int:
        """The row where the text grows; -1 where there are no blocks."""
        return len(self.blocks) - 1 - self._behind

    @property
    def text_without_reasoning(self) -> str:
        """The emitted text without its reasoning."""
        return "".join(section.text for section in self._sections if section.fold is None)

    def set_rendered(self, rendered: bool) -> None:
        """Show Markdown instead of tokens, or tokens again. Code that fills a gap stays as it is."""
        self.rendered = rendered and self._gap is None
        self._rebuild()

    def refresh_rendered(self) -> None:
        """Update the rendered text. It renders the last Markdown block again, so it is not called for every
        batch."""
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
        """Fold finished reasoning, unless the reader chose otherwise; True where any was folded."""
        folding = [fold for fold in self.folds.values() if fold.over and fold.fold_by_itself()]
        for fold in folding:
            self._refit(fold)
        return bool(folding)

    def set_folded(self, fold: TextFold, folded: bool) -> None:
        """Fold or unfold text as the reader chose."""
        if fold.folded != folded:
            fold.choose(folded)
            self._refit(fold)

    def fold_of(self, row: int) -> TextFold | None:
        """The fold of a block of foldable text, or of a fold line; None elsewhere."""
        return self.blocks[row].fold if 0 <= row < len(self.blocks) else None

    def row_of(self, fold: TextFold) -> int:
        """The row of a fold's line."""
        if self._gap is not None:
            return next(row for row in range(len(self.blocks)) if self.fold_of(row) is fold)
        row = next(section.row for section in self._sections if section.fold is fold)
        return min(row, len(self.blocks) - 1)  # the rendered text may not reach that far yet

    def _refit(self, fold: TextFold) -> None:
        """Update the heights of a fold's blocks after folding or unfolding."""
        for row in range(self.row_of(fold), len(self.blocks)):
            if self.fold_of(row) is not fold:
                return
            self.blocks[row].drop()
            self.heights.set(row, self.blocks[row].estimate(self.setting))

    # --------------------------------------------------------------------------------------- tokens

    def round(self, index: int) -> Round | None:
        """The round with an index, if it is shown."""
        rounds = self.answer.rounds
        place = index - rounds[0].index if rounds else -1
        return rounds[place] if 0 <= place < self._shown else None

    def first_from(self, row: int) -> Span | None:
        """The first token that begins in a block or after it."""
        for at in range(max(row, 0), len(self.blocks)):
            block = self.blocks[at]
            if isinstance(block, ParagraphBlock) and not block.hidden:
                for span in block.paragraph.spans:
                    if span.fate:
                        return span
        return None

    def block_of(self, span: Span) -> int:
        """The block in which a token begins; -1 where none shows it."""
        # Blocks stand in the order of rounds; one that begins with an earlier round may hold the token.
        first = bisect_left(range(len(self.blocks)), span.round, key=self._round_from)
        for row in range(max(first - 1, 0), len(self.blocks)):
            block = self.blocks[row]
            if isinstance(block, ParagraphBlock) and block.holds(span):
                return row
            begun = _first_round(block)
            if begun is not None and begun > span.round:
                break
        return -1

    def _round_from(self, row: int) -> int:
        """The round of the first token in a block or after it; the largest number where there is none."""
        for at in range(row, len(self.blocks)):  # not a slice: it would count up to the row
            begun = _first_round(self.blocks[at])
            if begun is not None:
                return begun
        return maxsize

    def _ordinal(self, span: Span) -> int:
        """The index of a token among all emitted ones."""
        return self.answer.series.tokens_before(span.round - self.answer.rounds[0].index) + span.place

    def _extend(self, spans: list[Span]) -> None:
        self._spans += spans
        if self._gap is not None:
            self._place([Part(0, spans)] if spans else [])
        else:
            self._place(self._reader.add(spans))

    def _place(self, parts: list[Part]) -> None:
        """Put spans into their sections."""
        self._open_gap()
        for number, spans in parts:
            section = self._section(number)
            section.note(spans)
            if not self.rendered:
                self._take(section.paragraphs, section.paragraphs.add(spans), section.base, section.fold)
        for number, fold in self.folds.items():
            fold.over = number <= self._reader.closed
        self._close_gap()

    def _open_gap(self) -> None:
        """Take away the text after the gap, so that what fills it can grow."""
        if self._behind:
            last = self._last_block()
            last.paragraph.continued = not self._sections  # the last line before the gap still is
            del self.blocks[-self._behind :]
            self.heights.truncate(len(self.blocks))
            self._behind = 0

    def _close_gap(self) -> None:
        """Put the text after the gap behind what fills it."""
        if self._gap is not None:
            self._gap.join(self._last_block())
            self._behind = len(self._gap.after)
            for block in self._gap.after:
                self._put(block)

    def _last_block(self) -> ParagraphBlock:
        """The block where the text that fills a gap grows."""
        last = self.blocks[self.last_row]
        assert isinstance(last, ParagraphBlock)
        return last

    def _section(self, number: int) -> Section:
        if self._numbers and self._numbers[-1] == number:
            return self._sections[-1]
        if self._sections and not self.rendered:
            self._end_section(self._sections[-1])
        fold = self.folds.setdefault(number, ReasoningFold()) if number % 2 else None
        fence = "" if self._sections else self._fence
        section = Section(len(self.blocks), fold, self._gap is not None, self.rendered, fence)
        self._numbers.append(number)
        self._sections.append(section)
        if fold is not None and not self.rendered:
            self._put(FoldLine(fold))
        return section

    def _end_section(self, section: Section) -> None:
        """Let the next section begin on a new line, whether or not a newline was emitted."""
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
        self._behind = 0
        for block in self._gap.before if self._gap is not None else ():
            self._put(block)
        self._sections, self._numbers, self._settled, self._marks = [], [], 0, []
        self._reader = ReasoningReader(self._header.prompt if self._header is not None else "")
        spans, self._spans = self._spans, SpanList()
        self._extend(spans)
        if not self.live:
            self._place(self._reader.finish())
        self.refresh_rendered()


def _first_round(block: Block) -> int | None:
    """The round of the first token that begins in a block; None where none does."""
    if not isinstance(block, ParagraphBlock):
        return None
    return next((span.round for span in block.paragraph.spans if span.fate), None)


def make_item(turn: Turn, setting: Setting, rendered: bool, *, in_sight: bool = True) -> Item:
    """The item of a turn; `in_sight`: it will be painted at once."""
    if isinstance(turn, AnswerTurn):
        return AnswerItem(turn, setting, rendered, in_sight=in_sight)
    return TextItem(turn, setting)
