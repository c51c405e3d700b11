"""prompt-lookup: its index against a plain scan of the text."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.engine.drafters.base import Proposal, RunContext
from app.engine.drafters.prompt_lookup import PromptLookup, PromptLookupParams
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.types import Sampling

SURROUNDINGS = RunContext(Sampler(Sampling()), Draws(0), 0, frozenset())
tokens = st.lists(st.integers(0, 3), min_size=1, max_size=40)


def scan(text: list[int], max_n: int, wanted: int) -> tuple[list[int], int | None]:
    """What followed the latest earlier occurrence of the text's longest repeated suffix."""
    for n in range(max_n, 0, -1):
        for start in range(len(text) - n - 1, -1, -1):
            if text[start : start + n] == text[-n:]:
                return text[start + n : start + n + wanted], start + n
    return [], None


def ids(text: list[int]) -> np.ndarray:
    return np.array(text, np.int32)


def begun(text: list[int], **params: int) -> PromptLookup:
    drafter = PromptLookup(PromptLookupParams(**params))
    drafter.begin(ids(text), SURROUNDINGS)
    return drafter


@given(tokens, st.integers(1, 5), st.integers(1, 6), st.integers(1, 6))
def test_proposals_are_those_of_a_plain_scan(text: list[int], max_n: int, wanted: int, k: int) -> None:
    drafter = begun(text, max_ngram_size=max_n, num_pred_tokens=wanted)
    proposal = drafter.propose(ids(text), k)
    expected, match = scan(text, max_n, min(k, wanted))
    assert (proposal.ids, proposal.match) == (expected, match)
    assert proposal.q == [] and not proposal.thoughts.draft_p
    assert proposal.end


@given(tokens, st.lists(tokens, max_size=6), st.integers(1, 4))
def test_learning_as_it_goes_is_learning_at_once(text: list[int], more: list[list[int]], max_n: int) -> None:
    live = begun(text, max_ngram_size=max_n)
    for added in more:
        text = text + added
        live.observe(ids(text), Proposal(), 0)
        at_once = begun(text, max_ngram_size=max_n)
        assert live.propose(ids(text), 8) == at_once.propose(ids(text), 8)


def test_the_longest_match_wins_and_of_these_the_latest() -> None:
    #       0  1  2  3  4  5  6  7  8  9
    text = [1, 2, 7, 9, 2, 8, 1, 2, 6, 1, 2]
    assert begun(text, max_ngram_size=2, num_pred_tokens=3).propose(ids(text), 9).ids == [6, 1, 2]
    assert begun(text, max_ngram_size=1, num_pred_tokens=1).propose(ids(text), 9).match == 8
    longer = [5, 1, 2, 7, 1, 2, 6, 5, 1, 2]
    assert begun(longer, max_ngram_size=3).propose(ids(longer), 2).ids == [7, 1]


def test_why_a_draft_ended_is_said() -> None:
    text = [1, 2, 3, 4, 5, 6, 1]
    assert begun(text, num_pred_tokens=2).propose(ids(text), 8).end == "num_pred_tokens"
    assert begun(text, num_pred_tokens=8).propose(ids(text), 2).end == "answer at its length limit"
    assert begun(text, num_pred_tokens=2).propose(ids(text), 2).end == "num_pred_tokens"
    assert begun(text, num_pred_tokens=8).propose(ids(text), 6).end == "answer at its length limit"
    assert begun(text, num_pred_tokens=8).propose(ids(text), 7).end == "end of the text"
    assert begun(text, num_pred_tokens=8).propose(ids(text), 8).end == "end of the text"
    assert begun([1, 2, 3]).propose(ids([1, 2, 3]), 8).end == "no match"


def test_another_answer_starts_from_its_own_text_alone() -> None:
    drafter = begun([1, 2, 3, 1])
    drafter.begin(ids([4, 5, 1]), SURROUNDINGS)
    assert drafter.propose(ids([4, 5, 1]), 4).ids == []
    drafter.reset()
    drafter.begin(ids([6, 7, 6]), SURROUNDINGS)
    assert drafter.propose(ids([6, 7, 6]), 4).ids == [7, 6]
