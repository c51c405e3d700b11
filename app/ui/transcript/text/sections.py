"""A section of an answer: a stretch of answer text or of reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from app.engine.fates import STRUCK
from app.ui.transcript.text.folds import ReasoningFold
from app.ui.transcript.text.paragraphs import Paragraph, ParagraphBuilder, ParagraphMark
from app.ui.transcript.text.reasoning import inside
from app.ui.transcript.text.spans import Span

if TYPE_CHECKING:
    from app.ui.transcript.layout.blocks.rendered import RenderedText


class SectionMark(NamedTuple):
    """How far a section had grown."""

    first: Span | None
    last: Span | None
    texts: int
    paragraphs: ParagraphMark


class SectionText(NamedTuple):
    """The text of a section, as far as it has grown."""

    texts: list[str]
    paragraphs: list[Paragraph]


class Section:
    """A section: its text as paragraphs of tokens and, on demand, rendered."""

    def __init__(
        self, row: int, fold: ReasoningFold | None, all_code: bool, rendered: bool, fence: str = ""
    ) -> None:
        """`row` is the index of its first block in the answer; `fold` is given for reasoning; `fence` is the
        line that opened the code in which it begins."""
        self.row = row
        self.fold = fold
        self.paragraphs = ParagraphBuilder(all_code, fence)
        self._fence = f"{fence}\n" if fence else ""
        self.rendered = _rendered_text(fold) if rendered else None
        self.first: Span | None = None  # the first and the last token emitted in it
        self.last: Span | None = None
        self._texts: list[str] = []

    @property
    def base(self) -> int:
        """The row of its first text block, after the fold line."""
        return self.row + (self.fold is not None)

    @property
    def text(self) -> str:
        """The emitted text."""
        return "".join(self._texts)

    def note(self, spans: Sequence[Span]) -> None:
        """Add spans."""
        emitted = [span for span in spans if span.fate not in STRUCK]
        known = next((span for span in emitted if span.fate), None)
        if known is not None:
            self.first = self.first or known
            self.last = next(span for span in reversed(emitted) if span.fate)
        self._texts.append("".join([span.text for span in emitted if not span.control]))

    def mark(self) -> SectionMark:
        """How far it has grown."""
        return SectionMark(self.first, self.last, len(self._texts), self.paragraphs.mark())

    def copied(self) -> SectionText:
        """Its text, which stays as it is while the section is cut."""
        return SectionText(list(self._texts), list(self.paragraphs.paragraphs))

    def go_on_to(self, text: SectionText, mark: SectionMark) -> None:
        """Take the text up to a mark from what it had grown to before it was cut."""
        self._texts, self.paragraphs.paragraphs = list(text.texts), list(text.paragraphs)
        self.cut_back(mark)

    def cut_back(self, mark: SectionMark) -> None:
        """Return to how far it had grown; the rendered text stays as it is."""
        self.first, self.last = mark.first, mark.last
        del self._texts[mark.texts :]
        self.paragraphs.cut_back(mark.paragraphs)

    def render(self) -> int:
        """Update the rendered text; returns how many of its blocks stayed."""
        if self.rendered is None:
            return 0
        return self.rendered.update(self._fence + self.text if self.fold is None else inside(self.text))


def _rendered_text(fold: ReasoningFold | None) -> RenderedText:
    """Its modules read Markdown and colour code: they are imported once somebody wants that."""
    from app.ui.transcript.layout.blocks.rendered import RenderedText

    return RenderedText(fold)
