"""Statistics of the recorded alternatives: a fold over an answer's rounds, like those in stats.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log2
from operator import mul

from typing_extensions import override

from app.engine.fates import JUDGED, Verdict
from app.engine.record.stats import Fold, count_at, judged_singly, ratio
from app.engine.types import Alternatives, Round

_BITS_PER_BIN = 0.5


@dataclass(slots=True)
class AlternativeStatistics(Fold):
    """Statistics of both models' recorded alternatives, at most ten a place.

    - Rank: the emitted token's rank among the draft model's choices, in drafted places that the rule reached.
      A draft with w tokens a place would have contained it if the rank is at most w. That is exact if the
      target's token does not depend on the draft (greedy, match), else an estimate (speculative, block).
    - Entropy of a target row: -Σ p log2 p over the recorded tokens, with all others as one. It is a lower
      bound, exact if the sampler kept no other tokens. At temperature 0 it describes the model's own
      distribution at temperature 1.
    """

    ranks: list[int] = field(default_factory=list)
    """Histogram: index r counts the places whose token was the draft's choice number r + 1."""
    unranked: int = 0  # places whose token is not among the recorded alternatives
    rows: int = 0  # target rows with alternatives
    bits: float = 0.0  # sum of the rows' entropies
    rest: float = 0.0  # sum of the rows' probabilities of all tokens that are not recorded
    entropies: list[int] = field(default_factory=list)
    """Histogram: index b counts the rows with an entropy of b / 2 to (b + 1) / 2 bits."""
    judged_by_entropy: list[int] = field(default_factory=list)  # rows that judged a drafted token, likewise
    accepted_by_entropy: list[int] = field(default_factory=list)  # of these, those that accepted it

    @override
    def add(self, round: Round) -> None:
        for token, top in zip(round.emitted, round.draft_top, strict=False):  # a bonus token has no draft
            if token.id in top.ids:
                count_at(self.ranks, top.ids.index(token.id))
            else:
                self.unranked += 1
        verdicts = [token.verdict for token in round.drafted] if judged_singly(round) else []
        for row, top in enumerate(round.target_top):
            bits, rest = entropy(top)
            self.rows += 1
            self.bits += bits
            self.rest += rest
            at = int(bits / _BITS_PER_BIN)
            count_at(self.entropies, at)
            verdict = verdicts[row] if row < len(verdicts) else None
            if verdict in JUDGED:
                count_at(self.judged_by_entropy, at)
                if verdict is Verdict.ACCEPTED:
                    count_at(self.accepted_by_entropy, at)

    @property
    def ranked(self) -> int:
        """Places with alternatives of the draft model."""
        return sum(self.ranks) + self.unranked

    def held_by(self, width: int) -> float | None:
        """The share of places whose token is among the draft's first `width` choices."""
        return ratio(sum(self.ranks[:width]), self.ranked)

    @property
    def target_entropy(self) -> float | None:
        """Mean entropy of the target's rows in bits, a lower bound."""
        return ratio(self.bits, self.rows)

    @property
    def target_rest(self) -> float | None:
        """Mean probability of all unrecorded tokens: how far the entropy may be off."""
        return ratio(self.rest, self.rows)


def entropy(top: Alternatives) -> tuple[float, float]:
    """(entropy in bits with all tokens that are not in `top` as one, their probability)"""
    p = [share for share in top.p if share > 0]
    rest = max(1 - sum(p), 0.0)
    if rest > 0:
        p.append(rest)
    return max(-sum(map(mul, p, map(log2, p))), 0.0), rest
