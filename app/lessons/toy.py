"""The law with two or three letters: drafts of two letters are judged by the engine's own rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from typing_extensions import override

from app.engine.explain.decision import TokenOdds
from app.engine.explain.law import PlaceLaw, Share, Tally
from app.engine.loop.verify import block_reach, verify_block, verify_speculative
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws, Purpose

BLOCK_P, BLOCK_Q = (1 / 3, 2 / 3), (2 / 3, 1 / 3)
"""The example of the paper on block verification (Sun et al. 2024): p and q of the letters A and B, at every
place."""


@dataclass(frozen=True, slots=True)
class PairLaw(PlaceLaw):
    """The law of drafts of two letters. The accepted part of a pair is the chance that it is drafted and
    passes whole."""

    letters: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())  # p and q of a letter
    block: bool = False
    accepted_letters: float = 0.0  # of a draft, on average

    @override
    def tally(self, seed: int) -> PairTally:
        return PairTally(self, seed)


def pair_law(p: Sequence[float], q: Sequence[float], *, block: bool) -> PairLaw:
    """The law of two letters, each drawn alike, judged as a block or letter by letter."""
    shares, first, mean = [], 0.0, 0.0
    for x, y in product(range(len(p)), repeat=2):
        drafted = q[x] * q[y]
        reach = block_reach(1.0, p[x], q[x]) if q[x] else 1.0
        whole = block_reach(reach if block else 1.0, p[y], q[y]) if q[y] else 1.0
        passes = drafted * (whole if block else reach * whole)
        first, mean = first + drafted * reach, mean + passes
        shares.append(Share(p[x] * p[y], drafted, passes, TokenOdds(x * len(p) + y, b"")))
    return PairLaw(tuple(shares), True, (1.0, 1.0), True, (tuple(p), tuple(q)), block, first + mean)


class PairTally(Tally):
    """Pairs that came: a draft of two letters is judged; what was not drafted is drawn from p."""

    def __init__(self, law: PairLaw, seed: int) -> None:
        super().__init__(law, seed)
        self._verify = verify_block if law.block else verify_speculative
        self._p, self._draft = (Distribution(np.array(each, np.float32)) for each in law.letters)
        self._draws = Draws(seed)
        self._place = 0  # of the next pair

    @override
    def draw(self, times: int) -> None:
        size = len(self._p.p)
        for _ in range(times):
            at, self._place = self._place, self._place + 3  # two letters, and the one behind them
            draft = [self._draft.draw(self._draws.key(at + i, Purpose.DRAFT))[0] for i in range(2)]
            outcome = self._verify(draft, [self._draft] * 2, lambda _place: self._p, self._draws, at)
            pair = [*draft[: outcome.accepted], outcome.token]
            if len(pair) == 1:
                pair.append(self._p.draw(self._draws.key(at + 1, Purpose.TOKEN))[0])
            came = self.accepted if outcome.accepted == 2 else self.replaced
            came[pair[0] * size + pair[1]] += 1


def with_share(shares: Sequence[float], at: int, share: float) -> tuple[float, ...]:
    """The shares with one of them changed; the others keep their proportions, and all sum to one."""
    others = sum(shares) - shares[at]
    left = 1 - share
    return tuple(
        share if place == at else left * (each / others if others > 0 else 1 / (len(shares) - 1))
        for place, each in enumerate(shares)
    )
