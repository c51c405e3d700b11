"""An answer in the column of the transcript, growing while rounds arrive."""

from __future__ import annotations

from dataclasses import replace

from app.engine.types import Round, TraceHeader
from app.ui.transcript.layout.block import Item, TextItem
from app.ui.transcript.layout.sectioned_item import SectionedItem
from app.ui.transcript.layout.sections import Mark, Reached
from app.ui.transcript.layout.styles import Setting
from app.ui.transcript.text.facts import CAPTIONS, manner
from app.ui.transcript.text.folds import DraftsFold
from app.ui.transcript.text.spans import (
    AnswerTurn,
    Span,
    SpanBuilder,
    SpanList,
    Turn,
    coloured,
    spans_of,
    text_of,
)
from app.ui.widgets.words import count

_MARKED = 64
"""Rounds between two marks."""
_NEAR = 8
"""Rounds between two marks in a part where the cursor went back, because it may do so again."""


class AnswerItem(SectionedItem):
    """An answer, as tokens coloured by fate or as rendered Markdown, up to the cursor of its model."""

    def __init__(self, turn: AnswerTurn, setting: Setting, rendered: bool, *, in_sight: bool = True) -> None:
        """An answer that is not in sight is laid out when it is first caught up with."""
        super().__init__(turn, setting, rendered)
        self.answer = turn.answer
        self.drafts = DraftsFold()
        self._view_setting = setting  # without what the reader folds here
        self._name = turn.name
        self._words = turn.text
        self._header: TraceHeader | None = None  # the header of the shown rounds
        self._shown = 0  # rounds
        self._finished = False
        self._seen: tuple[object, ...] = ()
        self._counted = 0  # rounds, as shown in the label
        self._builder = SpanBuilder()
        self._marks: list[Mark] = []  # to go back without laying everything out again
        self._reached: Reached | None = None  # to continue again to where the cursor was
        if in_sight:
            self._begin()
            self.fold_over()

    @property
    def label(self) -> str:
        parts = [self._name] if self._name else []
        if self._counted and not (self._header is not None and self._header.untold):
            parts.append(f"{count(self._counted)} round{'s' * (self._counted != 1)}")
        if self._header is not None:
            parts.append(manner(self._header))
        return "  ·  ".join(parts)

    def count(self) -> None:
        """Update the counts in the labels. This is not done for every batch, so that they can be read."""
        self._counted = self._shown
        for section in self._sections:
            if section.fold is not None and section.first is not None and section.last is not None:
                first, last = section.first, section.last
                section.fold.tokens = self._ordinal(last) - self._ordinal(first) + 1
                begun, ended = self.round(first.round), self.round(last.round)
                if begun is not None and ended is not None:
                    section.fold.seconds = ended.offset + ended.seconds - begun.offset

    # --------------------------------------------------------------------------------- its answer

    @property
    def live(self) -> bool:
        """Whether more of the answer will be shown."""
        return not self._finished

    @property
    def prompt(self) -> str:
        return self._header.prompt if self._header is not None else ""

    @property
    def behind(self) -> bool:
        """Whether the answer changed since `catch_up`."""
        return self._seen != self._state()

    def catch_up(self) -> bool:
        """Show the current state of the answer. Return True if text was only appended, False if the answer
        was laid out again."""
        answer = self.answer
        ends = answer.whole and not (self._finished and answer.cursor == self._shown)
        same = self._header is answer.header and not (ends and self._words is not None)
        grows = same and self._shown <= answer.cursor and (answer.whole or not self._finished)
        if grows:
            grows = not self._skip()
            self._show_rounds(_MARKED)
        elif not (same and self._go_back()):
            reached = self._reached if same else None
            self._begin()
            self._reached = reached
            return False
        if ends:
            self._finish()
        self._say()
        return grows

    def _show_rounds(self, step: int) -> None:
        """Show the rounds up to the cursor that are not shown yet, with a mark every `step` rounds."""
        cursor = self.answer.cursor
        while self._shown < cursor:
            end = min(cursor, (self._shown // step + 1) * step)
            spans: list[Span] = []
            for round in self.answer.rounds[self._shown : end]:
                spans += self._builder.add(round)
            self._shown = end
            self._extend(spans)
            if end % step == 0 and self._is_plain:
                states = self._builder.state, self._reader.state, self._sections[0].mark()
                self._marks.append(Mark(end, len(self.spans), *states))

    def _go_back(self) -> bool:
        """Show the rounds up to an earlier cursor, starting at the last mark before it; False if there is no
        mark. Blocks that do not change keep their layouts."""
        if not self._is_plain:
            return False
        if self._reached is None or self._reached.rounds < self._shown:
            self._reached = Reached(self._shown, self._laid_out(), list(self._marks))
        while self._marks and self._marks[-1].rounds > self.answer.cursor:
            self._marks.pop()
        if not self._marks:
            return False
        mark = self._marks[-1]
        self._go_on_from(mark)
        del self.spans[mark.spans :]
        keep_layouts = self._cut_back(mark.section)
        self._show_rounds(_NEAR)
        keep_layouts()
        self.count()
        return True

    def _skip(self) -> bool:
        """Continue to the last mark before the cursor, if the text up to there was laid out before."""
        mark = self._reached.mark_before(self.answer.cursor) if self._reached is not None else None
        if self._reached is None or mark is None or mark.rounds < self._shown + _MARKED:
            return False
        if self._sections and not self._is_plain:
            return False
        self._go_on_from(mark)
        self.spans = SpanList(self._reached.text.spans[: mark.spans])
        self._go_on_to(self._reached.text, mark.section)
        self._marks = [known for known in self._reached.marks if known.rounds <= mark.rounds]
        return True

    def _go_on_from(self, mark: Mark) -> None:
        """Read on from a mark; the text is not cut there yet."""
        self._shown, self._finished = mark.rounds, False
        self._builder.go_on_from(mark.builder)
        self._reader.go_on_from(mark.reader)

    def set_setting(self, setting: Setting) -> None:
        self._view_setting = setting
        self._reached = None  # its heights were those of another setting
        super().set_setting(replace(setting, drafts_shown=setting.drafts_shown and not self.drafts.folded))

    @property
    def offers_drafts(self) -> bool:
        """Whether the reader may show drafts that folded by themselves, or fold them again."""
        return self.drafts.offered and self._view_setting.drafts_shown and not self.rendered

    def fold_drafts(self, folded: bool | None = None) -> bool:
        """Fold drafts as the reader chose, or (None) if hardly any was accepted; True if the layout
        changed."""
        if folded is None:
            self.drafts.judge(self.answer.statistics, self._finished)
        else:
            self.drafts.choose(folded)
        shown = self._view_setting.drafts_shown and not self.drafts.folded
        if shown == self.setting.drafts_shown:
            return False
        self.set_setting(self._view_setting)
        return True

    def fold_over(self) -> bool:
        folded = self.fold_drafts()
        return super().fold_over() or folded

    def _begin(self) -> None:
        """Show the answer again, from its first round on."""
        answer = self.answer
        self._header = answer.header
        self._builder = SpanBuilder(self._header.stop if self._header is not None else ())
        for fold in self.folds.values():
            fold.begin_again()
        self._shown, self.spans, self._finished = 0, SpanList(), False
        if answer.whole and self._words is not None:
            self._shown, self._finished = answer.cursor, True
            spans = [span for round in answer.rounds for span in self._builder.add(round)]
            self.spans = SpanList(coloured(spans + self._builder.finish(), self._words))
        self._rebuild()
        if not self._finished:
            self._show_rounds(_MARKED)
            if answer.whole:
                self._finish()
            else:
                self.refresh_rendered()
        self.folds = {number: self.folds[number] for number in self._numbers if number in self.folds}
        self.count()
        self._say()
        self.fold_drafts()

    def _rebuild(self) -> None:
        self._marks, self._reached = [], None
        super()._rebuild()

    def _finish(self) -> None:
        """Make the text of an answer that has ended exactly that of its totals; without totals the spans
        stay."""
        self._finished = True
        totals, shown = self.answer.totals, len(self.spans)
        whole = self.spans + self._builder.finish()
        if totals is not None and text_of(whole) != totals.text:
            whole = coloured(whole, totals.text)
        if whole[:shown] == self.spans:
            self._extend(whole[shown:])
            self._end_spans()
        else:
            self.spans = SpanList(whole)
            self._rebuild()
        self.refresh_rendered()
        self.count()

    def _state(self) -> tuple[object, ...]:
        answer = self.answer
        return id(answer.header), answer.cursor, answer.whole, answer.progress, answer.note

    def _say(self) -> None:
        """Update the note and the caption below the text."""
        answer = self.answer
        self._seen = self._state()
        self.note = answer.note if self._finished else None
        self.caption = "" if self._finished else answer.progress
        if self._finished and answer.totals is not None and self.note is None:
            self.caption = answer.totals.error or CAPTIONS[answer.totals.finish_reason]

    @property
    def text(self) -> str:
        """The emitted text, rendered or not."""
        if self._seen:
            return text_of(self.spans)
        answer = self.answer  # it is not laid out
        if self._words is not None and answer.whole:
            return self._words
        return text_of(spans_of(answer.trace, answer.cursor)) if answer.trace is not None else ""

    def round(self, index: int) -> Round | None:
        """The round with an index, if it is shown."""
        rounds = self.answer.rounds
        place = index - rounds[0].index if rounds else -1
        return rounds[place] if 0 <= place < self._shown else None

    def _ordinal(self, span: Span) -> int:
        """The index of a token among all emitted ones."""
        return self.answer.series.tokens_before(span.round - self.answer.rounds[0].index) + span.place


def make_item(turn: Turn, setting: Setting, rendered: bool, *, in_sight: bool = True) -> Item:
    """The item of a turn; `in_sight`: it will be painted at once."""
    if isinstance(turn, AnswerTurn):
        return AnswerItem(turn, setting, rendered, in_sight=in_sight)
    return TextItem(turn, setting)
