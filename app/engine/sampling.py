"""Logits to probabilities: penalties, top-k, top-p, min-p, temperature, in llama.cpp's order.

The filters look at the probabilities at temperature 1 and come before the temperature, as in llama.cpp's
default sampler chain.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from app.engine.types import Draw, Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

TOP = 10
"""How many alternatives a trace keeps."""

_LOWEST_TEMPERATURE = 1e-30

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
        self.adjusts = bool(len(self._banned)) or sampling.repeat_penalty != 1.0
        self.filters = sampling.top_k > 0 or sampling.top_p < 1 or sampling.min_p > 0

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
        penalty, last_n = self.sampling.repeat_penalty, self.sampling.repeat_last_n
        if penalty != 1.0 and last_n != 0 and len(context):
            recent = np.unique(context if last_n < 0 else context[-last_n:])
            values = adjusted[recent]
            adjusted[recent] = np.where(values > 0, values / penalty, values * penalty)
        adjusted[self._banned] = -np.inf
        return adjusted

    def distribution(self, adjusted: Floats) -> Floats:
        """The distribution that tokens are drawn from, shape [vocabulary]; sums to 1.

        At temperature 0 it is one at the argmax.
        """
        if self.is_greedy:
            one_hot = np.zeros_like(adjusted)
            one_hot[int(adjusted.argmax())] = 1
            return one_hot
        logits = self._filtered(adjusted) if self.filters else adjusted
        # The maximum goes first and the limit holds: a tiny temperature would overflow the quotient.
        temperature = max(self.sampling.temperature, _LOWEST_TEMPERATURE)
        scaled = np.subtract(logits, np.maximum.reduce(logits))
        scaled /= np.float32(temperature)
        return _exponentials(scaled)

    @property
    def is_plain(self) -> bool:
        """Nothing but the temperature applies: all rows can be had at once."""
        return not (self.is_greedy or self.adjusts or self.filters)

    def distributions(self, logits: Floats) -> Floats:
        """As `distribution`, of all rows at once, shape [n, vocabulary]; only where `is_plain`."""
        temperature = max(self.sampling.temperature, _LOWEST_TEMPERATURE)
        p: Floats = np.subtract(logits, np.maximum.reduce(logits, axis=1, keepdims=True))
        p /= np.float32(temperature)
        np.exp(p, out=p)
        p /= np.add.reduce(p, axis=1, keepdims=True)
        return p

    def _filtered(self, logits: Floats) -> Floats:
        """Logits with everything that the filters cut at -inf; at least one token stays."""
        settings = self.sampling
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
        filtered = np.full_like(logits, -np.inf)
        kept = order[:keep]
        filtered[kept] = logits[kept]
        return filtered


def draw_token(p: Floats, u: float) -> tuple[int, Draw]:
    """Draw from a distribution, shape [vocabulary]: the token whose interval holds `u`, and the draw.

    `p` need not sum to exactly one; the intervals are scaled so that they do. Looks for the block of tokens
    first, so that only that block is summed token by token. Blocks are added up in the precision of `p`,
    pairwise, which is as exact as `p` is; the lists are short and in double.
    """
    starts, width = _blocks(len(p))
    ends = list(accumulate(np.add.reduceat(p, starts).tolist()))
    total = ends[-1]
    at = _interval(ends, u, total)
    before, end = ends[at - 1] if at else 0.0, ends[at]
    block = p[at * width : (at + 1) * width].tolist()
    # The two ways of adding up may differ in rounding: the block's last token ends where the block does.
    last = len(block) - 1
    while last and not block[last]:
        last -= 1
    edges = [*accumulate(block[:last], initial=before), end]
    place = _interval(edges, u, total, 1)
    return at * width + place - 1, Draw(u, edges[place - 1] / total, min(edges[place], end) / total)


@lru_cache(maxsize=4)
def _blocks(size: int) -> tuple[NDArray[np.intp], int]:
    """Where the blocks of a distribution of `size` tokens begin, and how many tokens one has."""
    width = math.isqrt(size)
    return np.arange(0, size, width), width


def _interval(edges: list[float], u: float, total: float, first: int = 0) -> int:
    """Index, from `first` on, of the interval that holds `u`; interval i ends, not included, at
    edges[i] / total."""
    index = min(bisect_right(edges, u * total, first), len(edges) - 1)
    # u * total is rounded, and so are the scaled edges, which are what is recorded: they decide.
    while index < len(edges) - 1 and u >= edges[index] / total:
        index += 1
    while index > first and u < edges[index - 1] / total:
        index -= 1
    return index
