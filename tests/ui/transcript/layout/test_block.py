"""The block of a token, found by bisection."""

from __future__ import annotations

import pytest

from app.ui.state.answer import AnswerModel
from app.ui.transcript import AnswerTurn, TranscriptView
from tests.ui.traces import simulate
from tests.ui.transcript.places import answer

TEXT = "A line.\n\n\nAnother one,\nand a third.\n\n```python\nx = 1\n\n\ny = 2\n```\n" * 12


@pytest.mark.parametrize("text", [TEXT, f"<think>\n{TEXT}</think>\n\n{TEXT}", "\n\n\n", "one line"])
def test_every_token_is_found_in_the_first_block_that_holds_it(view: TranscriptView, text: str) -> None:
    view.set_turns([AnswerTurn(AnswerModel(simulate(text, rate=0.6)), "m")])
    item = answer(view)
    spans = [span for round in item.answer.rounds if (span := item.spans.first_of_round(round.index, True))]
    step = spans[0]
    while (following := item.spans.step(step, 1, True)) is not None:
        spans.append(following)
        step = following
    before = -1
    for span in spans:
        holding = [
            row for row, block in enumerate(item.blocks) if getattr(block, "holds", lambda _: False)(span)
        ]
        assert item.block_of(span) == (holding[0] if holding else -1)
        assert item.block_of(span, before) == item.block_of(span), "the block of the token before is a guess"
        before = item.block_of(span)
