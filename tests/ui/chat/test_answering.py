"""An answer being written: what it says while the engine reads or waits, the totals of a continued one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from app.engine.drafters.base import ENOUGH
from app.engine.engine import Engine
from app.engine.process.messages import Finished, PromptProgress, RoundFinished, Started
from app.engine.record.recheck import recheck
from app.engine.types import FinishReason, GenerationRequest, Role, Totals
from app.saved.chats.conversation import Question
from app.saved.chats.store import ChatStore
from app.saved.settings import Settings
from app.ui.chat.answers import HELD, Answering, totals_of_both
from app.ui.chat.asking import request_to_go_on
from tests.ui.traces import make_header


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


@pytest.mark.parametrize(
    ("role", "done", "waits"),
    [(Role.TARGET, 60, False), (Role.TARGET, 131, True), (Role.DRAFT, 0, False), (Role.DRAFT, 131, True)],
)
def test_a_held_answer_waits_once_its_prompt_is_read(
    tmp_path: Path, role: Role, done: int, waits: bool
) -> None:
    store = ChatStore(tmp_path)
    answering = Answering(store, store.new(), 0, Question("Hello"), "demo")
    answering.held = True
    answering.run_started(make_header())
    answering.run_progress(PromptProgress(1, role, done, 132))
    assert (answering.answer.progress == HELD) is waits
    answering.close()


@pytest.mark.parametrize("stopped", [True, False])
def test_the_record_of_a_continued_answer_holds(engine: Engine, tmp_path: Path, stopped: bool) -> None:
    """Also if it is stopped before its first further round; and a length rule continues warm."""
    strategy = "draft-simple:n_max=6:length=ewma"
    asked = GenerationRequest("abcabcabd abc", strategy=strategy, max_tokens=8, ignore_eos=True, cold=True)
    begun = engine.answer(asked)
    assert begun.rounds[-1].draft_end == ENOUGH
    engine.answer(dataclasses.replace(asked, max_tokens=40, cold=False))  # its rule learns
    store = ChatStore(tmp_path)
    answering = Answering(store, store.new(), 0, Question("Hello"), "demo", begun)
    further = dataclasses.replace(request_to_go_on(begun, Settings(max_tokens=12)), ignore_eos=True)
    for event in engine.generate(further):
        if isinstance(event, Started):
            answering.run_started(event.header)
        elif isinstance(event, PromptProgress) and stopped:
            engine.abort.set()
        elif isinstance(event, RoundFinished):
            answering.run_rounds([event.round])
        elif isinstance(event, Finished):
            answering.run_finished(event.totals)
    trace = answering.answer.trace
    assert trace is not None and len(trace.token_ids) == (8 if stopped else 20)
    assert recheck(trace) == []
    answering.close()
