"""A continued answer: the totals of its two parts."""

from __future__ import annotations

import pytest

from app.engine.types import FinishReason, Totals
from app.ui.chat.answering import totals_of_both


def part(reading: float, reading_in_rounds: float) -> Totals:
    """A part whose draft read the prompt for so many seconds, some of them in a round."""
    return Totals(
        finish_reason=FinishReason.LENGTH,
        text="",
        seconds=1.0,
        prompt_seconds=0.2,
        draft_prompt_seconds=reading,
        first_token_seconds=0.3,
        draft_prompt_in_rounds=reading_in_rounds,
    )


@pytest.mark.parametrize("begun", [part(0.01, 0.0), part(0.05, 0.04)])
@pytest.mark.parametrize("added", [part(0.01, 0.0), part(0.08, 0.07)])
def test_what_came_before_the_first_token_stays_when_an_answer_goes_on(begun: Totals, added: Totals) -> None:
    both = totals_of_both(begun, added)
    assert both.seconds == 2.0
    assert both.first_token_seconds == begun.first_token_seconds
    assert both.lead_seconds == pytest.approx(begun.lead_seconds)
    assert both.draft_prompt_in_rounds == (begun.draft_prompt_in_rounds or added.draft_prompt_in_rounds)
