"""What the recorded alternatives say: ranks in the draft, the target's entropy."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.engine.engine import Engine
from app.engine.record.alternative_stats import AlternativeStatistics, entropy
from app.engine.types import Alternatives, Round
from tests.answers import answer
from tests.engine.record.test_stats import make_round


def top(*p: float, ids: tuple[int, ...] | None = None) -> Alternatives:
    ids = ids or tuple(range(len(p)))
    return Alternatives(ids, (b"x",) * len(ids), p or (0.1,) * len(ids))


def test_entropy_counts_all_other_tokens_as_one() -> None:
    assert entropy(top(0.5, 0.5)) == (1.0, 0.0)
    assert entropy(top(0.5, 0.25)) == (1.5, 0.25)
    assert entropy(top(1.0, 0.0)) == (0.0, 0.0)


@given(st.lists(st.floats(1e-6, 1), min_size=11, max_size=40), st.integers(1, 10))
def test_entropy_is_never_more_than_that_of_all_tokens(weights: list[float], kept: int) -> None:
    shares = sorted((weight / sum(weights) for weight in weights), reverse=True)
    bits, rest = entropy(top(*shares[:kept]))
    assert bits <= -sum(share * log2(share) for share in shares) + 1e-9
    assert rest == pytest.approx(sum(shares[kept:]), abs=1e-9)


def test_a_rank_is_the_emitted_tokens_place_in_the_draft() -> None:
    # Token 7 is emitted everywhere: first choice, third choice, not among those recorded, a bonus.
    round = replace(
        make_round(0, 3, 3), draft_top=(top(ids=(7, 1, 2)), top(ids=(1, 2, 7)), top(ids=(1, 2, 3)))
    )
    statistics = AlternativeStatistics.of([round])
    assert (statistics.ranks, statistics.unranked, statistics.ranked) == ([1, 0, 1], 1, 3)
    assert [statistics.held_by(width) for width in (1, 2, 3, 10)] == [1 / 3, 1 / 3, 2 / 3, 2 / 3]


def test_places_behind_a_rejection_have_no_rank() -> None:
    round = replace(make_round(0, 4, 1), draft_top=(top(ids=(7,)),) * 4)
    assert (
        AlternativeStatistics.of([round]).ranked == 2
    )  # the accepted token, and the one in the rejected place


def test_rows_are_counted_by_entropy_with_what_they_accepted() -> None:
    sure, coin, wide = top(1.0), top(0.5, 0.5), top(*(0.1,) * 10)
    rounds = [
        replace(make_round(0, 2, 1), target_top=(sure, wide)),  # accepted, rejected
        replace(make_round(1, 1, 1), target_top=(coin, coin)),  # accepted, bonus
    ]
    statistics = AlternativeStatistics.of(rounds)
    assert statistics.entropies == [1, 0, 2, 0, 0, 0, 1]
    assert statistics.judged_by_entropy == [1, 0, 1, 0, 0, 0, 1]
    assert statistics.accepted_by_entropy == [1, 0, 1]
    assert statistics.target_entropy == pytest.approx((0 + log2(10) + 1 + 1) / 4)


def test_blocks_judge_no_single_row() -> None:
    block = make_round(0, 2, 2)
    drafted = (block.drafted[0], replace(block.drafted[1], h=0.9))
    statistics = AlternativeStatistics.of([replace(block, drafted=drafted, target_top=(top(1.0),) * 3)])
    assert statistics.rows == 3 and statistics.judged_by_entropy == []


def test_without_alternatives_there_is_nothing() -> None:
    statistics = AlternativeStatistics.of([make_round(0, 2, 1)])
    assert statistics == AlternativeStatistics.pooled([]) == AlternativeStatistics()
    assert statistics.target_entropy is statistics.target_rest is None
    assert statistics.held_by(1) is None


@given(st.lists(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=5), max_size=3))
def test_pooled_is_the_fold_over_all_rounds(several: list[list[tuple[int, int]]]) -> None:
    def made(length: int, accepted: int) -> Round:
        round = make_round(0, length, min(accepted, length))
        tops = top(0.5, 0.25, ids=(accepted + 3, 7))
        return replace(round, draft_top=(tops,) * length, target_top=(tops,) * len(round.emitted))

    answers = [[made(*shape) for shape in shapes] for shapes in several]
    pooled = AlternativeStatistics.pooled(map(AlternativeStatistics.of, answers))
    assert pooled == AlternativeStatistics.of([round for rounds in answers for round in rounds])


def test_a_draft_by_argmax_is_accepted_only_at_rank_one(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple:n_max=4", max_tokens=40, ignore_eos=True)
    statistics = AlternativeStatistics.of(trace.rounds)
    accepted = sum(round.accepted for round in trace.rounds)
    assert statistics.ranks[0] == accepted > 0
    assert statistics.ranked == accepted + sum(round.rejected for round in trace.rounds)
    assert statistics.rows == 40
