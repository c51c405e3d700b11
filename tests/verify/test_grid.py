"""Greedy speculation gives the greedy baseline: the full grid over the bundled pair, and one over SmolLM2."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.engine import Engine
from app.engine.types import GenerationRequest, Message, Sampling
from tests.equality import NGRAMS, RENAME, REPEATED, RULES, STRATEGIES, Baselines, drafted

pytestmark = [pytest.mark.verify, pytest.mark.timeout(3600)]

PROMPTS = 10
TOKENS = 128
KINDS = STRATEGIES | NGRAMS
EVERY_RULE = (1, 4, 16)
"""Lengths at which the sampling rules are tried too: at temperature 0 they decide as `greedy` does."""


@pytest.mark.parametrize("k", range(1, 17))
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_is_the_baseline(
    demo_engine: Engine, demo_prompts: list[str], baselines: Baselines, kind: str, k: int
) -> None:
    assert len(demo_prompts) >= PROMPTS
    requests = [
        GenerationRequest(messages=(Message("user", prompt),), max_tokens=TOKENS, ignore_eos=True)
        for prompt in demo_prompts[:PROMPTS]
    ]
    requests.append(GenerationRequest(prompt=REPEATED, max_tokens=TOKENS, ignore_eos=True))
    for request in requests:
        for rule in RULES if k in EVERY_RULE else RULES[:1]:
            trace = baselines.check(demo_engine, request, KINDS[kind].format(k=k) + rule)
            assert len(trace.token_ids) == TOKENS
            if request.prompt == REPEATED and kind != "auto":  # which may find that drafting does not pay
                assert drafted(trace) > 0


@pytest.mark.real
@pytest.mark.parametrize("kind", KINDS)
def test_smollm2s_answers_are_the_baselines(real_engine: Engine, baselines: Baselines, kind: str) -> None:
    continued = GenerationRequest(prompt=REPEATED, max_tokens=TOKENS, ignore_eos=True)
    for request in (RENAME, replace(RENAME, max_tokens=TOKENS, ignore_eos=True), continued):
        for k in EVERY_RULE:
            for rule in RULES if k == 4 else RULES[:1]:
                baselines.check(real_engine, request, KINDS[kind].format(k=k) + rule)
        for seed in range(3):
            sampling = Sampling(temperature=0.8, top_k=40, top_p=0.95, repeat_penalty=1.1, seed=seed)
            sampled = replace(request, sampling=sampling)
            baselines.check(real_engine, sampled, KINDS[kind].format(k=4) + ":verify=match")
