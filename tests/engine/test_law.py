"""The sampling law through the loop: a slice of what `make verify` measures, in seconds.

Every rule with drafts that are one-hot and sampled is here; other lengths, filters and strategies are in the
long grid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from app.engine.engine import Engine
from app.engine.record.stats import Statistics
from app.engine.types import Round, Sampling
from tests.law import (
    CASES,
    CUT,
    HOT,
    LENGTH,
    LENGTH_CASES,
    OTHER,
    PENALISED,
    PLAIN_CASES,
    STRATEGY_CASES,
    Case,
    count,
    exact_law,
    holds,
    p_values,
)

DRAWS = 1200
FEW = 600  # of a one-hot draft, whose faults tests/verify/test_bite.py finds in as many
WATCHED = 300  # answers whose rounds are recorded

ALL = CASES + LENGTH_CASES + STRATEGY_CASES + PLAIN_CASES
SLICE = [*CASES, *(pytest.param(case, marks=pytest.mark.verify) for case in ALL[len(CASES) :])]
EngineOf = Callable[[Case], Engine]


@pytest.fixture
def engine_of(law_engine: Engine, law_engine_through_text: Engine) -> EngineOf:
    return lambda case: law_engine_through_text if case.draft is OTHER else law_engine


@pytest.mark.parametrize("case", SLICE, ids=str)
def test_what_is_emitted_has_the_targets_law(engine_of: EngineOf, case: Case) -> None:
    engine = engine_of(case)
    law = exact_law(engine, case.sampling)
    seen: list[Round] = []
    counts = count(engine, case, WATCHED, seed=1, seen=seen)
    draws = FEW if case in STRATEGY_CASES else DRAWS
    counts += count(engine, case, draws - WATCHED, seed=1, first=WATCHED)
    assert counts.sum() == draws
    values = p_values(counts, law)
    assert holds(values, len(ALL)), values
    if case not in PLAIN_CASES:
        drafts_are_accepted_and_rejected(case, seen)


def drafts_are_accepted_and_rejected(case: Case, seen: list[Round]) -> None:
    statistics = Statistics.of(seen)
    assert statistics.drafted_rounds > 20
    passed = statistics.accepted / (statistics.accepted + statistics.rejected)
    assert 0.02 < passed < 0.9
    assert (statistics.alpha is None) == ("verify=block" in case.strategy)


@pytest.mark.parametrize(
    "sampling", [Sampling(temperature=1), HOT, CUT, PENALISED], ids=["1", "hot", "cut", "penalised"]
)
def test_the_exact_law_is_one(law_engine: Engine, sampling: Sampling) -> None:
    law = exact_law(law_engine, sampling)
    assert law.shape == (11,) * LENGTH
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert (law > 0).sum() > 60, "many tokens are possible: the test is no formality"


def test_chi_square_pools_rare_cells_and_refuses_impossible_ones() -> None:
    law = np.zeros((2, 2, 2))
    law[0, 0, 0], law[0, 1, 0], law[1, 0, 1] = 0.5, 0.4999, 0.0001
    right = np.zeros((2, 2, 2), np.int64)
    right[0, 0, 0], right[0, 1, 0] = 510, 490
    assert min(p_values(right, law)) > 0.1
    right[1, 1, 1] = 1
    assert p_values(right, law)[2] == 0
