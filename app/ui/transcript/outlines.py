"""The lines around the text: around a framed round, copied tokens, the round and the token pointed at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from app.ui.theme import Palette
from app.ui.transcript.hover_card import Hover
from app.ui.transcript.layout.stack import Stack, Token
from app.ui.transcript.layout.styles import outline
from app.ui.transcript.text.spans import Turn

_AROUND = 2  # pixels from a piece of text to the outer edge of its line
_RADIUS = 4


class Outlines(QObject):
    """Paints the lines. If they change, the text around stays as it was painted."""

    def __init__(
        self, viewport: QWidget, stack: Stack, hover: Hover, to_viewport: Callable[[QRectF], QRectF]
    ) -> None:
        super().__init__(viewport)
        self._viewport = viewport
        self._stack = stack
        self._hover = hover
        self._to_viewport = to_viewport
        self._painted: list[QRectF] = []  # what had a line when it was painted, in the column
        self.framed: tuple[Turn, int] | None = None
        """A round with a frame."""
        self.copied: tuple[Turn, int, int, int] | None = None
        """A round, a position in it, and how many emitted tokens from there have a dashed line."""
        hover.changed.connect(self.repaint)

    def forget(self) -> None:
        """Frame and outline nothing."""
        self.framed = self.copied = None

    def framed_token(self) -> Token | None:
        """The first token of the framed round; None if nothing is framed."""
        if self.framed is None:
            return None
        turn, index = self.framed
        item = self._stack.index_of(turn)
        answer = self._stack.answer(item)
        if answer is None:
            return None
        span = answer.spans.first_of_round(index, answer.setting.drafts_shown)
        return Token(item, span) if span is not None else None

    def repaint(self) -> None:
        """Paint again the places where lines were, and where they are now."""
        now = [rect for rects in self._rects() for rect in rects]
        for rect in map(self._to_viewport, (*self._painted, *now)):
            self._viewport.update(rect.toAlignedRect().adjusted(-_AROUND, -_AROUND, _AROUND, _AROUND))

    def paint(self, painter: QPainter, palette: Palette) -> None:
        """Paint all lines. For the token pointed at, the line around its round is thin, and the one around
        the token strong."""
        found = self._rects()
        self._painted = [rect for rects in found for rect in rects]
        copied, framed, pointed, token = ([self._to_viewport(rect) for rect in rects] for rects in found)
        outline(painter, copied, palette.text, _RADIUS, Qt.PenStyle.DashLine)
        outline(painter, framed, palette.text, _RADIUS)
        outline(painter, pointed, palette.faint, _RADIUS)
        outline(painter, token, palette.text, _RADIUS)

    def _rects(self) -> tuple[list[QRectF], list[QRectF], list[QRectF], list[QRectF]]:
        """The rectangles with a line, in the column: copied tokens, framed round, round pointed at, and its
        token."""
        framed, pointed = self.framed_token(), self._hover.token
        return (
            self._copied_rects(),
            self._stack.round_rects(framed) if framed is not None else [],
            self._stack.round_rects(pointed) if pointed is not None else [],
            self._stack.token_rects(pointed) if pointed is not None else [],
        )

    def _copied_rects(self) -> list[QRectF]:
        if self.copied is None:
            return []
        turn, index, place, count = self.copied
        item = self._stack.index_of(turn)
        answer = self._stack.answer(item)
        spans = answer.spans.emitted_from(index, place, count) if answer is not None else []
        return self._stack.merged_rects(item, spans)
