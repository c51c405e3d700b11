"""Which tokens a sampler's filters leave, found without sorting a vocabulary.

Each filter looks at the logits that the filters before it left, and names the places that stay, ascending.
Where equal logits meet a limit, those of lower ids stay, as with a stable sort.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Places = NDArray[np.intp]

_FEW = 2048
"""So many values are sorted sooner than counted into bins."""
_BINS = 4096
_NARROW = 1e-30  # a span is at least this: nothing is divided by zero


def top_k(logits: Floats, k: int) -> Places:
    """The `k` largest logits, shape [n] -> [k]; all where there are no more."""
    if k >= len(logits):
        return np.arange(len(logits))
    bound = group_bound(logits, k)
    if bound is None:
        kept, values = None, logits
    else:
        kept = (logits >= bound).nonzero()[0]
        values = logits[kept]
    last = np.partition(values, len(values) - k)[len(values) - k]
    stays = values > last
    stays[(values == last).nonzero()[0][: k - np.count_nonzero(stays)]] = True
    places: Places = stays.nonzero()[0]
    return places if kept is None else kept[places]


def group_bound(values: Floats, n: int) -> np.float32 | None:
    """A value that at least `n` of `values`, shape [size], reach and few more do; None where there are too
    few for one.

    The n-th largest of the maxima of disjoint groups: one quick pass instead of a partition.
    """
    height = max(1, math.isqrt(len(values)) // 2)
    groups = len(values) // height
    if groups <= n:
        return None
    maxima = np.maximum.reduce(values[: height * groups].reshape(height, groups), axis=0)
    maxima.partition(groups - n)
    bound: np.float32 = maxima[groups - n]
    return bound


def top_p(logits: Floats, p: float) -> Places:
    """The smallest set of the most probable tokens whose probability reaches `p`, shape [n] -> [m]; p < 1."""
    weights = _weights(logits)
    whole = float(np.add.reduce(weights))
    # Together, tokens less probable than this have less than 1 - p: the limit is before them.
    least = min((1 - p) * whole / len(weights), 1.0)
    places: Places = (weights >= np.float32(least)).nonzero()[0]
    return places[_head(logits[places], weights[places], p * whole)]


def min_p(logits: Floats, p: float) -> Places:
    """The tokens at least `p` times as probable as the best one, shape [n] -> [m]; p > 0."""
    places: Places = (logits >= np.maximum.reduce(logits) + np.float32(math.log(p))).nonzero()[0]
    return places


def _weights(logits: Floats) -> Floats:
    """Probabilities that are not scaled, the best token's being 1; shape [n]."""
    weights = np.subtract(logits, np.maximum.reduce(logits))
    return np.exp(weights, out=weights)


def _head(values: Floats, weights: Floats, mass: float) -> Places:
    """The largest of `values`, as many as it takes for their weights to reach `mass`; [n] -> [m], m > 0.

    Many values are counted into bins first, so that only those of the bin with the limit in it are sorted.
    """
    if len(values) <= _FEW:
        order = np.argsort(-values, kind="stable")
        return np.sort(order[: _count(weights[order], mass)])
    highest = np.maximum.reduce(values)
    span = highest - np.minimum.reduce(values)
    bins = (np.subtract(highest, values) * ((_BINS - 1) / max(span, _NARROW))).astype(np.intp)
    sums = np.cumsum(np.bincount(bins, weights, _BINS))
    limit = min(int(sums.searchsorted(mass)), int(bins.max()))
    kept = bins < limit
    inside = (bins == limit).nonzero()[0]
    inside = inside[np.argsort(-values[inside], kind="stable")]
    before = float(sums[limit - 1]) if limit else 0.0
    kept[inside[: _count(weights[inside], mass - before)]] = True
    places: Places = kept.nonzero()[0]
    return places


def _count(weights: Floats, mass: float) -> int:
    """How many of the first weights reach `mass`; all where they do not."""
    return int(np.cumsum(weights, dtype=np.float64).searchsorted(mass)) + 1
