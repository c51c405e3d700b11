"""Finds text in a chat, and the find bar. A match may span tokens; case is ignored. Struck drafts and names
of control tokens are not searched."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent
from PySide6.QtWidgets import QWidget

from app.ui.theme import Theme
from app.ui.theme.rings import FocusBefore
from app.ui.transcript.layout.stack import Position, Stack
from app.ui.widgets import kit
from app.ui.widgets.icons import IconButton
from app.ui.widgets.words import count


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
        """The number of the current match, from 1; 0 if there is none."""
        index = self._index()
        return 0 if index is None else index + 1

    def search(self, text: str) -> None:
        """Search for a different text; an empty one ends the search."""
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


class FindBar(QWidget):
    """A field with the number of matches. Enter goes to the next, Shift+Enter to the one before."""

    text_changed = Signal(str)
    step_asked = Signal(bool)  # forward
    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._before = FocusBefore(self)
        self.field = kit.field("Find in this chat", "Find in this chat")
        self.field.setMinimumWidth(round(190 * theme.scale))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        self.count = kit.label("", "secondary", side=right)
        self.before = IconButton(theme, "chevron-up", "Previous match (Shift+Enter)")
        self.next = IconButton(theme, "chevron-down", "Next match (Enter)")
        self.close_button = IconButton(theme, "close", "Close (Esc)")
        parts = self.field, self.count, self.before, self.next, self.close_button
        kit.row(*parts, margins=(8, 8, 8, 8), spacing=4, on=self)
        kit.ground(self, "floating")
        self.field.textChanged.connect(self.text_changed)
        self.before.clicked.connect(lambda: self.step_asked.emit(False))
        self.next.clicked.connect(lambda: self.step_asked.emit(True))
        self.close_button.clicked.connect(self.closed)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        theme.follow(self._theme_changed)
        self.show_count(0, 0)
        self.hide()

    def open(self) -> None:
        """Show the bar, with the last search selected."""
        self._before.remember()
        self.show()
        self.raise_()
        self.field.setFocus()
        self.field.selectAll()

    def end(self, otherwise: QWidget) -> None:
        """Hide the bar and return the focus, or give it to `otherwise` if the earlier widget is gone."""
        self._before.give_back(otherwise)
        self.hide()

    def show_count(self, current: int, total: int) -> None:
        """Show the number of the current match and the total."""
        if not self.field.text():
            words = ""
        elif not total:
            words = "none"
        else:
            words = f"{count(current)} of {count(total)}"
        self.count.setText(words)
        for button in (self.before, self.next):
            button.setEnabled(total > 0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.step_asked.emit(not event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        elif event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)

    def _theme_changed(self) -> None:
        # Wide enough for a long chat, so that the buttons do not move.
        width = QFontMetricsF(self._theme.sans()).horizontalAdvance("888 of 888")
        self.count.setMinimumWidth(round(width))
        self.adjustSize()
