"""METRICS.md's "equal to the baseline": the same tokens, or a first parting at a measured near-tie.

Batch shapes round differently, so the argmax can flip where two logits are nearly equal. Whether a parting is
such a flip is measured: both runs' passes are repeated, shape by shape, in a fresh context that has never
held anything else, and the logits at the place of the parting are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from app.engine.engine import Engine
from app.engine.native import AbortFlag, Context
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.rules import registry
from app.engine.sampling.draws import Draws, Purpose
from app.engine.sampling.dry import breakers_of
from app.engine.sampling.logits import LARGEST_ROUNDING
from app.engine.sampling.noise import luck
from app.engine.sampling.sampler import Sampler
from app.engine.types import GenerationRequest, Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

STRATEGIES = {
    "draft-simple": "draft-simple:n_max={k}",
    "prompt-lookup": "prompt-lookup:num_pred_tokens={k}",
    "suffix": "suffix:n_max={k}:max_spec_offset=8",
    "both": "prompt-lookup:num_pred_tokens={k}+draft-simple:n_max={k}",
}
NGRAMS = {
    "ngram-simple": "ngram-simple:size_n=1:size_m={k}",
    "ngram-map-k": "ngram-map-k:size_n=2:size_m={k}",
    "ngram-map-k4v": "ngram-map-k4v:size_n=2:size_m={k}",
    "ngram-mod": "ngram-mod:n_match=2:n_min=0:n_max={k}",
    "ngram-cache": "ngram-cache:n_draft={k}",
    "auto": "ngram-mod:n_match=2:n_min=0:n_max={k}+draft-simple:n_max={k}:length=auto",
    "ewma": "draft-simple:n_max={k}:length=ewma",
}
"""Those that need not find a draft in a given text, nor one of full length."""

REPEATED = "The red lantern hangs above the old door. " * 10 + "The red lantern"
"""A text to be continued in which every strategy finds a draft."""

RENAME = GenerationRequest(
    messages=(
        Message(
            "user",
            "Replace lantern by lamp: The red lantern hangs above the old door. The cat sleeps under the red "
            "lantern. The door is closed.",
        ),
    ),
    max_tokens=64,
)
"""A request whose answer by SmolLM2 repeats parts of it, so that every strategy drafts well and badly."""

RULES = [f":verify={name}" for name, rule in registry.RULES.items() if rule.keeps_text or rule.keeps_law]
"""Those that give the baseline's text at temperature 0; `greedy` is the first."""

LEAST = 1e-45  # in place of a probability of 0, at a filter's edge

_PROMPT_CHUNK = 512  # as the engine hands its prompts over


@dataclass(frozen=True)
class Parting:
    """The first place where an answer leaves its baseline's."""

    model: str
    strategy: str
    verification: str
    prompt: str
    index: int
    baseline_token: int
    token: int
    gap: float  # by how much the baseline's token was better, in the baseline's shapes
    difference: float  # the largest change of that gap measured in the other shapes
    reproduced: bool  # fresh contexts in both runs' shapes choose these two tokens

    @property
    def is_near_tie(self) -> bool:
        return self.reproduced and self.gap < self.difference < LARGEST_ROUNDING

    @override
    def __str__(self) -> str:
        kind = "near-tie" if self.is_near_tie else "WRONG"
        return (
            f"{kind}: {self.model}, {self.strategy} ({self.verification}), token {self.index} of "
            f"{self.prompt[:30]!r}: "
            f"{self.token} instead of {self.baseline_token}, gap {self.gap:.2g}, "
            f"measured difference {self.difference:.2g}{'' if self.reproduced else ', not reproduced'}"
        )


def drafted(trace: Trace) -> int:
    """The number of drafted tokens in the answer."""
    return sum(len(round.drafted) for round in trace.rounds)


class Baselines:
    """Baseline answers, generated once each, and the partings from them."""

    def __init__(self, partings: list[Parting]) -> None:
        """Every parting found is added to `partings`."""
        self.partings = partings
        self.known: dict[tuple[Engine, GenerationRequest], Trace] = {}

    def check(self, engine: Engine, request: GenerationRequest, strategy: str) -> Trace:
        """Answer the request with `strategy`; fails if the answer is not equal to the baseline."""
        plain = replace(request, strategy="none", cold=True)
        asked = replace(request, strategy=strategy, cold=True)
        if (engine, plain) not in self.known:
            self.known[engine, plain] = engine.answer(plain)
        trace = engine.answer(asked)
        assert recheck(trace) == []
        prompt = engine.tokenize(asked)[1]
        parting = first_parting(engine, prompt, self.known[engine, plain], trace)
        if parting is not None:
            self.partings.append(parting)
            assert parting.is_near_tie, str(parting)
        return trace


def first_parting(engine: Engine, prompt: NDArray[np.int32], baseline: Trace, trace: Trace) -> Parting | None:
    """The parting of two answers, None if they have the same tokens. Both must have been generated cold, from
    `prompt`."""
    if baseline.token_ids == trace.token_ids:
        return None
    pairs = zip(baseline.token_ids, trace.token_ids, strict=False)
    index = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), None)
    if index is None:  # one answer is the other's beginning
        raise AssertionError(f"{len(trace.token_ids)} tokens instead of {len(baseline.token_ids)}")
    expected, token = baseline.token_ids[index], trace.token_ids[index]
    here = measured(engine, prompt, baseline, index)
    there = measured(engine, prompt, trace, index)
    if baseline.header.sampling.temperature == 0:
        gap = float(here[expected] - here[token])
        difference = float(abs(here[expected] - there[expected]) + abs(here[token] - there[token]))
        choose: Callable[[Floats], int] = lambda row: int(row.argmax())  # noqa: E731
    else:
        key = Draws(baseline.header.seed).key(index, Purpose.TOKEN)
        sampler = sampler_of(engine, baseline)
        choose = lambda row: sampler.distribution(row).draw(key)[0]  # noqa: E731
        leads = []
        for row in (here, there):
            p = sampler.distribution(row)
            ours, theirs = (math.log(p.of(id) or LEAST) + luck(key, id) for id in (expected, token))
            leads.append(ours - theirs)
        temperature = baseline.header.sampling.temperature
        gap, difference = temperature * leads[0], temperature * abs(leads[0] - leads[1])
    return Parting(
        trace.header.pair.target.name,
        trace.header.strategy,
        trace.header.verification,
        trace.header.prompt,
        index,
        expected,
        token,
        gap,
        difference,
        reproduced=choose(here) == expected and choose(there) == token,
    )


def sampler_of(engine: Engine, trace: Trace) -> Sampler:
    sampling = trace.header.sampling
    return Sampler(sampling, breakers=breakers_of(engine.target.model.vocabulary, sampling))


def measured(engine: Engine, prompt: NDArray[np.int32], trace: Trace, index: int) -> Floats:
    """The target's adjusted logits at token `index`, in the batch shapes of the trace's own passes."""
    part = engine.models.parts[0]
    context = Context(part.model, part.options, AbortFlag())
    sampler = sampler_of(engine, trace)
    try:
        for start in range(0, len(prompt) - 1, _PROMPT_CHUNK):
            context.decode(prompt[:-1][start : start + _PROMPT_CHUNK])
        truth = prompt
        for round in trace.rounds:
            drafted = np.array([token.id for token in round.drafted], np.int32)
            kept = context.sync(truth[:-1])
            rows = context.decode(np.concatenate([truth[kept:], drafted]), logits=len(drafted) + 1)
            place = index - round.position
            if place < len(round.emitted):
                before = np.concatenate([truth, drafted[:place]])
                return sampler.adjust(rows[place], before).copy()
            truth = np.concatenate([truth, np.array([token.id for token in round.emitted], np.int32)])
    finally:
        context.close()
    raise AssertionError(f"the trace has no token {index}")
