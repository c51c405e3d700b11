"""A sampler's filters: the tokens that they keep, found without sorting a vocabulary.

Each filter gets the logits that earlier filters kept, and returns the places to keep, ascending. Of equal
logits at a limit those of lower ids are kept, as by a stable sort. For few logits a Python list costs less
than numpy's calls: filters that follow others have a form for lists.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.sampling.logits import Logits

    Floats = NDArray[np.float32]
    Places = NDArray[np.intp]

FEW = 256
"""Up to this many tokens, ranking a list is faster than ranking an array."""
_SORTED = 2048
"""Up to this many values, sorting is faster than counting into bins."""
_BINS = 4096
_NARROW = 1e-30  # the least span, to avoid division by zero


def top_k(logits: Logits, k: int) -> Places:
    """The `k` largest logits, shape [n] -> [k]; all if there are fewer."""
    if k >= len(logits.values):
        return np.arange(len(logits.values))
    places = logits.reaching(logits.bound(k))
    values = logits.values[places]
    last = np.partition(values, len(values) - k)[len(values) - k]
    stays = values > last
    stays[(values == last).nonzero()[0][: k - np.count_nonzero(stays)]] = True
    kept: Places = places[stays]
    return kept


def top_p(logits: Logits, p: float) -> Places:
    """The smallest set of the most probable tokens whose probability reaches `p`, shape [n] -> [m]; p < 1."""
    weights, whole = logits.weights
    if len(weights) <= _SORTED:
        return _head(logits.values, weights, p * whole)
    # All tokens less probable than this have less than 1 - p together: the limit lies above them.
    least = min((1 - p) * whole / len(weights), 1.0)
    places = (weights >= np.float32(least)).nonzero()[0]
    kept: Places = places[_head(logits.values[places], weights[places], p * whole)]
    return kept


def top_n_sigma(logits: Logits, n: float) -> Places:
    """The logits within `n` standard deviations of the largest, shape [m] -> [k]; -inf does not count."""
    finite = logits.values[logits.values > -np.inf]
    if not len(finite):
        return np.arange(len(logits.values))
    return logits.reaching(logits.largest - np.float32(n) * finite.std())


def typical_p(logits: Logits, p: float) -> Places:
    """The tokens whose surprise (-log of their probability) is nearest to its mean, as many as it takes to
    exceed `p`; shape [n] -> [m]; p < 1.

    Locally typical sampling, Meister et al. 2022 (arXiv 2202.00666).
    """
    places = (logits.values > -np.inf).nonzero()[0]
    weights, whole = logits.weights
    weights = weights[places]
    surprise = math.log(whole) - (logits.values[places] - logits.largest)
    mean = np.add.reduce(weights * surprise, dtype=np.float64) / whole
    kept: Places = places[_head(-np.abs(surprise - np.float32(mean)), weights, math.nextafter(p, 2) * whole)]
    return kept


def head_of_top_p(values: Sequence[float], p: float) -> int:
    """`top_p` for a few logits, largest first: the number of first logits kept."""
    sums = list(accumulate(math.exp(value - values[0]) for value in values))
    return min(bisect_left(sums, p * sums[-1]) + 1, len(sums))


def head_of_min_p(values: Sequence[float], p: float) -> int:
    """`min_p` for a few logits, largest first: the number of first logits kept."""
    limit = values[0] + math.log(p)
    return sum(value >= limit for value in values)


def without_top_choices(p: Floats, logits: Logits, threshold: float, chance: float) -> Floats:
    """XTC: with probability `chance`, the tokens that reach `threshold` are dropped, except the least
    probable of them.

    `p` is the distribution without XTC, shape [n]; the probabilities at temperature 1, from the logits, are
    compared with the threshold. Returns the mixture of both cases: llama.cpp first draws whether to drop and
    then draws a token, and this is the law of that token.
    """
    weights, whole = logits.weights
    at_one = weights / np.float32(whole)
    above = (at_one >= threshold).nonzero()[0]
    if len(above) < 2 or threshold > 0.5:
        return p
    last = above[len(above) - 1 - int(at_one[above][::-1].argmin())]
    rest = p.copy()
    rest[above[above != last]] = 0
    whole = np.add.reduce(rest)
    if whole == 0:
        return p
    rest *= np.float32(chance) / whole
    rest += np.float32(1 - chance) * p
    return rest


def min_p(logits: Logits, p: float) -> Places:
    """The tokens at least `p` times as probable as the best one, shape [n] -> [m]; p > 0."""
    return logits.reaching(logits.largest + np.float32(math.log(p)))


def _head(values: Floats, weights: Floats, mass: float) -> Places:
    """The fewest largest `values` whose weights reach `mass`; [n] -> [m], m > 0.

    Many values are first counted into bins, so that only the bin with the limit is sorted.
    """
    if len(values) <= _SORTED:
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
    """The number of first weights that reach `mass`; all if they do not."""
    return int(np.cumsum(weights, dtype=np.float64).searchsorted(mass)) + 1
