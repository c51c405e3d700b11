"""Predictions against what really happens: the counts of copying strategies are exact, times are set."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from msgspec import structs

from app.engine.engine import Engine
from app.engine.explain.facts import AdviceFacts, Factor, Tried
from app.engine.explain.predict import Predictor, is_clear
from app.engine.explain.walk import DraftPlace, Walked, pools_of, walk
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from tests.answers import answer
from tests.engine.explain.advised import PASSES, at_costs

PROMPT = "The quick brown fox jumps over the lazy dog. " * 3
COPYING = (
    "prompt-lookup",
    "ngram-simple:size_n=4:size_m=8",
    "ngram-map-k:size_n=3:size_m=4",
    "ngram-map-k4v:size_n=3:size_m=4",
    "ngram-mod:n_match=4:n_min=1:n_max=8",
    "ngram-cache",
    "suffix:n_max=4:length=ewma",
)


def facts_of(trace: Trace, draft: float = 0.1) -> AdviceFacts:
    return AdviceFacts.of(
        [Trace(trace.header, at_costs(trace.rounds, draft), trace.totals)], calibration=PASSES
    )


@pytest.fixture(scope="module")
def plain(demo_engine: Engine) -> Trace:
    return answer(demo_engine, PROMPT, max_tokens=80, ignore_eos=True, cold=True)


@pytest.mark.parametrize("strategy", COPYING)
def test_what_copies_from_prompt_and_answer_is_counted_exactly(
    demo_engine: Engine, plain: Trace, strategy: str
) -> None:
    real = answer(demo_engine, PROMPT, strategy=strategy, max_tokens=80, ignore_eos=True, cold=True)
    facts = facts_of(real)
    walked = walk(Predictor(facts).texts[0], StrategySpec.parse(strategy), facts.cost, random.Random(0))
    found = Statistics.of(real.rounds)
    assert found.drafted, "it says something"
    assert (walked.rounds, walked.drafted, walked.accepted) == (found.rounds, found.drafted, found.accepted)
    assert Predictor(facts_of(plain)).of(StrategySpec.parse(strategy)) is not None


def test_without_the_tokens_of_the_prompt_nothing_is_said_of_copies(plain: Trace) -> None:
    facts = replace(facts_of(plain), prompt_ids=())
    assert Predictor(facts).of(StrategySpec.parse("prompt-lookup")) is None


def test_of_a_file_whose_passes_took_no_time_nothing_is_predicted(demo_engine: Engine) -> None:
    real = answer(demo_engine, PROMPT, strategy="prompt-lookup", max_tokens=40, cold=True)
    none = {"seconds": 0.0, "draft_seconds": 0.0, "verify_seconds": 0.0}
    facts = AdviceFacts.of([Trace(real.header, [structs.replace(each, **none) for each in real.rounds])])
    assert facts.cost.single_pass == 0 and Predictor(facts).own is None


def test_repeats_of_an_answer_do_not_slow_it_down(demo_engine: Engine) -> None:
    """Their rounds say what passes cost, and are not this answer's."""
    facts = facts_of(answer(demo_engine, PROMPT, strategy="prompt-lookup", max_tokens=40, cold=True))
    once = Predictor(facts).own
    for round in (*facts.rounds, *facts.rounds):
        facts.cost.add(round)
    again = Predictor(facts).own
    assert once is not None and again is not None and again.value == pytest.approx(once.value)


def test_a_draft_model_is_predicted_within_its_range(demo_engine: Engine) -> None:
    """Times are set, so the real factor of other settings is known."""
    request = {"max_tokens": 80, "ignore_eos": True, "cold": True}
    facts = facts_of(answer(demo_engine, PROMPT, strategy="draft-simple:n_max=4", **request))
    for other in ("draft-simple:n_max=2", "draft-simple:n_max=8:p_min=0.5"):
        real = facts_of(answer(demo_engine, PROMPT, strategy=other, **request))
        expected, happened = Predictor(facts).of(StrategySpec.parse(other)), Predictor(real).own
        assert expected is not None and happened is not None
        assert expected.low <= happened.value <= expected.high, other


def test_a_draft_model_that_has_not_drafted_has_no_clear_factor(demo_engine: Engine, plain: Trace) -> None:
    expected = Predictor(facts_of(plain)).of(StrategySpec.parse("draft-simple:n_max=4"))
    assert expected is not None and not is_clear(expected)


def test_in_a_run_that_agrees_the_next_token_agrees_more_often() -> None:
    yes, no = DraftPlace(True, 0.9), DraftPlace(False, 0.4)
    none_before, one_before, *_, many_before = pools_of([no, yes] * 8 + [yes] * 12)
    assert none_before.count(yes) == 8 and none_before.count(no) == 1
    assert no in one_before and set(many_before) == {yes}
    assert set(pools_of([no, no])[3]) == {no}, "too few places to tell runs apart"


def test_other_answers_with_the_same_text_tell_what_a_draft_model_proposes(
    demo_engine: Engine, plain: Trace
) -> None:
    """The shown answer copied; the one before it was drafted by a model."""
    spec = StrategySpec.parse("draft-simple:n_max=2")
    drafted = answer(demo_engine, PROMPT, strategy="draft-simple:n_max=4", max_tokens=80, ignore_eos=True)
    facts = facts_of(plain)
    known = Tried(Factor(1.0, 0.9, 1.1), drafted.rounds)
    before, after = Predictor(facts), Predictor(replace(facts, tried={"draft-simple:n_max=4": known}))
    assert not before.is_told(spec) and after.is_told(spec)
    assert after.texts[0].places == Predictor(facts_of(drafted)).texts[0].places
    elsewhere = answer(demo_engine, "Hi", strategy="draft-simple:n_max=4", max_tokens=20, ignore_eos=True)
    other = replace(facts, tried={"draft-simple:n_max=4": Tried(known.factor, elsewhere.rounds)})
    assert not Predictor(other).is_told(spec), "of another text"


def test_answers_to_several_prompts_are_judged_together(demo_engine: Engine, plain: Trace) -> None:
    spec, talk = StrategySpec.parse("prompt-lookup"), "Tell me of a river."
    other = answer(demo_engine, talk, max_tokens=40, ignore_eos=True, cold=True)
    traces = [Trace(each.header, at_costs(each.rounds, 0.1), each.totals) for each in (plain, other)]
    each = [Predictor(AdviceFacts.of([trace], calibration=PASSES)).of(spec) for trace in traces]
    both = Predictor(AdviceFacts.of(traces, calibration=PASSES)).of(spec)
    assert both is not None
    assert min(one.value for one in each) < both.value < max(one.value for one in each)
    begun = Trace(plain.header, plain.rounds[:1], plain.totals)
    longest = max(plain, other, key=lambda trace: len(trace.token_ids))
    assert AdviceFacts.of([begun, other, plain]).rounds is longest.rounds


def test_no_walks_add_up_to_nothing() -> None:
    assert Walked.of_all([]) == Walked()
