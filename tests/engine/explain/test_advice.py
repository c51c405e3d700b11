"""Advice on real answers, and the effect of its remedies.

Where the cause is in the costs, tokens and verdicts are real and times are set, because times of a busy
machine are unreliable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from typing_extensions import override

from app.engine.drafters.base import DRAFT_FULL, TARGET_FULL, Drafter, Proposal
from app.engine.drafters.outside.foreign import register
from app.engine.drafters.registry import StrategyKind
from app.engine.engine import Engine
from app.engine.explain.advice import Finding
from app.engine.explain.facts import DraftFile
from app.engine.explain.remedies import AnswerSetup, larger_contexts, smaller_draft
from app.engine.record.stats import Statistics
from app.engine.types import ModelInfo, ModelOptions, PairInfo, Sampling
from tests.answers import answer
from tests.engine.explain.advised import advice_on, applied, at_costs
from tests.files.tiny import Tiny
from tests.workers import worker

if TYPE_CHECKING:
    from app.engine.types import TokenIds

TinyFile = Callable[[Tiny], Path]
Options = tuple[ModelOptions, ModelOptions]
TEXT = "The quick brown fox jumps"


@pytest.fixture
def pair(tiny_file: TinyFile) -> Options:
    """A draft of which few tokens are accepted."""
    target = Tiny(name="target", n_ctx=1024)
    draft = Tiny(name="far", n_ctx=1024, noise=0.6, noise_seed=3)
    return ModelOptions(str(tiny_file(target))), ModelOptions(str(tiny_file(draft)))


def test_surer_drafts_where_few_are_accepted(pair: Options) -> None:
    with Engine(*pair) as engine:
        trace = answer(engine, TEXT, strategy="draft-simple:n_max=6", max_tokens=120, ignore_eos=True)
        before = Statistics.of(trace.rounds)
        advice = advice_on(trace, at_costs(trace.rounds, 0.1), AnswerSetup(), speedup=0.9)
        assert advice.finding is Finding.LOW_ACCEPTANCE
        (surer,) = (remedy for remedy in advice.remedies if remedy.text == "p_min=0.5")
        assert surer.text in advice.text
        after = applied(engine, surer, TEXT, 120)
    assert (after.acceptance_rate or 0) > (before.acceptance_rate or 1)


def test_low_acceptance_is_advised_before_a_baseline_is_measured(pair: Options) -> None:
    with Engine(*pair) as engine:
        trace = answer(engine, TEXT, strategy="draft-simple:n_max=6", max_tokens=120, ignore_eos=True)
    rounds = [round for round in trace.rounds if round.drafted]  # none of a single token
    advice = advice_on(trace, rounds, AnswerSetup())
    assert advice.finding is Finding.LOW_ACCEPTANCE and not advice.measured
    assert advice.remedies[0].text == "p_min=0.5"
    assert "strategy none" not in advice.text, "whether drafting pays is not known"
    assert advice.text.endswith("Measure the baseline to see whether drafting pays.")


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("ngram-simple", "size_n=8 and size_m=16"),
        ("ngram-map-k", "size_n=8 and size_m=16"),
        ("ngram-map-k4v", "size_n=8 and size_m=16"),
        ("ngram-mod", "n_match=8, n_min=2 and n_max=16"),
    ],
)
def test_shorter_matches_where_the_defaults_find_nothing(
    tiny_file: TinyFile, strategy: str, words: str
) -> None:
    target = tiny_file(Tiny(name="chain", chain=tuple("0123456789abcdefghij")))
    with Engine(target) as engine:
        trace = answer(engine, "0123", strategy=strategy, ignore_eos=True, max_tokens=46)
        assert not Statistics.of(trace.rounds).drafted
        advice = advice_on(trace, trace.rounds, AnswerSetup())
        assert advice.finding is Finding.SELDOM
        assert "this text repeats in shorter pieces" in advice.text
        (remedy,) = advice.remedies
        assert remedy.text == words and words in advice.text
        assert applied(engine, remedy, "0123", 46).accepted > 5


def test_a_text_that_does_not_repeat_gets_no_shorter_match(engine: Engine) -> None:
    trace = answer(
        engine, TEXT, strategy="ngram-simple", max_tokens=40, ignore_eos=True, sampling=Sampling(5.0, seed=1)
    )
    advice = advice_on(trace, trace.rounds, AnswerSetup())
    assert "repeats too little" in advice.text
    assert [remedy.text for remedy in advice.remedies] == ["ngram-simple with draft-simple"]


def test_a_plug_in_that_drafts_nothing_is_not_told_about_repetition(
    known_strategies: None, engine: Engine
) -> None:
    @dataclass(frozen=True)
    class NoParams:
        """No settings."""

    class Silent(Drafter):
        @override
        def propose(self, context: TokenIds, k: int) -> Proposal:
            return Proposal()

    register(StrategyKind("silent", NoParams, "Drafts nothing.", make=lambda params, resources: Silent()))
    trace = answer(engine, TEXT, strategy="silent", max_tokens=40, ignore_eos=True)
    advice = advice_on(trace, trace.rounds, AnswerSetup())
    assert advice.finding is Finding.SELDOM
    assert "silent found a draft in no round." in advice.text and "repeats" not in advice.text


def test_another_kind_where_copies_are_refused(engine: Engine) -> None:
    trace = answer(
        engine,
        TEXT * 8,
        strategy="prompt-lookup:max_ngram_size=1",
        max_tokens=80,
        ignore_eos=True,
        sampling=Sampling(1.5, seed=1),
    )
    advice = advice_on(trace, at_costs(trace.rounds, 0.0), AnswerSetup(), speedup=0.8)
    assert advice.finding in (Finding.LOW_ACCEPTANCE, Finding.NOTHING)
    (remedy,) = (found for found in advice.remedies if found.text == "suffix in place of prompt-lookup")
    assert remedy.text in advice.text
    assert str(remedy.spec) == "suffix"


def test_a_larger_context_where_it_was_full(pair: Options) -> None:
    target, draft = replace(pair[0], ctx_size=256), replace(pair[1], ctx_size=512)
    with Engine(target, draft) as engine:
        trace = answer(engine, TEXT, strategy="draft-simple", max_tokens=400, ignore_eos=True)
    advice = advice_on(trace, trace.rounds, AnswerSetup(target=target, draft=draft))
    assert "The context was full: try a context of 512 tokens." in advice.text
    assert advice.remedies[-1].target == replace(target, ctx_size=512)


def test_a_larger_context_of_the_draft_where_it_was_full(pair: Options) -> None:
    target, draft = pair[0], replace(pair[1], ctx_size=256)
    with Engine(target, draft) as engine:
        trace = answer(engine, TEXT, strategy="draft-simple", max_tokens=300, ignore_eos=True)
    advice = advice_on(trace, trace.rounds, AnswerSetup(target=target, draft=draft))
    assert "try a context of 1,024 tokens for the draft" in advice.text
    assert advice.remedies[-1].draft == replace(draft, ctx_size=1024)


def test_a_draft_on_the_cpu_beside_a_target_elsewhere(pair: Options) -> None:
    with worker() as running:
        target = replace(pair[0], rpc=running.endpoint, device="RPC0")
        draft = replace(pair[1], rpc=running.endpoint, n_gpu_layers=0)
        with Engine(target, draft) as engine:
            trace = answer(engine, TEXT, strategy="draft-simple", max_tokens=60, ignore_eos=True)
        rounds = at_costs(trace.rounds, 0.6)
        advice = advice_on(trace, rounds, AnswerSetup(target=target, draft=draft), speedup=0.8)
        assert advice.finding is Finding.DRAFT_ON_CPU
        assert "Try the draft on RPC0." in advice.text
        moved = advice.remedies[0].draft
        assert moved is not None and moved.device == "RPC0", "the target's"
        after = advice_on(trace, rounds, AnswerSetup(), speedup=0.8)  # another pair is loaded meanwhile
        assert (after.finding, after.text) == (advice.finding, advice.text), "the answer's cause stays"
        assert [remedy.text for remedy in after.remedies] == ["ngram-mod, which needs no draft model"]
        with Engine(target, moved) as engine:
            assert engine.pair.draft is not None and engine.pair.draft.n_gpu_layers > 0


def test_another_draft_of_the_library_where_few_tokens_are_accepted(pair: Options) -> None:
    target, draft = pair
    with Engine(target, draft) as engine:
        trace = answer(engine, TEXT, strategy="draft-simple:n_max=6", max_tokens=120, ignore_eos=True)
    rounds, header = at_costs(trace.rounds, 0.1), trace.header
    assert header.pair.draft is not None
    size = header.pair.draft.size
    drafts = [
        DraftFile(f"/m/{name}.gguf", at, name) for name, at in (("less", size // 2), ("more", 2 * size))
    ]
    known = AnswerSetup(target=target, draft=draft, drafts=[DraftFile(draft.path, size, "this"), *drafts])
    advice = advice_on(trace, rounds, known, speedup=0.9)
    assert advice.finding is Finding.LOW_ACCEPTANCE and "or more as the draft (" in advice.text
    assert next(remedy.draft for remedy in advice.remedies if remedy.draft) == replace(
        draft, path="/m/more.gguf"
    )
    smaller = advice_on(trace, rounds, replace(known, drafts=drafts[:1]), speedup=0.9)
    assert "or less as the draft (" in smaller.text, "there is no larger one"
    alone = advice_on(trace, rounds, AnswerSetup(target=target, draft=draft), speedup=0.9)
    assert "as the draft" not in alone.text


def test_a_smaller_draft_of_the_library_where_it_is_too_large(pair: Options) -> None:
    target, draft = pair
    with Engine(target, draft) as engine:
        trace = answer(engine, TEXT, strategy="draft-simple", max_tokens=60, ignore_eos=True)
    size = trace.header.pair.target.size
    drafts = [
        DraftFile(f"/m/{part}.gguf", int(size * part / 100), f"{part}.gguf") for part in (3, 12, 40, 90)
    ]
    rounds = at_costs(trace.rounds, 0.7)
    advice = advice_on(trace, rounds, AnswerSetup(target=target, draft=draft, drafts=drafts), speedup=0.8)
    assert advice.finding is Finding.DRAFT_LARGE
    assert "Try 12.gguf (12 % of the target's size), or ngram-mod" in advice.text
    assert advice.remedies[0].draft == replace(draft, path="/m/12.gguf")
    unknown = advice_on(trace, rounds, AnswerSetup(target=target, draft=draft), speedup=0.8)
    assert "Choose a smaller one, or a strategy that needs none" in unknown.text


@pytest.mark.parametrize(
    ("sizes", "best"),
    [([], None), ([71], None), ([70], 70), ([60, 30], 30), ([5, 14], 14), ([10, 20, 2], 10), ([72, 65], 65)],
)
def test_a_smaller_draft_is_clearly_smaller_and_near_a_tenth(sizes: list[int], best: int | None) -> None:
    target = model_of(1000)
    pair = PairInfo(target, msgspec.structs.replace(target, size=1000))
    files = [DraftFile(f"/m/{size}.gguf", 10 * size, str(size)) for size in sizes]
    remedy = smaller_draft(AnswerSetup(pair=pair, draft=ModelOptions("/m/draft.gguf"), drafts=files))
    assert (remedy and remedy.draft) == (ModelOptions(f"/m/{best}.gguf") if best else None)


@pytest.mark.parametrize(
    ("now", "trained", "wanted"), [(512, 4096, 1024), (512, 1024, 1024), (512, 600, 600), (512, 512, None)]
)
def test_a_full_context_is_doubled_as_far_as_the_model_was_trained(
    now: int, trained: int, wanted: int | None
) -> None:
    target = msgspec.structs.replace(model_of(1000), n_ctx=now, n_ctx_train=trained)
    setup = AnswerSetup(pair=PairInfo(target), target=ModelOptions("/m/target.gguf"))
    found = list(larger_contexts(Statistics(ends={f"n_max; {TARGET_FULL}": 1}), setup))
    assert [remedy.target and remedy.target.ctx_size for remedy in found] == ([wanted] if wanted else [])
    assert not list(larger_contexts(Statistics(ends={"n_max": 1}), setup))


@pytest.mark.parametrize(("trained", "wanted"), [(4096, 1024), (800, 800), (512, None)])
def test_a_full_context_of_the_draft_grows_to_that_of_its_target(trained: int, wanted: int | None) -> None:
    target = msgspec.structs.replace(model_of(1000), n_ctx=1024, n_ctx_train=1024)
    draft = msgspec.structs.replace(target, n_ctx=512, n_ctx_train=trained)
    setup = AnswerSetup(pair=PairInfo(target, draft), draft=ModelOptions("/m/draft.gguf"))
    found = list(larger_contexts(Statistics(ends={DRAFT_FULL: 1}), setup))
    assert [remedy.draft and remedy.draft.ctx_size for remedy in found] == ([wanted] if wanted else [])


def model_of(size: int) -> ModelInfo:
    return ModelInfo("/m/target.gguf", "target", "llama", "Q8_0", size, size, 4, 4096, 2048, 2048, 1, True)
