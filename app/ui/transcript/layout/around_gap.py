"""The texts around the gap that an answer fills: grey code before and after it, lines far from it folded."""

from __future__ import annotations

from collections.abc import Sequence

from app.ui.transcript.layout.blocks.block import Block, ParagraphBlock
from app.ui.transcript.text.folds import FoldLine, LinesFold
from app.ui.transcript.text.paragraphs import Paragraph, ParagraphBuilder
from app.ui.transcript.text.spans import UNKNOWN, Span

NEAR = 12  # paragraphs before the gap that are always shown
NEXT = 6  # paragraphs after it; more would push the gap off a small screen, which follows the end of the text
_WORTH = 4  # paragraphs; fewer are not folded


class AroundGap:
    """The blocks before and after the gap. What fills the gap continues the last line before it, and the
    first line after it continues what fills it."""

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
