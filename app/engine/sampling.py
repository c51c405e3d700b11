"""Logits to probabilities: penalties, filters, temperature, in llama.cpp's order.

The filters look at the probabilities at temperature 1 and come before the temperature, as in llama.cpp's
default sampler chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from app.engine import filters
from app.engine.distribution import Distribution
from app.engine.types import Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Places = NDArray[np.intp]

TOP = 10
"""How many alternatives a trace keeps."""

_LOWEST_TEMPERATURE = 1e-30
_SPARSE = 8
"""A distribution of more than one in so many tokens is written densely: looking ids up would cost more."""

# Here and in the drafters numpy's functions are called as ufuncs (np.add.reduce, not sum): behind a pass of
# the model nothing of them is in the processor's caches, and the methods' detour costs more than the sum.


def softmax(logits: Floats) -> Floats:
    """Probabilities of one row, shape [vocabulary]; -inf becomes 0."""
    return _exponentials(np.subtract(logits, np.maximum.reduce(logits)))


def _exponentials(p: Floats) -> Floats:
    """exp(p), scaled to sum to 1; overwrites `p`, whose largest value is 0."""
    np.exp(p, out=p)
    # In the row's own precision, for numpy adds up pairwise: the error is that of a few roundings. In double
    # it would take three times as long.
    p /= np.add.reduce(p)
    return p


def log_sum_exp(rows: Floats) -> list[float]:
    """What each row's logits exceed their log-probabilities by, shape [n, vocabulary] -> n numbers; NaN where
    a logit is."""
    largest = np.maximum.reduce(rows, axis=1, keepdims=True)
    exponentials = np.subtract(rows, largest)
    np.exp(exponentials, out=exponentials)
    sums = np.add.reduce(exponentials, axis=1, dtype=np.float64)
    return [top + math.log(total) for top, total in zip(largest[:, 0].tolist(), sums.tolist(), strict=True)]


def top_of_rows(rows: Floats, n: int = TOP) -> tuple[list[list[int]], list[list[float]]]:
    """Indices and values of the `n` largest values of each row, largest first (ties: lower index first).

    `rows` is contiguous, shape [rows, vocabulary]. The n-th largest of the maxima of disjoint groups is a
    bound that at least n values of a row reach, and few more do: three quick passes over all rows at once
    instead of a partition of each. Both lists are empty for a row of NaN.
    """
    count, size = rows.shape
    height = max(1, math.isqrt(size) // 2)
    groups = size // height
    if groups <= n:
        reached = ~np.isnan(rows)
    else:
        # Group i holds every `groups`-th value from i on: maxima of whole slices, which numpy is fast at.
        # A view of its own, because a slice of several rows cannot be reshaped without a copy.
        step = rows.itemsize
        grouped: Floats = np.ndarray(
            (count, height, groups), rows.dtype, rows, strides=(size * step, groups * step, step)
        )
        maxima = np.maximum.reduce(grouped, axis=1)
        maxima.partition(groups - n, axis=1)
        reached = rows >= maxima[:, groups - n : groups - n + 1]
    places = reached.ravel().nonzero()[0]
    row_of, index = np.divmod(places, size)
    values = rows.ravel()[places]
    order = np.lexsort((index, -values, row_of))
    all_indices, all_values = index[order].tolist(), values[order].tolist()
    indices, tops, start = [], [], 0
    for length in np.bincount(row_of, minlength=count).tolist():
        end = start + min(n, length)
        indices.append(all_indices[start:end])
        tops.append(all_values[start:end])
        start += length
    return indices, tops


class Sampler:
    """Turns the logits of one place into the distribution that the settings ask for."""

    def __init__(self, sampling: Sampling, banned: Iterable[int] = ()) -> None:
        """`banned` ids never come out (end-of-generation tokens where they are ignored)."""
        self.sampling = sampling
        self._banned = np.fromiter(banned, np.intp)
        self._penalises = sampling.repeat_last_n != 0 and (
            sampling.repeat_penalty != 1 or sampling.frequency_penalty != 0 or sampling.presence_penalty != 0
        )
        self.adjusts = bool(len(self._banned)) or self._penalises
        self._filters: list[Callable[[filters.Logits], Places]] = []
        if sampling.top_n_sigma > 0:
            self._filters.append(partial(filters.top_n_sigma, n=sampling.top_n_sigma))
        if sampling.top_k > 0:
            self._filters.append(partial(filters.top_k, k=sampling.top_k))
        if sampling.typical_p < 1:
            self._filters.append(partial(filters.typical_p, p=sampling.typical_p))
        if sampling.top_p < 1:
            self._filters.append(partial(filters.top_p, p=sampling.top_p))
        if sampling.min_p > 0:
            self._filters.append(partial(filters.min_p, p=sampling.min_p))

    @property
    def is_greedy(self) -> bool:
        return self.sampling.temperature == 0

    def adjust(self, logits: Floats, context: NDArray[np.int32]) -> Floats:
        """Logits after penalties and bans; `context` are the tokens before this place, shape [n].

        Returns the row itself where nothing applies, else a copy: the row is llama.cpp's memory.
        """
        if not self.adjusts:
            return logits
        adjusted = logits.copy()
        settings = self.sampling
        if self._penalises and len(context):
            recent = context if settings.repeat_last_n < 0 else context[-settings.repeat_last_n :]
            ids, counts = np.unique(recent, return_counts=True)
            values = adjusted[ids]
            penalty = settings.repeat_penalty
            values = np.where(values > 0, values / penalty, values * penalty)
            adjusted[ids] = values - (counts * settings.frequency_penalty + settings.presence_penalty)
        adjusted[self._banned] = -np.inf
        return adjusted

    def distribution(self, adjusted: Floats) -> Distribution:
        """The distribution that tokens are drawn from; sums to 1.

        At temperature 0 it is one at the argmax. Where a logit is NaN, every probability is.
        """
        if self.is_greedy:
            return Distribution(np.ones(1, np.float32), np.array([adjusted.argmax()]))
        ids, left = None, adjusted
        if self._filters:
            logits = filters.Logits(adjusted)
            if math.isnan(logits.largest):
                return Distribution(np.full_like(adjusted, np.nan))
            for keep in self._filters:
                places = keep(logits)
                if len(places) < len(logits.values):
                    ids = places if ids is None else ids[places]
                    logits = filters.Logits(logits.values[places])
            left = logits.values
        # The maximum goes first and the limit holds: a tiny temperature would overflow the quotient.
        p = np.subtract(left, np.maximum.reduce(left))
        p /= np.float32(max(self.sampling.temperature, _LOWEST_TEMPERATURE))
        _exponentials(p)
        if self.sampling.xtc_probability > 0:
            chance, threshold = self.sampling.xtc_probability, self.sampling.xtc_threshold
            p = filters.without_top_choices(p, softmax(left), threshold, chance)
        if ids is None or len(ids) * _SPARSE <= len(adjusted):
            return Distribution(p, ids)
        dense = np.zeros_like(adjusted)
        dense[ids] = p
        return Distribution(dense)

    @property
    def is_plain(self) -> bool:
        """Nothing but the temperature applies: all rows can be had at once."""
        return not (self.is_greedy or self.adjusts or self._filters or self.sampling.xtc_probability > 0)

    def distributions(self, logits: Floats) -> list[Distribution]:
        """As `distribution`, of all rows at once, shape [n, vocabulary]; only where `is_plain`."""
        temperature = max(self.sampling.temperature, _LOWEST_TEMPERATURE)
        p: Floats = np.subtract(logits, np.maximum.reduce(logits, axis=1, keepdims=True))
        p /= np.float32(temperature)
        np.exp(p, out=p)
        p /= np.add.reduce(p, axis=1, keepdims=True)
        return [Distribution(row) for row in p]
