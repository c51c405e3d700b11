"""Turns in the column of the transcript: a label, the text in blocks, a caption below."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable

from PySide6.QtCore import QPointF

from app.saved.chats.conversation import INFILL, Question
from app.ui.state.answer import Note
from app.ui.transcript.layout.block import Block, ParagraphBlock
from app.ui.transcript.layout.styles import Setting
from app.ui.transcript.text.folds import ReasoningFold
from app.ui.transcript.text.paragraphs import ParagraphBuilder
from app.ui.transcript.text.spans import Span, SystemTurn, Turn, UserTurn


class Heights:
    """The heights. Appending or changing a row near the end is cheap, and so is asking for rows before it."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._offsets = [0]  # valid up to its length

    def copied(self) -> Heights:
        """Heights that change by themselves."""
        made = Heights(self._heights)
        made._offsets = list(self._offsets)
        return made

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, row: int) -> int:
        return self._heights[row]

    @property
    def total(self) -> int:
        return self.offset(len(self._heights))

    def offset(self, row: int) -> int:
        """Where a row begins; the row after the last begins at the total height."""
        offsets, heights = self._offsets, self._heights
        while len(offsets) <= row:
            offsets.append(offsets[-1] + heights[len(offsets) - 1])
        return offsets[row]

    def set(self, row: int, height: int) -> None:
        if self._heights[row] != height:
            self._heights[row] = height
            del self._offsets[row + 1 :]

    def append(self, height: int) -> None:
        self._heights.append(height)

    def truncate(self, rows: int) -> None:
        """Drop all rows from `rows` on."""
        del self._heights[rows:]
        del self._offsets[rows + 1 :]

    def row_at(self, y: float) -> int:
        """The row at y, beyond the edges the first or the last one; -1 if there are no rows."""
        if not self._heights:
            return -1
        total = self.total  # makes all offsets valid
        if y >= total:
            return len(self._heights) - 1
        return max(bisect_right(self._offsets, y) - 1, 0)


class Item(ABC):
    """One turn: its blocks with their heights. Pixels count from its upper left corner."""

    def __init__(self, turn: Turn, setting: Setting) -> None:
        self.turn = turn
        self.setting = setting
        self.blocks: list[Block] = []
        self.heights = Heights()
        self.note: Note | None = None  # the note below it
        self.caption = ""
        self.note_height = 0  # given by the view, which owns the widget
        self.label_room = 0  # given by the view where it puts a button beside the label
        self.editor_height = 0  # given by the view; above 0 the editor takes the place of the text

    @property
    @abstractmethod
    def label(self) -> str:
        """The label above the turn."""

    @property
    def text(self) -> str:
        """The text that is copied, searched and sent."""
        parts = [part for block in self.blocks for part in (block.text, block.joint)]
        return "".join(parts[:-1])

    @property
    def body_top(self) -> int:
        return self.setting.styles.label_height

    @property
    def body_bottom(self) -> int:
        return self.body_top + (self.editor_height or self.heights.total)

    @property
    def note_top(self) -> int:
        return self.body_bottom + (self.setting.styles.label_height if self.caption else 0)

    @property
    def height(self) -> int:
        return self.note_top + self.note_height + self.setting.styles.turn_gap

    def block_top(self, block: int) -> int:
        return self.body_top + self.heights.offset(block)

    def block_at(self, y: float) -> int:
        """The block at y, beyond the edges the nearest one; -1 if there are no blocks."""
        return self.heights.row_at(y - self.body_top)

    def set_setting(self, setting: Setting) -> None:
        """Change the width, font or appearance, and drop all layouts."""
        self.setting = setting
        for block in self.blocks:
            block.drop()
        self._estimate()

    def measure(self, top: float, bottom: float, used: Callable[[Block], None]) -> bool:
        """Lay out the blocks between two heights; True if a height differs from its estimate."""
        if not self.blocks or self.editor_height:
            return False
        changed = False
        row = self.block_at(top)
        while row < len(self.blocks) and self.block_top(row) < bottom:
            if self.blocks[row].hidden:
                row += 1
                continue
            used(self.blocks[row])
            height = self.blocks[row].measure(self.setting)
            changed |= height != self.heights[row]
            self.heights.set(row, height)
            row += 1
        return changed

    def local(self, x: float, y: float, block: int) -> QPointF:
        """A point of the item as a point of one of its blocks."""
        return QPointF(x, y - self.block_top(block))

    def _estimate(self) -> None:
        self.heights = Heights(block.estimate(self.setting) for block in self.blocks)

    def _take(
        self, builder: ParagraphBuilder, first: int, base: int = 0, fold: ReasoningFold | None = None
    ) -> None:
        """Update the blocks from `base` on, after the paragraphs from `first` on changed."""
        if base + first < len(self.blocks):
            self.blocks[base + first].drop()
            self.heights.set(base + first, self.blocks[base + first].estimate(self.setting))
        for paragraph in builder.paragraphs[len(self.blocks) - base :]:
            before = self.blocks[-1] if self.blocks else None
            before = before if isinstance(before, ParagraphBlock) else None
            self._put(ParagraphBlock(paragraph, before, fold))

    def _put(self, block: Block) -> None:
        self.blocks.append(block)
        self.heights.append(block.estimate(self.setting))


class TextItem(Item):
    """A turn that is plain text: what the user wrote, or the system prompt."""

    def __init__(self, turn: UserTurn | SystemTurn, setting: Setting) -> None:
        super().__init__(turn, setting)
        self.editable = isinstance(turn, UserTurn)
        self.question = turn.question if isinstance(turn, UserTurn) else Question(turn.text)
        self.unsent: Question | None = None  # a changed text that was typed but not sent
        self._whole = self.question.whole
        if isinstance(turn, UserTurn) and turn.suffix is not None and turn.answered:
            return
        builder = ParagraphBuilder()
        builder.add([Span(self._whole, "plain", -1, -1)] if self._whole else [])
        self._take(builder, 0)

    @property
    def label(self) -> str:
        if not self.editable:
            return "System prompt"
        return "You" if self.question.suffix is None else f"You  ·  {INFILL}"

    @property
    def text(self) -> str:
        return self._whole
