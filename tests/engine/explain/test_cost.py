"""The cost model against hand calculation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.engine.explain.cost import CostModel, PassTimes, checked, expected_tokens, is_plausible
from app.engine.fates import Origin, Verdict
from app.engine.process.messages import PassSeconds
from app.engine.types import DraftedToken, EmittedToken, Round


def one_round(k: int, accepted: int, draft: float, verify: float) -> Round:
    """A round of `k` drafted tokens at `draft` seconds each, with `verify` seconds to judge them."""
    verdicts = [Verdict.ACCEPTED] * accepted + [Verdict.REJECTED] * (accepted < k)
    verdicts += [Verdict.IGNORED] * (k - len(verdicts))
    return Round(
        index=0,
        position=0,
        offset=0.0,
        seconds=draft * k + verify,
        draft_seconds=draft * k,
        verify_seconds=verify,
        sample_seconds=0.0,
        native_seconds=0.0,
        drafted=tuple(DraftedToken(1, b"x", verdict, 1.0) for verdict in verdicts),
        emitted=tuple(EmittedToken(1, b"x", Origin.ACCEPTED, 1.0) for _ in range(accepted + 1)),
        strategy="draft-simple" if k else None,
        draft_end="n_max" if k else "no match",
    )


def answer(k: int, accepted: list[int], c: float, v: float) -> list[Round]:
    """Rounds of one length; a single-token pass takes a second and was measured."""
    plain = [one_round(0, 0, 0.0, 1.0) for _ in range(3)]
    return plain + [one_round(k, taken, c, v) for taken in accepted]


# ------------------------------------------------------------------------------------- the model


def test_relative_costs_are_measured_against_a_single_pass() -> None:
    model = CostModel.of(answer(4, [2, 3, 4, 0], c=0.1, v=1.5))
    assert model.single_pass == 1.0
    assert model.c == pytest.approx(0.1)
    assert model.v(4) == pytest.approx(1.5)
    assert model.v(0) == 1.0


def test_predicted_factor_is_leviathans_where_v_is_constant() -> None:
    model = CostModel.of(answer(4, [4], c=0.05, v=1.0))
    alpha, k = 0.8, 4
    leviathan = (1 - alpha ** (k + 1)) / ((1 - alpha) * (k * 0.05 + 1))
    assert model.predicted(alpha, k) == pytest.approx(leviathan)
    assert model.predicted(1.0, k) == pytest.approx(5 / 1.2)
    assert model.predicted(0.3, 0) == pytest.approx(1.0)


def test_the_factor_is_that_of_all_rounds_drafted_or_not() -> None:
    rounds = answer(4, [4, 2, 0], c=0.1, v=1.5)  # and three without a draft
    model = CostModel.of(rounds, plain=rounds[:3])
    rest = model.rest.median / model.single_pass
    assert model.of_answer(0.0, 4) == pytest.approx(6 * (1 + rest) / (3 + 3 * 1.9 + 6 * rest))


def test_a_calibration_prices_what_was_not_measured_at_the_speed_of_the_answer() -> None:
    rounds = [one_round(4, 2, 0.1, 3.0)] * 5
    assert CostModel.of(rounds).single_pass is None
    model = CostModel.of(rounds).calibrated(
        PassSeconds({1: 0.5, 2: 0.88, 5: 0.8, 8: 1.1, 9: 1.0, 17: 1.6}, 0.04)
    )
    assert model.single_pass == pytest.approx(0.5 * 3.0 / 0.8), "the machine is slower than it was"
    assert model.v(8) == pytest.approx(1.0 / 0.5), "less than over 8 tokens: kernels compute in tiles"
    assert model.seconds(33) == pytest.approx((1.6 + 16 / 9 * 0.5) * 3.0 / 0.8), (
        "on the line from 8, not from 9"
    )
    assert model.seconds(5) == pytest.approx(3.0), "what the answer measured counts"
    far = CostModel.of([*rounds, one_round(32, 2, 0.1, 7.0)]).calibrated(
        PassSeconds({1: 0.5, 5: 0.8, 17: 1.6})
    )
    assert far.seconds(33) == 7.0, "its one pass, which is shorter than the line goes on"
    assert model.step_seconds("draft-simple") == pytest.approx(0.1)
    assert model.error(9) == pytest.approx(0.1), "as far as a pass over 2 tokens takes longer than one over 5"
    calm = CostModel().calibrated(PassSeconds({1: 0.5, 5: 0.8, 8: 1.1, 9: 1.0, 17: 1.6}))
    assert min(calm.error(6), calm.error(33)) > calm.error(17), "between, beyond, measured"
    alone = CostModel().calibrated(PassSeconds({1: 0.5}, 0.04))
    assert alone.step_seconds("draft-simple") == pytest.approx(0.04)


def test_steep_or_disordered_times_are_measured_twice_and_doubted_as_far_as_they_differ() -> None:
    flat = PassSeconds({1: 1.0, 2: 1.4, 3: 1.8, 5: 2.6}, 0.1)
    steep = PassSeconds({1: 1.0, 2: 3.7, 3: 3.9, 5: 4.2}, 0.1)
    assert is_plausible(flat) and not is_plausible(steep)
    assert not is_plausible(PassSeconds({1: 1.0, 2: 1.9, 4: 1.4}))
    assert steep.doubt == pytest.approx(0.85)
    slow = checked(steep, PassSeconds({size: 1.02 * taken for size, taken in steep.target.items()}, 0.12))
    assert slow.target == steep.target and slow.doubt == pytest.approx(0.0), "slow kernels are as slow again"
    lucky = checked(steep, flat)
    assert lucky.target == flat.target and lucky.doubt == pytest.approx(3.7 / 1.4 - 1)
    unsure, sure = (CostModel().calibrated(each) for each in (lucky, flat))
    assert unsure.error(5) == 1.0 and sure.error(5) < 0.1
    assert sure.at_best is sure
    assert unsure.at_best.v(4) == pytest.approx(2.6 / 2) and unsure.at_best.error(5) == 1.0


def test_a_token_that_was_too_unsure_to_be_drafted_took_its_time_too() -> None:
    round = replace(one_round(3, 3, 0.1, 1.0), draft_end="p_min")
    assert CostModel.of([round]).step_seconds("draft-simple") == pytest.approx(0.3 / 4)


def test_lines_between_and_beyond_what_was_measured() -> None:
    times = PassTimes()
    assert times.seconds(1) is None
    times.add(3, 2.0)
    assert times.seconds(1) is None  # one size says nothing about another
    times.add(5, 3.0)
    assert times.seconds(4) == pytest.approx(2.5)
    assert times.seconds(1) == pytest.approx(1.0)
    assert times.seconds(9) == pytest.approx(5.0)


def test_a_line_does_not_fall_below_what_is_possible() -> None:
    times = PassTimes()
    times.add(4, 1.0)
    times.add(5, 3.0)  # noise: the line would meet zero at 3.5 tokens
    assert times.seconds(1) == pytest.approx(0.25)
    times.add(9, 2.0)
    assert times.seconds(12) == pytest.approx(3.0, abs=1.1)


def test_one_slow_pass_changes_nothing() -> None:
    model = CostModel.of([*answer(4, [2] * 5, c=0.1, v=1.5), one_round(4, 2, 9.0, 99.0)])
    assert model.v(4) == pytest.approx(1.5)
    assert model.c == pytest.approx(0.1)


def test_what_a_draft_model_read_first_is_no_drafting() -> None:
    first = one_round(4, 2, 0.1, 1.5)
    first = replace(first, draft_seconds=first.draft_seconds + 7.0, read_seconds=7.0)
    assert CostModel.of([one_round(0, 0, 0.0, 1.0), first]).c == pytest.approx(0.1)


@given(st.floats(0, 1), st.floats(0.01, 1), st.floats(0, 1), st.integers(1, 16))
def test_break_even_is_where_nothing_is_lost(alpha: float, c: float, slope: float, k: int) -> None:
    model = CostModel()
    model.passes.add(1, 1.0)
    model.passes.add(17, 1.0 + 16 * slope)
    model.draft_times.add(c)
    even = model.break_even(k)
    factor = model.predicted(alpha, k)
    assert factor is not None
    if even is None:
        assert factor < 1
    elif alpha > even + 1e-6:
        assert factor >= 1
    elif alpha < even - 1e-6:
        assert factor < 1


def test_expected_tokens() -> None:
    assert expected_tokens(1.0, 4) == 5
    assert expected_tokens(0.0, 4) == 1
    assert expected_tokens(0.5, 2) == pytest.approx(1.75)


def test_a_long_answer_is_compared_with_passes_in_its_middle() -> None:
    def at(place: int, k: int) -> Round:
        return replace(one_round(k, k, 0.0, (1 + place / 2000) * (2 if k else 1)), position=place)

    rounds = [at(place, 0) for place in range(200)] + [at(200 + 5 * index, 4) for index in range(80)]
    model = CostModel.of(rounds)
    assert model.single_pass == pytest.approx(1.0745), (
        "its newest one-token passes are those before its drafts"
    )
    assert model.plain_pass == pytest.approx(1.15, rel=0.01), "one of the 300th token"
    short = CostModel.of(rounds[:100])
    assert short.plain_pass == short.single_pass
    stalled = CostModel.of([*rounds, replace(rounds[0], verify_seconds=50.0)])
    assert stalled.depth.slope == model.depth.slope
