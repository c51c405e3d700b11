"""The field's guides, row by row: where a setting is the cause, the advice names it, and it helps.

llama.cpp's docs/speculative.md, prompt-lookup's and vLLM's how-tos say what to turn when drafts are rare or
refused. Each row is an answer of a real engine that has this cause, and the remedy that the app offers.
Rows on devices, contexts and other drafts are in test_advice.py, rows on memory in test_lighter.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.engine.engine import Engine
from app.engine.explain.advice import Finding, advise
from app.engine.explain.cost import CostModel
from app.engine.explain.remedies import AnswerSetup
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec
from app.engine.types import Sampling
from tests.answers import answer
from tests.engine.explain.advised import advice_on, at_costs
from tests.files.tiny import Tiny

CYCLE = Tiny(name="cycle", chain=tuple("0123456789abcdefghij"), n_ctx=1024)  # repeats every 20 tokens
SHORT_CYCLE = Tiny(name="short cycle", chain=tuple("012345"), n_ctx=1024)
TARGET = Tiny(name="target", n_ctx=1024)
FAR = Tiny(name="far", n_ctx=1024, noise=0.6, noise_seed=3)  # a draft of which little is accepted
MIDDLING = Tiny(name="middling", n_ctx=1024, noise=0.25, noise_seed=3)
NEAR = Tiny(name="near", n_ctx=1024, noise=0.05, noise_seed=3)


@dataclass(frozen=True)
class Row:
    """A row of a guide: a setting, an answer that suffers from it, and what the app offers."""

    says: str
    strategy: str
    remedy: str
    target: Tiny = CYCLE
    draft: Tiny | None = None
    prompt: str = "0123"
    max_tokens: int = 60
    temperature: float = 0.0

    @property
    def request(self) -> dict[str, Any]:
        """The settings of the answer."""
        sampling = Sampling(self.temperature, seed=1)
        return {"ignore_eos": True, "cold": True, "max_tokens": self.max_tokens, "sampling": sampling}


RARE = (  # drafts are seldom found
    Row("size_n: how many tokens in a row to look back", "ngram-simple:size_n=30", "size_n=8 and size_m=16",
        max_tokens=46),
    Row("size_n where a text comes back before a match of that length leaves enough to copy", "ngram-simple",
        "size_n=4 and size_m=8", SHORT_CYCLE),
    Row("size_n of the map", "ngram-map-k:size_n=30", "size_n=8 and size_m=16", max_tokens=46),
    Row("size-n 8, size-m 8 for many longer repetitions", "ngram-map-k4v:size_n=30", "size_n=8 and size_m=16",
        max_tokens=46),
    Row("n_match: the lookup length", "ngram-mod", "n_match=8, n_min=2 and n_max=16", max_tokens=46),
    Row("size_m: the length of a draft", "ngram-simple:size_n=8:size_m=4", "size_m=16"),
    Row("min_hits: how often a key has to appear", "ngram-map-k4v:size_n=4:size_m=8:min_hits=90",
        "min_hits=1"),
    Row("max_spec_factor: tokens for each that matched", "suffix:max_spec_factor=0", "max_spec_factor=1"),
    Row("suffix_decoding_min_token_prob", "suffix:p_min=1:max_spec_factor=0",
        "p_min=0.1 and max_spec_factor=1"),
    Row("p_min: the least probability of a drafted token", "draft-simple:p_min=0.999", "p_min=0.75",
        TARGET, NEAR, "The quick brown fox"),
    Row("n_min: the fewest tokens of a draft", "draft-simple:n_max=8:n_min=7:p_min=0.5",
        "p_min=0 and n_min=0", TARGET, NEAR, "The quick brown fox"),
)  # fmt: skip


def loaded(tiny_file: Callable[[Tiny], Path], target: Tiny, draft: Tiny | None) -> Engine:
    return Engine(tiny_file(target), tiny_file(draft) if draft is not None else None)


def ids(row: Row) -> str:
    return f"{row.strategy} -> {row.remedy}"


@pytest.mark.parametrize("row", RARE, ids=ids)
def test_a_setting_that_keeps_drafts_rare_is_named(tiny_file: Callable[[Tiny], Path], row: Row) -> None:
    with loaded(tiny_file, row.target, row.draft) as engine:
        trace = answer(engine, row.prompt, strategy=row.strategy, **row.request)
        before = Statistics.of(trace.rounds)
        advice = advice_on(trace, trace.rounds, AnswerSetup())
        assert advice.finding is Finding.SELDOM, advice.text
        remedy = advice.remedies[0]
        assert remedy.text == row.remedy and remedy.text in advice.text
        after = Statistics.of(answer(engine, row.prompt, strategy=str(remedy.spec), **row.request).rounds)
    assert after.drafted_rounds / after.rounds > before.drafted_rounds / before.rounds
    assert after.accepted > before.accepted


REFUSED = (  # few drafted tokens are accepted
    Row("p_min: stop where the draft is unsure", "draft-simple:n_max=6", "p_min=0.5", TARGET, FAR,
        "The quick brown fox jumps", 120),
    Row("small n are not recommended", "ngram-mod:n_match=1:n_min=1:n_max=8", "n_match=24", TARGET,
        max_tokens=150, temperature=1.0),
    Row("min_hits: a higher number is surer", "ngram-map-k4v:size_n=1:size_m=4", "min_hits=2", TARGET,
        max_tokens=150, temperature=1.0),
    Row("min_token_prob: waste fewer tokens", "suffix:p_min=0:max_spec_factor=8", "p_min=0.3", TARGET,
        max_tokens=150, temperature=1.0),
    Row("size_n: how many tokens in a row must come again", "ngram-simple:size_n=1:size_m=16", "size_n=4",
        TARGET, max_tokens=150, temperature=1.0),
    Row("size_n of the map", "ngram-map-k:size_n=1:size_m=16", "size_n=4", TARGET, max_tokens=150,
        temperature=1.0),
    Row("num_speculative_tokens, the number of draft tokens", "draft-simple:n_max=16", "n_max=", TARGET,
        MIDDLING, max_tokens=150),
    Row("prompt_lookup_num_tokens", "prompt-lookup:num_pred_tokens=16", "num_pred_tokens=", TARGET,
        max_tokens=150, temperature=0.5),
    Row("another n-gram kind", "prompt-lookup:max_ngram_size=1", "suffix in place of prompt-lookup", TARGET,
        max_tokens=150, temperature=1.0),
)  # fmt: skip


@pytest.mark.parametrize("row", REFUSED, ids=ids)
def test_a_setting_that_gets_drafts_refused_is_named(tiny_file: Callable[[Tiny], Path], row: Row) -> None:
    with loaded(tiny_file, row.target, row.draft) as engine:
        trace = answer(engine, row.prompt, strategy=row.strategy, **row.request)
        advice = advice_on(trace, at_costs(trace.rounds, 0.05), AnswerSetup(), speedup=0.9)
        assert advice.finding in (Finding.LOW_ACCEPTANCE, Finding.NOTHING), advice.text
        remedy = next(remedy for remedy in advice.remedies if remedy.text.startswith(row.remedy))
        assert remedy.text in advice.text and remedy.spec is not None
        again = answer(engine, row.prompt, strategy=str(remedy.spec), **row.request)
    before, after = (Statistics.of(made.rounds) for made in (trace, again))
    assert after.drafted - after.accepted < before.drafted - before.accepted


def test_a_limit_that_discards_what_ngram_mod_finds_is_named(tiny_file: Callable[[Tiny], Path]) -> None:
    """Dense models can reduce n_min: pieces of 30 tokens come back, and 48 are asked for."""
    with Engine(tiny_file(TARGET)) as engine:
        trace = answer(
            engine, "The quick", strategy="ngram-mod", ignore_eos=True, max_tokens=40, cold=True,
            sampling=Sampling(5.0, seed=1),
        )  # fmt: skip
    piece = list(range(30))
    ids = [*piece, *range(100, 130), *piece, *range(200, 230), *piece]
    setup = AnswerSetup(trace.header.pair, token_ids=ids)
    spec = StrategySpec.parse("ngram-mod:n_match=8")
    advice = advise(spec, Statistics.of(trace.rounds), CostModel.of(trace.rounds), setup=setup)
    assert advice is not None and advice.finding is Finding.SELDOM
    assert [remedy.text for remedy in advice.remedies] == ["n_min=2"]


def test_a_draft_model_is_added_where_the_text_does_not_repeat(tiny_file: Callable[[Tiny], Path]) -> None:
    """Draftless and draft model together: the draftless one has the precedence."""
    with loaded(tiny_file, TARGET, NEAR) as engine:
        trace = answer(
            engine, "The quick", strategy="ngram-simple", ignore_eos=True, max_tokens=40,
            sampling=Sampling(5.0, seed=1),
        )  # fmt: skip
        advice = advice_on(trace, trace.rounds, AnswerSetup())
        (remedy,) = advice.remedies
        assert str(remedy.spec) == "ngram-simple+draft-simple" and remedy.text in advice.text


def test_a_lookup_file_is_named_where_ngram_cache_finds_little(tiny_file: Callable[[Tiny], Path]) -> None:
    with Engine(tiny_file(TARGET)) as engine:
        trace = answer(
            engine, "The quick", strategy="ngram-cache", ignore_eos=True, max_tokens=40, cold=True,
            sampling=Sampling(5.0, seed=1),
        )  # fmt: skip
        assert "draftscope lookup-cache" in advice_on(trace, trace.rounds, AnswerSetup()).text
