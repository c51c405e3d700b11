"""The target's view of a draft: logits rows turned into what verification and the trace need, lazily."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from app.engine.sampling import Sampler, log_sum_exp, top_indices
from app.engine.types import Alternatives

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native import Vocabulary

    Floats = NDArray[np.float32]


class TargetRows:
    """Row j is the target's answer behind `context` and the first j drafted tokens.

    Rows behind a rejected token are never looked at, so nothing is computed for them.
    """

    def __init__(
        self,
        logits: Floats,
        sampler: Sampler,
        context: NDArray[np.int32],
        draft: list[int],
        vocabulary: Vocabulary,
    ) -> None:
        """`logits` has shape [len(draft) + 1, vocabulary]."""
        self._logits = logits
        self._sampler = sampler
        self._context = context
        self._draft = draft
        self._vocabulary = vocabulary
        self._adjusted: dict[int, Floats] = {}
        self._distributions: dict[int, Floats] = {}

    def adjusted(self, row: int) -> Floats:
        """Logits after penalties and bans, shape [vocabulary]."""
        known = self._adjusted.get(row)
        if known is None:
            before = self._context
            if row and self._sampler.adjusts:
                before = np.concatenate([before, np.array(self._draft[:row], np.int32)])
            known = self._adjusted[row] = self._sampler.adjust(self._logits[row], before)
        return known

    def argmax(self, row: int) -> int:
        return int(self.adjusted(row).argmax())

    def distribution(self, row: int) -> Floats:
        """The distribution that tokens are drawn from, shape [vocabulary]."""
        known = self._distributions.get(row)
        if known is None:
            known = self._sampler.distribution(self.adjusted(row))
            self._distributions[row] = known
        return known

    def record(self, row: int, tokens: list[int]) -> tuple[Alternatives, list[float]]:
        """The row's alternatives and the probabilities of `tokens`, for the trace.

        From the distribution in use. Under greedy verification, where nothing is drawn, they are the
        model's own probabilities at temperature 1: its argmax has the largest.
        """
        p = self._distributions.get(row)
        if p is None:
            logits = self.adjusted(row)
            whole = log_sum_exp(logits)
            best = top_indices(logits)
            shares = [math.exp(logit - whole) for logit in logits[best].tolist()]
            own = [math.exp(logits.item(token) - whole) for token in tokens]
        else:
            best = top_indices(p)
            if self._sampler.filters:
                best = best[p[best] > 0]
            shares = p[best].tolist()
            own = [p.item(token) for token in tokens]
        ids = best.tolist()
        piece = self._vocabulary.piece
        return Alternatives(tuple(ids), tuple([piece(id) for id in ids]), tuple(shares)), own
