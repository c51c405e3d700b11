"""Distributions over a vocabulary, sparse if few tokens are left, and drawing from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from app.engine.sampling import noise
from app.engine.types import Race

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.intp]


class Distribution:
    """The probabilities of the possible tokens; those of max(p - q, 0) do not sum to one.

    Dense: `ids` is None and `p` has shape [vocabulary]. Sparse: `ids` are the tokens left, ascending, shape
    [n], and `p` their probabilities, shape [n]; all other tokens have 0. Both draw the same token for the
    same key, because luck goes with the id.
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

    def draw(self, key: int, whole: float = 1.0) -> tuple[int, Race]:
        """Return the token that wins by the key's noise, and the race; `whole` is the sum of the
        probabilities. A row of NaN gives its first token, with a NaN score."""
        ratio, place, ratio_behind, behind = noise.race(self.p, self.ids, key)
        tokens = range(len(self.p)) if self.ids is None else self.ids
        if place < 0:
            return int(tokens[0]), Race(math.nan)
        winner, score = int(tokens[place]), -math.log(ratio * whole)
        if behind < 0:
            return winner, Race(score)
        return winner, Race(score, int(tokens[behind]), -math.log(ratio_behind * whole))

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
        """Σ min(p, q): the chance that a token drawn from one distribution passes as one of the other."""
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
