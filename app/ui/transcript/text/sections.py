"""A section of an answer: a stretch of what it says, or of how it came to say it."""

from __future__ import annotations

from app.ui.transcript.layout.rendered import RenderedText
from app.ui.transcript.text.folds import ReasoningFold
from app.ui.transcript.text.paragraphs import ParagraphBuilder
from app.ui.transcript.text.reasoning import inside
from app.ui.transcript.text.spans import Span


class Section:
    """Its text as paragraphs of tokens and, where that is wanted, rendered."""

    def __init__(
        self, row: int, fold: ReasoningFold | None, all_code: bool, rendered: bool, fence: str = ""
    ) -> None:
        """`row` is its first block among the answer's; `fold` belongs to reasoning; `fence` is the line that
        opened the code in which it begins."""
        self.row = row
        self.fold = fold
        self.paragraphs = ParagraphBuilder(all_code, fence)
        self._fence = f"{fence}\n" if fence else ""
        self.rendered = RenderedText(fold) if rendered else None
        self.first: Span | None = None  # the first and the last token emitted here
        self.last: Span | None = None
        self._texts: list[str] = []

    @property
    def base(self) -> int:
        """Where its text begins: behind the line that folds it."""
        return self.row + (self.fold is not None)

    @property
    def text(self) -> str:
        """What was emitted here."""
        return "".join(self._texts)

    def note(self, span: Span) -> None:
        """Remember a span that belongs here."""
        if span.struck:
            return
        if span.fate:
            self.first = self.first or span
            self.last = span
        if span.counts:
            self._texts.append(span.text)

    def render(self) -> int:
        """Bring the rendered text up to date; returns how many of its blocks stayed."""
        if self.rendered is None:
            return 0
        return self.rendered.update(self._fence + self.text if self.fold is None else inside(self.text))
