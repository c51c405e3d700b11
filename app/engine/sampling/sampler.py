"""Logits to probabilities: penalties, DRY, filters, temperature, in llama.cpp's order.

The filters use the probabilities at temperature 1 and come before the temperature, as in llama.cpp's default
sampler chain.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from app.engine.sampling import kernel
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.dry import Breakers, Dry, is_on
from app.engine.sampling.logits import Logits, softmax
from app.engine.types import Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    return logits.reaching(logits.largest - np.float32(n) * finite.std())


def typical_p(logits: Logits, p: float) -> Places:
    """The tokens whose surprise (-log p) is nearest to the mean, until their probabilities exceed `p`; shape
    [n] -> [m]; p < 1.

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


def without_top_choices(
    p: Floats, logits: Logits, temperature: float, threshold: float, chance: float
) -> Floats:
    """XTC: with probability `chance`, the tokens that reach `threshold` are dropped, except the least
    probable of them.

    `p` is the distribution without XTC, shape [n]. The probabilities at temperature 1, from the logits, are
    compared with the threshold. Returns the mixture of both cases: the distribution of llama.cpp's token,
    which first draws whether to drop.
    """
    weights, whole = logits.weights
    at_one = weights / np.float32(whole)
    above = (at_one >= threshold).nonzero()[0]
    if len(above) < 2 or threshold > 0.5:
        return p
    last = above[len(above) - 1 - int(at_one[above][::-1].argmin())]
    values = logits.values.copy()
    values[above[above != last]] = -np.inf
    # From the logits: at a low temperature the p of all that is left may be too small for single precision.
    rest = softmax(values, temperature)
    rest *= np.float32(chance)
    rest += np.float32(1 - chance) * p
    return rest


def min_p(logits: Logits, p: float) -> Places:
    """The tokens at least `p` times as probable as the best one, shape [n] -> [m]; p > 0."""
    return logits.reaching(logits.largest + np.float32(math.log(p)))


def _head(values: Floats, weights: Floats, mass: float) -> Places:
    """The fewest largest `values` whose weights reach `mass`; [n] -> [m], m > 0. Many values are first
    counted into bins, and only the bin with the limit is sorted.
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


_LOWEST_TEMPERATURE = 1e-30
_SPARSE = 8
"""If more than one in this many tokens is left, the distribution is stored densely: looking up ids would cost
more."""


class Sampler:
    """Turns the logits of a place into the distribution for the settings."""

    def __init__(
        self, sampling: Sampling, banned: Iterable[int] = (), breakers: Breakers | None = None
    ) -> None:
        """`banned` ids are never drawn (end-of-generation tokens, if ignored); `breakers` are needed if DRY
        is on."""
        self.sampling = sampling
        self._temperature = max(sampling.temperature, _LOWEST_TEMPERATURE)
        self._banned = np.fromiter(banned, np.intp)
        self._best_k = 0
        self._penalises = sampling.repeat_last_n != 0 and (
            sampling.repeat_penalty != 1 or sampling.frequency_penalty != 0 or sampling.presence_penalty != 0
        )
        self._dry: Dry | None = None
        if is_on(sampling):
            assert breakers is not None, "DRY has to know what ends a repetition"
            self._dry = Dry(sampling, breakers)
        self.adjusts = bool(len(self._banned)) or self._penalises or self._dry is not None
        self._filters: list[Callable[[Logits], Places]] = []
        # The last filters, in their form for a few logits.
        self._heads: list[Callable[[list[float]], int]] = []
        if sampling.top_n_sigma > 0:
            self._filters.append(partial(top_n_sigma, n=sampling.top_n_sigma))
        if sampling.top_k > 0:
            self._filters.append(partial(top_k, k=sampling.top_k))
        if sampling.typical_p < 1:
            self._filters.append(partial(typical_p, p=sampling.typical_p))
        if sampling.top_p < 1:
            self._filters.append(partial(top_p, p=sampling.top_p))
            self._heads.append(partial(head_of_top_p, p=sampling.top_p))
        if sampling.min_p > 0:
            self._filters.append(partial(min_p, p=sampling.min_p))
            self._heads.append(partial(head_of_min_p, p=sampling.min_p))
        # The number of last filters that have a form for a few logits.
        self._ranks = -1 if sampling.xtc_probability > 0 else len(self._heads)
        if self._ranks == len(self._filters) - 1 and 0 < sampling.top_k <= FEW // 2:
            self._best_k = sampling.top_k  # only top-k comes before them: it joins the list form
            self._heads.insert(0, lambda _values: sampling.top_k)
        self.keeps_all = not self._filters and sampling.xtc_probability == 0  # no token is dropped

    @property
    def is_greedy(self) -> bool:
        return self.sampling.temperature == 0

    def adjust(self, logits: Floats, context: NDArray[np.int32], out: Floats | None = None) -> Floats:
        """Logits after penalties, DRY and bans; `context` is the tokens before this place, shape [n].

        Returns the row itself if nothing applies, else a copy (in `out` if given), because the row is
        llama.cpp's memory.
        """
        if not self.adjusts:
            return logits
        adjusted = np.empty_like(logits) if out is None else out
        adjusted[:] = logits
        settings = self.sampling
        if self._penalises and len(context):
            recent = context if settings.repeat_last_n < 0 else context[-settings.repeat_last_n :]
            ids, counts = np.unique(recent, return_counts=True)
            values = adjusted[ids]
            penalty = settings.repeat_penalty
            values = np.where(values > 0, values / penalty, values * penalty)
            adjusted[ids] = values - (counts * settings.frequency_penalty + settings.presence_penalty)
        if self._dry is not None:
            self._dry.lower(adjusted, context)
        adjusted[self._banned] = -np.inf
        return adjusted

    def distribution(self, adjusted: Floats, out: Floats | None = None) -> Distribution:
        """The distribution that tokens are drawn from; sums to 1. If every token is left, it is written to
        `out`, shape [vocabulary], if given.

        At temperature 0 it is one at the argmax. If a logit is NaN, or all are -inf, every
        probability is NaN.
        """
        if self.is_greedy:
            return Distribution(np.ones(1, np.float32), np.array([adjusted.argmax()]))
        if self.keeps_all:
            return Distribution(softmax(adjusted, self._temperature, out))
        if kernel.compiled is not None and 0 < self._best_k < len(adjusted):
            top_p, min_p = self.sampling.top_p, self.sampling.min_p
            p, places = kernel.compiled.filtered(adjusted, self._best_k, top_p, min_p, self._temperature)
            return Distribution(p, places) if len(p) else _no_distribution(adjusted)
        ids, left = None, Logits(adjusted)
        if not math.isfinite(left.largest):
            return _no_distribution(adjusted)
        if 0 < self._best_k < len(adjusted):
            places = left.reaching(left.bound(self._best_k))
            if len(places) <= FEW:
                return self._of_few(places.tolist(), adjusted[places].tolist(), self._heads)
        for done, keep in enumerate(self._filters, 1):
            places = keep(left)
            if len(places) < len(left.values):
                ids = places if ids is None else ids[places]
                if len(ids) <= FEW and len(self._filters) - done <= self._ranks:
                    heads = self._heads[len(self._heads) - len(self._filters) + done :]
                    return self._of_few(ids.tolist(), left.values[places].tolist(), heads)
                left = Logits(left.values[places])
        p = softmax(left.values, self._temperature, out if ids is None else None)
        if self.sampling.xtc_probability > 0:
            chance, threshold = self.sampling.xtc_probability, self.sampling.xtc_threshold
            p = without_top_choices(p, left, self._temperature, threshold, chance)
        if ids is None or len(ids) * _SPARSE <= len(adjusted):
            return Distribution(p, ids)
        dense = np.zeros_like(adjusted)
        dense[ids] = p
        return Distribution(dense)

    def _of_few(
        self, ids: list[int], values: list[float], heads: Iterable[Callable[[list[float]], int]]
    ) -> Distribution:
        """The distribution over a few tokens, `ids` ascending, to which the last filters still apply."""
        ranked = sorted(zip(values, ids, strict=True), key=itemgetter(0), reverse=True)
        values = [value for value, _ in ranked]
        for head in heads:
            del values[head(values) :]
        weights = [math.exp((value - values[0]) / self._temperature) for value in values]
        whole = sum(weights)
        kept = sorted((id, weight / whole) for weight, (_, id) in zip(weights, ranked, strict=False))
        places, p = zip(*kept, strict=True)
        return Distribution(np.array(p, np.float32), np.array(places, np.intp))


def _no_distribution(logits: Floats) -> Distribution:
    """The distribution of a row that has none: every probability is NaN."""
    return Distribution(np.full_like(logits, np.nan))
