"""The cards' arithmetic: what it states is what was recorded, for every rule on real traces."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from app.engine.engine import Engine
from app.engine.explain.decision import odds_of, own_token, residual_of
from app.engine.fates import JUDGED, Origin, Verdict
from app.engine.record.recheck import recheck
from app.engine.rules.base import Rule
from app.engine.rules.block import BlockTest
from app.engine.rules.registry import BLOCK, rule_of
from app.engine.types import Race, Round, Sampling
from tests.answers import answer

WARM = Sampling(temperature=0.9, seed=11)
FILTERED = Sampling(temperature=1.2, top_k=60, top_p=0.95, min_p=0.01, repeat_penalty=1.2, seed=12)
HOT = Sampling(temperature=3.0, seed=4)
STRATEGIES = [
    "none",
    "draft-simple:n_max=5",
    "draft-simple:n_max=5:sample=1",
    "draft-simple:n_max=5:verify=match",
    "draft-simple:verify=speculative",
    "draft-simple:n_max=5:verify=block",
    "draft-simple:n_max=5:sample=1:verify=block",
    "prompt-lookup:num_pred_tokens=4",
    "prompt-lookup+draft-simple:n_max=2",
]


def verdict_of(round: Round, place: int, rule: Rule) -> Verdict | None:
    """The verdict that the test's numbers give; None where there is no test."""
    test = rule.test(round, place)
    if test is None:
        return None
    ended = round.emitted[-1].origin is Origin.ACCEPTED if round.emitted else False
    if ended and place >= len(round.emitted):
        return Verdict.IGNORED  # behind the end of the answer or a stop
    if test.passed:
        return Verdict.ACCEPTED
    first = place == 0 or verdict_of(round, place - 1, rule) is Verdict.ACCEPTED
    return Verdict.REJECTED if first else Verdict.IGNORED


@pytest.mark.parametrize(
    "sampling", [Sampling(), WARM, FILTERED, HOT], ids=["greedy", "warm", "filtered", "hot"]
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_verdict_stated_is_the_recorded_one(engine: Engine, strategy: str, sampling: Sampling) -> None:
    for stop in ((), ("a", "\n")):
        trace = answer(engine, strategy=strategy, sampling=sampling, max_tokens=60, stop=stop)
        assert recheck(trace) == []
        for round in trace.rounds:
            for place, token in enumerate(round.drafted):
                stated = verdict_of(round, place, rule_of(trace.header.verification))
                if token.verdict in JUDGED:
                    assert stated is token.verdict
                else:
                    assert stated in (None, Verdict.IGNORED)


@pytest.mark.parametrize("rule", ["", ":verify=block"])
@pytest.mark.parametrize("draft", ["draft-simple:n_max=4", "draft-simple:n_max=4:sample=1"])
def test_a_residual_adds_up(engine: Engine, draft: str, rule: str) -> None:
    trace = answer(engine, strategy=draft + rule, sampling=WARM, max_tokens=150)
    seen = Counter[str]()
    for round in trace.rounds:
        residual = residual_of(round, trace.header)
        rejected = [token for token in round.drafted if token.verdict is Verdict.REJECTED]
        assert (residual is not None) == bool(rejected)
        if residual is None:
            continue
        assert isinstance(residual.draw, Race) and 0 < residual.share <= 1
        if residual.total is None:
            seen["unknown"] += 1
            continue
        seen["known"] += 1
        place = len(round.emitted) - 1
        known = odds_of(round, place, trace.header)
        rests = [max(residual.reach * odds.p - odds.q, 0.0) for odds in known
                 if odds.p is not None and odds.q is not None]  # fmt: skip
        assert sum(rests) <= residual.total + 1e-4, "the ten best are part of the whole"
        if draft.endswith("n_max=4"):  # one-hot: the whole is known
            whole = residual.reach * (1 - rejected[0].p) if rejected[0].p is not None else 0.0
            assert residual.total == pytest.approx(whole, abs=1e-3)
    assert seen["known"] > 5


def test_q_of_the_alternatives_follows_from_the_temperature(engine: Engine) -> None:
    for temperature in (0.7, 1.0, 2.0):
        sampling = Sampling(temperature=temperature, seed=3)
        trace = answer(engine, strategy="draft-simple:n_max=4:sample=1", sampling=sampling, max_tokens=80)
        cold, places = trace.header, 0
        for round in trace.rounds:
            for place, token in enumerate(round.drafted):
                known = {odds.id: odds.q for odds in odds_of(round, place, cold) if odds.q is not None}
                assert known[token.id] == token.q
                if len(known) > 1:
                    places += 1
                    assert sum(known.values()) <= 1 + 1e-4
        assert places > 20
    filtered = answer(engine, strategy="draft-simple:n_max=4:sample=1", sampling=FILTERED, max_tokens=40)
    for round in filtered.rounds:
        for place, token in enumerate(round.drafted):
            odds = odds_of(round, place, filtered.header)
            assert [entry.id for entry in odds if entry.q is not None] == [token.id], (
                "filters hide the others"
            )


def test_one_hot_drafts_have_q_at_one_token_only(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple:n_max=4", sampling=WARM, max_tokens=40)
    for round in trace.rounds:
        for place, token in enumerate(round.drafted):
            for odds in odds_of(round, place, trace.header):
                assert odds.q == (1.0 if odds.id == token.id else 0.0)


def test_a_block_passes_at_one_place_and_carries_those_before(engine: Engine) -> None:
    trace = answer(
        engine, strategy="draft-simple:n_max=4:sample=1:verify=block", sampling=HOT, max_tokens=150
    )
    carried = 0
    for round in trace.rounds:
        tests = [BLOCK.test(round, place) for place in range(len(round.drafted))]
        chain = [test for test in tests if isinstance(test, BlockTest)]
        assert [test.passed for test in chain] == sorted((test.passed for test in chain), reverse=True)
        for test in chain:
            carried += test.passed and test.own is None
            if test.left is not None and test.h is not None:
                assert test.left / (test.left + 1 - test.reach) == pytest.approx(test.h)
    assert carried > 5


def test_the_target_gives_one_token_unless_the_draft_ended_the_answer(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple:n_max=4", sampling=Sampling(), max_tokens=60)
    for round in trace.rounds:
        token = own_token(round)
        assert token is None or token is round.emitted[-1]
        assert (token is None) == (round.emitted[-1].origin is Origin.ACCEPTED)
        assert token is None or not math.isnan(token.p)
