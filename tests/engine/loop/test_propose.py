"""What a round drafts: who is asked, and why a draft ended where it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import override

from app.engine.drafters.base import Drafter, Proposal
from app.engine.lengths.base import RIDE_ALONG, FixedLength
from app.engine.loop.generate import draft_room
from app.engine.loop.propose import Budget, propose

TRUTH = np.arange(5, dtype=np.int32)


class Says(Drafter):
    """Proposes so many tokens, and says why no more."""

    def __init__(self, tokens: int, end: str, fault: str = "", behind: int = 0) -> None:
        self._tokens, self._end, self._fault = tokens, end, fault
        self.behind = behind  # tokens that it has not read yet

    @override
    def unread(self, context: np.ndarray) -> int:
        return self.behind

    @override
    def read(self, context: np.ndarray) -> Iterator[tuple[int, int]]:
        self.behind = 0
        yield 0, 0

    @override
    def propose(self, context: np.ndarray, k: int) -> Proposal:
        return Proposal(ids=[7] * min(k, self._tokens), end=self._end, fault=self._fault)


@pytest.mark.parametrize(
    ("first", "second", "end"),
    [
        (Says(0, "no match"), Says(2, "n_max"), "n_max"),
        (Says(0, "it broke", "it broke"), Says(2, "n_max"), "it broke; n_max"),
        (Says(0, "it broke", "it broke"), Says(2, ""), "it broke"),
        (Says(0, "it broke", "it broke"), Says(0, "no match"), "it broke"),
        (Says(0, "no match"), Says(0, "no match"), "no match"),
        (Says(0, "no match"), Says(0, ""), "no strategy found a draft"),
    ],
)
def test_why_a_draft_of_two_ended(first: Says, second: Says, end: str) -> None:
    draft = propose([("first", first), ("second", second)], FixedLength(), TRUTH, Budget(9))
    assert draft.proposal.end == end
    assert draft.asked == ("first", "second")


@pytest.mark.parametrize("tokens", [0, 3])
def test_what_allows_no_more_is_said(tokens: int) -> None:
    drafters = [("one", Says(9, "answer at its length limit"))]
    draft = propose(drafters, FixedLength(), TRUTH, Budget(tokens, "the context is full"))
    assert (len(draft.proposal.ids), draft.proposal.end) == (tokens, "the context is full")
    assert draft.asked == (("one",) if tokens else ())


@pytest.mark.parametrize(
    ("max_tokens", "n_ctx", "n_batch", "alike", "room"),
    [
        (8, 100, 100, 0, Budget(7, "answer at its length limit")),
        (99, 50, 100, 0, Budget(10, "the target's context is full")),
        (99, 40, 100, 3, Budget(0, "the target's context is full")),
        (99, 100, 1, 0, Budget(0, "batch_size allows no more")),
        (99, 100, 100, 3, Budget(2, "longer ones may change the text by rounding")),
        (99, 999, 100, 9, Budget(4, "further on, the text may be computed differently")),
    ],
)
def test_what_limits_a_round(max_tokens: int, n_ctx: int, n_batch: int, alike: int, room: Budget) -> None:
    target = SimpleNamespace(n_ctx=n_ctx, n_batch=n_batch)
    truth = SimpleNamespace(length=40 if alike < 9 else 252)
    run = SimpleNamespace(max_tokens=max_tokens, position=0, target=target, truth=truth, alike=alike)
    assert draft_room(run) == room  # type: ignore[arg-type]


def test_a_strategys_own_limit_is_its_reason() -> None:
    draft = propose([("one", Says(3, "n_max"))], FixedLength(), TRUTH, Budget(3, "the context is full"))
    assert draft.proposal.end == "n_max"


class Lets(FixedLength):
    """Skips the round, or lets no strategy draft in it."""

    def __init__(self, sits_out: bool, looks_at: str = "") -> None:
        self._sits_out, self._looks_at = sits_out, looks_at

    @override
    def sit_out(self, truth: NDArray[np.int32]) -> bool:
        return self._sits_out

    @override
    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        return 0 if name != "second" else room

    @override
    def look(self, name: str, room: int) -> int:
        return 2 if name == self._looks_at else 0


def test_a_length_observes_only_the_rounds_that_it_decided_on() -> None:
    drafters = [("one", Says(2, "n_max"))]
    assert propose(drafters, Lets(sits_out=False), TRUTH, Budget(9)).attempts == []
    assert propose(drafters, Lets(sits_out=True), TRUTH, Budget(9)).attempts is None
    assert propose(drafters, FixedLength(), TRUTH, Budget(0)).attempts is None
    assert propose([], FixedLength(), TRUTH, Budget(9)).attempts is None


def test_what_broke_where_a_proposal_was_only_looked_at_is_told() -> None:
    broken, length = ("first", Says(0, "it broke", "it broke")), Lets(sits_out=False, looks_at="first")
    draft = propose([broken], length, TRUTH, Budget(9))
    assert (draft.proposal.end, draft.asked) == ("it broke", ())
    draft = propose([broken, ("second", Says(2, "n_max"))], length, TRUTH, Budget(9))
    assert (draft.name, draft.proposal.end) == ("second", "it broke; n_max")


def test_a_looked_at_proposal_is_learned_from_and_not_verified() -> None:
    draft = propose([("first", Says(2, "n_max"))], Lets(sits_out=False, looks_at="first"), TRUTH, Budget(9))
    assert (draft.proposal.ids, draft.proposal.end, draft.asked) == ([], "not worth its cost", ())
    assert draft.attempts is not None
    assert [(attempt.name, attempt.looked, attempt.ids) for attempt in draft.attempts] == [
        ("first", True, [7, 7])
    ]


class Takes(FixedLength):
    """Lets every strategy draft a given number of tokens; a draft model reads the prompt when first asked."""

    lazy = True
    reason = "no more pays"

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    @override
    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        return self._tokens


@pytest.mark.parametrize(("proposed", "end"), [(3, "no more pays"), (2, "n_max")])
def test_a_draft_of_the_chosen_length_ended_for_the_rules_reason(proposed: int, end: str) -> None:
    draft = propose([("one", Says(proposed, "n_max"))], Takes(3), TRUTH, Budget(9))
    assert (len(draft.proposal.ids), draft.proposal.end) == (proposed, end)


@pytest.mark.parametrize(("unread", "left"), [(RIDE_ALONG, RIDE_ALONG), (RIDE_ALONG + 1, 0)])
def test_a_long_text_is_read_and_timed_before_the_draft(unread: int, left: int) -> None:
    drafter = Says(2, "n_max", behind=unread)
    draft = propose([("one", drafter)], Takes(2), TRUTH, Budget(9))
    assert draft.attempts is not None
    assert (draft.attempts[0].unread, drafter.behind) == (unread, left)
    assert (draft.reading > 0) == (left == 0), "what rides along with the first step is not told apart"
