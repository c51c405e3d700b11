"""Greedy speculation gives the greedy baseline: every strategy, draft length, rule and kind of memory.

The grid over the bundled pair is in tests/verify; here are the tiny pairs and two prompts of the bundled one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.engine.engine import Engine
from app.engine.types import GenerationRequest, Message, Sampling
from tests.equality import NGRAMS, REPEATED, RULES, STRATEGIES, Baselines, drafted
from tests.files.tiny import Tiny

PROMPT = "to be or not to be, that is the question: to be or not to be, that is the "
LENGTHS = [pytest.param(k, marks=() if k in (1, 4) else pytest.mark.verify) for k in range(1, 9)]
ARCHITECTURES = ["llama", "gemma3", "mamba", "lfm2"]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def tiny_engine(request: pytest.FixtureRequest, tiny_file: Callable[[Tiny], Path]) -> Iterator[Engine]:
    kind = {"architecture": request.param, "n_ctx": 1024}
    target = tiny_file(Tiny(name=f"{request.param}-target", **kind))
    draft = tiny_file(Tiny(name=f"{request.param}-draft", noise=0.15, noise_seed=3, **kind))
    with Engine(target, draft) as engine:
        yield engine


@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("kind", STRATEGIES)
def test_greedy_is_the_baseline_on_tiny_pairs(
    tiny_engine: Engine, baselines: Baselines, kind: str, k: int
) -> None:
    strategy = STRATEGIES[kind].format(k=k)
    request = GenerationRequest(prompt=PROMPT, max_tokens=40, ignore_eos=True)
    for rule in RULES:
        trace = baselines.check(tiny_engine, request, strategy + rule)
        lengths = [len(round.drafted) for round in trace.rounds]
        assert max(lengths) == k, "drafts were as long as asked for"
        assert sum(round.rejected for round in trace.rounds) > 0
        if "draft-simple" in strategy:  # a random model seldom repeats its prompt
            assert sum(round.accepted for round in trace.rounds) > 0


@pytest.mark.same_text
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(repeat_penalty=1.3, repeat_last_n=16),
        Sampling(dry_multiplier=1.5, dry_allowed_length=1, dry_penalty_last_n=-1, dry_sequence_breaker="e :"),
    ],
    ids=["repeat_penalty", "DRY"],
)
@pytest.mark.parametrize("kind", STRATEGIES)
def test_greedy_with_a_penalty_is_the_baseline(
    tiny_engine: Engine, baselines: Baselines, kind: str, sampling: Sampling
) -> None:
    """The penalty depends on the tokens before, drafted ones included."""
    request = GenerationRequest(prompt=PROMPT, max_tokens=40, ignore_eos=True, sampling=sampling)
    baselines.check(tiny_engine, request, STRATEGIES[kind].format(k=4))


@pytest.mark.parametrize("kind", STRATEGIES)
@pytest.mark.parametrize("seed", range(3))
def test_match_at_a_temperature_is_plain_sampling(
    tiny_engine: Engine, baselines: Baselines, kind: str, seed: int
) -> None:
    sampling = Sampling(temperature=0.8, top_k=50, seed=seed)
    request = GenerationRequest(prompt=PROMPT, max_tokens=60, ignore_eos=True, sampling=sampling)
    trace = baselines.check(tiny_engine, request, STRATEGIES[kind].format(k=4) + ":verify=match")
    assert trace.header.verification == "match"


@pytest.mark.parametrize("kind", STRATEGIES | NGRAMS)
def test_greedy_is_the_baseline_on_the_bundled_pair(
    demo_engine: Engine, demo_prompts: list[str], baselines: Baselines, kind: str
) -> None:
    spec = (STRATEGIES | NGRAMS)[kind].format(k=4)
    for prompt in demo_prompts[:2]:
        request = GenerationRequest(messages=(Message("user", prompt),), max_tokens=64, ignore_eos=True)
        baselines.check(demo_engine, request, spec)
    repeated = GenerationRequest(prompt=REPEATED, max_tokens=64, ignore_eos=True)
    trace = baselines.check(demo_engine, repeated, spec)
    if kind != "auto":  # may find that drafting does not pay here
        assert drafted(trace) > 0
