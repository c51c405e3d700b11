"""Logits to probabilities: penalties, top-k, top-p, min-p, temperature, in llama.cpp's order.

The filters look at the probabilities at temperature 1 and come before the temperature, as in llama.cpp's
default sampler chain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from app.engine.types import Draw, Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

TOP = 10
"""How many alternatives a trace keeps."""

_LOWEST_TEMPERATURE = 1e-30


def softmax(logits: Floats) -> Floats:
    """Probabilities of one row, shape [vocabulary]; -inf becomes 0. The sum is taken in double."""
    p: Floats = np.subtract(logits, logits.max())
    np.exp(p, out=p)
    p /= p.sum(dtype=np.float64)
    return p


def top_indices(row: Floats, n: int = TOP) -> NDArray[np.intp]:
    """Indices of the `n` largest values of a row, largest first (ties: lower index first).

    Searches blocks by their maxima: one pass over the row and a sort of about n blocks, five times
    faster than a partition of the row where the vocabulary is large.
    """
    size = len(row)
    n = min(n, size)
    width = max(16, int(size**0.5))
    whole = size // width
    if whole <= n:
        candidates = np.arange(size)
    else:
        maxima = row[: whole * width].reshape(whole, width).max(axis=1)
        best = np.argpartition(maxima, whole - n)[whole - n :]
        # A value that ties with the weakest block's maximum may stand in a block that was left out;
        # its value is the same, so the alternatives' probabilities are still right.
        candidates = (best[:, None] * width + np.arange(width)).ravel()
        if whole * width < size:
            candidates = np.concatenate([candidates, np.arange(whole * width, size)])
    values = row[candidates]
    if len(candidates) > 4 * n:
        kept = np.argpartition(values, len(values) - n)[len(values) - n :]
        candidates, values = candidates[kept], values[kept]
    order = np.lexsort((candidates, -values))[:n]
    return np.asarray(candidates[order])


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
        return softmax((logits - logits.max()) / np.float32(temperature))

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

    `p` need not sum to exactly one; the intervals are scaled so that they do.
    """
    cumulative = np.cumsum(p, dtype=np.float64)
    total = float(cumulative[-1])
    token = min(int(np.searchsorted(cumulative, u * total, side="right")), len(p) - 1)
    # u * total is rounded, and so are the scaled edges: the interval that is recorded decides.
    while u >= cumulative[token] / total:
        token += 1
    while token and u < cumulative[token - 1] / total:
        token -= 1
    low = float(cumulative[token - 1] / total) if token else 0.0
    return token, Draw(u, low, float(cumulative[token] / total))
