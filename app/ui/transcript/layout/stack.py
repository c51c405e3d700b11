"""All turns, one below the other: finds what is at a place, lays out only what is visible, and paints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from app.ui.transcript.layout.answer_item import AnswerItem, make_item
from app.ui.transcript.layout.block import Block, Heights, Item, ParagraphBlock
from app.ui.transcript.layout.styles import Marks, Setting
from app.ui.transcript.text.folds import FoldLine
from app.ui.transcript.text.spans import UNKNOWN, Span, Turn

_KEPT_LAYOUTS = 200  # blocks; a screen shows about 40


class Position(NamedTuple):
    """A position in the text, before a character. Positions compare in reading order."""

    item: int
    block: int
    offset: int


class BlockPlace(NamedTuple):
    """A block of an item."""

    item: int
    block: int


class Token(NamedTuple):
    """A token of an answer."""

    item: int
    span: Span


class Anchor(NamedTuple):
    """A block (-1: the item itself) and how far it is below the viewport's top."""

    item: int
    block: int
    y: float


class Stack:
    """The items, in pixels from the column's upper left corner."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.items: list[Item] = []
        self._heights = Heights()
        self._laid_out: dict[Block, None] = {}  # in the order of last use
        self._margin = setting.styles.margin

    def __len__(self) -> int:
        return len(self.items)

    @property
    def height(self) -> int:
        return self._heights.total + 2 * self._margin

    def set_turns(self, turns: list[Turn], rendered: bool, *, in_sight: bool = True) -> None:
        """Show these turns; answers that are not in sight are laid out when they are caught up with."""
        self.items = [make_item(turn, self.setting, rendered, in_sight=in_sight) for turn in turns]
        self._heights = Heights(item.height for item in self.items)
        self._laid_out.clear()

    def add(self, turn: Turn, rendered: bool) -> Item:
        item = make_item(turn, self.setting, rendered)
        self.items.append(item)
        self._heights.append(item.height)
        return item

    def remove_from(self, index: int) -> None:
        del self.items[index:]
        self._heights.truncate(index)
        self._laid_out.clear()

    def set_setting(self, setting: Setting) -> None:
        self.setting = setting
        self._margin = setting.styles.margin
        self._laid_out.clear()
        for index, item in enumerate(self.items):
            item.set_setting(setting)
            self.touch(index)

    def touch(self, index: int) -> None:
        """Note that an item's height may have changed."""
        self._heights.set(index, self.items[index].height)

    def index_of(self, turn: Turn) -> int:
        """The index of a turn; raises KeyError if there is no such turn."""
        for index, item in enumerate(self.items):
            if item.turn is turn:
                return index
        raise KeyError(turn)

    def answer(self, index: int) -> AnswerItem | None:
        item = self.items[index]
        return item if isinstance(item, AnswerItem) else None

    # ------------------------------------------------------------------------------- where things are

    def top(self, index: int) -> int:
        return self._margin + self._heights.offset(index)

    def block_top(self, index: int, block: int) -> int:
        if block < 0:
            return self.top(index)
        return self.top(index) + self.items[index].block_top(block)

    def index_at(self, y: float) -> int:
        """The item at y, beyond the edges the nearest one; -1 in an empty chat."""
        return self._heights.row_at(y - self._margin)

    def visible(self, top: float, bottom: float) -> Iterator[tuple[int, Item]]:
        """The items between two heights."""
        index = self.index_at(top)
        while 0 <= index < len(self.items) and self.top(index) < bottom:
            yield index, self.items[index]
            index += 1

    def measure(self, top: float, bottom: float) -> bool:
        """Lay out everything between two heights; True if a height differs from its estimate."""
        changed = False
        for index, item in self.visible(top, bottom):
            offset = self.top(index)
            if item.measure(top - offset, bottom - offset, self._used):
                self.touch(index)
                changed = True
        return changed

    def _used(self, block: Block) -> None:
        """Note that a block is in use. Blocks that were not used for longest lose their layouts."""
        self._laid_out.pop(block, None)
        self._laid_out[block] = None
        while len(self._laid_out) > _KEPT_LAYOUTS:
            oldest = next(iter(self._laid_out))
            del self._laid_out[oldest]
            oldest.drop()

    def anchor_at(self, y: float) -> Anchor | None:
        """An anchor: the block at y, to find it again after heights have changed."""
        index = self.index_at(y)
        if index < 0:
            return None
        item = self.items[index]
        inside = y - self.top(index)
        block = item.block_at(inside) if inside >= item.body_top and not item.editor_height else -1
        return Anchor(index, block, self.block_top(index, block) - y)

    def lines(self, top: float, bottom: float) -> Iterator[tuple[float, float]]:
        """Top and bottom of each laid out line between two heights; a label and a caption are lines too."""
        for index, item in self.visible(top, bottom):
            at = self.top(index)
            yield at, at + item.body_top
            row = max(item.block_at(top - at), 0)
            while row < len(item.blocks) and self.block_top(index, row) < bottom:
                block = item.blocks[row]
                if isinstance(block, ParagraphBlock):
                    begin = self.block_top(index, row)
                    yield from ((begin + above, begin + below) for above, below in block.lines())
                row += 1
            if item.caption:
                yield at + item.body_bottom, at + item.note_top

    # --------------------------------------------------------------------------- from points to text

    def position_at(self, x: float, y: float) -> Position:
        """The position in the text nearest to a point."""
        index = self.index_at(y)
        item = self.items[index]
        if not item.blocks:
            return Position(index, 0, 0)
        inside = y - self.top(index)
        block = item.block_at(inside)
        if inside < item.body_top:
            return Position(index, 0, 0)
        if inside > item.body_bottom:
            return Position(index, len(item.blocks) - 1, len(item.blocks[-1].text))
        point = item.local(x, inside, block)
        if block + 1 < len(item.blocks) and item.blocks[block].runs_on:
            # The next block continues in the last line of this one; the block that holds the point answers.
            block = self._of_joined(item, block, x, inside)
            point = item.local(x, inside, block)
        return Position(index, block, item.blocks[block].offset_at(point))

    def token_at(self, x: float, y: float) -> Token | None:
        index = self.index_at(y)
        if index < 0 or self.items[index].editor_height:
            return None
        item = self.items[index]
        inside = y - self.top(index)
        if not isinstance(item, AnswerItem) or not item.body_top <= inside < item.body_bottom:
            return None
        block = item.block_at(inside)
        if block < 0:
            return None
        span = item.blocks[block].token_at(item.local(x, inside, block))
        if span is None and block + 1 < len(item.blocks) and item.blocks[block].runs_on:
            span = item.blocks[block + 1].token_at(item.local(x, inside, block + 1))
        return Token(index, span) if span is not None and span.fate != UNKNOWN else None

    def fold_at(self, x: float, y: float) -> BlockPlace | None:
        """The fold line at a point, or None."""
        index = self.index_at(y)
        item = self.items[index] if index >= 0 else None
        inside = y - self.top(index) if item is not None else 0.0
        if item is None or item.editor_height or not item.body_top <= inside < item.body_bottom:
            return None
        row = item.block_at(inside)
        block = item.blocks[row] if row >= 0 else None
        if isinstance(block, FoldLine) and block.holds_point(x, self.setting):
            return BlockPlace(index, row)
        return None

    def first_fold(self, top: float, bottom: float) -> BlockPlace | None:
        """The fold line of the first reasoning between two heights, or None."""
        for index, item in self.visible(top, bottom):
            if not isinstance(item, AnswerItem):
                continue
            row = max(item.block_at(top - self.top(index)), 0)
            while row < len(item.blocks) and self.block_top(index, row) < bottom:
                fold = item.fold_of(row)
                if fold is not None:
                    return BlockPlace(index, item.row_of(fold))
                row += 1
        return None

    def _of_joined(self, item: Item, block: int, x: float, y: float) -> int:
        rects = item.blocks[block + 1].rects(0, 1)
        if not rects:
            return block
        top = item.block_top(block + 1)
        begins = rects[0].translated(0, top)
        return block + 1 if y >= begins.top() and (x >= begins.left() or y > begins.bottom()) else block

    # --------------------------------------------------------------------------- from text to points

    def token_rects(self, token: Token) -> list[QRectF]:
        """The rectangles of a token, as far as it is laid out."""
        item = self.items[token.item]
        row = item.block_of(token.span) if isinstance(item, AnswerItem) else -1
        return self._token_rects(token, item, row)

    def _token_rects(self, token: Token, item: Item, row: int) -> list[QRectF]:
        """The rectangles of a token that begins in this row."""
        found: list[QRectF] = []
        while 0 <= row < len(item.blocks):
            rects = item.blocks[row].token_rects(token.span)
            if found and not rects:
                break
            top = self.block_top(token.item, row)
            found += [rect.translated(0, top) for rect in rects]
            row += 1
        return found

    def round_rects(self, token: Token) -> list[QRectF]:
        """The rectangles of all tokens of a token's round, one for each piece of a line."""
        answer = self.answer(token.item)
        spans = answer.spans.of_round(token.span.round, answer.setting.drafts_shown) if answer else []
        return self.merged_rects(token.item, spans)

    def merged_rects(self, item: int, spans: Sequence[Span]) -> list[QRectF]:
        """The rectangles of successive tokens, one for each piece of a line."""
        merged: list[QRectF] = []
        answer, row = self.answer(item), -1
        if answer is None:
            return merged
        for span in spans:
            row = answer.block_of(span, row)
            for rect in self._token_rects(Token(item, span), answer, row):
                last = merged[-1] if merged else None
                if last is not None and last.top() == rect.top() and abs(last.right() - rect.left()) < 2:
                    last.setRight(rect.right())
                else:
                    merged.append(QRectF(rect))
        return merged

    def rects(self, position: Position, end: int) -> list[QRectF]:
        """The rectangles of the characters from a position to an offset in the same block."""
        top = self.block_top(position.item, position.block)
        block = self.items[position.item].blocks[position.block]
        return [rect.translated(0, top) for rect in block.rects(position.offset, end)]


MarksOf = Callable[[int, int, Block], Marks]
"""Item, block number, block -> what is marked there."""

LABEL_ROOM = 110  # kept free at the label's right for the actions
_CARET = 2


def paint_item(
    painter: QPainter, stack: Stack, index: int, clip: tuple[float, float], marks_of: MarksOf
) -> None:
    """Paint an item at the painter's origin; `clip` is the visible part, in the item's own pixels."""
    item = stack.items[index]
    if clip[0] < item.body_top:
        _paint_label(painter, item)
    if not item.editor_height:
        _paint_blocks(painter, stack, index, clip, marks_of)
    if item.caption:
        top = item.body_bottom + item.setting.styles.label_height * 0.2
        _paint_small(painter, item, item.caption, top)


def _paint_label(painter: QPainter, item: Item) -> None:
    styles = item.setting.styles
    metrics = QFontMetricsF(styles.label)
    room = item.label_room or item.setting.width - LABEL_ROOM
    painter.setFont(styles.label)
    painter.setPen(QColor(styles.palette.secondary))
    text = metrics.elidedText(item.label, Qt.TextElideMode.ElideRight, room)
    painter.drawText(QRectF(0, 0, item.setting.width, metrics.height()), text)


def _paint_small(painter: QPainter, item: Item, text: str, top: float) -> None:
    styles = item.setting.styles
    painter.setFont(styles.small)
    painter.setPen(QColor(styles.palette.secondary))
    room = QRectF(0, top, item.setting.width, styles.label_height)
    metrics = QFontMetricsF(styles.small)
    text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
    painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)


def _paint_blocks(
    painter: QPainter, stack: Stack, index: int, clip: tuple[float, float], marks_of: MarksOf
) -> None:
    item = stack.items[index]
    row = max(item.block_at(clip[0]), 0)
    while row < len(item.blocks):
        block = item.blocks[row]
        top = item.block_top(row)
        goes_on = row > 0 and item.blocks[row - 1].runs_on  # it begins in the line above
        if top >= clip[1] and not goes_on:
            break
        if not block.hidden:
            painter.translate(0, top)
            block.paint(painter, item.setting, marks_of(index, row, block))
            painter.translate(0, -top)
        row += 1
        if top >= clip[1]:
            break
    if isinstance(item, AnswerItem) and item.live and row > item.last_row >= 0:
        _paint_caret(painter, item)


def _paint_caret(painter: QPainter, item: AnswerItem) -> None:
    """Paint a caret where the answer continues."""
    last = item.last_row
    end = item.blocks[last].end_rect().translated(0, item.block_top(last))
    inset = end.height() * 0.15
    bar = QRectF(round(end.left()) + 2, end.top() + inset, _CARET, end.height() - 2 * inset)
    painter.fillRect(bar, QColor(item.setting.styles.palette.secondary))
