"""The target's rows: computed once, only if needed, and for the right tokens."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from typing_extensions import override

from app.engine.sampling.distribution import Distribution
from app.engine.sampling.rows import RowStore, TargetRows
from app.engine.sampling.sampler import Sampler
from app.engine.types import Sampling
from tests.dense import dense
from tests.reference import probabilities, softmax

pytestmark = pytest.mark.usefixtures("each_way")

CONTEXT = np.array([1, 2, 3], np.int32)
DRAFT = [4, 5]
LOGITS = (3 * np.random.default_rng(0).standard_normal((3, 30))).astype(np.float32)
WORDS = SimpleNamespace(pieces={id: b"%d" % id for id in range(30)})


class Counted(Sampler):
    """Counts the rows that it is asked for."""

    def __init__(self, sampling: Sampling) -> None:
        super().__init__(sampling)
        self.asked = 0

    @override
    def distribution(self, adjusted: np.ndarray, out: np.ndarray | None = None) -> Distribution:
        self.asked += 1
        return super().distribution(adjusted, out)


def rows(sampling: Sampling) -> tuple[TargetRows, Counted]:
    sampler = Counted(sampling)
    return TargetRows(LOGITS, sampler, CONTEXT, DRAFT, WORDS, RowStore(30)), sampler  # type: ignore[arg-type]


def test_each_row_has_the_penalties_of_the_tokens_before_it() -> None:
    sampling = Sampling(temperature=1, repeat_penalty=2, repeat_last_n=2)
    made, _ = rows(sampling)
    for row in (2, 0, 1):
        expected = probabilities(LOGITS[row], sampling, [*CONTEXT, *DRAFT[:row]])
        np.testing.assert_allclose(dense(made.distribution(row), 30), expected, atol=1e-6)


def test_rows_are_made_once_and_only_where_they_are_asked_for() -> None:
    made, sampler = rows(Sampling(temperature=1, top_k=5))
    made.distribution(1)
    made.distribution(1)
    assert made.probability(1, 3) == made.distribution(1).of(3)
    assert sampler.asked == 1


def test_what_is_recorded_is_the_distribution_in_use() -> None:
    sampling = Sampling(temperature=0.7, top_k=4)
    made, _ = rows(sampling)
    p = dense(made.distribution(0), 30)
    (top,) = made.record(1)
    seen = [made.probability(0, token) for token in (7, 8)]
    assert len(top.ids) == 4, "tokens that were cut are no alternatives"
    np.testing.assert_allclose(top.p, sorted(p[p > 0], reverse=True))
    assert seen == [p[7], p[8]]
    assert top.pieces == tuple(b"%d" % id for id in top.ids)


def test_greedy_records_the_models_own_probabilities() -> None:
    made, sampler = rows(Sampling())
    assert made.argmax(2) == LOGITS[2].argmax()
    top = made.record(3)[2]
    seen = [made.probability(2, made.argmax(2))]
    expected = softmax(LOGITS[2])
    assert seen == [pytest.approx(expected.max(), abs=1e-6)]
    np.testing.assert_allclose(top.p, np.sort(expected)[::-1][:10], atol=1e-6)
    assert sampler.asked == 0


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_at_temperature_0_the_one_hot_row_judges_and_the_models_is_kept(penalty: float) -> None:
    judged, _ = rows(Sampling(repeat_penalty=penalty))
    greedy, _ = rows(Sampling(repeat_penalty=penalty))
    for row in range(3):
        best = greedy.argmax(row)
        assert judged.distribution(row).of(best) == judged.distribution(row).p.sum() == 1
    judged.keep(3)
    assert judged.record(3) == greedy.record(3)
    best = greedy.argmax(1)
    second = (best + 1) % 30
    assert (judged.probability(1, best), judged.probability(1, second)) == (1, 0), "what the verdict goes by"


def test_a_one_hot_row_does_not_hide_logits_that_are_no_numbers() -> None:
    broken = LOGITS.copy()
    broken[1, 7] = np.nan
    made = TargetRows(broken, Sampler(Sampling()), CONTEXT, DRAFT, WORDS, RowStore(30))  # type: ignore[arg-type]
    best = [int(dense(made.distribution(row), 30).argmax()) for row in range(3)]
    made.record(3)
    assert [np.isnan(made.probability(row, token)) for row, token in enumerate(best)] == [False, True, False]


@pytest.mark.parametrize("looked_at", [(0, 1, 2), (2, 0)])
def test_rows_of_a_large_vocabulary_outlive_llama_cpps_memory(looked_at: tuple[int, ...]) -> None:
    size = 20_000  # rows of this size are copied when first needed
    logits = (3 * np.random.default_rng(1).standard_normal((3, size))).astype(np.float32)
    words = SimpleNamespace(pieces=[b"x"] * size)
    before = logits.copy()
    made = TargetRows(logits, Sampler(Sampling()), CONTEXT, DRAFT, words, RowStore(size))  # type: ignore[arg-type]
    assert [made.argmax(row) for row in looked_at] == [before[row].argmax() for row in looked_at]
    made.keep(2)
    logits[:] = 0  # the next pass
    for row, top in enumerate(made.record(2)):
        assert top.ids[0] == before[row].argmax()
        assert top.p[0] == pytest.approx(softmax(before[row]).max(), abs=1e-6)
