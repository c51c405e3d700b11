"""Logits to probabilities: against a plain reference, and against llama.cpp's own sampler chain."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.engine.sampling.distribution import Distribution
from app.engine.sampling.dry import Breakers
from app.engine.sampling.logits import log_sum_exp, top_of_row, top_of_rows
from app.engine.sampling.sampler import Sampler
from app.engine.types import Sampling
from tests.dense import dense, filtered
from tests.reference import probabilities, softmax

pytestmark = pytest.mark.usefixtures("each_way")

EDGE = 1e-5  # least distance from a filter's limit: nearer, rounding decides

samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.01, 0.3, 0.8, 1.0, 1.7, 10.0]),
    top_k=st.sampled_from([0, 1, 2, 5, 40, 1_000_000]),
    top_p=st.sampled_from([0.0, 0.05, 0.5, 0.9, 0.999, 1.0]),
    min_p=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    repeat_penalty=st.sampled_from([0.5, 1.0, 1.1, 3.0]),
    repeat_last_n=st.sampled_from([-1, 0, 1, 3, 64]),
)
rarer = st.builds(
    Sampling,
    temperature=st.sampled_from([0.8, 1.0, 1.7]),
    top_k=st.sampled_from([0, 5]),
    top_p=st.sampled_from([0.9, 1.0]),
    frequency_penalty=st.sampled_from([0.0, 0.4, -0.3]),
    presence_penalty=st.sampled_from([0.0, 0.7, -0.2]),
    repeat_penalty=st.sampled_from([1.0, 1.3]),
    repeat_last_n=st.sampled_from([-1, 0, 3, 64]),
    dry_multiplier=st.sampled_from([0.0, 0.8]),
    dry_allowed_length=st.sampled_from([1, 2]),
    dry_penalty_last_n=st.sampled_from([-1, 0, 5, 64]),
    top_n_sigma=st.sampled_from([0.0, 0.5, 2.0]),
    typical_p=st.sampled_from([0.2, 0.9, 1.0]),
    xtc_probability=st.sampled_from([0.0, 0.5, 1.0]),
    xtc_threshold=st.sampled_from([0.02, 0.2, 0.6]),
)
contexts = st.lists(st.integers(0, 7), max_size=12)


def logits_of(seed: int, size: int, spread: float = 5.0) -> np.ndarray:
    return (spread * np.random.default_rng(seed).standard_normal(size)).astype(np.float32)


def engine_probabilities(
    logits: np.ndarray, sampling: Sampling, context: Sequence[int] = (), banned: Sequence[int] = ()
) -> np.ndarray:
    sampler = Sampler(sampling, banned, breakers=Breakers(np.zeros(len(logits), np.bool_)))
    return dense(sampler.distribution(sampler.adjust(logits, np.array(context, np.int32))), len(logits))


def near_a_limit(logits: np.ndarray, sampling: Sampling, context: Sequence[int]) -> bool:
    """Whether a filter's limit is so near a token that float rounding may decide."""
    penalised = Sampling(repeat_penalty=sampling.repeat_penalty, repeat_last_n=sampling.repeat_last_n)
    adjusted = Sampler(penalised).adjust(logits, np.array(context, np.int32)).astype(np.float64)
    ordered = np.sort(adjusted)[::-1]
    n = min(sampling.top_k or len(logits), len(logits))
    p = softmax(ordered[:n])
    cuts = [1, n]
    if sampling.top_p < 1:
        sums = np.cumsum(p)
        cuts.append(int((sums >= sampling.top_p).argmax()) + 1)
        if np.abs(sums - sampling.top_p).min() < EDGE:
            return True
    if sampling.min_p > 0 and np.abs(p[1:] / p[0] - sampling.min_p).min(initial=1) < EDGE:
        return True
    return any(ordered[cut - 1] - ordered[cut] < EDGE for cut in cuts if cut < len(ordered))


@given(st.integers(0, 10**6), st.sampled_from([8, 32, 259]), samplings, contexts)
def test_distribution_is_the_references(seed: int, size: int, sampling: Sampling, context: list[int]) -> None:
    logits = logits_of(seed, size)
    assume(not near_a_limit(logits, sampling, context))
    p = engine_probabilities(logits, sampling, context)
    np.testing.assert_allclose(p, probabilities(logits, sampling, context), atol=1e-6)
    assert p.sum() == pytest.approx(1, abs=1e-5)


ROWS = st.one_of(
    st.builds(logits_of, st.integers(0, 10**6), st.sampled_from([1, 2, 40, 259, 4096, 32_000])),
    st.builds(  # ties
        lambda seed, size: np.round(logits_of(seed, size)), st.integers(0, 10**6), st.sampled_from([7, 5000])
    ),
    st.builds(lambda size: np.full(size, 2, np.float32), st.sampled_from([1, 8, 3000])),
    st.builds(  # nearly flat: a filter keeps most tokens
        lambda seed, size: logits_of(seed, size, 0.01), st.integers(0, 10**6), st.sampled_from([300, 9000])
    ),
)


def rounding_decides(row: np.ndarray, sampling: Sampling) -> bool:
    """Whether a sum of probabilities, or a share of the best one, comes near a filter's limit."""
    ordered = np.sort(row)[::-1][: sampling.top_k or None].astype(np.float64)
    p = softmax(ordered)
    ratios = (p / p[0])[ordered < ordered[0]]
    sums = np.cumsum(p)
    near_sum = 0 < sampling.top_p < 1 and np.abs(sums - sampling.top_p).min() < 1e-6
    near_share = sampling.min_p > 0 and np.abs(ratios - sampling.min_p).min(initial=1) < 1e-6 * sampling.min_p
    return bool(near_sum or near_share)


@given(
    ROWS,
    st.sampled_from([0.0, 0.3, 0.99]),
    st.builds(
        Sampling,
        temperature=st.sampled_from([1e-30, 1e-3, 0.8, 1.0, 1e3]),
        top_k=st.sampled_from([0, 1, 2, 40, 1000, 1_000_000]),
        top_p=st.sampled_from([0.0, 1e-6, 0.3, 0.95, 0.9999, 1.0]),
        min_p=st.sampled_from([0.0, 1e-4, 0.05, 1.0]),
    ),
)
@settings(deadline=None)
def test_what_filters_leave_is_what_a_sorted_vocabulary_leaves(
    row: np.ndarray, cut: float, sampling: Sampling
) -> None:
    """Also where logits are equal, or -inf: what a mask, a ban or another filter leaves."""
    row = row.copy()
    row[np.random.default_rng(len(row)).random(len(row)) < cut] = -np.inf
    row[len(row) // 2] = 1
    assume(not rounding_decides(row, sampling))
    made = engine_probabilities(row, sampling)
    expected = filtered(row, sampling)
    np.testing.assert_array_equal(made > 0, np.exp((expected - expected.max()) / sampling.temperature) > 0)
    unfiltered = Sampling(temperature=sampling.temperature)
    np.testing.assert_allclose(made, engine_probabilities(expected, unfiltered), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    "filters", [{}, {"top_k": 3}, {"top_p": 0.5}, {"min_p": 0.1}, {"top_n_sigma": 1.0}], ids=str
)
def test_a_row_with_a_nan_has_no_probabilities(filters: dict[str, float]) -> None:
    row = logits_of(3, 50)
    row[7] = np.nan
    sampler = Sampler(Sampling(temperature=1, **filters))  # type: ignore[arg-type]
    assert np.isnan(sampler.distribution(row).p).all()
    if filters:
        row[:] = -np.inf
        assert np.isnan(sampler.distribution(row).p).all()


@given(ROWS, st.integers(0, 2**64 - 1), samplings, contexts)
@settings(deadline=None)
def test_a_draw_is_the_same_from_a_sparse_and_a_dense_row(
    row: np.ndarray, key: int, sampling: Sampling, context: list[int]
) -> None:
    sampler = Sampler(sampling)
    made = sampler.distribution(sampler.adjust(row, np.array(context, np.int32) % len(row)))
    whole = dense(made, len(row))
    assert [made.of(token) for token in range(0, len(row), 7)] == whole[::7].tolist()
    assert made.draw(key) == Distribution(whole).draw(key)


def on_a_limit(logits: np.ndarray, sampling: Sampling, context: list[int]) -> bool:
    """Whether slightly different limits would keep other tokens: rounding may decide then."""
    before = probabilities(logits, sampling, context)
    for hair in (EDGE, -EDGE):
        moved = replace(
            sampling,
            top_p=min(1.0, sampling.top_p * (1 + hair)) if sampling.top_p < 1 else 1.0,
            top_n_sigma=sampling.top_n_sigma * (1 + hair),
            typical_p=min(1.0, sampling.typical_p * (1 + hair)) if sampling.typical_p < 1 else 1.0,
            xtc_threshold=sampling.xtc_threshold * (1 + hair),
        )
        if not np.allclose(probabilities(logits, moved, context), before, atol=1e-6):
            return True
    return False


@given(st.integers(0, 10**6), st.sampled_from([8, 259, 5000]), rarer, contexts)
@settings(deadline=None)
def test_rarer_filters_and_penalties_are_the_references_and_llama_cpps(
    seed: int, size: int, sampling: Sampling, context: list[int]
) -> None:
    logits = logits_of(seed, size)
    assume(not on_a_limit(logits, sampling, context))
    made = engine_probabilities(logits, sampling, context)
    np.testing.assert_allclose(made, probabilities(logits, sampling, context), atol=1e-5)
    # llama.cpp draws whether XTC drops; and behind top-n-sigma, which leaves -inf, its entropy is NaN.
    if sampling.xtc_probability != 0.5 and not (sampling.top_n_sigma and sampling.typical_p < 1):
        np.testing.assert_allclose(made, llama_probabilities(logits, sampling, context), atol=2e-5)


def llama_probabilities(logits: np.ndarray, sampling: Sampling, context: Sequence[int]) -> np.ndarray:
    """The same through llama.cpp's own samplers, in its default order."""
    import llama_cpp as cpp

    size = len(logits)
    chain = cpp.llama_sampler_chain_init(cpp.llama_sampler_chain_default_params())
    last_n = len(context) if sampling.repeat_last_n < 0 else sampling.repeat_last_n
    for sampler in (
        cpp.llama_sampler_init_penalties(
            size, last_n, sampling.repeat_penalty, sampling.frequency_penalty, sampling.presence_penalty
        ),
        cpp.llama_sampler_init_dry(
            None,
            sampling.dry_multiplier,
            sampling.dry_base,
            sampling.dry_allowed_length,
            len(context) if sampling.dry_penalty_last_n < 0 else sampling.dry_penalty_last_n,
            None,
            0,
        ),
        cpp.llama_sampler_init_top_n_sigma(sampling.top_n_sigma),
        cpp.llama_sampler_init_top_k(sampling.top_k),
        cpp.llama_sampler_init_typical(sampling.typical_p, 1),
        cpp.llama_sampler_init_top_p(sampling.top_p, 1),
        cpp.llama_sampler_init_min_p(sampling.min_p, 1),
        cpp.llama_sampler_init_xtc(sampling.xtc_probability, sampling.xtc_threshold, 1, 7),
        cpp.llama_sampler_init_temp(sampling.temperature),
    ):
        cpp.llama_sampler_chain_add(chain, sampler)
    for token in context:
        cpp.llama_sampler_accept(chain, token)
    data = (cpp.llama_token_data * size)()
    for token, value in enumerate(logits):
        data[token] = cpp.llama_token_data(id=token, logit=float(value), p=0.0)
    candidates = cpp.llama_token_data_array(data=data, size=size, selected=-1, sorted=False)
    cpp.llama_sampler_apply(chain, ctypes.byref(candidates))
    result = np.zeros(size)
    kept = [candidates.data[i] for i in range(candidates.size)]
    values = np.array([candidate.logit for candidate in kept])
    result[[candidate.id for candidate in kept]] = softmax(values)
    cpp.llama_sampler_free(chain)
    return result


@given(st.integers(0, 10**6), st.sampled_from([8, 259, 4096]), samplings, contexts)
@settings(max_examples=60)
def test_distribution_is_llama_cpps(seed: int, size: int, sampling: Sampling, context: list[int]) -> None:
    logits = logits_of(seed, size)
    assume(not near_a_limit(logits, sampling, context))
    p = engine_probabilities(logits, sampling, context)
    np.testing.assert_allclose(p, llama_probabilities(logits, sampling, context), atol=1e-5)


def test_the_order_is_filters_before_temperature() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    hot = engine_probabilities(logits, Sampling(temperature=10, top_p=0.75))
    assert np.count_nonzero(hot) == 2, "at temperature 10 first, three tokens would be needed"
    cut = engine_probabilities(logits, Sampling(temperature=1, top_k=2, top_p=0.6))
    assert np.count_nonzero(cut) == 1, "top-p looks at what top-k left: 0.5 / 0.8 reaches 0.6"


def test_xtc_leaves_its_last_choice_at_a_low_temperature() -> None:
    """Its own p is too small for single precision there."""
    logits = np.log(np.array([0.5, 0.3, 0.2], np.float32))
    coldest = Sampling(temperature=1e-3, xtc_probability=0.5, xtc_threshold=0.25)
    np.testing.assert_allclose(engine_probabilities(logits, coldest), [0.5, 0.5, 0], atol=1e-6)


def test_banned_tokens_never_come_out() -> None:
    logits = np.zeros(6, np.float32)
    logits[2] = 9
    for temperature in (0.0, 1.0):
        p = engine_probabilities(logits, Sampling(temperature=temperature), banned=[2, 5])
        assert p[2] == p[5] == 0
        assert p.sum() == pytest.approx(1)


def test_the_logits_of_llama_cpp_are_left_alone() -> None:
    logits = logits_of(1, 16)
    before = logits.copy()
    engine_probabilities(logits, Sampling(temperature=0.7, repeat_penalty=1.5, top_k=3), [1, 2], [4])
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize("temperature", [1e-300, 1e-38, 1e-9])
def test_a_temperature_next_to_zero_takes_the_best(temperature: float) -> None:
    logits = logits_of(3, 64)
    p = engine_probabilities(logits, Sampling(temperature=temperature))
    assert p[logits.argmax()] == 1
    assert p.sum() == 1


def test_large_and_missing_logits_have_probabilities() -> None:
    p = engine_probabilities(np.array([3e30, -3e30, -np.inf, 3e30], np.float32), Sampling(temperature=1))
    np.testing.assert_array_equal(p, [0.5, 0, 0, 0.5])


@pytest.mark.parametrize("size", [1, 8, 259, 4096, 151_936])
@pytest.mark.parametrize("kind", ["normal", "ties", "missing", "equal"])
def test_the_top_of_rows_is_that_of_a_full_sort(size: int, kind: str) -> None:
    random = np.random.default_rng(size)
    row = random.standard_normal(size).astype(np.float32)
    if kind == "ties":
        row = np.round(row, 1)
    elif kind == "missing":
        row[random.random(size) < 0.98] = -np.inf
    elif kind == "equal":
        row[:] = 1
    rows = np.stack([row, row[::-1], row * 2])
    n = min(10, size)
    for each, ids, values in zip(rows, *top_of_rows(rows), strict=True):
        assert len(ids) == n == len(set(ids))
        # Equal values at the end may differ in index; the values and their order may not.
        np.testing.assert_array_equal(values, np.sort(each)[::-1][:n])
        np.testing.assert_array_equal(each[ids], values)
        pairs = itertools.pairwise(ids)
        assert all(first < second for first, second in pairs if each[first] == each[second])
        if kind == "normal":
            np.testing.assert_array_equal(ids, np.argsort(-each, kind="stable")[:n])


def test_a_row_of_nan_has_no_top_and_harms_no_other() -> None:
    rows = np.random.default_rng(1).standard_normal((3, 400)).astype(np.float32)
    rows[1] = np.nan
    ids, values = top_of_rows(rows)
    assert ids[1] == values[1] == []
    assert ids[2] == np.argsort(-rows[2], kind="stable")[:10].tolist()


@pytest.mark.parametrize("place", [0, 57, 399])
def test_the_top_of_a_row_is_that_of_rows_and_nothing_beside_a_nan(place: int) -> None:
    row = np.random.default_rng(1).standard_normal(400).astype(np.float32)
    (ids,), (values,) = top_of_rows(row[None])
    assert top_of_row(row) == (ids, values)
    row[place] = np.nan
    assert top_of_row(row) == ([], [])


def test_log_sum_exp_is_that_of_the_definition() -> None:
    rows = (5 * np.random.default_rng(2).standard_normal((4, 300))).astype(np.float32)
    expected = np.log(np.exp(rows.astype(np.float64)).sum(axis=1))
    np.testing.assert_allclose(log_sum_exp(rows), expected, rtol=1e-6)


def test_the_first_of_the_top_is_the_argmax_also_where_values_tie() -> None:
    random = np.random.default_rng(5)
    for size in (11, 259, 4096):
        for _ in range(50):
            row = np.round(random.standard_normal(size) * 3).astype(np.float32)
            assert top_of_rows(row[None])[0][0][0] == row.argmax()
