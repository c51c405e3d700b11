"""Paints a turn: its label, the visible part of its text, its caption."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.blocks.block import Block
from app.ui.transcript.layout.blocks.marks import Marks
from app.ui.transcript.layout.items import Item
from app.ui.transcript.layout.stack import Stack

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
