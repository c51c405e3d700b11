"""Heads of every kind give the baseline's text, whatever came before: each k, mix and rule of length."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from app.engine.engine import Engine
from app.engine.process.messages import RoundFinished
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.types import GenerationRequest, Sampling
from tests.answers import answer, assert_same_answer
from tests.files.heads import PAIRS, Make, files

pytestmark = [pytest.mark.verify, pytest.mark.timeout(3600)]

MIXES = (
    "{head}:n_max={k}",
    "prompt-lookup:num_pred_tokens=2+{head}:n_max={k}",
    "ngram-mod:n_match=2:n_min=0:n_max=3+{head}:n_max={k}:length=ewma",
    "{head}:n_max={k}:length=auto",
)
PROMPT = "abcabcabd abc"
WALK = (PROMPT, PROMPT, "abcabcx", f"{PROMPT}, and more", "stop", PROMPT, "none", PROMPT)
"""Cold, regenerated, edited, longer, after Stop, and after an answer of another strategy."""
TOKENS = 48
Pair = tuple[Engine, str, dict[str, Trace]]
"""An engine, the strategy of its head, and the baseline's answers."""


@pytest.fixture(params=PAIRS, scope="module")
def pair(request: pytest.FixtureRequest, tiny_file: Make) -> Iterator[Pair]:
    with Engine(*files(request.param, tiny_file)) as engine:
        settings = {"strategy": "none", "max_tokens": TOKENS, "cold": True}
        plain = {prompt: answer(engine, prompt, **settings) for prompt in {*WALK} - {"stop", "none"}}
        yield engine, request.param.split(maxsplit=1)[0], plain


def stopped(engine: Engine, strategy: str) -> None:
    """Begin an answer, and stop it in its second round."""
    rounds = 0
    for event in engine.generate(GenerationRequest(prompt=PROMPT, strategy=strategy, max_tokens=TOKENS)):
        rounds += isinstance(event, RoundFinished)
        if rounds == 2:
            engine.stop()


@pytest.mark.parametrize("k", range(1, 9))
@pytest.mark.parametrize("mix", MIXES)
def test_greedy_is_the_baseline_whatever_came_before(pair: Pair, mix: str, k: int) -> None:
    engine, head, expected = pair
    strategy = mix.format(head=head, k=k)
    engine.reset()
    drafted = 0
    for prompt in WALK:
        if prompt == "stop":
            stopped(engine, strategy)
        elif prompt == "none":
            answer(engine, PROMPT, strategy="none", max_tokens=TOKENS)
        else:
            trace = answer(engine, prompt, strategy=strategy, max_tokens=TOKENS)
            assert recheck(trace) == []
            drafted += sum(len(round.drafted) for round in trace.rounds if round.strategy == head)
            assert_same_answer(trace, expected[prompt])
    assert drafted > 0 or "auto" in mix


@pytest.mark.parametrize("k", [1, 3, 8])
def test_match_keeps_a_drawn_text(pair: Pair, k: int) -> None:
    engine, head, _ = pair
    for seed, sample in itertools.product(range(4), ("", ":sample=1")):
        sampling = Sampling(temperature=0.9, top_k=40, seed=seed)
        expected, trace = (
            answer(engine, strategy=strategy, sampling=sampling, max_tokens=TOKENS, cold=True)
            for strategy in ("none", f"{head}:n_max={k}:verify=match{sample}")
        )
        assert recheck(trace) == []
        assert_same_answer(trace, expected)
