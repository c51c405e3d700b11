"""Mouse and keyboard in the text: selecting, and pointing at tokens."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtGui import QCursor, QGuiApplication, QKeyEvent, QMouseEvent

from app.ui.transcript.hover_card import Hover
from app.ui.transcript.layout.block import Item, TextItem
from app.ui.transcript.layout.stack import BlockPlace, Position, Stack, Token
from app.ui.widgets.access import announce
from app.ui.widgets.keys import KeyTable

if TYPE_CHECKING:
    from app.ui.transcript.surface import Surface

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
        """Start a selection."""
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
        """Clear the selection if it reaches beyond the text after a change."""
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
        """The selected range of a block of that length, or None. It ends one after the text if the newline is
        selected."""
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
        """The selected text in the form for copying, with an empty line between turns."""
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
            return (Position(position.item, first, 0), Position(position.item, last, len(blocks[last].text)))
        for match in _WORD.finditer(text):
            if match.end() > position.offset or match.end() == len(text):
                return position._replace(offset=match.start()), position._replace(offset=match.end())
        return position, position


_AUTOSCROLL_MS = 30


class Pointer(QObject):
    """Turns mouse and key events of the view into selection and hover."""

    def __init__(self, view: Surface, stack: Stack, selection: Selection, hover: Hover) -> None:
        super().__init__(view)
        self._view = view
        self._stack = stack
        self._selection = selection
        self._hover = hover
        self._selecting = False
        self._at = QPoint(-1, -1)  # in the viewport; None: the pointer is outside
        self._pressed_at = QPoint()
        self._pressed_fold: BlockPlace | None = None  # the fold line that is pressed and not yet released
        self._last_double: tuple[int, QPoint] | None = None  # time and place of the last double click
        self._doubled: tuple[Item, Token] | None = None  # the token of that click, in its turn
        self._second = QTimer(self, singleShot=True)  # a double click on a token, unless a third one follows
        self._second.timeout.connect(self._click_double)
        self._autoscroll = QTimer(self, interval=_AUTOSCROLL_MS)
        self._autoscroll.timeout.connect(self._drag_on)

    def pressed(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton or not len(self._stack):
            return
        self._view.setFocus(Qt.FocusReason.MouseFocusReason)
        self._second.stop()
        self._doubled = None
        point = event.position().toPoint()
        self._pressed_fold = self._fold(point)
        if self._pressed_fold is not None:
            return
        position = self._position(point)
        self._pressed_at = point
        self._selecting = True
        if self._is_triple(event):
            self._selection.start(position, Grain.PARAGRAPH)
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._selection.extend(position)
        else:
            self._selection.start(position)
        self._view.viewport().update()

    def double_clicked(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton or not len(self._stack):
            return
        point = event.position().toPoint()
        if self._fold(point) is not None:
            self.pressed(event)  # two quick clicks: unfold and fold again
            return
        self._last_double = (event.timestamp(), point)
        self._pressed_at = point
        position = self._position(point)
        item = self._stack.items[position.item]
        if isinstance(item, TextItem) and item.editable and not self._view.live:
            self._selecting = False
            self._view.edit_asked.emit(item.turn)
            return
        self._selecting = True
        self._selection.start(position, Grain.WORD)
        self._view.viewport().update()

    def moved(self, event: QMouseEvent) -> None:
        self._at = event.position().toPoint()
        if self._selecting:
            self._hover.clear()
            self._select_to(self._at)
            outside = not 0 <= self._at.y() < self._view.viewport().height()
            if outside and not self._autoscroll.isActive():
                self._autoscroll.start()
            elif not outside:
                self._autoscroll.stop()
        else:
            self._hover.point(self._token(self._at))
        self._show_shape()

    def released(self, event: QMouseEvent) -> None:
        self._autoscroll.stop()
        pressed, self._pressed_fold = self._pressed_fold, None
        if pressed is not None and pressed == self._fold(event.position().toPoint()):
            self._view.folding.toggle(pressed)
        if not self._selecting:
            return
        self._selecting = False
        point = event.position().toPoint()
        near = (point - self._pressed_at).manhattanLength() < 4
        token = self._token(point) if near else None
        if token is not None and self._selection.empty:
            self._click(token)
        elif token is not None and self._last_double is not None:
            self._doubled = self._stack.items[token.item], token
            self._second.start(QGuiApplication.styleHints().mouseDoubleClickInterval())
        clipboard = QGuiApplication.clipboard()
        if clipboard.supportsSelection() and not self._selection.empty:
            clipboard.setText(self._selection.text(), clipboard.Mode.Selection)

    def left(self) -> None:
        """The pointer left the viewport."""
        self._at = QPoint(-1, -1)
        self._hover.point(None)

    def scrolled(self) -> None:
        """The text was scrolled, so a different token may be under the pointer."""
        inside = self._view.viewport().rect().contains(self._at)
        if inside and not self._selecting:
            self._hover.point(self._token(self._at))
        elif not self._selecting:
            self._hover.clear()

    def key(self, event: QKeyEvent) -> bool:
        """Act on a key; False for any other key."""
        return KEYS.act(self, event)

    def enter(self) -> bool:
        """Choose the token pointed at, or fold the reasoning in sight; False if there is neither."""
        token = self._hover.token
        if token is None:
            return self.fold_seen()
        self._click(token)
        return True

    def _click_double(self) -> None:
        """Click the token that had the double click, which may be elsewhere on the screen by now, unless
        its turn is gone."""
        doubled, self._doubled = self._doubled, None
        if doubled is None:
            return
        item, token = doubled
        if item in self._stack.items[token.item : token.item + 1]:
            self._click(token)

    def _click(self, token: Token) -> None:
        answer, span = self._stack.answer(token.item), token.span
        round = answer.round(span.round) if answer is not None else None
        if round is not None:
            place = span.place if span.struck or span.place < round.accepted else len(round.drafted)
            self._view.token_clicked.emit(self._stack.items[token.item].turn, span.round, place)

    def fold_seen(self) -> bool:
        """Fold or unfold the reasoning in sight; False if there is none."""
        return self._view.folding.toggle_seen()

    def escape(self) -> bool:
        """Stop pointing at a token, or if there is none, clear the selection; False if there is neither."""
        if self._hover.clear():
            return True
        if self._selection.empty:
            return False
        self._selection.clear()
        self._view.viewport().update()
        return True

    def walk(self, by: int) -> None:
        """Point at the next token, or the one before."""
        token = self._hover.token
        if token is None:
            self._choose(self._view.first_token_seen())
            return
        answer = self._stack.answer(token.item)
        span = answer.spans.step(token.span, by, answer.setting.drafts_shown) if answer else None
        self._choose(Token(token.item, span) if span is not None else self._beyond(token.item, by))

    def _beyond(self, item: int, by: int) -> Token | None:
        """The first token of the next answer, or the last one of the answer before; None beyond them."""
        others = range(item + 1, len(self._stack)) if by > 0 else range(item - 1, -1, -1)
        for other in others:
            answer = self._stack.answer(other)
            span = answer.spans.step(None, by, answer.setting.drafts_shown) if answer else None
            if span is not None:
                return Token(other, span)
        return None

    def walk_rounds(self, by: int) -> None:
        """Point at the first token of the next round, or of the one before."""
        token = self._hover.token
        if token is None:
            self._choose(self._view.first_token_seen())
            return
        answer = self._stack.answer(token.item)
        rounds = token.span.round + by
        span = answer.spans.first_of_round(rounds, answer.setting.drafts_shown) if answer else None
        self._choose(Token(token.item, span) if span is not None else self._beyond(token.item, by))

    def _choose(self, token: Token | None) -> None:
        if token is not None:
            self._view.show_token(token)
            facts = self._hover.card.facts
            announce(self._view, facts.spoken() if facts is not None else "")

    def _token(self, point: QPoint) -> Token | None:
        return self._stack.token_at(*self._view.to_column(point))

    def _fold(self, point: QPoint) -> BlockPlace | None:
        return self._stack.fold_at(*self._view.to_column(point))

    def _position(self, point: QPoint) -> Position:
        return self._stack.position_at(*self._view.to_column(point))

    def _select_to(self, point: QPoint) -> None:
        self._selection.extend(self._position(point))
        self._view.viewport().update()

    def _is_triple(self, event: QMouseEvent) -> bool:
        if self._last_double is None:
            return False
        when, where = self._last_double
        self._last_double = None
        soon = event.timestamp() - when <= QGuiApplication.styleHints().mouseDoubleClickInterval()
        return soon and (event.position().toPoint() - where).manhattanLength() < 6

    def _show_shape(self) -> None:
        x, _ = self._view.to_column(self._at)
        in_text = len(self._stack) > 0 and 0 <= x < self._stack.setting.width
        shape = Qt.CursorShape.IBeamCursor if in_text else Qt.CursorShape.ArrowCursor
        if not self._selecting and self._fold(self._at) is not None:
            shape = Qt.CursorShape.PointingHandCursor
        viewport = self._view.viewport()
        if viewport.cursor().shape() is not shape:
            viewport.setCursor(QCursor(shape))

    def _drag_on(self) -> None:
        """Scroll on while the pointer is held above or below the viewport."""
        height = self._view.viewport().height()
        beyond = self._at.y() - height if self._at.y() >= height else self._at.y()
        bar = self._view.verticalScrollBar()
        bar.setValue(bar.value() + max(-60, min(60, beyond)))
        self._select_to(QPoint(self._at.x(), max(0, min(self._at.y(), height - 1))))


KEYS: KeyTable[Pointer] = KeyTable(
    ("Alt+Left", "Answer: previous token", lambda pointer: pointer.walk(-1)),
    ("Alt+Right", "Answer: next token", lambda pointer: pointer.walk(1)),
    ("Alt+Up", "Answer: previous round", lambda pointer: pointer.walk_rounds(-1)),
    ("Alt+Down", "Answer: next round", lambda pointer: pointer.walk_rounds(1)),
    ("Return Enter", "Answer: pin the token's round", lambda pointer: pointer.enter()),
    ("Space", "Answer: fold reasoning", lambda pointer: pointer.fold_seen()),
    ("Escape", "Answer: clear token and selection", lambda pointer: pointer.escape()),
)
