"""The compiled passes give what numpy's give, also for ties, -inf and NaN, however a row lies in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.sampling.kernel import Kernel
from app.engine.sampling.logits import exponentials, softmax
from app.engine.sampling.noise import race

pytestmark = pytest.mark.usefixtures("numpy_passes")

LEAST = 2.0**-149  # the smallest single-precision number


def row_of(seed: int, size: int, kind: str, offset: int) -> np.ndarray:
    """A row of a kind, so many numbers behind the beginning of its memory."""
    random = np.random.default_rng(seed)
    row = (random.choice([1, 10, 60]) * random.standard_normal(size + offset)).astype(np.float32)[offset:]
    if kind == "ties":
        row[:] = np.round(row / 10)
    elif kind == "equal":
        row[:] = row[0]
    elif kind == "missing":
        row[random.random(size) < 0.95] = -np.inf
    elif kind == "broken":
        row[random.integers(size)] = np.nan
    return row


sizes = st.sampled_from([1, 2, 7, 8, 9, 63, 64, 65, 127, 511, 512, 513, 4096, 32_001])
kinds = st.sampled_from(["normal", "ties", "equal", "missing", "broken"])
rows = st.builds(row_of, st.integers(0, 10**6), sizes, kinds, st.integers(0, 7))


@given(rows)
@settings(deadline=None)
def test_exponentials_are_numpys(compiled: Kernel, row: np.ndarray) -> None:
    row[0] = 1  # one at least is finite
    ours, theirs = np.empty_like(row), np.empty_like(row)
    total = compiled.exponentials(row, row.max(), ours)
    assert total == pytest.approx(exponentials(row, row.max(), theirs), rel=1e-6, nan_ok=True)
    assert compiled.exponentials(row, row.max(), None) == pytest.approx(total, abs=0, nan_ok=True)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=LEAST)


@given(rows, st.sampled_from([1e-30, 1e-3, 0.8, 1.0, 1e3]))
@settings(deadline=None)
def test_probabilities_are_numpys(compiled: Kernel, row: np.ndarray, temperature: float) -> None:
    row[0] = 1  # one at least is finite
    expected = softmax(row, temperature)
    # Where it was divided by the temperature, -100 may differ by a rounding: by 8e-6 of the result.
    ours = compiled.softmax(row, temperature, np.empty_like(row))
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=LEAST)
    np.testing.assert_array_equal(compiled.softmax(row, temperature, row), ours)
    assert np.isnan(ours).all() if np.isnan(ours).any() else ours.sum() == pytest.approx(1, rel=1e-5)


def test_exponentials_are_exact_to_two_roundings(compiled: Kernel) -> None:
    x = -np.geomspace(1e-8, 87, 40_000).astype(np.float32)
    out = np.empty_like(x)
    compiled.exponentials(x, 0, out)
    np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=2 * 2.0**-23)


def test_exponentials_can_be_written_over_their_row(compiled: Kernel) -> None:
    row = row_of(4, 1001, "normal", 1)
    out = np.empty_like(row)
    total = compiled.exponentials(row, row.max(), out)
    assert compiled.exponentials(row, row.max(), row) == total
    np.testing.assert_array_equal(row, out)


@given(rows)
@settings(deadline=None)
def test_a_row_is_copied_with_its_argmax(compiled: Kernel, row: np.ndarray) -> None:
    out = np.zeros_like(row)
    assert compiled.copy_argmax(row, out) == row.argmax()
    np.testing.assert_array_equal(out, row)


@given(rows, st.sampled_from([1, 2, 10, 40, 200]))
@settings(deadline=None)
def test_the_largest_are_those_of_a_stable_sort(compiled: Kernel, row: np.ndarray, k: int) -> None:
    places, values = compiled.largest(row, k)
    if np.isnan(row).any():
        assert places == values == []
        return
    expected = np.argsort(-row, kind="stable")[:k].tolist()
    assert places == expected
    assert values == row[expected].tolist()


@given(rows, st.integers(0, 2**64 - 1), st.booleans())
@settings(deadline=None)
def test_the_same_tokens_win_bit_for_bit(compiled: Kernel, row: np.ndarray, key: int, few: bool) -> None:
    row[0] = 1 if row[0] == -np.inf else row[0]
    p = np.exp(row - row.max())
    ids = np.flatnonzero(p > 1e-3) if few else None
    p = p if ids is None else p[ids]
    if len(p):
        assert compiled.race(p, ids, key) == race(p, ids, key)


def test_a_long_row_is_drawn_from_to_its_end(compiled: Kernel) -> None:
    p = np.full(1_200_000, 1 / 1_200_000, np.float32)
    places = [compiled.race(p, None, key)[1] for key in range(40)]
    assert min(places) < 200_000 and max(places) > 1_000_000
    assert compiled.race(p, None, 7) == race(p, None, 7)


def test_a_row_with_gaps_is_refused(compiled: Kernel) -> None:
    with pytest.raises(TypeError, match="contiguous"):
        compiled.largest(np.zeros(20, np.float32)[::2], 3)
