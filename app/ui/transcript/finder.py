"""Finds text in a chat: across tokens, ignoring case, never in struck drafts or names of control tokens."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from app.ui.transcript.layout.stack import Position, Stack


class Match(NamedTuple):
    first: Position
    end: Position


class Finder:
    """All matches of the current search, and the current match."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._pattern: re.Pattern[str] | None = None
        self._current: Position | None = None
        self._matches: list[Match] = []
        self._by_block: dict[tuple[int, int], list[tuple[int, int]]] = {}

    @property
    def active(self) -> bool:
        return self._pattern is not None

    @property
    def total(self) -> int:
        return len(self._matches)

    @property
    def current(self) -> Match | None:
        index = self._index()
        return self._matches[index] if index is not None else None

    @property
    def number(self) -> int:
        """The number of the current match, from 1; 0 where there is none."""
        index = self._index()
        return 0 if index is None else index + 1

    def search(self, text: str) -> None:
        """Look for another text; empty ends the search."""
        pattern = re.compile(re.escape(text), re.IGNORECASE) if text else None
        if pattern != self._pattern:
            self._current = None
        self._pattern = pattern
        self.refresh()

    def refresh(self, first_item: int = 0) -> None:
        """Search again from an item on; the items before it have not changed."""
        keep = bisect_left(self._matches, first_item, key=lambda match: match.first.item)
        del self._matches[keep:]
        if self._pattern is not None:
            for index in range(first_item, len(self._stack.items)):
                self._search_item(index, self._pattern)
        self._by_block = {}
        for match in self._matches:
            self._index_match(match)

    def step(self, forward: bool, start: Position | None) -> Match | None:
        """Go to the next or previous match; the first time, relative to `start`."""
        if not self._matches:
            return None
        at = self._index()
        if at is not None:
            at = (at + (1 if forward else -1)) % len(self._matches)
        else:
            begin = start or Position(0, 0, 0)
            at = bisect_left(self._matches, begin, key=lambda match: match.first)
            at = (at if forward else at - 1) % len(self._matches)
        self._current = self._matches[at].first
        return self._matches[at]

    def within(self, item: int, block: int) -> tuple[tuple[int, int], ...]:
        """The found ranges of a block."""
        return tuple(self._by_block.get((item, block), ()))

    def current_within(self, item: int, block: int) -> tuple[int, int] | None:
        current = self.current
        if current is None or not current.first[:2] <= (item, block) <= current.end[:2]:
            return None
        first = current.first.offset if current.first[:2] == (item, block) else 0
        for found in self.within(item, block):
            if found[0] == first:
                return found
        return None

    def _index(self) -> int | None:
        if self._current is None:
            return None
        at = bisect_left(self._matches, self._current, key=lambda match: match.first)
        there = at < len(self._matches) and self._matches[at].first == self._current
        return at if there else None

    def _search_item(self, index: int, pattern: re.Pattern[str]) -> None:
        blocks = self._stack.items[index].blocks
        starts = [0]
        parts = []
        for block in blocks:
            parts += [block.text, block.joint]
            starts.append(starts[-1] + len(block.text) + len(block.joint))
        for found in pattern.finditer("".join(parts)):
            self._matches.append(
                Match(_position(index, starts, found.start()), _position(index, starts, found.end()))
            )

    def _index_match(self, match: Match) -> None:
        (item, first_block, first), (_, last_block, last) = match
        for block in range(first_block, last_block + 1):
            begin = first if block == first_block else 0
            length = len(self._stack.items[item].blocks[block].text)
            end = last if block == last_block else length
            self._by_block.setdefault((item, block), []).append((begin, end))


def _position(index: int, starts: list[int], at: int) -> Position:
    """The position of a character of an item's text."""
    block = min(bisect_right(starts, at) - 1, len(starts) - 2)
    return Position(index, block, at - starts[block])
