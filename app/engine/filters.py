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
_HEIGHT = 64  # values of a group


class Logits:
    """Logits of the tokens that are left, shape [n], and a quick way to the large ones among them.

    The maxima of groups cost one quick pass; only groups whose maximum is large enough are looked through.
    """

    def __init__(self, values: Floats) -> None:
        self.values = values
        count = len(values) // _HEIGHT
        self._maxima: Floats | None = None
        if count < _HEIGHT:
            self.largest = np.maximum.reduce(values)
            return
        # Group i holds every `count`-th value from i on: maxima of whole rows, which numpy is fast at.
        self._groups = values[: _HEIGHT * count].reshape(_HEIGHT, count)
        self._rest = values[_HEIGHT * count :]
        self._maxima = np.maximum.reduce(self._groups, axis=0)
        self.largest = np.maximum.reduce([np.maximum.reduce(self._maxima), *self._rest])
        """NaN where any is."""

    def bound(self, n: int) -> np.float32:
        """A value that at least `n` of them reach, and few more do."""
        values = self.values if self._maxima is None or len(self._maxima) < n else self._maxima
        place = len(values) - n
        bound: np.float32 = np.partition(values, place)[place]
        return bound

    def reaching(self, bound: np.float32) -> Places:
        """The places of those that reach `bound`, ascending."""
        places: Places
        if self._maxima is None:
            places = (self.values >= bound).nonzero()[0]
            return places
        groups = (self._maxima >= bound).nonzero()[0]
        if len(groups) * 8 > len(self._maxima):
            places = (self.values >= bound).nonzero()[0]
            return places
        found = (self._groups[:, groups].ravel() >= bound).nonzero()[0]
        row, group = np.divmod(found, len(groups) or 1)
        rest = (self._rest >= bound).nonzero()[0] + self._groups.size
        places = np.concatenate([row * len(self._maxima) + groups[group], rest])
        places.sort()
        return places


def top_k(logits: Logits, k: int) -> Places:
    """The `k` largest logits, shape [n] -> [k]; all where there are no more."""
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
    weights = np.subtract(logits.values, logits.largest)
    np.exp(weights, out=weights)
    whole = float(np.add.reduce(weights))
    if len(weights) <= _FEW:
        return _head(logits.values, weights, p * whole)
    # Together, tokens less probable than this have less than 1 - p: the limit is before them.
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
    shifted = logits.values[places] - logits.largest
    weights = np.exp(shifted)
    whole = np.add.reduce(weights, dtype=np.float64)
    surprise = math.log(whole) - shifted
    mean = np.add.reduce(weights * surprise, dtype=np.float64) / whole
    kept: Places = places[_head(-np.abs(surprise - np.float32(mean)), weights, math.nextafter(p, 2) * whole)]
    return kept


def without_top_choices(p: Floats, at_one: Floats, threshold: float, chance: float) -> Floats:
    """XTC: with `chance` the tokens that reach `threshold` are left out, but for the least probable of them.

    `p` is the distribution without it and `at_one` that at temperature 1, which is held against the
    threshold, both of shape [n]. Returns the distribution that comes of both cases: where llama.cpp draws
    whether to drop them before it draws a token, this is the law of the token.
    """
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
