"""Replays what llama.cpp's own n-gram drafters drafted (tests/vectors) through ours, call by call."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from app.engine.drafters.base import Drafter, Proposal, RunContext
from app.engine.drafters.ngram_map import NgramMapK, NgramMapK4v, NgramMapK4vParams, NgramMapKParams
from app.engine.drafters.ngram_simple import NgramSimple, NgramSimpleParams
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.types import Sampling

VECTORS = Path(__file__).parent / "vectors" / "ngram_map.jsonl.gz"
SURROUNDINGS = RunContext(Sampler(Sampling()), Draws(0), 0, frozenset())
Make = Callable[[int, int, int], Drafter]  # size_n, size_m, min_hits

DRAFTERS: Mapping[str, Make] = {
    "ngram-simple": lambda n, m, hits: NgramSimple(NgramSimpleParams(n, m, hits)),
    "ngram-map-k": lambda n, m, hits: NgramMapK(NgramMapKParams(n, m, hits)),
    "ngram-map-k4v": lambda n, m, hits: NgramMapK4v(NgramMapK4vParams(n, m, hits)),
}


class DraftCall(msgspec.Struct, array_like=True, frozen=True):
    """One call of common_speculative_draft, and the accept after it."""

    length: int  # of the context, its last token included
    k: int
    drafter: int  # which of the scenario's drafted, or -1
    ids: list[int]
    accepted: int


class Answer(msgspec.Struct, frozen=True):
    """One generation: `text` is the prompt and all that follows, `begin` the prompt's length."""

    text: list[int]
    begin: int
    rounds: list[DraftCall]


class Scenario(msgspec.Struct, frozen=True):
    """Drafters in order of precedence (name, size_n, size_m, min_hits); their answers one after another."""

    drafters: list[tuple[str, int, int, int]]
    answers: list[Answer]


def scenarios(path: Path = VECTORS) -> Iterator[Scenario]:
    with gzip.open(path) as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=Scenario)


def first_difference(scenario: Scenario, drafters: Mapping[str, Make] = DRAFTERS) -> str:
    """The first difference between our drafts and llama.cpp's, in words; empty if there is none."""
    ours = [drafters[name](*sizes) for name, *sizes in scenario.drafters]
    for number, answer in enumerate(scenario.answers):
        text = np.array(answer.text, np.int32)
        for drafter in ours:
            drafter.begin(text[: answer.begin], SURROUNDINGS)
        ends = [*(call.length for call in answer.rounds[1:]), len(text)]
        for call, end in zip(answer.rounds, ends, strict=False):
            who, proposal = _propose(ours, text[: call.length], call.k)
            if (who, proposal.ids) != (call.drafter, call.ids):
                return f"answer {number}, {call}: ours {who}, {proposal.ids}"
            for index, drafter in enumerate(ours):
                own = index == who
                drafter.observe(text[:end], proposal if own else Proposal(), call.accepted if own else 0)
    return ""


def _propose(drafters: list[Drafter], context: Any, k: int) -> tuple[int, Proposal]:
    """The first non-empty proposal, as in `propose`."""
    for index, drafter in enumerate(drafters):
        proposal = drafter.propose(context, k)
        assert proposal.end
        if proposal.ids:
            start = proposal.match
            assert start is not None and context[start : start + len(proposal.ids)].tolist() == proposal.ids
            return index, proposal
    return -1, Proposal()
