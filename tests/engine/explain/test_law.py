"""The law of a judged place: its shares add up, and what is drawn by it tends to p."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from app.base.paths import resource_folder
from app.engine.explain.decision import PlaceLaw, law_of, place_law, residual_of
from app.engine.record.trace import read_trace
from app.lessons.lesson import lesson_files, trace_file
from app.ui.lessons.toy import BLOCK_P, BLOCK_Q, pair_law, with_share

DRAWS = 4_000
FALSE_ALARM = 1e-6


def distributions(size: int) -> st.SearchStrategy[list[float]]:
    weights = st.lists(st.integers(0, 100), min_size=size, max_size=size).filter(any)
    return weights.map(lambda chosen: [weight / sum(chosen) for weight in chosen])


def tends_to_p(law: PlaceLaw, draws: int = DRAWS) -> bool:
    """Whether what comes may be drawn from p; what p never gives must not come."""
    tally = law.tally(seed=7)
    tally.draw(draws)
    assert tally.total == draws
    came = tally.accepted + tally.replaced
    whole = sum(share.p for share in law.shares)
    expected = [share.p / whole * draws for share in law.shares]
    possible = [at for at, count in enumerate(expected) if count > 1e-3 * draws / 1_000]
    rare = sum(came[at] for at in range(len(came)) if at not in possible)
    assert rare <= 5 * draws / 1_000
    if len(possible) < 2:
        return True
    seen = [int(came[at]) for at in possible]
    scale = sum(seen) / sum(expected[at] for at in possible)
    return bool(stats.chisquare(seen, [expected[at] * scale for at in possible]).pvalue > FALSE_ALARM)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(2, 6).flatmap(lambda size: st.tuples(distributions(size), distributions(size))))
def test_shares_add_up_and_draws_tend_to_p(both: tuple[list[float], list[float]]) -> None:
    law = law_of(*both)
    for share in law.shares:
        assert share.accepted + share.uncovered == pytest.approx(share.p)
        assert share.accepted + share.refused == pytest.approx(share.q)
        assert min(share.uncovered, share.refused) == pytest.approx(0)
    assert sum(share.uncovered for share in law.shares) == pytest.approx(1 - law.alpha)
    assert tends_to_p(law)
    fewer = law.first([0], 2)
    assert fewer.alpha == pytest.approx(law.alpha, abs=1e-3)
    assert tends_to_p(fewer)


def test_the_laws_of_recorded_places_add_up_and_their_draws_tend_to_p() -> None:
    laws, exact = 0, 0
    for path in lesson_files(resource_folder()):
        trace = read_trace(trace_file(path))
        for round in trace.rounds:
            for place, token in enumerate(round.drafted):
                law = place_law(round, place, trace.header)
                if law is None:
                    continue
                laws, exact = laws + 1, exact + law.exact
                residual = residual_of(round, trace.header) if place == len(round.emitted) - 1 else None
                reach = residual.reach if residual is not None else 1.0
                assert sum(share.p for share in law.shares) == pytest.approx(reach, abs=2e-4)
                assert sum(share.q for share in law.shares) == pytest.approx(1, abs=2e-4)
                assert all(min(share.p, share.q) - share.accepted > -1e-9 for share in law.shares)
                assert all(0 <= known <= 1 + 1e-4 for known in law.named)
                if residual is not None and residual.total is not None:
                    left = sum(share.uncovered for share in law.shares)
                    assert left == pytest.approx(residual.total, abs=2e-3)
                shown = law.first([token.id], 4)
                assert len(shown.shares) <= 5 and shown.alpha == pytest.approx(law.alpha, abs=2e-3)
                if law.draws and laws % 4 == 0:
                    assert tends_to_p(shown)
    assert laws > 40 and exact > 20, (laws, exact)


@pytest.mark.parametrize(("block", "letters"), [(False, 10 / 9), (True, 11 / 9)])
def test_the_example_of_block_verification(block: bool, letters: float) -> None:
    law = pair_law(BLOCK_P, BLOCK_Q, block=block)
    assert law.accepted_letters == pytest.approx(letters)
    assert law.alpha == pytest.approx(5 / 9 if block else 4 / 9)
    assert tends_to_p(law)
    tally = law.tally(seed=3)
    tally.draw(DRAWS)
    assert tally.accepted.sum() / DRAWS == pytest.approx(law.alpha, abs=0.03)


@given(st.tuples(distributions(3), st.integers(0, 2), st.floats(0, 1)))
def test_a_changed_share_leaves_a_distribution(changed: tuple[list[float], int, float]) -> None:
    shares, at, share = changed
    made = with_share(shares, at, share)
    assert made[at] == share and sum(made) == pytest.approx(1) and min(made) >= 0
