"""Answers of a real engine as traces, for the tests that look into them."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from app.engine.engine import Engine
from app.engine.process.messages import Event
from app.engine.record.trace import Trace
from app.engine.types import GenerationRequest
from app.lab.runs.compare import first_divergence


def events_of(engine: Engine, request: GenerationRequest) -> list[Event]:
    return list(engine.generate(request))


def answer(engine: Engine, prompt: str | None = "abcabcabd abc", **settings: Any) -> Trace:
    """Generate from a raw prompt; `settings` are those of GenerationRequest."""
    return engine.answer(GenerationRequest(prompt=prompt, **settings))


def assert_same_answer(trace: Trace, expected: Trace, tokens: int | None = None) -> None:
    """The same tokens (the first `tokens`, if given), or a first parting by rounding: caches hold what passes
    of other shapes made."""
    parting = first_divergence(trace.token_ids[:tokens], expected.token_ids[:tokens], trace, expected)
    assert parting is None or parting.near_tie, parting


CLEAR = 0.05
"""Far from a tie, for a tiny model: other kernels and batch shapes change a logit by up to 0.011."""


def margin(trace: Trace) -> float:
    """By how much a logit would have to change, at the least, for another text."""
    temperature = trace.header.sampling.temperature
    tokens = [
        (token, top)
        for round in trace.rounds
        for token, top in zip(round.emitted, round.target_top, strict=True)
    ]
    if temperature == 0:
        return min(math.log(top.p[0] / top.p[1]) for _, top in tokens)
    return min(temperature * token.race.gap for token, _ in tokens if token.race is not None)


def clear_prompt(engine: Engine, least: float = CLEAR, **settings: Any) -> str:
    """A prompt whose baseline answer is no processor's choice: its `margin` is above `least`.

    `settings` are those of `answer`, which starts cold.
    """
    for first, last in product("abcdefgh", repeat=2):
        prompt = f"abc{first}abcabd abc{last}abc"
        if margin(answer(engine, prompt, **settings | {"strategy": "none", "cold": True})) > least:
            return prompt
    raise AssertionError(f"no prompt is clear: every answer has a choice within {least} of a tie")
