"""The text of an answer as far as it was laid out, so that a cursor that jumps lays out few rounds again."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from app.ui.transcript.layout.blocks.block import Block
from app.ui.transcript.layout.heights import Heights
from app.ui.transcript.text.reasoning import ReaderState
from app.ui.transcript.text.sections import SectionMark, SectionText
from app.ui.transcript.text.span_list import SpanList
from app.ui.transcript.text.spans import BuilderState


class Mark(NamedTuple):
    """How far an answer was laid out."""

    rounds: int
    spans: int
    builder: BuilderState
    reader: ReaderState
    section: SectionMark


class LaidOutText(NamedTuple):
    """The text of a single section of tokens. Nothing in it changes."""

    spans: SpanList
    section: SectionText
    blocks: list[Block]
    heights: Heights


class Reached(NamedTuple):
    """The text up to a round, before the cursor went back from there, and the marks in it."""

    rounds: int
    text: LaidOutText
    marks: list[Mark]

    def mark_before(self, cursor: int) -> Mark | None:
        """The last mark up to a cursor."""
        at = bisect_right(self.marks, cursor, key=lambda mark: mark.rounds)
        return self.marks[at - 1] if at else None
