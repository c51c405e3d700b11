"""Distributions over a vocabulary, stored sparsely where few tokens are left, and drawing from them."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from app.engine.sampling import kernel
from app.engine.types import Draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.intp]


class Distribution:
    """The probabilities of the possible tokens; those of a residual need not sum to one.

    Dense: `ids` is None and `p` has shape [vocabulary]. Sparse: `ids` are the tokens left, ascending, shape
    [n], and `p` their probabilities, shape [n]; all other tokens have 0. Both draw the same token for the
    same u, because intervals are in the order of the ids.
    """

    __slots__ = ("ids", "p")

    def __init__(self, p: Floats, ids: Ids | None = None) -> None:
        self.p = p
        self.ids = ids

    def of(self, token: int) -> float:
        """The probability of a token."""
        if self.ids is None:
            return self.p.item(token)
        place = int(self.ids.searchsorted(token))
        return self.p.item(place) if place < len(self.ids) and self.ids.item(place) == token else 0.0

    def draw(self, u: float) -> tuple[int, Draw]:
        """Return the token whose interval contains `u`, and the draw."""
        place, draw = draw_token(self.p, u)
        return place if self.ids is None else self.ids.item(place), draw

    def without(self, token: int) -> Distribution:
        """The distribution without a token; not scaled."""
        rest = self.p.copy()
        place = token if self.ids is None else int(self.ids.searchsorted(token))
        if self.ids is None or (place < len(rest) and self.ids.item(place) == token):
            rest[place] = 0
        return Distribution(rest, self.ids)

    def beyond(self, other: Distribution, reach: float = 1.0) -> Distribution:
        """max(reach p - q, 0), where q is `other`; not scaled."""
        p = self.p if reach == 1 else self.p * np.float32(reach)
        if self.ids is None and other.ids is not None:
            rest = p.copy()
            rest[other.ids] = np.maximum(p[other.ids], other.p) - other.p
        else:
            q = other.p if self.ids is None else other._at(self.ids)
            rest = np.maximum(p, q)
            rest -= q  # the same as max(p - q, 0), in half its time
        return Distribution(rest, self.ids)

    def overlap(self, other: Distribution) -> float:
        """Σ min(p, q): the chance that a token drawn from the one passes for one of the other."""
        if self.ids is not None:
            return float(np.minimum(self.p, other._at(self.ids)).sum())
        if other.ids is not None:
            return other.overlap(self)
        return float(np.minimum(self.p, other.p).sum())

    def _at(self, ids: Ids) -> Floats:
        """The probabilities of these tokens, shape [len(ids)]."""
        if self.ids is None:
            return self.p[ids]
        places = np.minimum(self.ids.searchsorted(ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.p[places], np.float32(0))


def draw_token(p: Floats, u: float) -> tuple[int, Draw]:
    """Draw from probabilities, shape [n]: return the place whose interval contains `u`, and the draw.

    `p` need not sum to exactly one; the intervals are scaled so that they do. The block of places is found
    first, so that only that block is summed element by element. Blocks are summed pairwise in the precision
    of `p`, which is as exact as `p` itself; the lists are short and in double precision.
    """
    if kernel.compiled is not None:
        place, low, high = kernel.compiled.draw(p, u)
        return place, Draw(u, low, high)
    starts, width = _blocks(len(p))
    ends = list(accumulate(np.add.reduceat(p, starts).tolist()))
    total = ends[-1]
    at = _interval(ends, u, total)
    before, end = ends[at - 1] if at else 0.0, ends[at]
    block = p[at * width : (at + 1) * width].tolist()
    # The two sums may round differently: the block's last token ends where the block ends.
    last = len(block) - 1
    while last and not block[last]:
        last -= 1
    edges = [*accumulate(block[:last], initial=before), end]
    place = _interval(edges, u, total, 1)
    return at * width + place - 1, Draw(u, edges[place - 1] / total, min(edges[place], end) / total)


@lru_cache(maxsize=64)
def _blocks(size: int) -> tuple[NDArray[np.intp], int]:
    """Where the blocks of `size` probabilities begin, and the length of a block."""
    width = math.isqrt(size)
    return np.arange(0, size, width), width


def _interval(edges: list[float], u: float, total: float, first: int = 0) -> int:
    """The index, from `first` on, of the interval that contains `u`; interval i ends before edges[i] /
    total."""
    index = min(bisect_right(edges, u * total, first), len(edges) - 1)
    # Both u * total and the scaled edges are rounded; the edges decide, because they are recorded.
    while index < len(edges) - 1 and u >= edges[index] / total:
        index += 1
    while index > first and u < edges[index - 1] / total:
        index -= 1
    return index
