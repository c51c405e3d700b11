"""ngram-mod: the drafts of llama.cpp's own class, call for call, and our own additions."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.drafters import ngram_mod
from app.engine.drafters.base import Proposal, RunContext
from app.engine.drafters.ngram_mod import POOL_SIZE, NgramMod, NgramModParams, NgramModPool
from app.engine.engine import Engine
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.types import GenerationRequest, Sampling
from tests.equality import Baselines

SURROUNDINGS = RunContext(Sampler(Sampling()), Draws(0), 0, frozenset())
VECTORS = Path(__file__).parents[2] / "vectors" / "ngram_mod.jsonl.gz"


def scenarios() -> list[dict[str, Any]]:
    with gzip.open(VECTORS) as file:
        return [json.loads(line) for line in file]


def ids(tokens: list[int]) -> np.ndarray:
    return np.array(tokens, np.int32)


def made(seed: int, count: int) -> list[int]:
    """The text that the vector generator makes by the same formula."""
    return (((np.arange(count, dtype=np.uint32) + np.uint32(seed)) * np.uint32(2654435761)) >> 12).tolist()


def play(drafter: NgramMod, events: list[list[Any]]) -> list[tuple[list[int], list[int]]]:
    """Replay a scenario: yields (original's draft, ours) for every draft call."""
    text: list[int] = []
    drafts = []
    proposal = Proposal()
    for kind, *event in events:
        if kind == "begin" or kind == "begin_made":
            text = list(event[0]) if kind == "begin" else made(*event)
            drafter.begin(ids(text), SURROUNDINGS)
        elif kind == "draft":
            more, k, expected = event
            text += more
            proposal = drafter.propose(ids(text), k)
            drafts.append((expected, proposal.ids))
        else:
            drafter.observe(ids(text), proposal, *event)
    return drafts


def parts_with(scenario: dict[str, Any]) -> bool:
    drafts = play(NgramMod(NgramModParams(**scenario["params"])), scenario["events"])
    return any(ours != expected for expected, ours in drafts)


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: str(scenario["params"]))
def test_drafts_are_those_of_the_original(scenario: dict[str, Any]) -> None:
    drafts = play(NgramMod(NgramModParams(**scenario["params"])), scenario["events"])
    assert [ours for _, ours in drafts] == [expected for expected, _ in drafts]


@pytest.mark.parametrize(
    ("name", "value"),
    [("_MULTIPLIER", 5), ("_CHUNK", 31), ("_LOW", 0.2), ("_LOW", 0.3), ("_BAD_DRAFTS", 6), ("_FULL", 0.5)],
)
def test_the_vectors_would_show_a_fault(name: str, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram_mod, name, value)
    assert any(parts_with(scenario) for scenario in scenarios())


def test_the_vectors_would_show_a_pool_emptied_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NgramMod, "_empty", lambda drafter: None)
    assert any(parts_with(scenario) for scenario in scenarios())


@given(st.integers(1, 80), st.lists(st.integers(0, 2**31 - 1), min_size=80, max_size=120))
def test_the_hash_is_the_original_loop(n: int, tokens: list[int]) -> None:
    def place(ngram: list[int]) -> int:
        hashed = 0
        for token in ngram:
            hashed = (hashed * 6364136223846793005 + token) % 2**64
        return hashed % POOL_SIZE

    expected = [place(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]
    assert NgramModPool(n).places(ids(tokens)).tolist() == expected


def small(**params: int) -> NgramMod:
    return NgramMod(NgramModParams(**{"n_match": 4, "n_min": 0, "n_max": 8, **params}))


def test_a_chat_drafts_from_another_one() -> None:
    first, other = list(range(100, 160)), list(range(500, 540))
    drafter = small()
    drafter.begin(ids(first), SURROUNDINGS)
    drafter.begin(ids(other), SURROUNDINGS)
    asked = ids([*other, *first[10:14]])
    assert drafter.propose(asked, 99).ids == first[14:22]
    drafter.reset()
    drafter.begin(ids(other), SURROUNDINGS)
    assert drafter.propose(asked, 99).ids == []


def test_the_pool_takes_the_stated_memory_and_gives_it_back() -> None:
    pool, random = NgramModPool(2), np.random.default_rng(1)
    tokens = random.integers(1000, 150_000, 200_000).astype(np.int32)
    tracemalloc.start()
    pool.add(tokens)
    held, _ = tracemalloc.get_traced_memory()
    used = pool.occupancy * POOL_SIZE
    pool.clear()
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 150_000 < used < 200_000
    assert held < 120 * used
    assert left < 10_000


def test_why_a_draft_ended_is_said() -> None:
    text = ids([*range(50), *range(4)])

    def proposal(k: int, **params: int) -> Proposal:
        drafter = small(**params)
        drafter.begin(text, SURROUNDINGS)
        return drafter.propose(text, k)

    assert proposal(99).end == "n_max"
    assert proposal(3).end == "answer at its length limit"
    assert proposal(3).ids == [4, 5, 6]
    assert proposal(99, n_max=80).end == "no further match"
    # The n-grams that end with the prompt's last tokens are learned with the chunk that follows.
    assert proposal(99, n_max=80).ids == [*range(4, 50), *range(3)]
    assert proposal(99, n_max=80, n_min=60).end == "shorter than n_min"
    assert proposal(99, n_match=10).end == "no match"
    assert proposal(99, n_match=60).end == "no match"


def test_an_answer_is_the_baseline_and_holds_accepted_drafts(engine: Engine, baselines: Baselines) -> None:
    request = GenerationRequest(prompt="a rose is a rose is a rose " * 8, max_tokens=150, ignore_eos=True)
    for verify in ("greedy", "speculative", "match"):
        trace = baselines.check(engine, request, f"ngram-mod:n_match=2:n_min=0:n_max=6:verify={verify}")
        assert sum(round.accepted for round in trace.rounds) > 0
