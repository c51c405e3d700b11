"""Draws: the same key gives the same number, different keys independent ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from app.engine.sampling.draws import Draws, Purpose

N = 4000
UNLIKELY = 1e-4  # the keys are fixed, so the result is deterministic

seeds = st.integers(-1, 2**63 - 1)
positions = st.integers(0, 2**40)


@given(seeds, positions, st.sampled_from(Purpose), positions)
def test_the_same_key_gives_the_same_draw(seed: int, position: int, purpose: Purpose, start: int) -> None:
    first = Draws(seed).uniform(position, purpose, start)
    assert 0 <= first < 1
    assert Draws(seed).uniform(position, purpose, start) == first


def test_draws_never_change_between_versions() -> None:
    """Traces are rechecked by their seed: these numbers are part of the trace format."""
    draws = Draws(42)
    assert draws.uniform(0, Purpose.TOKEN) == 0.08470635238683977
    assert draws.uniform(7, Purpose.DRAFT, 5) == 0.054861863118967014
    assert draws.key(0, Purpose.TOKEN) >> 11 == 0.08470635238683977 * 2**53


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("seed", [0, 1, 2**62])
def test_draws_are_uniform(seed: int, purpose: Purpose) -> None:
    draws = Draws(seed)
    values = [draws.uniform(position, purpose) for position in range(N)]
    assert stats.kstest(values, "uniform").pvalue > UNLIKELY


def test_draws_along_the_seeds_are_uniform() -> None:
    values = [Draws(seed).uniform(0, Purpose.TOKEN) for seed in range(N)]
    assert stats.kstest(values, "uniform").pvalue > UNLIKELY


@pytest.mark.parametrize("pair", list(itertools.combinations(Purpose, 2)), ids=str)
def test_draws_of_two_purposes_are_independent(pair: tuple[Purpose, Purpose]) -> None:
    draws = Draws(3)
    first, second = ([draws.uniform(i, purpose) for i in range(N)] for purpose in pair)
    _independent(first, second)


def test_neighbouring_positions_are_independent() -> None:
    draws = Draws(4)
    values = [draws.uniform(i, Purpose.ACCEPT) for i in range(N + 1)]
    _independent(values[:-1], values[1:])


def test_a_position_drafted_again_is_drawn_anew() -> None:
    first = [Draws(seed).uniform(9, Purpose.DRAFT, 8) for seed in range(N)]
    second = [Draws(seed).uniform(9, Purpose.DRAFT, 9) for seed in range(N)]
    _independent(first, second)


def _independent(first: list[float], second: list[float]) -> None:
    counts = np.histogram2d(first, second, bins=8, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(counts.ravel()).pvalue > UNLIKELY
