"""suffix: its index against plain counting over the whole text, and its memory between answers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine import Engine
from app.engine.drafters.base import Proposal, RunContext
from app.engine.drafters.suffix import NOWHERE, SEAM, EarlierAnswers, Suffix, SuffixIndex, SuffixParams
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.types import Sampling
from tests.answers import answer

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=40)
short = st.lists(st.integers(0, 2), min_size=1, max_size=6)
settings_of = st.builds(
    SuffixParams,
    n_max=st.integers(1, 9),
    p_min=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]),
    max_depth=st.integers(1, 6),
    max_spec_factor=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    max_spec_offset=st.sampled_from([-1.0, 0.0, 2.0]),
    max_cached_tokens=st.integers(0, 40),
)


@dataclass
class Counting:
    """The same drafter by brute force: every question searches every place of every text."""

    params: SuffixParams
    conversation: list[int] = field(default_factory=list)
    younger: list[int] = field(default_factory=list)
    older: list[int] = field(default_factory=list)

    def finish(self, answer: list[int]) -> None:
        room = self.params.max_cached_tokens // 2 - 1
        if room < 1:
            return
        answer = [*answer[-room:], SEAM]
        if len(self.younger) + len(answer) > room + 1:
            self.older, self.younger = self.younger, []
        self.younger = self.younger + answer

    def propose(self, k: int) -> list[int]:
        best: list[int] = []
        best_score = 0.0
        for text in (self.conversation, self.younger, self.older):
            for length in range(min(self.params.max_depth, len(self.conversation)), 0, -1):
                ids, score = self._follow(text, self.conversation[-length:], k)
                if score > best_score:
                    best, best_score = ids, score
        return best

    def _follow(self, text: list[int], pattern: list[int], k: int) -> tuple[list[int], float]:
        params = self.params
        allowed = int(len(pattern) * params.max_spec_factor + params.max_spec_offset + 1e-6)
        ids: list[int] = []
        score, probability = 0.0, 1.0
        while len(ids) < min(allowed, params.n_max, k):
            what = (pattern + ids)[-params.max_depth :]
            after = [text[end] for end in range(len(what), len(text)) if text[end - len(what) : end] == what]
            if not after:
                break
            last = {token: at for at, token in enumerate(after)}
            token = max(last, key=lambda candidate: (after.count(candidate), last[candidate]))
            probability *= after.count(token) / len(after)
            if token == SEAM or probability < params.p_min:
                break
            ids.append(token)
            score += probability
        return ids, score


def ids(text: list[int]) -> np.ndarray:
    return np.array(text, np.int32)


def around(text: list[int]) -> RunContext:
    return RunContext(Sampler(Sampling()), Draws(0), len(text), frozenset())


def begun(text: list[int], **params: float) -> Suffix:
    drafter = Suffix(SuffixParams(**params))  # type: ignore[arg-type]
    drafter.begin(ids(text), around(text))
    return drafter


def answered(drafter: Suffix, prompt: list[int], answer: list[int]) -> None:
    drafter.begin(ids(prompt), around(prompt))
    drafter.observe(ids(prompt + answer), Proposal(), 0)
    drafter.finish(ids(prompt + answer))


@settings(max_examples=300)
@given(tokens, settings_of, st.integers(1, 12))
def test_proposals_are_those_of_plain_counting(text: list[int], params: SuffixParams, k: int) -> None:
    drafter = Suffix(params)
    drafter.begin(ids(text), around(text))
    proposal = drafter.propose(ids(text), k)
    assert proposal.ids == Counting(params, text).propose(k)
    assert proposal.end and not proposal.q
    if proposal.match is not None:
        assert text[proposal.match : proposal.match + len(proposal.ids)] == proposal.ids
    assert (proposal.match is not None) == (0 < len(proposal.ids) <= params.max_depth)


@settings(max_examples=150)
@given(
    settings_of,
    st.lists(st.tuples(tokens, st.booleans(), st.lists(short, max_size=5)), min_size=1, max_size=5),
)
def test_a_row_of_chats_is_counted_alike(
    params: SuffixParams, chats: list[tuple[list[int], bool, list[list[int]]]]
) -> None:
    """Prompts that continue the text or not, answers in rounds, and earlier answers."""
    drafter, counting = Suffix(params), Counting(params)
    for prompt, goes_on, emitted in chats:
        text = counting.conversation + prompt if goes_on else prompt
        counting.conversation = text
        drafter.begin(ids(text), around(text))
        start = len(text)
        assert drafter.propose(ids(text), 9).ids == counting.propose(9)
        for more in emitted:
            text = text + more
            counting.conversation = text
            drafter.observe(ids(text), Proposal(), 0)
            assert drafter.propose(ids(text), 9).ids == counting.propose(9)
        drafter.finish(ids(text))
        if text[start:]:
            counting.finish(text[start:])


@given(tokens, st.integers(1, 6))
def test_the_end_of_the_text_and_a_walk_to_it_are_one_place(text: list[int], depth: int) -> None:
    index = SuffixIndex(depth)
    index.extend(text)
    place = NOWHERE
    for token in text[-depth:]:
        place = index.step(place, token)
    assert place == index.end
    assert index.step(place, 7) == NOWHERE


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_substring_of_every_short_text_is_counted(depth: int) -> None:
    for text in itertools.product((0, 1), repeat=9):
        index = SuffixIndex(depth)
        index.extend(text)
        ends: dict[tuple[int, ...], list[int]] = {}  # substring -> where its occurrences end
        for end in range(1, len(text) + 1):
            for start in range(max(0, end - depth - 1), end):
                ends.setdefault(text[start:end], []).append(end)
        for what, where in ends.items():
            state = 0
            for token in what:
                state = index.following[state][token]
            assert (index.seen[state], index.latest((state, len(what)))) == (len(where), where[-1] - 1)
            if len(what) <= depth:
                assert index.followed[state] == sum(end < len(text) for end in where)


def test_the_most_frequent_continuation_is_drafted_not_the_latest() -> None:
    text = [1, 2, 8, 1, 2, 8, 1, 2, 9, 1, 2]
    assert begun(text, max_spec_factor=0.5).propose(ids(text), 9).ids == [8]
    # Of equals, the latest.
    text = [1, 2, 8, 1, 2, 9, 1, 2]
    assert begun(text, max_spec_factor=0.5).propose(ids(text), 9).ids == [9]


def test_a_longer_match_allows_a_longer_draft() -> None:
    line = list(range(10, 30))
    lengths = []
    for matched in (1, 2, 4, 8):
        text = [*line, 99, *line[:matched]]
        proposal = begun(text).propose(ids(text), 64)
        assert proposal.end == "as long as the match allows"
        lengths.append(len(proposal.ids))
    assert lengths == [1, 2, 4, 8]
    text = [*line, 99, *line[:4]]
    assert len(begun(text, max_spec_factor=2.0, max_spec_offset=1.0).propose(ids(text), 64).ids) == 9


def test_why_a_draft_ended_is_said() -> None:
    line = list(range(10, 20))
    text = [*line, 99, *line[:6]]
    assert begun(text, n_max=3).propose(ids(text), 64).end == "n_max"
    assert begun(text).propose(ids(text), 2).end == "answer at its length limit"
    assert begun(text).propose(ids(text), 64).end == "as long as the match allows"
    assert begun(line).propose(ids(line), 64).end == "no match"
    unsure = [1, 2, 5, 1, 2, 6, 1, 2, 7, 1, 2]
    proposal = begun(unsure, p_min=0.4).propose(ids(unsure), 64)
    assert (proposal.ids, proposal.end) == ([], "p_min")


def test_a_draft_goes_on_through_its_own_repetition() -> None:
    text = [1, 2] * 20
    proposal = begun(text, max_depth=8, max_spec_factor=2.0, n_max=12).propose(ids(text), 64)
    assert proposal.ids == [1, 2] * 6
    assert proposal.match is None  # longer than what is compared, so perhaps not contiguous in the text


def test_the_end_of_the_text_ends_a_draft() -> None:
    text = [1, 2, 3, 3]
    proposal = begun(text, max_spec_offset=4.0).propose(ids(text), 64)
    assert (proposal.ids, proposal.match, proposal.end) == ([3], 3, "end of the text")


def test_earlier_answers_are_used_in_another_chat() -> None:
    drafter = Suffix(SuffixParams())
    answered(drafter, [50, 51], [1, 2, 3, 4, 5, 6, 7, 8])
    prompt = [60, 1, 2, 3]
    drafter.begin(ids(prompt), around(prompt))
    proposal = drafter.propose(ids(prompt), 64)
    assert (proposal.ids, proposal.match) == ([4, 5, 6], None)
    drafter.observe(ids([*prompt, 4, 5, 6, 7]), proposal, 3)
    proposal = drafter.propose(ids([*prompt, 4, 5, 6, 7]), 64)
    assert (proposal.ids, proposal.end) == ([8], "end of the earlier answer")
    # Prompts are not answers.
    other = [70, 50]
    drafter.begin(ids(other), around(other))
    assert drafter.propose(ids(other), 64).end == "no match"


def test_the_better_of_conversation_and_earlier_answers_is_drafted_from() -> None:
    drafter = Suffix(SuffixParams(max_spec_offset=2.0))
    answered(drafter, [50], [1, 2, 3, 3, 3])
    unsure = [1, 2, 7, 1, 2, 8, 1, 2, 9, 1, 2]  # one of three in this text, certain in the earlier answer
    drafter.begin(ids(unsure), around(unsure))
    assert drafter.propose(ids(unsure), 64).ids == [3, 3, 3]
    certain = [1, 2, 7, 7, 7, 1, 2]  # equally good: this conversation has precedence
    drafter.begin(ids(certain), around(certain))
    proposal = drafter.propose(ids(certain), 64)
    assert (proposal.ids[:3], proposal.match) == ([7, 7, 7], 2)


def test_reset_forgets_conversation_and_answers() -> None:
    drafter = Suffix(SuffixParams())
    answered(drafter, [1, 2], [3, 4, 5, 6, 7])
    drafter.reset()
    prompt = [8, 3, 4]
    drafter.begin(ids(prompt), around(prompt))
    assert drafter.propose(ids(prompt), 64).end == "no match"


def test_an_edited_conversation_leaves_nothing_behind() -> None:
    drafter = begun([1, 2, 3, 4, 5, 1, 2], max_cached_tokens=0)
    edited = [1, 2, 9, 4, 8, 1, 2]
    drafter.begin(ids(edited), around(edited))
    assert drafter.propose(ids(edited), 64).ids == [9, 4]
    regenerated = edited[:5]
    drafter.begin(ids(regenerated), around(regenerated))
    assert drafter.propose(ids(regenerated), 64).end == "no match"


def test_an_answer_that_never_began_is_not_kept() -> None:
    """A generation stopped while its prompt is read finishes without having begun."""
    drafter = Suffix(SuffixParams())
    drafter.finish(ids([1, 2, 3]))
    answered(drafter, [9], [8, 8])
    drafter.finish(ids([9, 8, 8, 1, 2, 3]))
    assert [index.size for index in drafter.earlier.indices] == [3, 0]


@given(st.lists(st.integers(0, 70), max_size=30), st.integers(0, 100))
def test_earlier_answers_stay_within_their_bound(lengths: list[int], bound: int) -> None:
    store = EarlierAnswers(max_depth=4, max_tokens=bound)
    for at, length in enumerate(lengths):
        store.add([at] * length)
        assert sum(index.size for index in store.indices) <= bound
        assert all(len(index.following) <= 2 * index.size + 1 for index in store.indices)
        if length and bound >= 4:  # the newest is always there
            assert store.indices[0].step(NOWHERE, at) != NOWHERE


@pytest.mark.parametrize("alphabet", [1, 2, 50, 50_000])
def test_states_and_transitions_stay_few(alphabet: int) -> None:
    """The memory for texts that repeat always, often, sometimes and never."""
    text = np.random.default_rng(0).integers(0, alphabet, 4000).tolist()
    index = SuffixIndex(24)
    index.extend(text)
    assert len(index.following) <= 2 * len(text)
    assert sum(map(len, index.following)) <= 3 * len(text)


def test_an_answer_that_is_asked_for_again_is_drafted_from_the_one_before(engine: Engine) -> None:
    first, again, cold = (
        answer(engine, strategy="suffix", max_tokens=48, ignore_eos=True, cold=cold)
        for cold in (False, False, True)
    )
    assert [round.emitted for round in again.rounds] != [round.emitted for round in first.rounds]
    assert again.totals is not None and first.totals is not None
    assert again.totals.text == first.totals.text
    assert sum(round.accepted for round in again.rounds) > 24 > sum(round.accepted for round in first.rounds)
    assert [len(round.emitted) for round in cold.rounds] == [len(round.emitted) for round in first.rounds]
