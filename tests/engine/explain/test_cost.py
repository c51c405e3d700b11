"""The cost model against hand calculation, and the advice against the tuning tables of the field."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.engine.explain.advice import Finding, advise, balance
from app.engine.explain.cost import CostModel, PassTimes, expected_tokens
from app.engine.fates import Origin, Verdict
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec
from app.engine.types import DraftedToken, EmittedToken, Round

DRAFT = "draft-simple:n_max=4"


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


def test_factor_over_real_rounds() -> None:
    model = CostModel.of(answer(4, [4, 2, 0], c=0.1, v=1.5))
    assert model.over_rounds == pytest.approx((1 + 2) / (1.5 + 0.4))


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


# ------------------------------------------------------------------------------------ the advice


def found(rounds: list[Round], strategy: str = DRAFT, speedup: float | None = None) -> tuple[Finding, str]:
    spec = StrategySpec.parse(strategy)
    advice = advise(spec, Statistics.of(rounds), CostModel.of(rounds), speedup)
    assert advice is not None
    return advice.finding, advice.text


def test_nothing_to_say_without_speculation_or_rounds() -> None:
    rounds = answer(4, [3] * 20, c=0.1, v=1.5)
    assert advise(StrategySpec.parse("none"), Statistics.of(rounds), CostModel.of(rounds)) is None
    assert found(rounds[:5])[0] is Finding.TOO_EARLY


def test_it_says_when_speculation_pays() -> None:
    finding, text = found(answer(4, [3, 4, 2, 4] * 5, c=0.05, v=1.3))
    assert finding in (Finding.PAYS, Finding.LENGTH)
    assert re.match("Drafting costs .* of the time that plain decoding would take and saves .* of it", text)


def test_drafting_that_costs_little_is_not_said_to_cost_nothing() -> None:
    _, text = found(answer(4, [3, 4, 2, 4] * 5, c=0.001, v=1.3))
    assert text.startswith("Drafting costs under 1\N{NO-BREAK SPACE}% of the time")


def test_what_verifying_adds_is_a_share_of_plain_decoding() -> None:
    finding, text = found(answer(4, [1, 2, 1, 2] * 5, c=0.1, v=3.9))
    assert finding is Finding.LOSES
    assert re.search("of the time that plain decoding would take, and verifying adds .* of it: try", text)


def test_acceptance_under_30_percent() -> None:
    finding, text = found(answer(4, [0, 1, 0, 1] * 5, c=0.1, v=1.6))
    assert finding is Finding.LOW_ACCEPTANCE
    assert "12\N{NO-BREAK SPACE}% of the drafted tokens" in text and "ngram-mod" in text


def test_acceptance_over_80_percent_without_gain() -> None:
    finding, text = found(answer(4, [4, 4, 4, 3] * 5, c=0.38, v=3.8))
    assert finding is Finding.NO_GAIN
    assert "94\N{NO-BREAK SPACE}% of the drafted tokens" in text


def test_a_measured_slow_down_counts_more_than_the_model() -> None:
    rounds = answer(4, [3, 4, 2, 2] * 5, c=0.05, v=1.3)
    assert found(rounds)[0] in (Finding.PAYS, Finding.LENGTH)
    finding, text = found(rounds, speedup=0.9)
    assert finding is Finding.LOSES
    assert text.startswith("0.90× was measured: try"), "what was measured, not what was estimated"
    assert found(rounds, speedup=1.48)[1].startswith("1.48× was measured: speculation pays here.")


def test_a_target_that_gains_nothing_from_a_batch() -> None:
    finding, text = found(answer(4, [3, 2] * 10, c=0.1, v=4.5))
    assert finding is Finding.TARGET_SMALL
    assert "over 5 tokens takes 4.5 times" in text
    assert "with a mixture of experts, try ngram-mod" in text


@pytest.mark.parametrize(("v", "disturbed"), [(7.4, False), (7.5, True)])
def test_a_pass_half_again_as_long_as_its_tokens_is_a_disturbance(v: float, disturbed: bool) -> None:
    finding, _ = found(answer(4, [3, 2] * 10, c=0.1, v=v))
    assert finding is (Finding.DISTURBED if disturbed else Finding.TARGET_SMALL)


def test_times_that_no_target_takes_are_not_laid_to_the_target() -> None:
    rounds = answer(4, [3, 2] * 10, c=2.5, v=9.5)
    advice = advise(StrategySpec.parse(DRAFT), Statistics.of(rounds), CostModel.of(rounds))
    assert advice is not None and advice.finding is Finding.DISTURBED
    assert "over 5 tokens took 9.5 times" in advice.text and "Measure the baseline" in advice.text
    assert not advice.remedies, "nothing is proposed on such times"


@pytest.mark.parametrize(("strategy", "k"), [("ngram-mod:n_match=8", 4), ("draft-simple", 16)])
def test_long_drafts_are_not_proposed_to_those_that_have_them(strategy: str, k: int) -> None:
    rounds = answer(k, [3, 2] * 10, c=0.1, v=k + 0.5)
    advice = advise(StrategySpec.parse(strategy), Statistics.of(rounds), CostModel.of(rounds))
    assert advice is not None and advice.finding is Finding.TARGET_SMALL
    assert "mixture" not in advice.text and [remedy.text for remedy in advice.remedies] == ["strategy none"]


def test_a_draft_that_is_too_large() -> None:
    finding, text = found(answer(4, [3, 2] * 10, c=0.6, v=1.6))
    assert finding is Finding.DRAFT_LARGE
    assert "60\N{NO-BREAK SPACE}% of a target pass" in text


def test_a_shorter_draft_is_recommended_where_it_is_better() -> None:
    """At alpha 0.5 and c 0.15, twelve tokens are far too many."""
    finding, text = found(answer(12, [0, 1, 1, 2] * 10, c=0.15, v=1.8), "draft-simple:n_max=12")
    assert finding is Finding.LOW_ACCEPTANCE
    assert "n_max=1 " in text or "n_max=2 " in text


def test_a_longer_draft_is_recommended_where_it_is_better() -> None:
    rounds = answer(2, [2, 2, 2, 2, 1] * 5, c=0.02, v=1.05)
    finding, text = found(rounds, "draft-simple:n_max=2")
    assert finding is Finding.LENGTH
    assert "Try n_max=" in text and "×" in text


def test_no_length_is_recommended_at_which_nothing_is_drafted() -> None:
    """ngram-simple drafts nothing where size_m is below size_n."""
    rounds = answer(16, [1, 2, 3, 2] * 10, c=0.01, v=2.4)
    assert "size_m=4 (" in found(rounds, "ngram-simple:size_n=3:size_m=16")[1]
    assert "size_m=" not in found(rounds, "ngram-simple:size_n=16:size_m=16")[1]
    assert "size_m=5 (" in found(rounds, "ngram-simple:size_n=5:size_m=16")[1], "the next best"


def test_a_length_is_recommended_by_the_strategys_own_name_for_it() -> None:
    rounds = answer(16, [1, 2, 3, 2] * 10, c=0.01, v=2.4)
    assert "n_draft=4 (" in found(rounds, "ngram-cache:n_draft=16")[1]


def test_in_a_mix_the_strategy_is_named() -> None:
    rounds = answer(16, [1, 2, 3, 2] * 10, c=0.01, v=2.4)  # draft-simple's
    assert "n_max=4 for draft-simple (" in found(rounds, "ngram-mod+draft-simple:n_max=16")[1]
    copied = [replace(round, strategy="ngram-mod" if round.drafted else None) for round in rounds]
    assert "n_max=4 for ngram-mod (" in found(copied, "ngram-mod+draft-simple:n_max=16")[1]


def test_rounds_in_which_nobody_was_asked_say_nothing() -> None:
    """The end of a short answer, or a full context."""
    rested = [replace(round, asked=()) for round in answer(0, [0] * 40, c=0.0, v=1.0)]
    rounds = [*rested, *answer(4, [3] * 6, c=0.1, v=1.5)[3:]]
    assert found(rounds)[0] is Finding.TOO_EARLY
    assert found(rounds, f"{DRAFT}:length=auto")[0] is not Finding.TOO_EARLY, "it chose to rest"


def test_that_nothing_was_accepted_is_said_first() -> None:
    """The verdict holds whatever a draft token costs: another draft size would not help."""
    finding, text = found(answer(4, [0] * 250, c=0.6, v=4.5))
    assert finding is Finding.NOTHING
    assert text.startswith("None of the 1,000 drafted tokens was accepted")
    seldom = [one_round(0, 0, 0.0, 1.0) for _ in range(60)] + [one_round(4, 0, 0.0, 1.5)] * 12
    assert found(seldom, "prompt-lookup")[0] is Finding.NOTHING
    assert found(seldom[:62], "prompt-lookup")[0] is Finding.SELDOM


def test_one_lucky_pass_recommends_no_length() -> None:
    """All drafts but one have four tokens; the pass over that one took hardly longer than a single-token
    pass."""
    rounds = [*answer(4, [1, 0, 4, 1] * 5, c=0.1, v=2.6), one_round(3, 1, 0.1, 1.05)]
    assert CostModel.of(rounds).v(3) == pytest.approx(2.2)
    assert "n_max=3" not in found(rounds)[1]


def test_a_length_is_recommended_once_alpha_is_known_well_enough() -> None:
    costs = {"c": 0.02, "v": 1.05}
    few, many = (answer(2, [2, 1, 2] * rounds, **costs) for rounds in (4, 40))
    few = few + [one_round(2, 0, 0.02, 1.05)] * 2
    assert "Try n_max" not in found(few, "draft-simple:n_max=2")[1]
    text = found(many, "draft-simple:n_max=2")[1]
    predicted, least, most = (float(number) for number in re.findall(r"\d\.\d\d", text))
    assert least < predicted < most


def test_a_draftless_strategy_that_finds_nothing() -> None:
    rounds = [one_round(0, 0, 0.0, 1.0) for _ in range(30)]
    finding, text = found(rounds, "prompt-lookup")
    assert finding is Finding.SELDOM
    assert text.startswith("prompt-lookup found a draft in no round")


def test_a_few_long_drafts_are_not_called_seldom() -> None:
    """Two drafts gave 96 of 118 tokens."""
    rounds = [one_round(0, 0, 0.0, 1.0) for _ in range(20)] + [one_round(48, 48, 0.0, 9.0) for _ in range(2)]
    assert found(rounds, "ngram-map-k")[0] is Finding.PAYS


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("draft-simple:length=auto", "length=auto drafted in no round"),
        ("draft-simple:p_min=0.9:n_min=2", "draft-simple drafted in no round: its settings"),
    ],
)
def test_what_was_not_drafted_was_not_refused(strategy: str, words: str) -> None:
    finding, text = found([one_round(0, 0, 0.0, 1.0) for _ in range(30)], strategy)
    assert finding is Finding.SELDOM
    assert text.startswith(words)


def test_without_a_single_pass_it_asks_for_a_baseline() -> None:
    rounds = [one_round(4, 2, 0.1, 1.5) for _ in range(20)]
    assert found(rounds)[0] is Finding.NO_BASELINE


def test_balance_of_time() -> None:
    rounds = answer(4, [4] * 4, c=0.1, v=1.5)  # 3 plain + 20 tokens; 3 + 6 s of passes, 1.6 s of drafting
    shares = balance(Statistics.of(rounds), CostModel.of(rounds))
    assert shares is not None
    assert shares.costs == pytest.approx(1.6 / 23)
    assert shares.saves == pytest.approx(1 - 9 / 23)
    assert shares.factor == pytest.approx(23 / 10.6)
