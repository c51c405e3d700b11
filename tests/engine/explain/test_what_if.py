"""What if: other draft settings for a recorded answer, beside real runs on the same prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import msgspec
import pytest

from app.engine.engine import Engine
from app.engine.errors import SettingError
from app.engine.explain.cost import CostModel
from app.engine.explain.what_if import WhatIf, near_ties, what_if, with_settings
from app.engine.fates import Verdict
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import FinishReason, Sampling
from tests.answers import answer, assert_same_answer
from tests.benchmarks.measure import as_user, demo_prompts

Run = Callable[..., Trace]

STARTS = [
    ("Once upon a time there was a fox who", 4),
    ("In the morning the birds", 5),
    ("The old man lived", 6),
    ("Once upon a time there was a bear who", 7),
    ("One day a girl found", 8),
]
"""Prompts and seeds: the first is taken, and the next where rounding parted two texts that are compared."""
MATCH = ":verify=match"
DRAWN = ":sample=1:verify=match"
"""The draft draws its tokens, with the target's luck."""


@pytest.fixture(scope="module")
def run(demo_engine: Engine) -> Run:
    """Real answers of the bundled pair; those with verify=match or =speculative are drawn."""
    made: dict[tuple[str, int], Trace] = {}

    def answered(strategy: str, start: int = 0) -> Trace:
        if (strategy, start) not in made:
            prompt, seed = STARTS[start]
            drawn = "verify" in strategy  # near-ties part most drawn texts, and sooner
            made[strategy, start] = answer(
                demo_engine,
                prompt,
                strategy=strategy,
                max_tokens=60 if drawn else 120,
                cold=True,
                sampling=Sampling(temperature=0.8, seed=seed) if drawn else Sampling(),
            )
        return made[strategy, start]

    return answered


def of_one_text(run: Run, recorded: str, other: str) -> tuple[Trace, Trace]:
    """Two answers with the same text, of the first start where no near-tie parts them."""
    for start in range(len(STARTS)):
        trace, real = run(recorded, start), run(other, start)
        assert_same_answer(real, trace)
        if real.token_ids == trace.token_ids:
            return trace, real
    raise AssertionError("near-ties part all of the texts")


def asked(trace: Trace, strategy: str) -> WhatIf:
    return what_if(trace, StrategySpec.parse(strategy))


def counts(trace: Trace) -> tuple[int, int, int]:
    rounds = trace.rounds
    drafted = sum(len(round.drafted) for round in rounds)
    return len(rounds), drafted, sum(round.accepted for round in rounds)


RECORDED = ["draft-simple:n_max=8", "draft-simple:n_max=3", "draft-simple:n_max=8:p_min=0.5"]
AUTO = "draft-simple:n_max=8:length=auto"
OTHER = [
    "draft-simple:n_max=1",
    "draft-simple:n_max=2",
    "draft-simple:n_max=4",
    "draft-simple:n_max=8:p_min=0.3",
    "draft-simple:n_max=8:p_min=0.7",
    "draft-simple:n_max=6:n_min=2:p_min=0.6",
    "draft-simple:n_max=8:length=ewma",
]


@pytest.mark.same_text
@pytest.mark.parametrize("verify", ["", MATCH, DRAWN], ids=["greedy", "match", "drawn"])
def test_what_is_called_exact_is_what_really_happens(demo_engine: Engine, verify: str) -> None:
    """Of chats, where the models are surer than in free text: near-ties leave few texts exact."""

    @cache
    def answered(strategy: str, number: int) -> Trace:
        return answer(
            demo_engine,
            None,
            messages=as_user(demo_prompts(12)[number]),
            strategy=strategy + verify,
            max_tokens=40,
            cold=True,
            sampling=Sampling(temperature=0.6, seed=number) if verify else Sampling(),
        )

    exact = within = estimates = 0
    for number in range(12):
        for recorded, strategy in product(RECORDED[:2], OTHER[:4]):
            trace = answered(recorded, number)
            outcome = asked(trace, strategy + verify)
            if not outcome.exact and estimates >= 12:
                continue
            real = counts(answered(strategy, number))
            if outcome.exact:
                exact += 1
                assert (outcome.rounds, outcome.drafted, outcome.accepted) == real, (recorded, strategy)
            else:
                estimates += 1
                within += outcome.fewest <= real[0] <= outcome.most
        if exact >= 3 and estimates >= 12:
            break
    assert exact >= 3
    assert within >= 0.8 * estimates


@pytest.mark.same_text
@pytest.mark.parametrize("verify", ["", MATCH], ids=["greedy", "match"])
@pytest.mark.parametrize("recorded", RECORDED[:2])
def test_an_estimate_is_close_to_what_really_happens(run: Run, recorded: str, verify: str) -> None:
    for strategy in OTHER[:3]:
        trace, real = of_one_text(run, recorded + verify, strategy + verify)
        outcome = asked(trace, strategy + verify)
        rounds, drafted, accepted = counts(real)
        assert outcome.rounds == pytest.approx(rounds, rel=0.15)
        assert outcome.drafted == pytest.approx(drafted, rel=0.15)
        assert outcome.accepted == pytest.approx(accepted, rel=0.15)
        assert outcome.fewest <= outcome.rounds <= outcome.most


@pytest.mark.parametrize("recorded", [strategy + verify for strategy in RECORDED for verify in ("", MATCH)])
def test_the_recorded_settings_give_the_recorded_rounds(run: Run, recorded: str) -> None:
    trace = run(recorded)
    outcome = asked(trace, recorded)
    assert outcome.exact and (outcome.rounds, outcome.drafted, outcome.accepted) == counts(trace)
    assert outcome.tokens == len(trace.token_ids)


@pytest.mark.parametrize("limit", ["the wanted length", "the context"])
def test_drafts_are_as_short_near_the_end_as_they_were(demo_engine: Engine, limit: str) -> None:
    prompt, _ = STARTS[0]
    trace = answer(demo_engine, prompt, strategy=RECORDED[0], max_tokens=20, cold=True, ignore_eos=True)
    if limit == "the context":  # as much room is left at each token
        target = trace.header.pair.target
        target = msgspec.structs.replace(target, n_ctx=trace.header.prompt_tokens + 19)
        pair = msgspec.structs.replace(trace.header.pair, target=target)
        header = msgspec.structs.replace(trace.header, max_tokens=500, pair=pair)
        trace = replace(trace, header=header)
    assert len(trace.rounds[-1].drafted) < 8
    outcome = asked(trace, RECORDED[0])
    assert (outcome.rounds, outcome.drafted, outcome.accepted) == counts(trace)


def test_drawn_texts_are_never_exact_with_other_drafts(run: Run) -> None:
    trace = run("draft-simple:n_max=4:verify=speculative")
    outcome = asked(trace, "draft-simple:n_max=2:verify=speculative")
    assert not outcome.exact and "lead to different draws" in outcome.reasons[0]


@pytest.mark.same_text
def test_a_lower_p_min_than_recorded_is_an_estimate(run: Run) -> None:
    trace, real = of_one_text(run, RECORDED[2], "draft-simple:n_max=8")
    outcome = asked(trace, "draft-simple:n_max=8")
    assert any("no draft was recorded" in reason for reason in outcome.reasons)
    rounds, _, _ = counts(real)
    assert outcome.rounds == pytest.approx(rounds, rel=0.3)


@pytest.mark.same_text
def test_what_was_drafted_behind_a_stop_is_no_place_of_the_text(demo_engine: Engine, run: Run) -> None:
    whole = run(RECORDED[0])
    long = next(round for round in whole.rounds if round.accepted >= 4)
    until = whole.rounds.index(long)
    ids = [token for round in whole.rounds[:until] for token in round.emitted] + list(long.emitted[:2])
    stop = b"".join(token.piece for token in ids).decode()[-20:]
    trace = answer(demo_engine, STARTS[0][0], strategy=RECORDED[0], max_tokens=120, cold=True, stop=(stop,))
    assert [token.verdict for token in trace.rounds[-1].drafted][1:3] == [Verdict.ACCEPTED, Verdict.IGNORED]
    outcome = asked(trace, RECORDED[0])
    assert (outcome.rounds, outcome.drafted, outcome.accepted) == counts(trace)


def test_the_estimate_is_the_same_every_time(run: Run) -> None:
    trace = run(RECORDED[1])
    assert asked(trace, OTHER[1]) == asked(trace, OTHER[1])
    assert not asked(trace, OTHER[1]).exact


@pytest.mark.same_text
def test_the_factor_is_that_of_the_cost_model(run: Run) -> None:
    trace = run(RECORDED[0])
    cost = CostModel.of([*trace.rounds, *run("none").rounds])
    outcome = what_if(trace, StrategySpec.parse(RECORDED[0]), cost)
    assert cost.c is not None and outcome.factor is not None
    taken = sum((cost.v(len(round.drafted)) or 0) + len(round.drafted) * cost.c for round in trace.rounds)
    assert outcome.factor == pytest.approx(len(trace.token_ids) / taken)


def test_without_a_pass_over_one_token_there_is_no_factor(run: Run) -> None:
    trace = run(RECORDED[0])
    drafted = [round for round in trace.rounds if round.drafted]
    assert what_if(trace, StrategySpec.parse(RECORDED[0]), CostModel.of(drafted)).factor is None


def test_every_kind_of_estimate_says_why(run: Run) -> None:
    trace = run(RECORDED[0])
    assert trace.totals is not None
    cut = replace(trace, totals=msgspec.structs.replace(trace.totals, finish_reason=FinishReason.CANCELLED))
    assert any("interrupted" in reason for reason in asked(cut, RECORDED[0]).reasons)
    warm = replace(trace, header=msgspec.structs.replace(trace.header, cold=False))
    assert any("warm" in reason for reason in asked(warm, OTHER[-1]).reasons)
    with pytest.raises(SettingError, match="decides by times"):
        asked(trace, AUTO)
    cost = CostModel.of([*trace.rounds, *run("none").rounds])
    assert any("clock" in reason for reason in what_if(trace, StrategySpec.parse(AUTO), cost).reasons)
    copied = run("prompt-lookup")
    again = asked(copied, "prompt-lookup:num_pred_tokens=2")
    assert again.exact != bool(near_ties(copied)), "it is asked again, and only rounding can decide otherwise"
    bare = [msgspec.structs.replace(round, target_top=()) for round in copied.rounds]  # from elsewhere
    assert len(near_ties(replace(copied, rounds=bare))) == len(copied.token_ids)
    drawn = run("prompt-lookup:verify=match")
    deep = replace(drawn, header=msgspec.structs.replace(drawn.header, prompt_tokens=500))
    told = [any("multiple of 256" in why for why in asked(each, "prompt-lookup:verify=match").reasons)
            for each in (drawn, deep)]  # fmt: skip
    assert told == [False, True]
    older = replace(copied, header=msgspec.structs.replace(copied.header, context_ids=()))
    with pytest.raises(SettingError, match="not recorded"):
        asked(older, "prompt-lookup")


@pytest.mark.parametrize(
    ("recorded", "wanted", "message"),
    [
        ("none", "draft-simple", "drafted nothing"),
        ("prompt-lookup+draft-simple", "draft-simple", "mix of strategies"),
        ("draft-simple", "prompt-lookup", "made with draft-simple"),
        ("draft-simple", "draft-simple:verify=match", "made with draft-simple"),
    ],
)
def test_what_the_record_says_nothing_about_is_refused(
    run: Run, recorded: str, wanted: str, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        asked(run(recorded), wanted)


def test_settings_are_put_into_the_recorded_strategy() -> None:
    recorded = StrategySpec.parse("draft-simple:n_max=8:n_min=4:verify=match")
    changed = with_settings(recorded, 2, 0.5, "ewma")
    assert str(changed) == "draft-simple:n_max=2:n_min=2:p_min=0.5:verify=match:length=ewma"
    lookup = with_settings(StrategySpec.parse("prompt-lookup"), longest=4, p_min=0.5)
    assert str(lookup) == "prompt-lookup:num_pred_tokens=4"
