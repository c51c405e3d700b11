"""A cursor that goes back: the text is cut where it stands, and is what it was at that round."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from typing_extensions import override

from app.engine.record.trace import Trace
from app.ui.state.answer import AnswerModel
from app.ui.transcript import AnswerTurn, TranscriptView
from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.block import Block, ParagraphBlock
from app.ui.transcript.layout.paragraph_layout import ParagraphLayout
from app.ui.transcript.text.paragraphs import Paragraph
from app.ui.transcript.text.spans import SpanBuilder
from tests.ui.traces import make_totals, simulate
from tests.ui.transcript.places import answer

LINES = "A line of words.\n\n\nAnother one,\nand a third — naïve 🦊.\n\n```python\nx = 1\n\ny = 2\n```\n" * 40
TEXTS = {
    "lines": LINES,
    "one line": LINES.replace("\n", " "),
    "reasoning": f"<think>\n{LINES}</think>\n\n{LINES}",
    "open fence": "```\n" + "x = 1\n" * 300,
}


def traces() -> dict[str, Trace]:
    made = {name: simulate(text, rate=0.6) for name, text in TEXTS.items()}
    lines = made["lines"]
    stops = msgspec.structs.replace(lines.header, stop=("never said", "y = 3"))
    made["stop"] = replace(lines, header=stops)
    made["other text"] = replace(lines, totals=make_totals(LINES.replace("naïve", "na")))
    return made


def shown(item: AnswerItem) -> list[object]:
    """All that decides how the text looks."""
    parts: list[object] = [item.label, item.caption, item.spans, len(item.heights)]
    for block in item.blocks:
        paragraph = block.paragraph if isinstance(block, ParagraphBlock) else None
        parts.append(
            (paragraph.kind, list(paragraph.spans), paragraph.end, paragraph.continued, paragraph.cut)
            if paragraph is not None
            else type(block)
        )
        parts.append((block.text, block.joint, block.runs_on, block.hidden))
    return parts


@pytest.mark.parametrize("name", traces())
def test_at_every_round_the_text_is_as_if_it_had_just_come_there(view: TranscriptView, name: str) -> None:
    trace = traces()[name]
    scrubbed, luck = AnswerModel(trace), random.Random(name)
    view.set_turns([AnswerTurn(scrubbed, "m")])
    item = answer(view)
    whole = len(trace.rounds)
    moves = [whole - 1, whole, whole - 2, whole - 65]
    moves += [*(luck.randrange(whole + 1) for _ in range(12)), 0, whole]
    for cursor in moves:
        scrubbed.move(cursor)
        item.catch_up()
        item.count()
        fresh = AnswerModel(trace)
        fresh.move(cursor)
        expected = AnswerItem(AnswerTurn(fresh, "m"), item.setting, rendered=False)
        assert shown(item) == shown(expected), cursor


def test_going_back_in_a_long_answer_reads_few_rounds_again(
    view: TranscriptView, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = simulate(LINES * 3, rate=0.6)
    scrubbed = AnswerModel(trace)
    view.set_turns([AnswerTurn(scrubbed, "m")])
    read: list[int] = []
    add = SpanBuilder.add
    monkeypatch.setattr(SpanBuilder, "add", lambda self, round: read.append(round.index) or add(self, round))
    for cursor in range(len(trace.rounds) - 1, 500, -97):
        read.clear()
        scrubbed.move(cursor)
        assert len(read) < 64, "the rounds since a mark"
    assert len(trace.rounds) > 1500


def test_a_step_back_lays_out_only_what_changed(
    view: TranscriptView, monkeypatch: pytest.MonkeyPatch
) -> None:
    scrubbed = AnswerModel(simulate(LINES * 3, rate=0.6))
    view.set_turns([AnswerTurn(scrubbed, "m")])
    item = answer(view)
    view.grab()
    made: list[Paragraph] = []
    layout = ParagraphLayout.__init__

    def counted(new: ParagraphLayout, paragraph: Paragraph, *rest: object) -> None:
        made.append(paragraph)
        layout(new, paragraph, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ParagraphLayout, "__init__", counted)
    steps = []
    for _ in range(40):
        before = [block.paragraph for block in item.blocks if isinstance(block, ParagraphBlock)]
        made.clear()
        scrubbed.move(scrubbed.cursor - 3)
        view.grab()
        scrolled_in = sum(any(map(paragraph.same_as, before)) for paragraph in made)
        steps.append(len(made) - scrolled_in)
    assert max(steps) <= 2 and sum(steps) > 10, "the last paragraph, and one that lost its newline"


def test_steps_back_from_a_cursor_read_only_the_rounds_near_it(
    view: TranscriptView, monkeypatch: pytest.MonkeyPatch
) -> None:
    scrubbed = AnswerModel(simulate(LINES, rate=0.6))
    view.set_turns([AnswerTurn(scrubbed, "m")])
    scrubbed.move(255)
    read: list[int] = []
    add = SpanBuilder.add
    monkeypatch.setattr(SpanBuilder, "add", lambda self, round: read.append(round.index) or add(self, round))
    for cursor in range(254, 192, -1):
        read.clear()
        scrubbed.move(cursor)
        assert len(read) < 8


def test_a_token_is_found_without_a_walk_from_the_first_line(view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(simulate(LINES)), "m")])
    item = answer(view)
    looked: list[int] = []

    class Lines(list[Block]):
        @override
        def __getitem__(self, at: Any) -> Any:
            looked.append(at)
            return super().__getitem__(at)

        @override
        def __iter__(self) -> Iterator[Block]:
            raise AssertionError("walks over all lines")

    span = next(span for span in reversed(item.spans) if span.fate)
    row = item.block_of(span)
    item.blocks = Lines(item.blocks)
    assert item.block_of(span) == row > 100
    assert len(looked) < 60


def test_a_jump_on_reads_few_rounds_again(view: TranscriptView, monkeypatch: pytest.MonkeyPatch) -> None:
    scrubbed = AnswerModel(simulate(LINES * 3, rate=0.6))
    view.set_turns([AnswerTurn(scrubbed, "m")])
    whole = answer(view).text
    read: list[int] = []
    add = SpanBuilder.add
    monkeypatch.setattr(SpanBuilder, "add", lambda self, round: read.append(round.index) or add(self, round))
    luck = random.Random(3)
    scrubbed.move(100)
    for cursor in (1500, 3, 1400, 0, *(luck.randrange(1500) for _ in range(20)), len(scrubbed.rounds)):
        read.clear()
        scrubbed.move(cursor)
        assert len(read) < 64 + 8, cursor
    assert answer(view).text == whole
