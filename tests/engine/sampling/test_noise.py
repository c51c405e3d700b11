"""Draws by noise: known answers of the generator, the law, and that nothing is passed over that would win."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from app.engine.sampling import noise
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws, Purpose
from tests.dense import dense, sparse

UNLIKELY = 1e-4  # the keys are fixed, so the result is deterministic
KEYS = st.integers(0, 2**64 - 1)


def row_of(seed: int, size: int, kind: str) -> np.ndarray:
    """Probabilities of a kind; not scaled, as those of a residual."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.full(size, 0.05 if kind == "sure" else 1.0)).astype(np.float32)
    if kind == "cut":
        p[random.random(size) < 0.97] = 0
    p[random.integers(size)] += np.float32(0.3 if kind == "sure" else 1e-3)
    return p


rows = st.builds(
    row_of,
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 63, 64, 65, 1000, 4096]),
    st.sampled_from(["flat", "sure", "cut"]),
)


def test_the_generator_gives_its_known_answers() -> None:
    """Those of Vigna's splitmix64.c for the seeds 1234567 and 0."""
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [noise.output(1234567, counter) for counter in range(4)] == known
    assert noise.outputs(1234567, np.arange(4)).tolist() == known
    assert noise.output(0, 0) == 0xE220A8397B1DCDAF


def test_luck_never_changes_between_versions() -> None:
    """Traces are rechecked by it: these numbers are part of the trace format."""
    key = Draws(42).key(7, Purpose.TOKEN)
    assert [noise.luck(key, token) for token in (0, 255, 151_935)] == pytest.approx(KNOWN_LUCK, rel=1e-12)


KNOWN_LUCK = [1.1647112560313364, 2.2324549967852367, -0.10758975709625788]


@pytest.mark.usefixtures("each_way")
@given(rows, KEYS)
@settings(deadline=None)
def test_the_largest_log_p_plus_luck_wins(row: np.ndarray, key: int) -> None:
    possible = np.flatnonzero(row).tolist()
    scores = sorted(((math.log(row[id]) + noise.luck(key, id), id) for id in possible), reverse=True)
    for form in (Distribution(row), sparse(row)):
        token, race = form.draw(key)
        assert (race.score, token) == (pytest.approx(scores[0][0], abs=1e-9), scores[0][1])
        if len(scores) > 1:
            assert (race.rival_score, race.rival) == (pytest.approx(scores[1][0], abs=1e-9), scores[1][1])
        else:
            assert race.rival is None and race.gap == math.inf


@pytest.mark.parametrize("size", [5, 300])
@pytest.mark.usefixtures("each_way")
def test_tokens_are_drawn_with_the_law_p(size: int) -> None:
    p = row_of(size, size, "flat")
    p[-1] += 0.3  # the last block is not whole
    draws, n = Draws(1), 6000
    seen = np.zeros(size)
    for position in range(n):
        seen[Distribution(p).draw(draws.key(position, Purpose.TOKEN))[0]] += 1
    expected = p / p.sum(dtype=np.float64) * n
    often = expected >= 5
    pooled = np.append(expected[often], expected[~often].sum() or 1.0)
    counted = np.append(seen[often], seen[~often].sum() if (~often).any() else 1.0)
    assert stats.chisquare(counted, pooled * counted.sum() / pooled.sum()).pvalue > UNLIKELY


def test_the_times_of_tokens_are_exponential_and_independent() -> None:
    """Within a block, where they share a number, and between two."""
    draws, n = Draws(3), 4000
    times = np.array([
        [math.exp(-noise.luck(draws.key(position, Purpose.TOKEN), token)) for token in (3, 60, 64)]
        for position in range(n)
    ])  # fmt: skip
    for column in times.T:
        assert stats.kstest(column, "expon").pvalue > UNLIKELY
    uniform = 1 - np.exp(-times)
    for pair in ((0, 1), (1, 2)):
        counts = np.histogram2d(uniform[:, pair[0]], uniform[:, pair[1]], bins=6, range=[[0, 1], [0, 1]])[0]
        assert stats.chisquare(counts.ravel()).pvalue > UNLIKELY
    flat = Distribution(np.full(64, 1 / 64, np.float32))
    first = {flat.draw(draws.key(position, Purpose.DRAFT))[0] for position in range(300)}
    assert len(first) > 55, "any token of a block may be its first"


def test_a_draft_with_the_same_luck_has_the_targets_token_as_often_as_proved() -> None:
    draws, n = Draws(5), 2000
    p, q = row_of(1, 40, "flat"), row_of(2, 40, "flat")
    p, q = p / p.sum(), q / q.sum()
    distance = 0.5 * float(np.abs(p - q).sum())
    same = sum(
        Distribution(p).draw(key)[0] == Distribution(q).draw(key)[0]
        for key in (draws.key(position, Purpose.TOKEN) for position in range(n))
    )
    assert 0.2 < distance < 0.6
    assert same / n > (1 - distance) / (1 + distance) - 4 * math.sqrt(0.25 / n)


@pytest.mark.usefixtures("each_way")
def test_a_small_change_of_p_seldom_changes_the_token() -> None:
    draws = Draws(8)
    p = row_of(4, 4096, "flat")
    moved = p * np.exp(0.002 * np.random.default_rng(1).standard_normal(4096)).astype(np.float32)
    other = 0
    for position in range(2000):
        key = draws.key(position, Purpose.TOKEN)
        token, race = Distribution(p).draw(key)
        after = Distribution(moved).draw(key)[0]
        other += token != after
        assert token == after or race.gap < 0.02
    assert other < 12


@pytest.mark.usefixtures("each_way")
def test_a_row_of_no_numbers_has_no_winner() -> None:
    assert math.isnan(Distribution(np.full(257, np.nan, np.float32)).draw(1)[1].score)


@pytest.mark.usefixtures("each_way")
def test_the_score_is_that_of_probabilities_that_sum_to_one() -> None:
    p = row_of(6, 300, "cut")
    whole = float(p.sum())
    token, race = Distribution(p).draw(9, whole)
    assert race.score == pytest.approx(math.log(dense(sparse(p), 300)[token] / whole) + noise.luck(9, token))
