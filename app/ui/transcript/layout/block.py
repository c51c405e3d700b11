"""The blocks that make up a turn's text. Each is laid out only once it comes into view."""

from __future__ import annotations

from math import ceil
from typing import Protocol

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QTextLayout

from app.ui.transcript.layout.paragraph_layout import ParagraphLayout
from app.ui.transcript.layout.styles import Marks, Setting, fill, outline, wash
from app.ui.transcript.text.folds import TextFold, paint_rule
from app.ui.transcript.text.paragraphs import Kind, Paragraph
from app.ui.transcript.text.spans import Span


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
        """`before` is the block whose last line this paragraph continues; `fold` is the fold that hides
        it; `quiet` text is grey, as foldable text always is."""
        self.paragraph = paragraph
        self.fold = fold
        self._quiet = quiet or fold is not None
        self._layout: ParagraphLayout | None = None
        self.follow(before)

    def follow(self, before: ParagraphBlock | None) -> None:
        """Set the block whose last line this paragraph continues, if that block's paragraph says so."""
        self._before = before if before is not None and before.paragraph.continued else None
        self.drop()

    def take_layout(self, block: ParagraphBlock) -> None:
        """Take over the layout of a block that looks the same."""
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
