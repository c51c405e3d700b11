"""Turns in the column of the transcript: a label, the text in blocks, a caption below. Each block is laid out
only once it comes into view."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable
from math import ceil
from typing import Protocol

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QTextLayout

from app.saved.chats.conversation import INFILL, Question
from app.ui.state.answer import Note
from app.ui.transcript.layout.paragraph_layout import ParagraphLayout
from app.ui.transcript.layout.styles import Marks, Setting, fill, outline, wash
from app.ui.transcript.text.folds import ReasoningFold, TextFold, paint_rule
from app.ui.transcript.text.paragraphs import Kind, Paragraph, ParagraphBuilder
from app.ui.transcript.text.spans import Span, SystemTurn, Turn, UserTurn


class Block(Protocol):
    """A block of text as wide as the column."""

    @property
    def text(self) -> str: ...

    @property
    def joint(self) -> str:
        """The text between this block's text and the next block's, such as a newline."""

    @property
    def runs_on(self) -> bool:
        """Whether the next block continues in the last line of this one."""

    @property
    def fold(self) -> TextFold | None:
        """The fold whose text or line this is; None of text that does not fold."""

    @property
    def hidden(self) -> bool:
        """Folded away: not laid out, not painted, but still text that is found and copied."""

    @property
    def laid_out(self) -> bool: ...

    def estimate(self, setting: Setting) -> int:
        """An estimate of the height, without a layout."""

    def measure(self, setting: Setting) -> int:
        """The height; lays the block out."""

    def drop(self) -> None:
        """Forget the layout."""

    def paint(self, painter: QPainter, setting: Setting, marks: Marks) -> None:
        """Paint at the painter's origin."""

    def offset_at(self, point: QPointF) -> int: ...

    def token_at(self, point: QPointF) -> Span | None: ...

    def token_rects(self, token: Span) -> list[QRectF]: ...

    def rects(self, first: int, end: int) -> list[QRectF]: ...

    def end_rect(self) -> QRectF:
        """The rectangle after the last character."""


class ParagraphBlock:
    """A paragraph of coloured tokens (or of plain text, which has a single span)."""

    def __init__(
        self,
        paragraph: Paragraph,
        before: ParagraphBlock | None = None,
        fold: TextFold | None = None,
        quiet: bool = False,
    ) -> None:
        """`before` is the block whose last line this paragraph continues, and `fold` the fold that hides it.
        `quiet` text is grey, like foldable text."""
        self.paragraph = paragraph
        self.fold = fold
        self._quiet = quiet or fold is not None
        self._layout: ParagraphLayout | None = None
        self.follow(before)

    def follow(self, before: ParagraphBlock | None) -> None:
        """Set the block before; if its paragraph runs on, this paragraph continues its last line."""
        self._before = before if before is not None and before.paragraph.continued else None
        self.drop()

    def take_layout(self, block: ParagraphBlock) -> None:
        """Use the layout of a block that looks the same."""
        self._layout = block._layout

    @property
    def text(self) -> str:
        return self.paragraph.text

    @property
    def joint(self) -> str:
        return "" if self.paragraph.continued or self.paragraph.cut else "\n"

    @property
    def runs_on(self) -> bool:
        return self.paragraph.continued

    @property
    def hidden(self) -> bool:
        return self.fold is not None and self.fold.folded

    @property
    def laid_out(self) -> bool:
        return self._layout is not None

    def estimate(self, setting: Setting) -> int:
        if self.hidden:
            return 0
        paragraph = self.paragraph
        style = setting.styles.texts[paragraph.kind]
        if not paragraph.spans:
            prose = paragraph.kind is Kind.PROSE
            return setting.styles.empty_line if prose else style.pitch
        length = paragraph.shown if setting.drafts_shown else len(paragraph.text)
        return style.pitch * max(1, ceil(length * style.character / setting.width))

    def measure(self, setting: Setting) -> int:
        return self._laid(setting).height

    def drop(self) -> None:
        self._layout = None

    def paint(self, painter: QPainter, setting: Setting, marks: Marks) -> None:
        layout = self._laid(setting)
        palette = setting.styles.palette
        shapes = layout.shapes()
        shapes.paint_tints(painter, palette)
        selections = self._paint_marks(painter, layout, setting, marks)
        painter.setPen(QColor(palette.secondary if self._quiet else palette.text))
        layout.layout.draw(painter, QPointF(0, 0), selections)
        shapes.paint_cues(painter, palette)
        if self.fold is not None:
            paint_rule(painter, palette, layout.height)

    def _paint_marks(
        self, painter: QPainter, layout: ParagraphLayout, setting: Setting, marks: Marks
    ) -> list[QTextLayout.FormatRange]:
        palette = setting.styles.palette
        if marks.selected is not None:
            rects = layout.rects(*marks.selected)
            if marks.selected[1] > len(self.text):  # the newline is selected as well
                rects.append(layout.end_rect())
            fill(painter, rects, wash(palette))
        for found in marks.found:
            outline(painter, layout.rects(*found), palette.secondary)
        if marks.current is None:
            grey = self.paragraph.kind is Kind.FENCE or self._quiet
            if marks.selected is None or not grey:
                return []
            # Grey letters would be too faint under the wash.
            return list(layout.ranges(*marks.selected, QColor(palette.text)))
        fill(painter, layout.rects(*marks.current), QColor(palette.text))
        return list(layout.ranges(*marks.current, QColor(palette.ground)))

    def offset_at(self, point: QPointF) -> int:
        return self._layout.offset_at(point) if self._layout is not None else 0

    def token_at(self, point: QPointF) -> Span | None:
        return self._layout.token_at(point) if self._layout is not None else None

    def token_rects(self, token: Span) -> list[QRectF]:
        return self._layout.token_rects(token) if self._layout is not None else []

    def rects(self, first: int, end: int) -> list[QRectF]:
        return self._layout.rects(first, end) if self._layout is not None else []

    def holds(self, token: Span) -> bool:
        """Whether a token, or the newline in it, is in this block."""
        end, spans = self.paragraph.end, self.paragraph.spans
        if end is not None and end.same_token(token):
            return True
        # Rounds only grow along an answer, so they rule out most blocks.
        near = bool(spans) and spans[0].round <= token.round <= spans[-1].round
        return near and any(span.same_token(token) for span in spans)

    def lines(self) -> list[tuple[float, float]]:
        """Top and bottom of each line, as far as it is laid out."""
        return [(line.top, line.bottom) for line in self._layout.lines] if self._layout is not None else []

    def end_rect(self) -> QRectF:
        return self._layout.end_rect() if self._layout is not None else QRectF()

    def _laid(self, setting: Setting) -> ParagraphLayout:
        if self._layout is None:
            lead = self._before.tail(setting) if self._before is not None else None
            self._layout = ParagraphLayout(self.paragraph, setting, lead)
        return self._layout

    def tail(self, setting: Setting) -> QPointF:
        """Where a paragraph that continues this one starts (see ParagraphLayout.tail)."""
        return self._laid(setting).tail


class Heights:
    """The heights of rows and their sums. It is cheap to append or change a row near the end, and to look up
    rows before it."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._offsets = [0]  # valid up to its length

    def copied(self) -> Heights:
        """A copy that changes independently."""
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
        self.heights = Heights(block.estimate(setting) for block in self.blocks)

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
