"""Foldable text: its state, and the line to click on."""

from __future__ import annotations

from abc import ABC, abstractmethod

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF

from app.engine.record.stats import Statistics
from app.ui.theme import Palette
from app.ui.transcript.layout.styles import Marks, Setting
from app.ui.transcript.text.spans import Span
from app.ui.widgets.words import count, duration, percent

_GUTTER = 13  # distance of the chevron and the rule from the text, to the left
_CHEVRON = 3.5  # half its width
_RULE = 2
_HARDLY_ANY = 0.1  # share of the drafted tokens
_ENOUGH_DRAFTED = 32  # tokens


class TextFold(ABC):
    """A stretch of text: whether it is folded, and the words of its line."""

    def __init__(self, folded: bool = False) -> None:
        self._chosen: bool | None = None  # the reader's choice
        self._by_itself = folded

    @property
    def folded(self) -> bool:
        return self._by_itself if self._chosen is None else self._chosen

    def choose(self, folded: bool) -> None:
        """Set the reader's choice, which then stays."""
        self._chosen = folded

    @property
    @abstractmethod
    def words(self) -> str:
        """The words of the line."""


class LinesFold(TextFold):
    """Lines far from the gap that an answer fills."""

    def __init__(self, lines: int) -> None:
        super().__init__(folded=True)
        self._lines = lines

    @property
    def words(self) -> str:
        return f"{count(self._lines)} more lines"


class ReasoningFold(TextFold):
    """A section of reasoning, and its size."""

    def __init__(self) -> None:
        super().__init__()
        self.over = False
        self.tokens: int | None = None
        self.seconds: float | None = None

    def begin_again(self) -> None:
        """Reset, because the reasoning is read from its start again; the reader's choice stays."""
        self.over = self._by_itself = False

    def fold_by_itself(self) -> bool:
        """Fold reasoning that is over, unless the reader chose otherwise. False if that changes
        nothing."""
        was = self.folded
        self._by_itself = True
        return self.folded != was

    @property
    def words(self) -> str:
        """The words of the line, such as "Reasoning · 214 tokens · 3.10 s"."""
        parts = ["Reasoning"]
        if self.tokens is not None:
            parts.append(f"{count(self.tokens)} token{'s' * (self.tokens != 1)}")
        if self.seconds is not None:
            parts.append(duration(self.seconds))
        return "  ·  ".join(parts)


class DraftsFold(TextFold):
    """The struck drafts of an answer, with a button that folds them. They fold by themselves if hardly any
    were accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.offered = False  # whether to fold is the reader's choice: they have folded by themselves
        self._rate = 0.0

    def judge(self, statistics: Statistics, over: bool) -> None:
        """Fold if the answer so far has enough drafts and few were accepted. Unfold them only if the answer
        is `over`."""
        rate = statistics.acceptance_rate
        if rate is None or statistics.drafted < _ENOUGH_DRAFTED:
            return
        self._rate = rate
        self._by_itself = rate < _HARDLY_ANY or (self._by_itself and not over)
        self.offered = self._by_itself

    @property
    def words(self) -> str:
        return f"{'Show' if self.folded else 'Hide'} drafts ({percent(self._rate)} accepted)"


class FoldLine:
    """The line above folded text, as a block without text: neither found, nor selected, nor copied."""

    text = ""
    joint = ""
    runs_on = False
    hidden = False
    laid_out = True

    def __init__(self, fold: TextFold) -> None:
        self.fold = fold

    def holds_point(self, x: float, setting: Setting) -> bool:
        """Whether a click at `x` hits the chevron or the words."""
        width = QFontMetricsF(setting.styles.label).horizontalAdvance(self.fold.words)
        return -2 * _GUTTER <= x <= width + _GUTTER

    def estimate(self, setting: Setting) -> int:
        styles = setting.styles
        return styles.label_height + (styles.empty_line // 2 if self.fold.folded else 0)

    def measure(self, setting: Setting) -> int:
        return self.estimate(setting)

    def drop(self) -> None:
        """Does nothing: there is no layout."""

    def paint(self, painter: QPainter, setting: Setting, marks: Marks) -> None:
        styles = setting.styles
        metrics = QFontMetricsF(styles.label)
        painter.setFont(styles.label)
        painter.setPen(QColor(styles.palette.secondary))
        words = metrics.elidedText(self.fold.words, Qt.TextElideMode.ElideRight, setting.width)
        painter.drawText(QRectF(0, 0, setting.width, metrics.height()), words)
        self._paint_chevron(painter, styles.palette, metrics.height() / 2)

    def _paint_chevron(self, painter: QPainter, palette: Palette, middle: float) -> None:
        wide, deep = _CHEVRON, _CHEVRON / 2
        corners = [(-wide, -deep), (0.0, deep), (wide, -deep)]
        if self.fold.folded:  # pointing at the words
            corners = [(y, x) for x, y in corners]
        centre = QPointF(0.5 - _GUTTER, middle)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(QColor(palette.secondary), 1.5)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        painter.drawPolyline(QPolygonF([centre + QPointF(*corner) for corner in corners]))
        painter.restore()

    def offset_at(self, point: QPointF) -> int:
        return 0

    def token_at(self, point: QPointF) -> Span | None:
        return None

    def token_rects(self, token: Span) -> list[QRectF]:
        return []

    def rects(self, first: int, end: int) -> list[QRectF]:
        return []

    def end_rect(self) -> QRectF:
        return QRectF()


def paint_rule(painter: QPainter, palette: Palette, height: int) -> None:
    """Paint the line beside unfolded text."""
    left = 0.5 - _GUTTER - _RULE / 2
    painter.fillRect(QRectF(round(left), 0, _RULE, height), QColor(palette.line))
