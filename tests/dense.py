"""Dense distributions over the whole vocabulary, for tests of every token, and filters that sort the
vocabulary for every row: the reference for those that do not sort."""

from __future__ import annotations

import numpy as np

from app.engine.sampling.distribution import Distribution
from app.engine.types import Sampling
from tests.reference import softmax


def dense(made: Distribution, size: int) -> np.ndarray:
    """The distribution in shape [size]; checks that its ids ascend."""
    if made.ids is None:
        assert len(made.p) == size
        return made.p
    assert len(made.ids) == len(made.p)
    assert (np.diff(made.ids) > 0).all()
    row = np.zeros(size, np.float32)
    row[made.ids] = made.p
    return row


def sparse(row: np.ndarray) -> Distribution:
    """The same distribution with only the tokens that have a probability."""
    ids = row.nonzero()[0]
    return Distribution(row[ids], ids)


def filtered(logits: np.ndarray, settings: Sampling) -> np.ndarray:
    """Logits with everything that top-k, top-p and min-p cut at -inf, shape [size]; one stays at least."""
    n = settings.top_k if 0 < settings.top_k < len(logits) else len(logits)
    order = np.argsort(-logits, kind="stable")[:n]
    p = softmax(logits[order])
    keep = n
    if settings.top_p < 1:
        # llama.cpp keeps tokens up to the one whose cumulative probability reaches top_p.
        reached = np.cumsum(p, dtype=np.float64) >= settings.top_p
        keep = int(reached.argmax()) + 1 if reached.any() else keep
    if settings.min_p > 0:
        keep = min(keep, max(1, int(np.count_nonzero(p >= settings.min_p * p[0]))))
    result = np.full_like(logits, -np.inf)
    kept = order[:keep]
    result[kept] = logits[kept]
    return result
