"""An answer as sections of text and of reasoning: tokens or rendered Markdown, around a gap that it fills."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from sys import maxsize

from app.ui.transcript.layout.block import Block, Heights, Item, ParagraphBlock
from app.ui.transcript.layout.sections import LaidOutText, Part, ReasoningReader, Section, SectionMark
from app.ui.transcript.layout.styles import Setting
from app.ui.transcript.text.folds import FoldLine, LinesFold, ReasoningFold, TextFold
from app.ui.transcript.text.paragraphs import Paragraph, ParagraphBuilder, open_fence
from app.ui.transcript.text.spans import UNKNOWN, AnswerTurn, Span, SpanList

NEAR = 12  # paragraphs before the gap that are always shown
NEXT = 6  # paragraphs after it; more would push the gap off a small screen, which follows the end of the text
_WORTH = 4  # paragraphs; fewer are not folded


class AroundGap:
    """The blocks before and after the gap. The answer continues the last line before the gap, and the first
    line after the gap continues the answer."""

    def __init__(self, prefix: str, suffix: str) -> None:
        before, after = _paragraphs(prefix), _paragraphs(suffix)
        far, near = len(before) - NEAR, NEXT
        while far > 0 and before[far - 1].continued:
            far -= 1
        while near < len(after) and after[near - 1].continued:
            near += 1
        far, near = far if far >= _WORTH else 0, near if len(after) - near >= _WORTH else len(after)
        before[-1].continued = True
        self._first = _blocks(after[:near])
        self.before: list[Block] = [*_folded(before[:far]), *_blocks(before[far:])]
        self.after: list[Block] = [*self._first, *_folded(after[near:])]

    def join(self, last: ParagraphBlock) -> None:
        """Let the text after the gap continue the line of the last block before it."""
        last.paragraph.continued = True
        for block in self._first:
            block.follow(last)
            if not block.runs_on:
                break
            last = block


def _paragraphs(text: str) -> Sequence[Paragraph]:
    builder = ParagraphBuilder(all_code=True)
    builder.add([Span(text, UNKNOWN, -1, -1)] if text else [])
    return builder.paragraphs


def _blocks(paragraphs: Sequence[Paragraph], fold: LinesFold | None = None) -> list[ParagraphBlock]:
    blocks: list[ParagraphBlock] = []
    for paragraph in paragraphs:
        blocks.append(ParagraphBlock(paragraph, blocks[-1] if blocks else None, fold, quiet=True))
    return blocks


def _folded(paragraphs: Sequence[Paragraph]) -> list[Block]:
    """The blocks of lines far from the gap, below the line that unfolds them."""
    if not paragraphs:
        return []
    fold = LinesFold(sum(not paragraph.continued for paragraph in paragraphs))
    return [FoldLine(fold), *_blocks(paragraphs, fold)]


class SectionedItem(Item):
    """Puts spans into sections, and their blocks below each other. A derived class gives the spans."""

    def __init__(self, turn: AnswerTurn, setting: Setting, rendered: bool) -> None:
        super().__init__(turn, setting)
        # By section; kept when the view changes, so that the reader's choice outlives it.
        self.folds: dict[int, ReasoningFold] = {}
        self._gap: AroundGap | None = None
        self._behind = 0  # blocks after the gap
        if turn.suffix is not None:
            self._gap = AroundGap(turn.goes_on_from, turn.suffix)
        self._fence = open_fence(turn.goes_on_from)  # of the code in which it begins
        self.spans = SpanList()  # the tokens as they are shown, drafts that were struck among them
        self._reader = ReasoningReader()
        self._sections: list[Section] = []
        self._numbers: list[int] = []  # the numbers of the sections
        self._settled = 0  # sections whose rendered text no longer changes
        self.rendered = rendered and self._gap is None

    @property
    @abstractmethod
    def live(self) -> bool:
        """Whether more spans will come."""

    @property
    @abstractmethod
    def prompt(self) -> str:
        """The text in front of the answer, which may have begun its reasoning."""

    @property
    def text_with_gap(self) -> str:
        """The emitted text between the texts around the gap that it fills; "" if it fills none."""
        return super().text if self._gap is not None else ""

    @property
    def text_without_reasoning(self) -> str:
        """The emitted text without its reasoning."""
        return "".join(section.text for section in self._sections if section.fold is None)

    @property
    def last_row(self) -> int:
        """The row where the text grows; -1 if there are no blocks."""
        return len(self.blocks) - 1 - self._behind

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

    # ------------------------------------------------------------------------------------- reasoning

    def fold_over(self) -> bool:
        """Fold finished reasoning, unless the reader chose otherwise; True if any was folded."""
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

    # ---------------------------------------------------------------------------------------- tokens

    def first_from(self, row: int) -> Span | None:
        """The first token that begins in a block or after it."""
        for at in range(max(row, 0), len(self.blocks)):
            block = self.blocks[at]
            if isinstance(block, ParagraphBlock) and not block.hidden:
                for span in block.paragraph.spans:
                    if span.fate:
                        return span
        return None

    def block_of(self, span: Span, guess: int = -1) -> int:
        """The block in which a token begins; -1 if none shows it. `guess` is that of a token before it."""
        block = self.blocks[guess] if guess >= 0 else None
        if isinstance(block, ParagraphBlock) and block.holds(span):
            return guess
        # Blocks are in the order of rounds; one that begins with an earlier round may hold the token.
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
        """The round of the first token in a block or after it; the largest number if there is none."""
        for at in range(row, len(self.blocks)):  # not a slice: it would count up to the row
            begun = _first_round(self.blocks[at])
            if begun is not None:
                return begun
        return maxsize

    # --------------------------------------------------------------------------------------- growing

    def _rebuild(self) -> None:
        """Lay all spans out again."""
        self.blocks = []
        self.heights = Heights()
        self._behind = 0
        for block in self._gap.before if self._gap is not None else ():
            self._put(block)
        self._sections, self._numbers, self._settled = [], [], 0
        self._reader = ReasoningReader(self.prompt)
        spans, self.spans = self.spans, SpanList()
        self._extend(spans)
        if not self.live:
            self._end_spans()
        self.refresh_rendered()

    def _extend(self, spans: list[Span]) -> None:
        self.spans += spans
        if self._gap is not None:
            self._place([Part(0, spans)] if spans else [])
        else:
            self._place(self._reader.add(spans))

    def _end_spans(self) -> None:
        """Put those spans into sections that were withheld while more might have come."""
        self._place(self._reader.finish())

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

    def _open_gap(self) -> None:
        """Remove the text after the gap, so that the answer can grow."""
        if self._behind:
            last = self._last_block()
            last.paragraph.continued = not self._sections  # the last line before the gap still is
            del self.blocks[-self._behind :]
            self.heights.truncate(len(self.blocks))
            self._behind = 0

    def _close_gap(self) -> None:
        """Put the text that follows the gap after the answer."""
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

    # ------------------------------------------------------------------------------------ going back

    @property
    def _is_plain(self) -> bool:
        """Whether the text is a single section of tokens, which can be cut anywhere."""
        return len(self._sections) == 1 and not (self.rendered or self.folds or self._gap is not None)

    def _cut_back(self, mark: SectionMark) -> Callable[[], None]:
        """Cut the only section back to a mark. Call the returned function once the section has grown again:
        blocks that did not change then keep their layouts."""
        row = mark.paragraphs.paragraphs - 1
        before = [(block, self.heights[at]) for at, block in enumerate(self.blocks[row:], row)]
        self._sections[0].cut_back(mark)
        self._take_from(row)
        return lambda: self._keep(row, before)

    def _laid_out(self) -> LaidOutText:
        """The text of the only section, which stays as it is while the section is cut back."""
        section = self._sections[0].copied()
        return LaidOutText(SpanList(self.spans), section, list(self.blocks), self.heights.copied())

    def _go_on_to(self, text: LaidOutText, mark: SectionMark) -> None:
        """Restore the only section up to a mark from a text that was laid out."""
        (self._sections[0] if self._sections else self._section(0)).go_on_to(text.section, mark)
        self.blocks, self.heights = list(text.blocks), text.heights.copied()
        self._take_from(mark.paragraphs.paragraphs - 1)

    def _take_from(self, row: int) -> None:
        """Make the blocks from a row on again."""
        del self.blocks[row:]
        self.heights.truncate(row)
        self._take(self._sections[0].paragraphs, row)

    def _keep(self, row: int, before: Sequence[tuple[Block, int]]) -> None:
        """Reuse the layouts of earlier blocks, given with their heights, for the blocks from a row on, as
        long as these are the same."""
        for at, (block, height) in enumerate(before[: len(self.blocks) - row], row):
            new = self.blocks[at]
            assert isinstance(block, ParagraphBlock) and isinstance(new, ParagraphBlock)
            if not block.paragraph.same_as(new.paragraph):
                return
            new.take_layout(block)
            self.heights.set(at, height)


def _first_round(block: Block) -> int | None:
    """The round of the first token that begins in a block; None if none does."""
    if not isinstance(block, ParagraphBlock):
        return None
    return next((span.round for span in block.paragraph.spans if span.fate), None)
