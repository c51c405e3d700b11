"""The selection: two positions in the text. Struck drafts and names of control tokens cannot be selected."""

from __future__ import annotations

import re
from enum import Enum

from app.ui.transcript.layout.stack import Position, Stack

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class Grain(Enum):
    """The unit by which a selection grows."""

    CHARACTER = 1
    WORD = 2
    PARAGRAPH = 3


class Selection:
    """A selection over a stack; it grows from its origin in units of the grain that it began with."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._grain = Grain.CHARACTER
        self._origin: tuple[Position, Position] | None = None  # the range that was selected first
        self._range: tuple[Position, Position] | None = None

    @property
    def empty(self) -> bool:
        return self._range is None or self._range[0] == self._range[1]

    @property
    def range(self) -> tuple[Position, Position] | None:
        """First and end position, in reading order."""
        return None if self.empty else self._range

    def clear(self) -> None:
        self._origin = self._range = None

    def start(self, position: Position, grain: Grain = Grain.CHARACTER) -> None:
        """Begin a selection."""
        self._grain = grain
        self._origin = self._range = self._grown(position)

    def extend(self, position: Position) -> None:
        """Extend the selection from its origin to a position."""
        if self._origin is None:
            self.start(position)
            return
        first, end = self._grown(position)
        self._range = min(self._origin[0], first), max(self._origin[1], end)

    def clamp(self) -> None:
        """Clear a selection that reaches beyond the text, after that changed."""
        for position in self._range or ():
            item = self._stack.items[position.item]
            if position.block >= len(item.blocks):
                self.clear()
                return
            if position.offset > len(item.blocks[position.block].text):
                self.clear()
                return

    def select_all(self) -> None:
        items = self._stack.items
        if items:
            self._grain = Grain.CHARACTER
            last = self._end_of(len(items) - 1)
            self._origin = self._range = Position(0, 0, 0), last

    def within(self, item: int, block: int, length: int) -> tuple[int, int] | None:
        """The selected range of a block of that length, or None; it ends one behind the text where the
        newline is selected."""
        if self._range is None:
            return None
        first, end = self._range
        here = (item, block)
        if not (first[:2] <= here <= end[:2]) or first == end:
            return None
        a = first.offset if here == first[:2] else 0
        b = end.offset if here == end[:2] else length + 1
        return (a, b) if a < b else None

    def text(self) -> str:
        """The selected text as it is copied; an empty line stands between turns."""
        if self._range is None:
            return ""
        first, end = self._range
        parts = []
        for index in range(first.item, end.item + 1):
            item = self._stack.items[index]
            a = first.block if index == first.item else 0
            b = end.block if index == end.item else len(item.blocks) - 1
            part = []
            for row in range(a, b + 1):
                block = item.blocks[row] if row < len(item.blocks) else None
                if block is None:
                    continue
                begin = first.offset if (index, row) == first[:2] else 0
                stop = end.offset if (index, row) == end[:2] else None
                part.append(block.text[begin:stop])
                part.append(block.joint if row < b else "")
            parts.append("".join(part))
        return "\n\n".join(parts)

    def _end_of(self, index: int) -> Position:
        blocks = self._stack.items[index].blocks
        if not blocks:
            return Position(index, 0, 0)
        return Position(index, len(blocks) - 1, len(blocks[-1].text))

    def _grown(self, position: Position) -> tuple[Position, Position]:
        if self._grain is Grain.CHARACTER:
            return position, position
        blocks = self._stack.items[position.item].blocks
        if not blocks:
            return position, position
        text = blocks[position.block].text
        if self._grain is Grain.PARAGRAPH:
            first = position.block
            last = position.block
            while first > 0 and blocks[first - 1].runs_on:
                first -= 1
            while last + 1 < len(blocks) and blocks[last].runs_on:
                last += 1
            return (
                Position(position.item, first, 0),
                Position(position.item, last, len(blocks[last].text)),
            )
        for match in _WORD.finditer(text):
            if match.end() > position.offset or match.end() == len(text):
                return position._replace(offset=match.start()), position._replace(offset=match.end())
        return position, position
