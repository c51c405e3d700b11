"""Folds reasoning, and lines far from a filled gap, automatically or by a click. Also scrolling that keeps
the text in place meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractScrollArea, QMenu

from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.block import ParagraphBlock
from app.ui.transcript.layout.stack import Anchor, BlockPlace, Stack
from app.ui.transcript.text.folds import TextFold

if TYPE_CHECKING:
    from app.ui.transcript.surface import Surface


class Folding:
    """Folds and unfolds text in the answers of a surface."""

    def __init__(self, view: Surface, stack: Stack) -> None:
        self._view = view
        self._stack = stack

    def toggle(self, place: BlockPlace) -> None:
        """Fold or unfold the text of a block, or the text below a fold line, which keeps its place on the
        screen."""
        answer = self._stack.answer(place.item)
        fold = answer.fold_of(place.block) if answer is not None else None
        if answer is not None and fold is not None:
            self._view.hover.clear()
            self._set(place.item, answer, fold, not fold.folded)
            self._view.refresh()

    def toggle_seen(self) -> bool:
        """Fold or unfold the text pointed at, else the first on the screen; False if there is none."""
        top = self._view.scroller.top
        place = self._stack.first_fold(top, top + self._view.scroller.room)
        token = self._view.hover.token
        answer = self._stack.answer(token.item) if token is not None else None
        if token is not None and answer is not None:
            row = answer.block_of(token.span)
            place = BlockPlace(token.item, row) if answer.fold_of(row) is not None else None
        if place is not None:
            self.toggle(place)
        return place is not None

    def unfold(self, item: int, block: int) -> None:
        """Unfold the text of a block, so that something in it can be shown."""
        answer = self._stack.answer(item)
        fold = answer.fold_of(block) if answer is not None else None
        if answer is not None and fold is not None and fold.folded:
            self._set(item, answer, fold, folded=False)

    def toggle_drafts(self, item: int) -> None:
        """Show the struck drafts of an answer, or fold them; its label keeps its place on the screen."""
        answer, scroller = self._stack.answer(item), self._view.scroller
        if answer is not None:
            self._view.hover.clear()
            scroller.hold(item, -1)
            answer.fold_drafts(not answer.drafts.folded)
            self._stack.touch(item)
            scroller.resume()
            self._view.refresh()

    def _set(self, item: int, answer: AnswerItem, fold: TextFold, folded: bool) -> None:
        scroller = self._view.scroller
        scroller.hold(item, answer.row_of(fold))
        answer.set_folded(fold, folded)
        self._stack.touch(item)
        scroller.resume()

    def fold_over(self, answer: AnswerItem) -> bool:
        """Fold finished reasoning, and drafts if hardly any was accepted, except while the reader has
        scrolled up; True if that changed anything."""
        if not self._view.scroller.following or not answer.fold_over():
            return False
        answer.count()
        self._view.hover.clear()
        return True

    def offer(self, menu: QMenu, answer: AnswerItem, place: BlockPlace) -> None:
        """Add actions to the menu of an answer with reasoning: for the reasoning at the place, else for the
        first."""
        fold: TextFold = answer.fold_of(place.block) or next(iter(answer.folds.values()))
        there = BlockPlace(place.item, answer.row_of(fold))
        clipboard = QGuiApplication.clipboard()
        menu.addAction(
            "Copy answer without reasoning", lambda: clipboard.setText(answer.text_without_reasoning)
        )
        words = "Unfold reasoning" if fold.folded else "Fold reasoning"
        menu.addAction(words, lambda: self.toggle(there))

    def repaint_lines(self, item: int) -> None:
        """Repaint an answer's fold lines, whose numbers changed."""
        answer, viewport = self._stack.answer(item), self._view.viewport()
        if answer is None:
            return
        for fold in answer.folds.values():
            top = self._stack.block_top(item, answer.row_of(fold)) - self._view.scroller.top
            viewport.update(0, top, viewport.width(), self._stack.setting.styles.label_height)


_STEP = 40  # pixels per arrow key or wheel notch
_CLOSE = 2  # pixels from the end that still count as the end


class Scroller:
    """Owns the vertical scroll bar. The position is an anchor, or the end; the bar's value follows from
    it."""

    def __init__(self, area: QAbstractScrollArea, stack: Stack) -> None:
        self._area = area
        self._stack = stack
        self._bar = area.verticalScrollBar()
        self._bar.setSingleStep(_STEP)
        # The bar is always visible; its handle only if there is something to scroll.
        self._bar.setStyleSheet("QScrollBar::handle:disabled { background: transparent; }")
        self._anchor: Anchor | None = None
        self._placing = False
        self.following = True

    @property
    def top(self) -> int:
        """The y in the content at the viewport's top."""
        return self._bar.value()

    @property
    def room(self) -> int:
        """The viewport's height."""
        return self._area.viewport().height()

    @property
    def below(self) -> int:
        """The height of the content below the viewport."""
        return max(0, self._stack.height - self.top - self.room)

    def settle(self) -> None:
        """Lay out the visible part and update the scroll bar."""
        for _ in range(100):  # ends as soon as the visible part is laid out
            top = self._wanted_top()
            if not self._stack.measure(top, top + self.room):
                break
        self._place(self._wanted_top())

    def moved(self, by: int) -> int:
        """Handle a change of the bar's value by `by`. Returns how many pixels the text moves down, 0 if the
        scroller itself made the change."""
        if self._placing or self._anchor is None:
            return 0
        item, block, y = self._anchor
        top = self.top
        self.following = top >= self._bar.maximum() - _CLOSE
        if abs(by) < 2 * self.room:
            # The visible text moves by exactly this much, whatever heights are found above it.
            self._anchor = Anchor(item, block, y - by)
        else:
            self._anchor = self._stack.anchor_at(top)
        self.settle()
        return round(self._stack.block_top(item, block) - self.top - y)

    def to_end(self) -> None:
        self.following = True
        self.settle()

    def to_top(self) -> None:
        self._go_to(0)

    def place(self) -> tuple[int, float]:
        """The item at the top of the viewport, and the share of its height above it; (-1, 0) in an empty
        chat."""
        index = self._stack.index_at(self.top)
        if index < 0:
            return -1, 0.0
        return index, (self.top - self._stack.top(index)) / self._stack.items[index].height

    def go_to_place(self, place: tuple[int, float]) -> None:
        """Scroll to a position that `place` returned, even if the item's height has changed."""
        index, share = place
        if index < 0 or self.following:
            self.to_end()
        else:
            self._go_to(self._stack.top(index) + share * self._stack.items[index].height)

    def hold(self, index: int, block: int) -> None:
        """Keep a block in its place on the screen while heights around it change."""
        self.following = False
        self._anchor = Anchor(index, block, self._stack.block_top(index, block) - self.top)

    def resume(self) -> None:
        """Lay out after `hold`. If the view is at the end of the content, it follows the end again."""
        self.settle()
        self.following = self.top >= self._bar.maximum() - _CLOSE

    def reveal(self, rect: QRectF) -> None:
        """Scroll a rectangle of the content into view, with a margin."""
        margin = min(self.room / 4, 80, max(self.room - rect.height(), 0) / 2)
        near = min(8, margin)
        if rect.top() < self.top + near:
            self._go_to(rect.top() - margin)
        elif rect.bottom() > self.top + self.room - near:
            self._go_to(rect.bottom() + margin - self.room)

    def begin_at_line(self, rect: QRectF) -> None:
        """Scroll to the nearest top of a line, so that none is cut there, if a rectangle stays in view."""
        least, most = max(rect.bottom() - self.room, 0), min(rect.top(), self._stack.height - self.room)
        tops = [0.0, *(top for top, _below in self._stack.lines(least, rect.bottom()))]
        nearest = min(tops, key=lambda top: (not least <= top <= most, abs(top - self.top)))
        if least <= nearest <= most and abs(nearest - self.top) >= 1:
            self._go_to(nearest)

    def end_at(self, y: float) -> None:
        """Make the line at y the last one in sight, with as many whole lines above it as have room."""
        bottom = max((below for _above, below in self._stack.lines(y - 1, y)), default=y)
        self._go_to(bottom - self.room)
        top = bottom - self.room
        self._go_to(
            min((above for above, _below in self._stack.lines(top, bottom) if above >= top), default=top)
        )

    def show_block(self, index: int, block: int) -> None:
        """Scroll the top of a block into view if it is outside, and lay it out."""
        top = self._stack.block_top(index, block)
        if not self.top <= top < self.top + self.room:
            self._go_to(top - self.room / 3)

    def _go_to(self, top: float) -> None:
        self.following = False
        self._anchor = self._stack.anchor_at(max(top, 0))
        if self._anchor is not None:
            y = self._stack.block_top(self._anchor.item, self._anchor.block) - max(top, 0)
            self._anchor = self._anchor._replace(y=y)
        self.resume()

    def _wanted_top(self) -> int:
        last = max(0, self._stack.height - self.room)
        if self.following or self._anchor is None or self._anchor.item >= len(self._stack):
            return min(last, self._live_line(last))
        item, block, y = self._anchor
        # An answer may have fewer blocks once it has ended.
        block = min(block, len(self._stack.items[item].blocks) - 1)
        return max(0, min(round(self._stack.block_top(item, block) - y), last))

    def _live_line(self, default: int) -> int:
        """The top of the last line of an answer that is being written. In little room only the margin below
        it would be in sight."""
        index = len(self._stack) - 1
        answer = self._stack.answer(index) if index >= 0 else None
        if answer is None or not answer.live or not answer.blocks:
            return default
        row = len(answer.blocks) - 1
        block = answer.blocks[row]
        lines = block.lines() if isinstance(block, ParagraphBlock) else []  # none before it is laid out
        return int(self._stack.block_top(index, row) + lines[-1][0]) if lines else default

    def _place(self, top: int) -> None:
        self._placing = True
        self._bar.setRange(0, max(0, self._stack.height - self.room))
        self._bar.setPageStep(max(self.room - _STEP, _STEP))
        self._bar.setValue(top)
        self._bar.setEnabled(self._bar.maximum() > 0)
        self._placing = False
        self._anchor = self._stack.anchor_at(top)
