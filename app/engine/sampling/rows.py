"""The target's view of a draft: logits rows, lazily turned into what verification and the trace need. Rows
reuse memory, because allocating costs more than writing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from app.engine.sampling.distribution import Distribution
from app.engine.sampling.logits import copy_argmax, log_sum_exp, top_of_rows
from app.engine.sampling.sampler import Sampler
from app.engine.types import Alternatives

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native import Vocabulary

    Floats = NDArray[np.float32]


class RowStore:
    """Reused rows of `size` numbers. Two sets alternate, because rows are still read while the next are
    written."""

    def __init__(self, size: int) -> None:
        self._rows: Floats = np.empty((0, size), np.float32)
        self._before = self._rows

    def turn(self) -> None:
        """Switch to the other set."""
        self._rows, self._before = self._before, self._rows

    def rows(self, n: int) -> Floats:
        """The first `n` rows of the current set, shape [n, size], with old contents. If the set grows, rows
        returned earlier stay valid."""
        if n > len(self._rows):
            grown = np.empty((2 * n + 2, self._rows.shape[1]), np.float32)
            grown[: len(self._rows)] = self._rows
            self._rows = grown
        return self._rows[:n]


_SMALL_VOCABULARY = 16_384
"""Up to this size, the argmax of all rows of a draft costs less than a call for each needed row."""


class TargetRows:
    """The target's rows: row j follows `context` and the first j drafted tokens.

    Rows after a rejected token are not needed: if rows cost more than calls, they are not computed.
    """

    def __init__(
        self,
        logits: Floats,
        sampler: Sampler,
        context: NDArray[np.int32],
        draft: list[int],
        vocabulary: Vocabulary,
        store: RowStore,
    ) -> None:
        """`logits` has shape [len(draft) + 1, vocabulary]; `store` has the same width, and is reserved until
        the record is made."""
        self._store = store
        self._logits = logits
        self._sampler = sampler
        self._context = context
        self._draft = draft
        self._vocabulary = vocabulary
        self._adjusted: dict[int, Floats] = {}
        self._distributions: dict[int, Distribution] = {}
        self._wholes: list[float] = []  # log of the sum of exponentials, per row
        self._best: list[int] = []  # argmax, per row
        self._copied = 0  # rows copied into the store

    def adjusted(self, row: int) -> Floats:
        """Logits after penalties and bans, shape [vocabulary]."""
        known = self._adjusted.get(row)
        if known is None:
            before = self._context
            if row and self._sampler.adjusts:
                before = np.concatenate([before, np.array(self._draft[:row], np.int32)])
            out = self._store.rows(2 * row + 2)[2 * row + 1]
            known = self._adjusted[row] = self._sampler.adjust(self._logits[row], before, out)
        return known

    def argmax(self, row: int) -> int:
        """The row's most probable token."""
        if self._sampler.adjusts:
            return int(self.adjusted(row).argmax())
        if self.n_vocab <= _SMALL_VOCABULARY:
            if not self._best:
                self._best = self._logits.argmax(axis=1).tolist()
            return self._best[row]
        # `keep` would copy it later, when it has left the caches.
        rows = self._store.rows(row + 1)
        while self._copied <= row:
            self._best.append(copy_argmax(self._logits[self._copied], rows[self._copied]))
            self._copied += 1
        return self._best[row]

    def distribution(self, row: int) -> Distribution:
        """The distribution that tokens are drawn from."""
        known = self._distributions.get(row)
        if known is None:
            out = self._store.rows(2 * row + 1)[2 * row]
            known = self._distributions[row] = self._sampler.distribution(self.adjusted(row), out)
        return known

    @property
    def n_vocab(self) -> int:
        size: int = self._logits.shape[1]  # no view of a row: this is asked right after a pass
        return size

    @property
    def _records_distribution(self) -> bool:
        """Whether the distribution is recorded. A one-hot row says nothing about other tokens, so logits are
        recorded instead."""
        return bool(self._distributions) and not self._sampler.is_greedy

    def keep(self, count: int) -> None:
        """Copy what `record` needs from the first `count` rows: the next pass overwrites llama.cpp's
        memory."""
        if not (self._records_distribution or self._sampler.adjusts):
            rows = self._store.rows(count)
            if self._copied < count:
                rows[self._copied :] = self._logits[self._copied : count]
            self._logits = rows

    def record(self, count: int) -> list[Alternatives]:
        """The alternatives of the first `count` rows, for the trace.

        They come from the distribution in use. At temperature 0, whatever the rule, they are the model's own
        probabilities at temperature 1.
        """
        piece = self._vocabulary.pieces.__getitem__
        if self._records_distribution:
            top, shares = self._top_of_distributions(count)
        else:
            rows = self._logits[:count]
            if self._sampler.adjusts:
                rows = np.stack([self.adjusted(row) for row in range(count)])
            top, logits = top_of_rows(rows)
            self._wholes = log_sum_exp(rows)
            shares = [
                [math.exp(logit - whole) for logit in row]
                for row, whole in zip(logits, self._wholes, strict=True)
            ]
        alternatives = []
        for ids, p in zip(top, shares, strict=True):
            kept = tuple(ids[: len(p)])
            alternatives.append(Alternatives(kept, tuple(map(piece, kept)), tuple(p)))
        return alternatives

    def _top_of_distributions(self, count: int) -> tuple[list[list[int]], list[list[float]]]:
        """Ids and probabilities of the best tokens of the first `count` rows, without filtered tokens."""
        tops, all_shares = [], []
        for row in range(count):
            made = self.distribution(row)
            (places,), (shares,) = top_of_rows(made.p[None])
            n = sum(share > 0 for share in shares)
            tops.append(places[:n] if made.ids is None else made.ids[places[:n]].tolist())
            all_shares.append(shares[:n])
        return tops, all_shares

    def probability(self, row: int, token: int) -> float:
        """The recorded probability of a token. Valid after `record`, for recorded rows and those that judged.
        NaN if the row's logits are NaN."""
        if self._distributions:
            # A one-hot row would hide the NaN.
            broken = row < len(self._wholes) and math.isnan(self._wholes[row])
            return math.nan if broken else self.distribution(row).of(token)
        return math.exp(self.adjusted(row).item(token) - self._wholes[row])
