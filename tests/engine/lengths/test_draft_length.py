"""Draft lengths: the rules on simulated pairs, whose costs and acceptance are known, and in the real loop."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import override

from app.engine.drafters.draft_simple import DraftSimple
from app.engine.engine import Engine
from app.engine.lengths.auto import AutoLength
from app.engine.lengths.base import Attempt, DraftLength, FixedLength, Outset, RoundCost, StrategyLimits
from app.engine.lengths.cost_curve import DraftCost, TargetCost, UsualTime
from app.engine.lengths.ewma import Ewma, EwmaLength
from app.engine.lengths.known import Acceptance, Ledger, LengthFacts
from app.engine.process.messages import PassSeconds
from app.engine.strategy import StrategySpec
from app.engine.types import GenerationRequest
from tests.answers import answer
from tests.equality import Baselines
from tests.simulated import Pair, baseline, best_fixed, by_chance, simulate

LINES = {f"{share:g} a token": (0.0, share) for share in (0.02, 0.1, 0.2, 0.5, 1.0)}
STEPS = {f"{jump:g}, then {share:g} a token": (jump, share) for jump, share in [(1.2, 0.25), (0.5, 0.1)]}
NOTHING = np.zeros(0, np.int32)
CURVES = LINES | STEPS
"""v(k) as it was measured on processors: a line, or a step to the first draft and a line from there."""


def pair_of(curve: tuple[float, float], c: float, **others: float) -> Pair:
    jump, share = curve
    prompt = share + jump / 40
    settings = {"read": prompt * c, "prompt": prompt, "relative_size": c} | others
    return Pair(lambda k: 1 + (jump + share * k if k else 0.0), c, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("switch", [0.0, 0.8])
@pytest.mark.parametrize(
    "prompt_tokens",
    [20, pytest.param(200, marks=pytest.mark.verify), pytest.param(1000, marks=pytest.mark.verify)],
)
@pytest.mark.parametrize("name", CURVES)
def test_auto_never_loses_more_than_three_percent(name: str, prompt_tokens: int, switch: float) -> None:
    """Over 256 tokens from a cold start, including the draft's reading of the prompt."""
    lost = {}
    for c, alpha in itertools.product((0.02, 0.1, 0.3, 1.0), (0, 0.3, 0.6, 0.7, 0.8, 0.9, 1)):
        pair = pair_of(CURVES[name], c, prompt_tokens=prompt_tokens, switch=switch)
        seconds = [simulate(AutoLength(), pair, by_chance(alpha, 256, seed)).seconds for seed in range(5)]
        lost[c, alpha] = statistics.median(seconds) / baseline(pair, 256) - 1
    assert max(lost.values()) <= 0.03, max(lost.items(), key=lambda item: item[1])


@pytest.mark.parametrize("c", [0.02, 0.1, 0.2])
@pytest.mark.parametrize("name", CURVES)
def test_auto_comes_near_the_best_fixed_length(name: str, c: float) -> None:
    """Over a mixed suite from cold starts, at least 97 % of the speed of the best fixed length."""
    pair = pair_of(CURVES[name], c)
    suite = [by_chance(alpha, 512, seed) for seed, alpha in enumerate((0.3, 0.5, 0.6, 0.7, 0.8, 0.9))]
    auto = sum(simulate(AutoLength(), pair, runs).seconds for runs in suite)
    fixed = [sum(simulate_fixed(pair, runs, k) for runs in suite) for k in range(13)]
    assert min(fixed) / auto >= 0.97


def simulate_fixed(pair: Pair, runs: list[int], k: int) -> float:
    return simulate(FixedLength(), pair, runs, k).seconds if k else baseline(pair, len(runs))


@pytest.mark.parametrize(("c", "alpha"), [(0.05, 0.9), (0.05, 0.7), (0.2, 0.8), (0.2, 0.55), (0.6, 0.6)])
def test_auto_settles_on_the_length_that_pays_best(c: float, alpha: float) -> None:
    pair = pair_of(LINES["0.1 a token"], c)
    runs = by_chance(alpha, 4000, seed=3)
    k, seconds = best_fixed(pair, runs)
    run = simulate(AutoLength(), pair, runs)
    assert seconds / run.seconds >= 0.97
    usual = statistics.median(run.lengths[len(run.lengths) // 2 :])
    assert abs(usual - k) <= max(1, k / 3)


def test_auto_stops_where_nothing_pays() -> None:
    hopeless = pair_of(LINES["0.1 a token"], 0.1)
    run = simulate(AutoLength(), hopeless, [0] * 2000)
    assert sum(length > 0 for length in run.lengths) < 50
    assert run.seconds <= 1.015 * baseline(hopeless, 2000)
    # A draft as costly as its target cannot pay however good it is: it never even reads the prompt.
    itself = pair_of(LINES["0.5 a token"], 1.0, prompt_tokens=100)
    run = simulate(AutoLength(), itself, [2000 - at for at in range(2000)])
    assert not any(run.lengths)
    assert run.seconds == pytest.approx(baseline(itself, 2000))


def test_auto_seldom_measures_plain_passes_where_drafting_clearly_pays() -> None:
    pair = pair_of(LINES["0.1 a token"], 0.05, switch=0.8)
    rounds = [simulate(AutoLength(), pair, by_chance(0.9, 256, seed)).lengths for seed in range(9)]
    assert statistics.median(round.count(0) for round in rounds) <= 6


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_auto_recovers_when_the_text_changes(noise: float) -> None:
    pair = pair_of(LINES["0.1 a token"], 0.1, noise=noise, outliers=noise / 5)
    runs = by_chance(0.1, 600) + by_chance(0.9, 600, seed=1)
    run = simulate(AutoLength(), pair, runs)
    ks = list(zip(run.places, run.lengths, strict=True))
    resting = [k for place, k in ks if 200 < place < 600]
    assert sum(k > 0 for k in resting) <= 0.05 * len(resting)
    drafting = [k for place, k in ks if place >= 856]
    assert statistics.median(drafting) >= 4, "within 256 tokens of the change"
    # And back: it stops at once.
    run = simulate(AutoLength(), pair, runs[600:] + runs[:600])
    later = [k for place, k in zip(run.places, run.lengths, strict=True) if place >= 664]
    assert sum(k > 0 for k in later) <= 0.1 * len(later)


@pytest.mark.parametrize(("bad", "total"), [(20, 128), (40, 256)])
def test_auto_comes_back_after_an_early_loss(bad: int, total: int) -> None:
    """Even in a short answer: what it risks on a guess is small, and so is a probe."""
    pair = pair_of(LINES["0.2 a token"], 0.1)
    answers = [[0] * bad + by_chance(0.9, total - bad, seed) for seed in range(9)]
    gains = [baseline(pair, total) / simulate(AutoLength(), pair, runs).seconds for runs in answers]
    assert statistics.median(gains) >= 1.3, "0.98 where it does not come back"
    assert min(gains) >= 0.97


@pytest.mark.parametrize("busy", [0.0, 1.0])
def test_auto_keeps_its_head_on_a_noisy_machine(busy: float) -> None:
    """One time in fifty is several times longer, and in some phases everything takes twice as long."""
    quiet = {"noise": 0.1, "outliers": 0.02, "busy": busy}
    for curve, c, alpha, least in [
        (LINES["0.1 a token"], 0.05, 0.8, 1.5),
        (LINES["1 a token"], 0.2, 0.6, 0.96),
        (LINES["0.2 a token"], 0.2, 0.1, 0.96),
    ]:
        pair = pair_of(curve, c, **quiet)
        nothing = pair_of(curve, 0.0, **quiet)
        runs = [by_chance(alpha, 512, seed) for seed in range(9)]
        plain = [simulate(Never(), nothing, run, seed=seed).seconds for seed, run in enumerate(runs)]
        auto = [simulate(AutoLength(), pair, run, seed=seed).seconds for seed, run in enumerate(runs)]
        assert statistics.median(plain) / statistics.median(auto) >= least


def test_one_disturbed_pass_does_not_end_drafting_for_good() -> None:
    """The machine was busy during the first pass over a draft: ten times as long as it takes."""

    def busy_once(curve: Callable[[int], float]) -> Callable[[int], float]:
        factors = iter([10.0])
        return lambda k: curve(k) * (next(factors, 1.0) if k else 1.0)

    quiet = pair_of(LINES["0.1 a token"], 0.05)
    for seed in range(5):
        runs = by_chance(0.9, 900, seed)
        run = simulate(AutoLength(), replace(quiet, v=busy_once(quiet.v)), runs)
        assert baseline(quiet, 900) / run.seconds > 2.2, "2.7 on a quiet machine"
        assert statistics.median(run.lengths[len(run.lengths) // 2 :]) >= 5


class Never(DraftLength):
    """The baseline."""

    lazy = True

    @override
    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        return 0


def test_auto_learns_from_proposals_that_it_only_looks_at() -> None:
    """A draftless strategy proposes at no cost: resting ends without a single trial."""
    pair = pair_of(LINES["0.2 a token"], 0.0005, relative_size=0.0, hit=0.7)
    runs = by_chance(0.0, 600) + by_chance(0.9, 300)
    run = simulate(AutoLength(), pair, runs)
    before = [k for place, k in zip(run.places, run.lengths, strict=True) if 100 < place < 600]
    after = [k for place, k in zip(run.places, run.lengths, strict=True) if place > 660]
    assert sum(k > 0 for k in before) < 0.03 * len(before)
    assert sum(k > 0 for k in after) > 0.4 * len(after)


def test_auto_looks_for_a_small_share_of_the_time() -> None:
    length, plain = AutoLength(), RoundCost([], 0, [1], 0.0, 0.1)
    length.begin(Outset([StrategyLimits("long", 1, 8)], 512))
    length.observe(plain)
    assert length.look("long", 100) == 0, "no pass was measured"
    length.observe(plain)
    assert length.look("long", 100) == 8
    assert length.look("long", 3) == 3
    length.observe(RoundCost([Attempt("long", 8, (), seconds=0.0299, looked=True)], 0, [1], 0.0299, 0.1))
    waited = 0
    while not length.look("long", 100):
        length.observe(plain)
        waited += 1
    assert waited == 100, "0.3 % of the time of 100 passes"


def test_auto_sits_rounds_out_until_a_strategy_is_worth_a_thought_again() -> None:
    length, plain = AutoLength(), RoundCost([], 0, [1], 0.0, 0.1)
    length.begin(Outset([StrategyLimits("draft", 1, 8, relative_size=2.0)], 512))
    for _ in range(3):
        assert not length.sit_out(NOTHING)
        assert length.choose("draft", 100, lambda: 0) == 0
        length.observe(plain)
    assert not length.sit_out(NOTHING), "now it may draft"
    assert length.choose("draft", 100, lambda: 0) == 0, "a draft model that is dearer than its target"
    length.observe(plain)
    sat_out = 0
    while length.sit_out(NOTHING):
        sat_out += 1
    assert sat_out == 4, "the first trial is due at token 8"


def test_auto_considers_no_draft_before_it_can_afford_one() -> None:
    """A rejected draft costs 0.6 passes, which the answer may lose from its 22nd token on. Considering one
    takes a tenth of a small target's pass."""
    length, thought = AutoLength(), RoundCost([], 0, [1], 0.001, 0.01)
    passes = PassSeconds({1: 0.01, 2: 0.0155, 3: 0.016, 5: 0.019, 9: 0.025, 17: 0.04}, 0.0005)
    length.begin(Outset([StrategyLimits("draft", 1, 8, relative_size=0.05)], 400, passes=passes))
    considered = []
    for tokens in range(60):
        if not length.sit_out(NOTHING):
            considered.append(tokens)
            if length.choose("draft", 100, lambda: 0):
                break
            length.observe(thought)
    assert 22 <= considered[-1] <= 50 and len(considered) <= 6, considered


@pytest.mark.parametrize("learning", [0.0, 0.00015])
def test_asking_in_vain_costs_no_more_than_three_percent(learning: float) -> None:
    """A strategy takes `learning` seconds to learn each token, also of the rounds that are sat out. That is
    counted if the pair was timed."""
    length, passes = AutoLength(), PassSeconds({1: 0.01, 2: 0.011, 9: 0.018}) if learning else None
    length.begin(Outset([StrategyLimits("long", 1, 8)], 400, passes=passes))
    asked, upkeep = 0, 0.0
    for _ in range(400):
        upkeep += learning
        if not length.sit_out(NOTHING):
            asks = length.choose("long", 100, lambda: 0) > 0
            attempts = [Attempt("long", 8, (), seconds=0.005)] if asks else []
            length.observe(RoundCost(attempts, 0, [1], 0.005 * asks, 0.01, upkeep))
            asked, upkeep = asked + asks, 0.0
    assert 0 < asked * 0.005 + 400 * learning <= 0.03 * 400 * 0.01


def test_without_times_learning_leaves_drafts_that_begin_late() -> None:
    """A strategy learns each token in 3 % of a pass, and its drafts are right from token 300 on."""
    length, place, drafted, upkeep = AutoLength(), 0, 0, 0.0
    length.begin(Outset([StrategyLimits("long", 1, 8)], 400))
    while place < 400:
        k, ids = 0, list[int]()
        if not (sits := length.sit_out(NOTHING)):
            k = min(8, length.choose("long", 100, lambda: 0))
            ids = [1] * k if place >= 300 else []
        emitted = [1] * (len(ids) + 1)
        place, drafted, upkeep = place + len(emitted), drafted + len(ids), upkeep + 0.0003 * len(emitted)
        if not sits:
            attempts = [Attempt("long", k, ids, seconds=0.001)] if k else []
            length.observe(RoundCost(attempts, len(ids), emitted, 0.001 * bool(k), 0.01, upkeep))
            upkeep = 0.0
    assert drafted > 20


def test_auto_asks_for_nothing_that_would_be_thrown_away() -> None:
    """A strategy with n_min proposes nothing if fewer tokens are asked for."""
    length = AutoLength()
    length.begin(Outset([StrategyLimits("long", 20, 30)], 500, 40, 0.14))
    asked: set[int] = set()
    for place in range(400):
        k = length.choose("long", 200, lambda: 0)
        looked = 0 if k else length.look("long", 200)
        asked.update((k, looked))
        size = min(k or looked, 30)
        ids = range(place, place + size)
        attempts = [Attempt("long", k or looked, ids, looked=looked > 0)] if size else []
        accepted = 0 if looked else size
        length.observe(
            RoundCost(attempts, accepted, range(place, place + accepted + 1), 0.0, 0.1 + 0.001 * size)
        )
    assert {20, 200} <= asked, "30 is no limit of the rule's but of the strategy's own"
    assert min(asked - {0}) == 20


def test_a_better_strategy_behind_a_worse_one_gets_its_turn() -> None:
    length = AutoLength()
    length.begin(Outset([StrategyLimits("bad", 1, 8), StrategyLimits("good", 1, 8, 0.05)], 4000, 40, 1.0))
    asked = {"bad": 0, "good": 0}
    place = 0
    while place < 2000:
        attempts, accepted = [], 0
        for name, right in (("bad", 0.2), ("good", 8)):
            k, looked = length.choose(name, 100, lambda: 0), False
            if not k and (k := length.look(name, 100)):
                looked = True
            if not k:
                continue
            size = min(k, 8)
            agrees = min(size, int(right)) if name == "good" else int(place % 5 == 0)
            ids = [place + at if at < agrees else -1 for at in range(size)]
            attempts.append(Attempt(name, k, ids, seconds=0.005 * size * (name == "good"), looked=looked))
            if not looked:
                accepted = agrees
                asked[name] += place > 500
                break
        drafted = len(attempts[-1].ids) if attempts and not attempts[-1].looked else 0
        emitted = range(place, place + accepted + 1)
        asked_seconds = sum(attempt.seconds for attempt in attempts)
        length.observe(RoundCost(attempts, accepted, emitted, asked_seconds, 0.1 * (1 + 0.1 * drafted)))
        place += accepted + 1
    assert asked["good"] > 20 * asked["bad"]


def test_ewma_moves_one_step_at_a_time_between_its_bounds() -> None:
    length = EwmaLength(Ewma())
    length.begin(Outset([StrategyLimits("draft", 1, 6, 0.1)], 100))

    def round_of(accepted_share: float) -> int:
        k = min(length.choose("draft", 50, lambda: 0), 6)
        ids = range(k)
        length.observe(RoundCost([Attempt("draft", k, ids)], round(k * accepted_share), [0], 0.0, 0.1))
        return k

    rising = [round_of(1.0) for _ in range(12)]
    assert rising[0] == 3 and rising[-1] == 6
    assert length.choose("draft", 50, lambda: 0) == 50, "the strategy's own maximum ends it"
    assert length.choose("draft", 2, lambda: 0) == 2
    falling = [round_of(0.0) for _ in range(20)]
    assert falling[-1] == 1
    assert all(abs(a - b) <= 1 for a, b in itertools.pairwise(rising + falling))
    length.reset()
    length.begin(Outset([StrategyLimits("draft", 4, 6, 0.1)], 100))
    assert [round_of(0.0) for _ in range(9)][-1] == 4, "n_min"


def test_ewma_goes_by_its_settings() -> None:
    def lengths(params: Ewma, accepted_share: float) -> list[int]:
        length = EwmaLength(params)
        length.begin(Outset([StrategyLimits("draft", 1, 16, 0.1)], 100))
        chosen = []
        for _ in range(12):
            k = min(length.choose("draft", 50, lambda: 0), 16)
            length.observe(
                RoundCost([Attempt("draft", k, range(k))], round(k * accepted_share), [0], 0.0, 0.1)
            )
            chosen.append(k)
        return chosen

    usual = lengths(Ewma(), 1.0)
    assert lengths(Ewma(ewma_start=8), 1.0)[0] == 8
    assert lengths(Ewma(ewma_weight=1.0), 1.0)[2] > usual[2], "the newest round alone"
    assert lengths(Ewma(ewma_raise=1.0), 1.0) == [3] * 12
    assert lengths(Ewma(ewma_lower=0.0), 0.0) == [3] * 12
    at_the_limit = Ewma(ewma_weight=1.0, ewma_lower=0.0, ewma_raise=1.0)
    assert lengths(at_the_limit, 1.0) == lengths(at_the_limit, 0.0) == [3] * 12
    assert lengths(Ewma(ewma_min=2), 0.0)[-1] == 2


def test_a_strategy_that_was_not_asked_for_very_long_is_as_good_as_new() -> None:
    acceptance = Acceptance()
    for tokens in (5, 10**9, 10**9):
        acceptance.add(4, 4, 0)
        acceptance.age(tokens)
    assert acceptance.hit_rate == 1.0
    assert acceptance.expected(4) == pytest.approx(Acceptance().expected(4))


def test_what_was_not_measured_lies_between_what_was() -> None:
    cost = TargetCost()
    cost.add(0, 1.0)
    assert cost.seconds(3) > 1
    cost.add_prompt(41, 9.0)
    assert cost.seconds(10) == pytest.approx(3)
    cost.add(2, 3.0)
    assert cost.seconds(1) == pytest.approx(2)
    assert cost.seconds(21) == pytest.approx(6), "on the line to the prompt's pass"
    assert cost.feared(4) == pytest.approx(5), "on the line through the first two"
    cost.add(60, 8.0)
    assert cost.seconds(40) <= cost.seconds(50) <= cost.seconds(60) <= cost.seconds(80)


def test_a_steep_trend_makes_no_short_draft_cheaper_than_none() -> None:
    drafts, passes = DraftCost(), TargetCost()
    passes.add(0, 1.0)
    for k, seconds in [(1, 0.01), (2, 0.01), (9, 2.0)] * 9:
        drafts.add(k, seconds)
        passes.add(k, 1 + seconds)
    assert 0 <= drafts.seconds(1) <= 0.01
    assert 1 <= passes.seconds(1) <= 1.01


def test_a_time_that_is_short_by_luck_is_drawn_towards_the_others() -> None:
    curve = TargetCost()
    for _ in range(3):
        for k in (0, 2, 4, 6, 8):
            curve.add(k, 1 + 0.1 * k - 0.3 * (k == 6))
    assert 1.3 < curve.seconds(6) < 1.6, "between its own times and the line"
    assert curve.seconds(0) == 1.0, "what drafts are compared with is left alone"


def test_the_first_token_of_a_draft_may_be_dearer() -> None:
    cost = DraftCost()
    assert not cost.knows_drafts
    cost.add(2, 0.4)
    assert cost.knows_drafts and cost.seconds(1) == pytest.approx(0.2)
    assert cost.seconds(6) == pytest.approx(1.2), "at worst"
    cost.add(8, 1.0)
    assert cost.seconds(4) == pytest.approx(0.6)


def test_the_usual_time_is_not_moved_by_outliers_and_follows_a_change() -> None:
    times = UsualTime()
    for value in (1.0, 1.1, 9.0, 1.05, 7.0, 1.0):
        times.add(value)
    assert 1.0 <= times.value <= 1.1
    for _ in range(9):
        times.add(2.0)
    assert times.value == 2.0


def test_what_was_won_pays_for_so_much_and_no_more() -> None:
    ledger = Ledger(wanted=512)
    start = ledger.left(0)
    assert start > 0
    ledger.add(start + 1)
    assert ledger.left(0) == pytest.approx(-1)
    ledger.add(-10_000)
    assert ledger.left(0) == pytest.approx(start + 64)
    assert 0 < ledger.left(256) - ledger.left(0) < ledger.left(512) - ledger.left(256), (
        "an early share is less"
    )


@pytest.mark.parametrize(("asked", "proposed"), [(16, 3), (16, 1), (3, 3), (1, 1)])
def test_a_draft_is_expected_to_be_as_long_as_drafts_were(asked: int, proposed: int) -> None:
    seen = Acceptance()
    for _ in range(2000):
        seen.add(asked, proposed, proposed)
    *_, last = seen.prospects(range(1, asked + 1))
    assert last.drafted == pytest.approx(proposed, rel=0.02)


def test_failed_trials_become_rare_and_a_passed_one_is_followed_at_once() -> None:
    facts = LengthFacts(StrategyLimits("draft", 1, 12, 0.1))
    place = 0

    def waits_after(passed: bool) -> int:
        nonlocal place
        place = facts.trial_due
        facts.probing = True
        facts.learn(Attempt("draft", facts.trial, range(facts.trial)), facts.trial if passed else 0, place)
        return facts.trial_due - place

    assert [waits_after(passed=False) for _ in range(6)] == [8, 16, 32, 64, 128, 128]
    assert [(waits_after(passed=True), facts.trial) for _ in range(4)] == [(0, 2), (0, 4), (0, 8), (0, 12)]
    assert (waits_after(passed=False), facts.trial) == (8, 1), "patience is as at the start"


@pytest.mark.parametrize(("shortest", "longest"), [(4, 12), (12, 12)])
def test_auto_drafts_as_many_as_the_strategy_needs_at_least(shortest: int, longest: int) -> None:
    """Two tokens would pay best, but asked for them the strategy proposes nothing."""
    length = AutoLength()
    length.begin(Outset([StrategyLimits("long", shortest, longest)], 600, 40, 0.1))
    alpha = {4: 0.6, 12: 0.9}[shortest]
    runs, place, drafted = by_chance(alpha, 600), 0, []
    while place < 500:
        k = (
            0
            if length.sit_out(np.arange(place, dtype=np.int32))
            else min(length.choose("long", 99, lambda: 0), longest)
        )
        accepted = min(runs[place], k)
        attempts = [Attempt("long", k, range(k))] if k else []
        cost = RoundCost(attempts, accepted, range(accepted + 1), 0.0, 0.1 * (1 + 0.1 * k))
        length.observe(cost)
        place += accepted + 1
        drafted.append(k)
    assert min(k for k in drafted if k) >= shortest
    assert sum(k > 0 for k in drafted) > 0.7 * len(drafted)


def test_every_answer_of_a_warm_engine_may_lose_as_little_as_the_first() -> None:
    """What the answers before it wrote is no credit."""
    pair = pair_of(LINES["0.2 a token"], 0.3)
    for seed in range(5):
        length = AutoLength()
        simulate(length, pair, by_chance(0.95, 6000, seed))
        run = simulate(length, pair, [0] * 256)
        assert run.seconds <= 1.03 * baseline(pair, 256)


def test_auto_measures_plain_passes_now_and_then_while_it_drafts() -> None:
    pair = pair_of(LINES["0.1 a token"], 0.05)
    run = simulate(AutoLength(), pair, by_chance(0.9, 6000))
    plain = [place for place, k in zip(run.places, run.lengths, strict=True) if not k and place > 1000]
    gaps = [later - earlier for earlier, later in itertools.pairwise(plain) if later - earlier > 1]
    assert 300 < statistics.median(gaps) <= max(gaps) <= 400 + 13


def test_acceptance_is_told_by_position_and_ages() -> None:
    seen = Acceptance()
    for _ in range(200):
        seen.add(6, 6, 2)
        seen.age(3)
    expected = [prospect.tokens for prospect in seen.prospects(range(1, 7))]
    assert expected[1] > 2.7, "the first two pass"
    assert expected[5] - expected[1] < 0.4, "and hardly any behind them"
    for _ in range(30):
        seen.add(6, 0, 0)
    assert seen.hit_rate < 0.8
    seen.age(2000)
    assert seen.hit_rate > 0.99, "what is long ago counts no more"
    early = Acceptance()
    for _ in range(100):
        early.add(8, 2, 2)  # every draft ends after two tokens
    *_, last = early.prospects(range(1, 9))
    assert last.drafted < 3


def timed(pair: Pair, error: float = 1.0) -> PassSeconds:
    """A calibration of a pair, whose passes over drafts are off by a factor."""
    target = {k + 1: pair.seconds * pair.v(k) * (error if k else 1.0) for k in (*range(9), 16)}
    return PassSeconds(target, pair.seconds * pair.c, error=0.0)


def test_auto_tries_no_draft_that_cannot_pay_where_the_machine_was_timed() -> None:
    """A pass over two tokens takes 3.7 single ones: even a draft that is always right gains nothing."""
    slow = replace(pair_of(LINES["0.1 a token"], 0.1), v=lambda k: 1.0 if not k else 2.7 + k)
    right = [64 - at for at in range(64)]
    assert any(simulate(AutoLength(), slow, right).lengths), "without that it has to try"
    assert not any(simulate(AutoLength(), slow, right, passes=timed(slow)).lengths)


def test_auto_goes_beyond_a_length_whose_pass_is_dear_where_the_machine_was_timed() -> None:
    """As SmolLM2 in F16: a pass over 8 tokens takes longer than one over 9."""
    tiles = {0: 1.0, 1: 1.6, 2: 2.1, 3: 2.1, 4: 2.2, 5: 2.3, 6: 2.8, 7: 4.0, 8: 3.0, 16: 5.6}
    pair = replace(pair_of(LINES["0.1 a token"], 0.02, read=0.0), v=lambda k: tiles.get(k, 4.8))
    passes = PassSeconds(
        {k + 1: pair.seconds * v for k, v in tiles.items()}, pair.seconds * pair.c, error=0.0
    )
    right = [400 - at for at in range(400)]
    run = simulate(AutoLength(), pair, right, longest=16, passes=passes)
    assert run.lengths.count(16) > 12, run.lengths


def test_auto_tries_a_draft_that_is_long_enough_to_pay_where_the_machine_was_timed() -> None:
    """Up to two tokens gain nothing, even if they are accepted."""
    steep = pair_of((1.5, 0.3), 0.02, read=0.0)
    right = [600 - at for at in range(600)]
    run = simulate(AutoLength(), steep, right, passes=timed(steep))
    assert min(filter(None, run.lengths)) >= 3
    assert run.seconds <= 0.6 * baseline(steep, 600)


def test_a_target_faster_than_the_untimed_work_still_gets_drafts() -> None:
    fast = pair_of(LINES["0.2 a token"], 0.05, seconds=1e-4)
    right = [600 - at for at in range(600)]
    assert simulate(AutoLength(), fast, right, passes=timed(fast)).seconds <= 0.6 * baseline(fast, 600)


@pytest.mark.parametrize("name", CURVES)
def test_no_answer_falls_behind_where_the_machine_was_timed_however_early_it_ends(name: str) -> None:
    """It might have had 512 tokens; the draft model has read the prompt."""
    lost = {}
    for c, alpha, tokens in itertools.product((0.02, 0.1, 0.3), (0, 0.3, 0.6, 0.9), (12, 25, 40)):
        pair = pair_of(CURVES[name], c, read=0.0)
        texts = [by_chance(alpha, tokens, seed) for seed in range(3)]
        runs = [simulate(AutoLength(), pair, text, passes=timed(pair), wanted=512) for text in texts]
        lost[c, alpha, tokens] = max(run.seconds for run in runs) / baseline(pair, tokens) - 1
    assert max(lost.values()) <= 0.03, max(lost.items(), key=lambda item: item[1])


@pytest.mark.parametrize("error", [0.6, 1.6])
def test_a_calibration_that_was_wrong_is_corrected_by_what_passes_take(error: float) -> None:
    pair = pair_of(LINES["0.2 a token"], 0.05)
    runs = by_chance(0.85, 1500)
    _, seconds = best_fixed(pair, runs)
    assert seconds / simulate(AutoLength(), pair, runs, passes=timed(pair, error)).seconds >= 0.95


# --- in the real loop

PROMPT = "to be or not to be, that is the question: to be or not to be, that is the "
RULES = ["ewma", "auto"]
MEASURES = "to time a plain pass"
SPECS = [
    "draft-simple:n_max=6",
    "prompt-lookup:num_pred_tokens=6",
    "prompt-lookup:num_pred_tokens=4+draft-simple:n_max=6",
]


@pytest.mark.parametrize("verify", ["greedy", "speculative", "match"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("spec", SPECS)
def test_greedy_is_the_baseline(
    engine: Engine, baselines: Baselines, spec: str, rule: str, verify: str
) -> None:
    request = GenerationRequest(prompt=PROMPT, max_tokens=150, ignore_eos=True)
    trace = baselines.check(engine, request, f"{spec}:verify={verify}:length={rule}")
    if rule == "ewma":
        assert len({len(round.drafted) for round in trace.rounds}) > 2, "k moves"
        assert any(round.draft_end == "as long as acceptance allows" for round in trace.rounds)
    else:
        assert any(not round.drafted for round in trace.rounds)
        assert {round.draft_end for round in trace.rounds} & {MEASURES}


def test_auto_reads_the_prompt_only_to_draft(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    real = DraftSimple.read

    def watched(self: DraftSimple, context: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
        read.append(len(context))
        return real(self, context)

    monkeypatch.setattr(DraftSimple, "read", watched)
    monkeypatch.setattr(AutoLength, "choose", lambda *_arguments: 0)
    trace = answer(engine, PROMPT, strategy="draft-simple:length=auto", max_tokens=20, ignore_eos=True)
    assert read == []
    assert not any(round.drafted for round in trace.rounds)
    assert engine.draft is not None and engine.draft.n_cached == 0
    monkeypatch.setattr(AutoLength, "choose", lambda *_arguments: 2)
    trace = answer(engine, PROMPT, strategy="draft-simple:length=auto", max_tokens=20, ignore_eos=True)
    assert read == [len(PROMPT)], "once, at the first draft"
    reading = [round.read_seconds for round in trace.rounds]
    assert trace.totals is not None and reading[0] == trace.totals.draft_prompt_in_rounds > 0
    assert reading[0] < trace.rounds[0].draft_seconds and not any(reading[1:])
    assert all(round.drafted for round in trace.rounds[:-1])
    engine.reset()
    read.clear()
    answer(engine, PROMPT, strategy="draft-simple", max_tokens=5)
    assert read == [len(PROMPT)], "a fixed length reads at the start"


def test_a_cold_run_forgets_what_was_learned(engine: Engine) -> None:
    settings = {"strategy": "draft-simple:n_max=4:length=auto", "max_tokens": 60, "ignore_eos": True}
    first = answer(engine, PROMPT, cold=True, **settings)
    again = answer(engine, PROMPT, cold=True, **settings)
    for trace in (first, again):
        assert {round.draft_end for round in trace.rounds[:3]} == {MEASURES}
    answer(engine, PROMPT, **settings)  # cold answers taught the warm engine nothing
    answer(engine, PROMPT, **settings)
    warm = answer(engine, PROMPT, **settings)
    assert any(round.draft_end != MEASURES for round in warm.rounds[:3])


def test_a_head_drafts_at_once_or_not_until_it_pays_to_read_what_was_written() -> None:
    """It has read the prompt, and knows from that what reading takes: a first draft later is only dearer."""

    def asked(unread: int, passes: PassSeconds | None, prompt_seconds: float = 8.0) -> int:
        length = AutoLength()
        limits = StrategyLimits("head", 1, 3, 0.1, is_head=True)
        length.begin(Outset([limits], 512, 40, prompt_seconds, passes, head_token=0.1))
        for _ in range(3):
            length.choose("head", 400, lambda: unread)
            length.observe(RoundCost((), 0, (1,), 0.0, 1.0))
        return length.choose("head", 400, lambda: unread)

    known = PassSeconds({1: 1.0, 2: 1.3, 3: 1.4, 4: 1.6})
    assert [asked(unread, known) for unread in (3, 40)] == [2, 0]
    assert asked(3, None) == 2
    assert asked(3, None, 80.0) == 1, "a busy machine read the prompt slowly: nothing else would tell"


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((1.0, 1.2, 1.3, 1.4), [2, 3, 3]),
        ((1.0, 1.3, 1.6, 1.4), [3]),  # as Q4_0 takes: only drafts of three pay
        (None, [2, 1, 1, 0, 0, 0, 1]),
    ],
)
def test_a_head_begins_with_the_length_that_pays_and_comes_back_soon(
    times: tuple[float, ...] | None, expected: list[int]
) -> None:
    """Without times its drafts are refused here. It is tried again before reading on is dear."""
    length = AutoLength()
    limits = StrategyLimits("head", 1, 3, 0.1, is_head=True)
    passes = PassSeconds(dict(enumerate(times, start=1))) if times else None
    length.begin(Outset([limits], 64, 40, 8.0, passes, head_token=0.06))
    for _ in range(3):
        length.observe(RoundCost((), 0, (1,), 0.0, 1.0))
    asked: list[int] = []
    for _ in expected:
        if length.sit_out(np.zeros(0, np.int32)):
            asked.append(0)
            continue
        asked.append(min(3, length.choose("head", 56, lambda: 1)))
        made = [Attempt("head", asked[-1], (1,), seconds=0.08)] if asked[-1] else []
        took = bool(made) and passes is not None
        length.observe(RoundCost(made, took, (1, 1)[: took + 1], 0.08 * len(made), 1 + 0.2 * len(made)))
    assert asked == expected


def test_a_head_in_the_targets_own_file_costs_something() -> None:
    (limits,) = StrategySpec.parse("draft-mtp").limits(0.1)
    assert (limits.relative_size, limits.is_head) == (0.1, True)
    assert StrategySpec.parse("prompt-lookup").limits(0.1)[0].relative_size == 0
