"""Advice: the cause, the setting to try, and when to keep what is there. Times are set, so that the best is
known."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from app.engine.drafters.base import DRAFT_FULL, TARGET_FULL
from app.engine.engine import Engine
from app.engine.explain.advice import Advice, larger_contexts, next_advice, smaller_draft
from app.engine.explain.cost import CostModel, disorder
from app.engine.explain.facts import AdviceFacts, DraftFile, Factor, Finding, Tried
from app.engine.explain.predict import Predictor
from app.engine.process.messages import PassSeconds
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import ModelInfo, ModelOptions, PairInfo, Round
from tests.answers import answer
from tests.engine.explain.advised import PASSES, at_costs
from tests.engine.explain.test_cost import one_round

COPIED = "Alpha beta gamma delta epsilon zeta eta theta. " * 4


def model_of(size: int, **facts: object) -> ModelInfo:
    info = ModelInfo("/m/target.gguf", "target", "llama", "Q8_0", size, size, 4, 4096, 2048, 2048, 1, True)
    return msgspec.structs.replace(info, **facts)


PAIR = PairInfo(model_of(1000), model_of(100, quantisation="F16"))
OPTIONS = ModelOptions("/m/draft.gguf")


def facts_of(rounds: list[Round], strategy: str = "draft-simple:n_max=4", **known: object) -> AdviceFacts:
    """AdviceFacts of rounds whose text never repeats, so that nothing can be copied."""
    position, placed = 0, []
    for round in rounds:
        placed.append(msgspec.structs.replace(round, position=position))
        position += len(round.emitted)
    rounds = placed
    facts = AdviceFacts(
        StrategySpec.parse(strategy),
        Statistics.of(rounds),
        CostModel.of(rounds),
        rounds,
        prompt_ids=range(100, 120),
        token_ids=range(1000, 1000 + Statistics.of(rounds).emitted),
        pair=PAIR,
        draft=OPTIONS,
    )
    return replace(facts, **known)  # type: ignore[arg-type]


def drafted(accepted: list[int], c: float, v: float, k: int = 4) -> list[Round]:
    """Rounds of one length, after as many single-token passes of a second as are surely measured."""
    plain = [one_round(0, 0, 0.0, 1.0) for _ in range(6)]
    return plain + [one_round(k, taken, c, v) for taken in accepted]


def advice_on(facts: AdviceFacts) -> Advice:
    advice = next_advice(facts)
    assert advice is not None
    return advice


def measured(value: float) -> Factor:
    return Factor(value, 0.97 * value, 1.03 * value)


def test_what_can_be_copied_from_the_prompt_is_tried_and_brings_what_was_expected(
    demo_engine: Engine,
) -> None:
    request = {"max_tokens": 60, "ignore_eos": True, "cold": True}
    trace = answer(demo_engine, COPIED, strategy="ngram-mod", **request)
    facts = AdviceFacts.of(
        [Trace(trace.header, at_costs(trace.rounds, 0.0), trace.totals)], calibration=PASSES
    )
    own = Predictor(facts).own
    assert own is not None
    facts = replace(facts, pair=PairInfo(trace.header.pair.target), measured=measured(own.value))
    advice = advice_on(facts)
    (remedy,) = advice.remedies
    assert remedy.spec is not None and remedy.expected is not None and remedy.expected.value > 1.05
    assert advice.text.startswith(f"{own.value:.2f}× was measured.")
    assert f"Try {remedy.spec}: {remedy.expected.value:.2f}× (" in advice.text
    after = answer(demo_engine, COPIED, strategy=str(remedy.spec), **request)
    now = AdviceFacts.of([Trace(after.header, at_costs(after.rounds, 0.0), after.totals)], calibration=PASSES)
    happened = Predictor(now).own
    assert happened is not None and remedy.expected.low <= happened.value <= remedy.expected.high


def test_what_was_measured_worse_is_never_proposed_again() -> None:
    """If advice is always wrong, it ends after two tries, with the best that was measured."""
    rounds = drafted([3, 4, 2, 4] * 5, c=0.3, v=3.0)
    facts = facts_of(rounds, measured=measured(0.31))
    tried: dict[str, Tried] = {}
    for _ in range(5):
        advice = advice_on(replace(facts, tried=tried))
        if advice.next is None or not advice.next.parts:
            break
        assert str(advice.next) not in tried
        tried[str(advice.next)] = Tried(measured(0.5))
    assert len(tried) <= 2
    assert advice.next == StrategySpec()
    assert advice.text.endswith("Use strategy none: nothing tried or predicted is faster.")
    back = advice_on(replace(facts, tried={**tried, "suffix": Tried(measured(1.2))}))
    assert str(back.next) == "suffix" and "Use suffix: 1.20× (1.16 to 1.24) was measured." in back.text
    unsteady = {**tried, "suffix": Tried(Factor(1.7, 0.9, 3.0))}
    assert advice_on(replace(facts, tried=unsteady)).next == StrategySpec(), "that says nothing"


def test_none_is_the_first_answer_where_it_is_best() -> None:
    facts = facts_of(drafted([1, 0, 1, 0] * 5, c=0.5, v=4.5), measured=measured(0.26))
    assert advice_on(facts).next == StrategySpec()
    tried = {"suffix": Tried(measured(0.9))}
    kept = advice_on(facts_of([one_round(0, 0, 0.0, 1.0)] * 40, "none", tried=tried))
    assert kept.next is None and kept.text == "Keep strategy none: nothing tried or predicted is faster."


def test_the_best_is_kept() -> None:
    rounds = drafted([4, 4, 4, 4] * 5, c=0.05, v=3.6)
    best = max((f"n_max={k}" for k in (2, 4)), key=str)
    advice = advice_on(facts_of(rounds, f"draft-simple:{best}", measured=measured(3.5)))
    assert advice.next is None and not advice.remedies
    assert advice.text == "Keep this: 3.50×, nothing tried or predicted is better."
    tried = {name: Tried(measured(0.7)) for name in ("suffix", "ngram-mod")}  # only they decide then
    advice = advice_on(facts_of(rounds, f"draft-simple:{best}", measured=measured(0.98), tried=tried))
    assert advice.text == "Keep this: 0.98×, about as fast as none, nothing tried or predicted is better."


def test_a_factor_is_of_the_whole_answer_and_has_its_range() -> None:
    rounds = [one_round(0, 0, 0.0, 1.0)] * 60 + [one_round(4, 0, 0.1, 3.0)] * 12
    advice = advice_on(facts_of(rounds))
    assert advice.factor is not None and not advice.measured
    assert advice.factor.value == pytest.approx(72 / (60 + 12 * 3.4), rel=0.01), "drafted or not"
    assert advice.factor.low < advice.factor.value < advice.factor.high
    assert advice.text.startswith(f"Predicted for the whole answer: {advice.factor.value:.2f}× (")


def test_a_measurement_on_a_busy_machine_is_not_gone_by() -> None:
    """Its factor is neither kept nor compared: the setting that is predicted to be faster is still named."""
    facts = facts_of(drafted([1, 0, 1, 0] * 5, c=0.3, v=4.5), measured=Factor(1.26, 0.39, 2.54))
    advice = advice_on(facts)
    assert advice.text.startswith("0.39× to 2.54× was measured, which is too uncertain to act on. Predicted")
    assert "1.26" not in advice.text and not advice.measured and advice.next == StrategySpec()


@pytest.mark.parametrize(
    ("strategy", "accepted", "c", "v", "said"),
    [
        ("draft-eagle3", [0] * 10, 0.1, 1.5, True),
        ("draft-eagle3", [0] * 9, 0.1, 1.5, False),
        ("suffix", [0] * 10, 0.1, 1.5, False),
        ("draft-dflash", [0] * 10, 0.6, 1.5, True),  # though its tokens are dear as well
        ("draft-dspark", [0] * 10, 0.1, 9.5, True),  # or the machine busy
        ("draft-mtp", [4, *[0] * 10], 0.1, 1.5, True),  # after a copy that passed
    ],
)
def test_a_head_that_is_never_right_is_said_to_be_of_another_model(
    strategy: str, accepted: list[int], c: float, v: float, said: bool
) -> None:
    rounds = [
        msgspec.structs.replace(
            round, strategy=("ngram-mod" if round.accepted else strategy) if round.drafted else None
        )
        for round in drafted(accepted, c, v)
    ]
    advice = advice_on(facts_of(rounds, f"ngram-mod+{strategy}", measured=measured(0.7)))
    assert advice.finding is (Finding.MISFIT if said else Finding.NOTHING)
    assert ("a different base model, or quantised too far" in advice.text) == said
    if said:
        kept = advice_on(facts_of(rounds, f"ngram-mod+{strategy}", measured=measured(3.0)))
        assert kept.text.endswith("Try ngram-mod: it does without that head.") and not kept.keeps
    lucky = [msgspec.structs.replace(rounds[-1], emitted=round.emitted, drafted=round.drafted)
             for round in drafted([1, *[0] * 41], c, v)[6:]]  # fmt: skip
    advice = advice_on(facts_of([*rounds[:6], *lucky], strategy, measured=measured(0.7)))
    assert ("a different base model" in advice.text) == (strategy != "suffix")


@pytest.mark.parametrize(
    ("rounds", "pair", "finding", "words"),
    [
        (drafted([3, 2] * 10, 0.1, 4.5), PAIR, Finding.DEAR_PASSES, "takes 4.5 times as long"),
        (drafted([3, 2] * 10, 0.1, 4.5), PAIR, Finding.DEAR_PASSES, "this target (Q8_0, 0 M parameters)"),
        (
            drafted([3, 2] * 10, 0.1, 4.5),
            PairInfo(model_of(1000, n_experts=8), PAIR.draft),
            Finding.DEAR_PASSES,
            "each token uses different experts of the 8 in a layer",
        ),
        (drafted([0] * 20, 0.1, 1.5), PAIR, Finding.NOTHING, "None of the 80 drafted tokens was accepted."),
        (drafted([0], 0.1, 1.5, 1), PAIR, Finding.NOTHING, "The only drafted token was not accepted."),
        (drafted([0, 1] * 10, 0.1, 1.6), PAIR, Finding.LOW_ACCEPTANCE, "Only 12"),
        (drafted([3, 2] * 10, 0.6, 1.6), PAIR, Finding.DRAFT_LARGE, "the draft is too slow for this target"),
        (
            drafted([3, 2] * 10, 1.1, 1.6),
            PairInfo(model_of(1000), model_of(980, quantisation="F16")),
            Finding.DRAFT_LARGE,
            "the draft has 98 % of the target's size (F16 beside Q8_0)",
        ),
        (
            drafted([3, 2] * 10, 0.6, 1.6),
            PairInfo(model_of(1000, n_gpu_layers=4), model_of(100), devices="CUDA0, CPU"),
            Finding.DRAFT_ON_CPU,
            "the draft is on the CPU, and the target is not",
        ),
        (drafted([3, 2] * 10, 0.1, 9.5), PAIR, Finding.DISTURBED, "was probably busy"),
    ],
)
def test_the_cause_is_named_by_what_is_known(
    rounds: list[Round], pair: PairInfo, finding: Finding, words: str
) -> None:
    advice = advice_on(facts_of(rounds, pair=pair, measured=measured(0.7)))
    assert advice.finding is finding
    assert words.replace(" %", "\N{NO-BREAK SPACE}%") in advice.text or words in advice.text
    assert "mixture" not in advice.text, "the file says what it is"


def test_passes_that_a_calibration_knows_to_be_slow_are_no_disturbance() -> None:
    facts = facts_of(drafted([3, 2] * 10, 0.1, 9.5), measured=measured(0.4))
    assert advice_on(facts).finding is Finding.DISTURBED
    slow = facts.cost.calibrated(PassSeconds({1: 1.0, 2: 4.0, 5: 9.4, 9: 10.0, 17: 12.0}, 0.1, 0.02))
    advice = advice_on(replace(facts, cost=slow))
    assert advice.finding is Finding.DEAR_PASSES and advice.next == StrategySpec()


def test_a_calibration_of_a_busy_machine_excuses_no_pass_that_no_target_takes() -> None:
    """Passes over five tokens take at most ten single ones, and longer passes save something."""
    busy = {1: 0.01, 2: 0.2, 5: 0.645, 9: 0.7, 17: 0.8}
    assert disorder(busy) == pytest.approx(70 / 9 - 1)
    assert disorder({1: 1.0, 2: 3.3, 3: 4.7, 5: 6.0}) == 0.0, "as of a target that is slow in small batches"
    assert disorder({1: 1.0, 2: 3.3, 5: 7.6, 9: 11.6, 17: 17.1}) == pytest.approx(11.6 / 9 - 1)
    for rounds in (drafted([3, 2] * 10, 0.1, 64.5), drafted([3, 2], 0.1, 3.0)):
        facts = facts_of(rounds, measured=measured(0.1))
        advice = advice_on(replace(facts, cost=facts.cost.calibrated(PassSeconds(busy))))
        assert advice.finding is Finding.DISTURBED
        assert "64.5 times" in advice.text and "was probably busy" in advice.text


@pytest.mark.parametrize(
    ("calibration", "words"),
    [
        (None, "Try "),
        (PassSeconds({1: 1.0, 2: 3.7, 3: 3.8, 5: 4.0, 9: 4.5, 17: 5.0}), "Try "),
        (PassSeconds({1: 1.0, 2: 2.0, 3: 2.2, 5: 2.6, 9: 3.4, 17: 5.0}, 0.0, 0.6), "Try "),
        (PassSeconds({1: 1.0, 2: 2.0, 3: 3.0, 5: 5.0, 9: 9.0, 17: 17.0}, 0.0, 0.02), "Keep this: 1.00×,"),
    ],
    ids=["never timed", "implausible", "two times that differ", "truly dear"],
)
def test_a_copied_prompt_in_which_nothing_was_found_is_seen(
    calibration: PassSeconds | None, words: str
) -> None:
    """The answer repeats its prompt word for word; ngram-mod found none of it."""
    text = [*range(1000, 1040)]
    facts = facts_of([one_round(0, 0, 0.0, 1.0)] * 40, "ngram-mod", prompt_ids=text, token_ids=text)
    cost = facts.cost.calibrated(calibration) if calibration is not None else facts.cost
    advice = advice_on(replace(facts, cost=cost))
    assert advice.finding is Finding.SELDOM and words in advice.text
    assert "prompt-lookup would have drafted 85\N{NO-BREAK SPACE}% of this answer" in advice.text
    copies = advice.next is not None and not advice.next.needs_draft and bool(advice.next.parts)
    assert copies == (words == "Try ") and "×" not in advice.text.partition("it may be faster")[2]


def test_low_acceptance_leads_to_another_draft_of_the_library() -> None:
    drafts = [DraftFile("/m/less.gguf", 50, "less"), DraftFile("/m/more.gguf", 200, "more")]
    facts = facts_of(drafted([0, 1] * 10, c=0.1, v=1.6), drafts=drafts, measured=measured(0.7))
    advice = advice_on(facts)
    assert "Or try more as the draft (20 % of the target's size)." in advice.text
    assert advice.remedies[-1].draft == replace(OPTIONS, path="/m/more.gguf")
    unmeasured = facts_of([one_round(4, at % 2, 0.1, 1.6) for at in range(20)], drafts=drafts)
    assert "Measure the baseline to see what drafting saves. Or try more" in advice_on(unmeasured).text
    dear = facts_of(drafted([0, 1] * 10, c=0.1, v=5.0), drafts=drafts, measured=measured(0.3))
    assert "as the draft" not in advice_on(dear).text, "a pass over five takes five: no draft pays"
    assert advice_on(dear).text.endswith("No other draft in the library could pay off with this target.")
    tried = {name: Tried(measured(0.5)) for name in ("suffix", "ngram-mod")}
    kept = replace(facts, measured=measured(3.0), tried=tried)
    cause = "Only 12\N{NO-BREAK SPACE}% of the drafted tokens were accepted."
    for known, said in (
        (drafts, f" {cause} Or try more as the draft (20 % of the target's size)."),
        ([], f" {cause} No other draft in the library could pay off with this target."),
        (
            [*drafts, DraftFile("", 150, "far")],
            f" {cause} Or try more as the draft (20 % of the target's size).",
        ),
        (
            [DraftFile("", 150, "far")],
            f" {cause} The catalogue in Models has far (15 % of the target's size).",
        ),
        (None, ""),  # it was not looked through
    ):
        advice = advice_on(replace(kept, drafts=known))
        assert advice.text == f"Keep this: 3.00×, nothing tried or predicted is better.{said}"
        assert advice.keeps
    smaller = advice_on(replace(facts_of(drafted([3, 2] * 10, 0.6, 1.6)), drafts=drafts))
    assert smaller.remedies[-1].draft == replace(OPTIONS, path="/m/less.gguf")


def test_a_draft_on_the_cpu_is_moved_to_the_targets_devices() -> None:
    pair = PairInfo(model_of(1000, n_gpu_layers=4), model_of(100), devices="CUDA0, CPU")
    facts = facts_of(drafted([3, 2] * 10, 0.6, 1.6), pair=pair, measured=measured(0.7))
    moved = replace(OPTIONS, n_gpu_layers=-1)
    assert any(remedy.draft == moved for remedy in advice_on(facts).remedies)


def test_a_draft_model_that_was_never_asked_is_worth_a_try_without_a_promise() -> None:
    rounds = [one_round(0, 0, 0.0, 1.0)] * 40
    facts = facts_of(rounds, "suffix")
    cost = facts.cost.calibrated(PassSeconds({1: 1.0, 2: 1.05, 5: 1.2, 9: 1.3, 17: 1.6}, 0.05))
    advice = advice_on(replace(facts, cost=cost))
    assert advice.next is not None and advice.next.needs_draft
    assert advice.remedies[0].expected is None and "not known yet" in advice.text
    dear = facts.cost.calibrated(PassSeconds({1: 1.0, 2: 1.9, 5: 4.5, 9: 8.0, 17: 15.0}, 0.5))
    assert advice_on(replace(facts, cost=dear)).next is None


def test_too_short_is_said_of_what_was_not_measured_only() -> None:
    rounds = drafted([3], c=0.1, v=1.5)
    assert advice_on(facts_of(rounds)).finding is Finding.TOO_EARLY
    assert advice_on(facts_of(rounds, measured=measured(1.14))).finding is not Finding.TOO_EARLY


def test_only_advice_to_keep_the_setting_keeps_it() -> None:
    rounds = drafted([4, 3, 4, 4] * 8, c=0.1, v=1.5)
    kept = facts_of(rounds, pair=PairInfo(model_of(1000, n_ctx=512, n_ctx_train=4096), model_of(100)),
                    target=ModelOptions("/m/target.gguf"), measured=measured(2.2))  # fmt: skip
    kept.statistics.ends[f"n_max; {TARGET_FULL}"] = 1
    advice = advice_on(kept)
    assert "Keep this" in advice.text and advice.keeps and advice.remedies, "the larger context is one"
    for short in (facts_of(rounds[:7]), facts_of(rounds, "oracle:alpha=0.9")):
        advice = advice_on(short)
        assert not advice.remedies and not advice.keeps, advice.text


def test_without_a_single_pass_it_asks_for_a_baseline() -> None:
    advice = advice_on(facts_of([one_round(4, 2, 0.1, 1.5)] * 20))
    assert advice.finding is Finding.NO_BASELINE and "Measure the baseline" in advice.text


@pytest.mark.parametrize(
    ("sizes", "best"),
    [([], None), ([71], None), ([70], 70), ([60, 30], 30), ([5, 14], 14), ([10, 20, 2], 10), ([72, 65], 65)],
)
def test_a_smaller_draft_is_clearly_smaller_and_near_a_tenth(sizes: list[int], best: int | None) -> None:
    files = [DraftFile(f"/m/{size}.gguf", 10 * size, str(size)) for size in sizes]
    pair = PairInfo(model_of(1000), model_of(1000))
    remedy = smaller_draft(facts_of(drafted([3], 0.1, 1.5), pair=pair, drafts=files))
    assert (remedy and remedy.draft) == (ModelOptions(f"/m/{best}.gguf") if best else None)


@pytest.mark.parametrize(
    ("why", "now", "trained", "wanted"),
    [
        *((TARGET_FULL, 512, trained, wanted) for trained, wanted in ((4096, 1024), (600, 600), (512, 0))),
        *((DRAFT_FULL, 1024, trained, wanted) for trained, wanted in ((4096, 1024), (800, 800), (512, 0))),
    ],
)
def test_a_full_context_grows_as_far_as_it_can(why: str, now: int, trained: int, wanted: int) -> None:
    target = model_of(1000, n_ctx=now, n_ctx_train=trained if why == TARGET_FULL else now)
    pair = PairInfo(target, model_of(100, n_ctx=512, n_ctx_train=trained))
    facts = facts_of(drafted([3], 0.1, 1.5), pair=pair, target=ModelOptions("/m/target.gguf"))
    found = [*larger_contexts(replace(facts, statistics=Statistics(ends={f"n_max; {why}": 1})))]
    sizes = [(each.target or each.draft).ctx_size for each in found]
    assert sizes == ([wanted] if wanted else [])
    assert not [*larger_contexts(replace(facts, statistics=Statistics(ends={"n_max": 1})))]


def test_every_strategy_that_is_registered_can_be_asked_about() -> None:
    """No head is at hand, and none is asked for."""
    rounds = [one_round(0, 0, 0.0, 1.0)] * 40
    cost = CostModel.of(rounds).calibrated(PassSeconds({1: 1.0, 2: 1.05, 5: 1.2, 9: 1.3, 17: 1.6}, 0.05))
    for strategy in ("suffix", "none"):
        advice = advice_on(facts_of(rounds, strategy, cost=cost))
        assert advice.next is not None and advice.next.parts[0].name == "draft-simple"
    assert next_advice(facts_of(rounds[:3], "none")) is None, "nothing was drafted, and it is short"
