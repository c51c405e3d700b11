"""ngram-map-k and ngram-map-k4v: llama.cpp's drafts for the same calls, and laws for any calls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from app.engine.drafters import index as ngram_buckets
from app.engine.drafters.base import Drafter, Proposal
from app.engine.drafters.ngram_map import NgramMapK, NgramMapK4v, NgramMapK4vParams, NgramMapKParams
from app.engine.engine import Engine
from app.engine.fates import Verdict
from app.engine.strategy import StrategySpec
from app.engine.types import GenerationRequest, Message
from tests.equality import Baselines
from tests.ngram_parity import DRAFTERS, SURROUNDINGS, first_difference, scenarios

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=60)
names = st.sampled_from(["ngram-map-k", "ngram-map-k4v"])


def ids(text: list[int]) -> np.ndarray:
    return np.array(text, np.int32)


def begun(drafter: Drafter, text: list[int]) -> Drafter:
    drafter.begin(ids(text), SURROUNDINGS)
    return drafter


def answer(drafter: Drafter, text: list[int], begin: int, k: int = 64) -> list[Proposal]:
    """All proposals of a generation whose target writes `text`."""
    begun(drafter, text[:begin])
    at = begin
    proposals = []
    while at <= len(text):
        proposal = drafter.propose(ids(text[:at]), k)
        accepted = 0
        while text[at : at + accepted + 1] == proposal.ids[: accepted + 1] and accepted < len(proposal.ids):
            accepted += 1
        at += accepted + 1
        drafter.observe(ids(text[:at]), proposal, accepted)
        proposals.append(proposal)
    return proposals


def test_drafts_are_llama_cpps() -> None:
    drafted = dict.fromkeys(DRAFTERS, 0)
    for scenario in scenarios():
        assert first_difference(scenario) == ""
        for answer in scenario.answers:
            for call in answer.rounds:
                if call.drafter >= 0:
                    drafted[scenario.drafters[call.drafter][0]] += 1
    assert all(count > 300 for count in drafted.values()), drafted


class _KeepsAll(NgramMapK):
    """Planted fault: does not learn what was accepted."""

    @override
    def observe(self, context: np.ndarray, proposal: Proposal, accepted: int) -> None:
        return


class _Forgets(NgramMapK4v):
    """Planted fault: forgets everything before every answer."""

    @override
    def begin(self, context: np.ndarray, surroundings: object) -> None:
        self.reset()
        super().begin(context, SURROUNDINGS)


def test_the_comparison_sees_planted_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = list(scenarios())
    deaf = {**DRAFTERS, "ngram-map-k": lambda n, m, hits: _KeepsAll(NgramMapKParams(n, m, hits))}
    assert any(first_difference(scenario, deaf) for scenario in recorded)
    forgetful = {**DRAFTERS, "ngram-map-k4v": lambda n, m, hits: _Forgets(NgramMapK4vParams(n, m, hits))}
    assert any(first_difference(scenario, forgetful) for scenario in recorded)
    monkeypatch.setattr(ngram_buckets, "_BUCKETS", 1 << 40)  # no collisions
    assert any(first_difference(scenario) for scenario in recorded)


@given(names, st.lists(tokens, min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 6), st.data())
def test_a_draft_is_a_copy_from_behind_the_same_tokens(
    name: str, texts: list[list[int]], n: int, m: int, data: st.DataObject
) -> None:
    drafter = DRAFTERS[name](n, m, 1)
    for text in texts:
        prompt = len(text) // 2 + 1
        begun(drafter, text[:prompt])
        for at in range(prompt, len(text) + 1):
            context, k = text[:at], data.draw(st.integers(1, 8))
            proposal = drafter.propose(ids(context), k)
            assert len(proposal.ids) <= min(k, m) and proposal.end and proposal.q == []
            if proposal.ids:
                start = proposal.match
                assert start is not None
                assert proposal.ids == context[start : start + len(proposal.ids)]
                assert context[start - n : start] == context[-n:]
            passed = data.draw(st.integers(0, len(proposal.ids)))
            drafter.observe(ids(text[: at + 1]), proposal, passed)


@given(names, tokens, tokens)
def test_a_reset_drafter_is_a_new_one(name: str, before: list[int], text: list[int]) -> None:
    drafter = DRAFTERS[name](2, 3, 1)
    answer(drafter, before, 1)
    drafter.reset()
    assert answer(drafter, text, 1) == answer(DRAFTERS[name](2, 3, 1), text, 1)


@given(tokens)
def test_min_hits_does_nothing_to_ngram_map_k(text: list[int]) -> None:
    make = DRAFTERS["ngram-map-k"]
    assert answer(make(1, 2, 1), text, 1) == answer(make(1, 2, 9), text, 1)


TEXT = [9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2]


def test_ngram_map_k_drafts_as_much_as_passed_the_last_time() -> None:
    drafter = begun(NgramMapK(NgramMapKParams(2, 6)), TEXT)
    first = drafter.propose(ids(TEXT), 64)
    assert (first.ids, first.match, first.end) == ([3, 4, 5, 6, 7, 8], 3, "size_m")
    cut = drafter.propose(ids(TEXT), 3)
    assert (cut.ids, cut.end) == ([3, 4, 5], "answer at its length limit")
    drafter.observe(ids([*TEXT, 3, 4, 1, 2]), cut, 2)
    again = drafter.propose(ids([*TEXT, 3, 4, 1, 2]), 64)
    assert (again.ids, again.end) == ([3, 4], "only this many were accepted last time")
    drafter.observe(ids([*TEXT, 3, 4, 1, 2]), Proposal(), 0)  # another drafter's draft was verified
    assert drafter.propose(ids([*TEXT, 3, 4, 1, 2]), 64).ids == [3, 4]
    drafter.observe(ids([*TEXT, 3, 4, 1, 2, 7, 1, 2]), again, 0)
    never = drafter.propose(ids([*TEXT, 3, 4, 1, 2, 7, 1, 2]), 64)
    assert (never.ids, never.end) == ([], "nothing was accepted last time")


def test_ngram_map_k4v_waits_for_min_hits() -> None:
    drafter = begun(NgramMapK4v(NgramMapK4vParams(2, 6, 2)), TEXT)
    assert drafter.propose(ids(TEXT), 64).end == "min_hits"
    longer = [*TEXT, 7, 1, 2]
    assert drafter.propose(ids(longer), 64).ids == [3, 4, 5, 6, 7, 8]


def test_ngram_map_k4v_wants_one_continuation_to_stand_out() -> None:
    text = [9, 1, 2, 3, 1, 2, 4, 5, 6, 1, 2]
    drafter = begun(NgramMapK4v(NgramMapK4vParams(2, 1)), text)
    proposal = drafter.propose(ids(text), 64)
    assert (proposal.ids, proposal.end) == ([], "no continuation stands out")
    # llama.cpp counts the match again with every draft: it wins the next time.
    drafter.observe(ids([*text, 7, 1, 2]), proposal, 0)
    assert drafter.propose(ids([*text, 7, 1, 2]), 64).ids == [4]


def test_short_texts_and_new_ones_have_no_match() -> None:
    drafter = begun(NgramMapK(NgramMapKParams(2, 6)), TEXT[2:])
    assert drafter.propose(ids(TEXT[2:]), 64).end == "the text is too short"
    new = list(range(20))
    assert begun(drafter, new).propose(ids(new), 64).end == "no match"


def test_the_grammar_has_llama_cpps_keys_and_defaults() -> None:
    spec = StrategySpec.parse("ngram-map-k:size_n=3:min_hits=2+ngram-map-k4v:size_m=4:min_hits=2")
    assert [part.params for part in spec.parts] == [NgramMapKParams(3, 48, 2), NgramMapK4vParams(12, 4, 2)]
    assert NgramMapKParams() == NgramMapKParams(12, 48, 1)
    assert NgramMapK4vParams() == NgramMapK4vParams(12, 48, 1)


@pytest.mark.parametrize(
    "strategy",
    [
        "ngram-simple:size_n=2:size_m=6",
        "ngram-map-k:size_n=2:size_m=6",
        "ngram-map-k4v:size_n=1:size_m=3",
        "ngram-simple:size_n=3:size_m=4+ngram-map-k:size_n=2:size_m=4+ngram-map-k4v:size_n=1:size_m=2",
    ],
)
def test_an_answer_is_the_baselines(demo_engine: Engine, baselines: Baselines, strategy: str) -> None:
    prompt = "Say it twice: a draft model is a small model, a draft model is a small model."
    request = GenerationRequest(messages=(Message("user", prompt),), max_tokens=96, ignore_eos=True)
    trace = baselines.check(demo_engine, request, strategy)
    verdicts = {token.verdict for round in trace.rounds for token in round.drafted}
    assert verdicts >= {Verdict.ACCEPTED, Verdict.REJECTED}
