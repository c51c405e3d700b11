"""ngram-simple: what llama.cpp drafted for the same calls, and its scan written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from app.engine.drafters.base import Proposal
from app.engine.drafters.ngram_simple import NgramSimple, NgramSimpleParams
from app.engine.strategy import StrategySpec
from tests.ngram_parity import DRAFTERS, SURROUNDINGS, Scenario, first_difference, scenarios

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=60)


def ids(text: list[int]) -> np.ndarray:
    return np.array(text, np.int32)


def begun(text: list[int], n: int, m: int) -> NgramSimple:
    drafter = NgramSimple(NgramSimpleParams(n, m))
    drafter.begin(ids(text), SURROUNDINGS)
    return drafter


def scan(text: list[int], n: int, m: int) -> list[int]:
    """The lines of common_ngram_simple_draft."""
    before = text[:-1]
    length = len(before)
    if length <= n + m + 1:
        return []
    for place in range(length - n - 1, 0, -1):
        if before[place : place + n] == text[-n:]:
            copied = before[place + n : place + n + m]
            return copied if len(copied) >= n else []
    return []


def test_drafts_are_llama_cpps() -> None:
    alone = [
        scenario
        for scenario in scenarios()
        if scenario.drafters[0][0] == "ngram-simple" and len(scenario.drafters) == 1
    ]
    assert len(alone) > 20
    for scenario in alone:
        assert first_difference(scenario) == ""


def test_the_comparison_sees_a_draft_of_one_token_more() -> None:
    class Longer(NgramSimple):
        @override
        def propose(self, context: np.ndarray, k: int) -> Proposal:
            proposal = super().propose(context, k)
            if proposal.match is not None and len(proposal.ids) < k:
                proposal.ids.append(int(context[proposal.match + len(proposal.ids)]))
            return proposal

    def parts(scenario: Scenario) -> bool:
        make = {**DRAFTERS, "ngram-simple": lambda n, m, hits: Longer(NgramSimpleParams(n, m, hits))}
        return first_difference(scenario, make) != ""

    assert any(map(parts, scenarios()))


@given(tokens, st.lists(tokens, max_size=3), st.integers(1, 4), st.integers(1, 6), st.integers(1, 8))
def test_drafts_are_those_of_a_plain_scan(
    text: list[int], more: list[list[int]], n: int, m: int, k: int
) -> None:
    drafter = begun(text, n, m)
    for added in [[], *more]:
        text = text + added
        proposal = drafter.propose(ids(text), k)
        assert proposal.ids == scan(text, n, m)[:k]
        assert proposal.end and proposal.q == []
        drafter.observe(ids(text), proposal, 0)


@given(tokens, tokens)
def test_another_answer_starts_from_its_own_text_alone(before: list[int], text: list[int]) -> None:
    drafter = begun(before, 2, 3)
    drafter.begin(ids(text), SURROUNDINGS)
    assert drafter.propose(ids(text), 8) == begun(text, 2, 3).propose(ids(text), 8)
    drafter.reset()
    drafter.begin(ids(before), SURROUNDINGS)
    assert drafter.propose(ids(before), 8) == begun(before, 2, 3).propose(ids(before), 8)


@pytest.mark.parametrize(
    ("text", "k", "count", "why"),
    [
        ([9, 1, 2, 3], 8, 0, "the text is too short"),
        ([9, 1, 2, 3, 4, 5, 6, 7, 8], 8, 0, "no match"),
        ([1, 2, 3, 4, 5, 6, 7, 8, 1, 2], 8, 0, "no match"),  # at the very start
        ([9, 1, 2, 3, 4, 5, 6, 1, 2], 8, 3, "size_m"),
        ([9, 1, 2, 3, 4, 5, 6, 1, 2], 2, 2, "answer at its length limit"),
        ([9, 8, 7, 6, 5, 1, 2, 3, 1, 2], 8, 2, "end of the text"),
        ([9, 8, 7, 6, 5, 4, 1, 2, 1, 2], 8, 0, "the match leaves too little to copy"),
    ],
)
def test_why_a_draft_ended_is_said(text: list[int], k: int, count: int, why: str) -> None:
    proposal = begun(text, 2, 3).propose(ids(text), k)
    assert (len(proposal.ids), proposal.end) == (count, why)


def test_the_grammar_has_llama_cpps_keys_and_defaults() -> None:
    spec = StrategySpec.parse("ngram-simple:size_n=3:size_m=4:min_hits=2")
    assert spec.parts[0].params == NgramSimpleParams(3, 4, 2)
    assert NgramSimpleParams() == NgramSimpleParams(12, 48, 1)
