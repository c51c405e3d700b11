"""Scrolling: keeps the text in place while heights above it become known, or follows the end of an answer."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QAbstractScrollArea

from app.ui.transcript.layout.stack import Anchor, Stack

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
        # The bar is always visible; its handle only where there is something to scroll.
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
        self._place(top)

    def moved(self, by: int) -> int:
        """Handle a change of the bar's value by `by`; returns by how many pixels the text moves down, 0 where
        the scroller made the change itself."""
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
        """The item at the top of the viewport, and the share of its height that lies above; (-1, 0) in an
        empty chat."""
        index = self._stack.index_at(self.top)
        if index < 0:
            return -1, 0.0
        return index, (self.top - self._stack.top(index)) / self._stack.items[index].height

    def go_to_place(self, place: tuple[int, float]) -> None:
        """Go back to a result of `place`, even where the item's height has changed."""
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
        """Lay out after `hold`; at the end of the content, follow it again."""
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

    def end_at(self, y: float) -> None:
        """Make the line at y the last one in sight, with as many whole lines above it as have room."""
        bottom = max((below for _above, below in self._stack.lines(y - 1, y)), default=y)
        self._go_to(bottom - self.room)
        top = bottom - self.room
        self._go_to(
            min((above for above, _below in self._stack.lines(top, bottom) if above >= top), default=top)
        )

    def show_block(self, index: int, block: int) -> None:
        """Scroll the top of a block into view where it is outside, and lay it out."""
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
            return last
        item, block, y = self._anchor
        # An answer may have fewer blocks once it has ended.
        block = min(block, len(self._stack.items[item].blocks) - 1)
        return max(0, min(round(self._stack.block_top(item, block) - y), last))

    def _place(self, top: int) -> None:
        self._placing = True
        self._bar.setRange(0, max(0, self._stack.height - self.room))
        self._bar.setPageStep(max(self.room - _STEP, _STEP))
        self._bar.setValue(top)
        self._bar.setEnabled(self._bar.maximum() > 0)
        self._placing = False
        self._anchor = self._stack.anchor_at(top)
