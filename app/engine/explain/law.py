"""A place as the law of speculative sampling sees it: p and q over the same tokens, and draws by that law.

A token drawn from q passes with the chance min(1, p / q): so each token comes in min(p, q) of all draws, and
all together in Σ min(p, q) = α of them. Otherwise a token is drawn from the residual max(p − q, 0), scaled.
Both ways together give each token its p: Leviathan et al. 2023. No model is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.engine.explain.decision import Residual, TokenOdds, odds_of, residual_of
from app.engine.fates import JUDGED
from app.engine.rules.registry import rule_of
from app.engine.types import Round, TraceHeader


@dataclass(frozen=True, slots=True)
class Share:
    """A token's share of p and of q, and the part of both that passes; or that of all other tokens."""

    p: float
    q: float
    accepted: float  # min(p, q); of several tokens the sum, which may be less
    odds: TokenOdds | None = None  # None: all others

    @property
    def residual(self) -> float:
        """What p has above q."""
        return self.p - self.accepted

    @property
    def refused(self) -> float:
        """What q has above p."""
        return self.q - self.accepted


@dataclass(frozen=True, slots=True)
class PlaceLaw:
    """The shares of a place, each list of p and q summing to one; tokens that no share names are one share
    at the end."""

    shares: tuple[Share, ...]
    exact: bool  # whether α is known; otherwise it may be smaller, as all others count as one token
    named: tuple[float, float]  # the shares of p and of q that the trace records by token
    draws: bool = True  # whether a single draw decides here; in a block the tokens decide together

    @property
    def alpha(self) -> float:
        """The chance that a token drawn from q passes."""
        return sum(share.accepted for share in self.shares)

    def tally(self, seed: int) -> Tally:
        """Draws by this law that can be repeated: the same seed draws the same."""
        return Tally(self, seed)

    def first(self, ids: Sequence[int], most: int) -> PlaceLaw:
        """The law with at most this many named tokens: those in `ids`, then the most probable ones. All
        others become one share, if it is worth one."""
        kept = [share for share in self.shares if share.odds is not None and share.odds.id in ids]
        named = [share for share in self.shares if share.odds is not None and share not in kept]
        named = sorted(named, key=lambda share: -max(share.p, share.q))[: most - len(kept)]
        kept += [share for share in named if max(share.p, share.q) >= _LEAST]
        rest = [share for share in self.shares if share not in kept]
        shown = sorted(kept, key=lambda share: (-share.p, -share.q))
        others = Share(*(sum(getattr(share, name) for share in rest) for name in _SUMMED))
        if max(others.p, others.q) >= _LEAST:
            shown.append(others)
        return replace(self, shares=tuple(shown))


_SUMMED = ("p", "q", "accepted")
_LEAST = 0.0005  # a smaller share reads as nothing


def law_of(p: Sequence[float], q: Sequence[float]) -> PlaceLaw:
    """The law of two whole distributions over the same tokens."""
    named = (TokenOdds(id, b"", p=each, q=other) for id, (each, other) in enumerate(zip(p, q, strict=True)))
    shares = (
        Share(each, other, min(each, other), odds) for each, other, odds in zip(p, q, named, strict=True)
    )
    return PlaceLaw(tuple(shares), exact=True, named=(1.0, 1.0))


def place_law(round: Round, place: int, header: TraceHeader) -> PlaceLaw | None:
    """The law of a place of a draft; None if no token was drawn there by it, or if the trace does not hold p
    and q of the drafted token, and of others enough for a picture.

    In a block only the place whose token was drawn from the residual has one, of reach · p in place of p:
    then p sums to the reach.
    """
    rule, drafted = rule_of(header.verification), round.drafted[place]
    if not (rule.keeps_law and rule.from_residual) or header.sampling.temperature == 0:
        return None
    if drafted.verdict not in JUDGED or drafted.p is None or not drafted.q:
        return None
    residual = residual_of(round, header) if place == len(round.emitted) - 1 else None
    if rule.whole and residual is None:
        return None
    reach = residual.reach if residual is not None else 1.0
    shares = []
    for odds in odds_of(round, place, header):
        if odds.p is not None and odds.q is not None:
            p = reach * odds.p
            shares.append(Share(p, odds.q, min(p, odds.q), odds))
    p, q = (sum(getattr(share, name) for share in shares) for name in ("p", "q"))
    if not (0 <= p <= reach + _ROUNDING and 0 <= q <= 1 + _ROUNDING):
        return None  # no probabilities: the trace is not what it says
    others = max(reach - p, 0.0), max(1 - q, 0.0)
    exact = min(others) < _ROUNDING
    if max(others) >= _ROUNDING:
        passes, told = _others(reach, others, shares, residual)
        exact = exact or told
        shares.append(Share(*others, passes))
    named = (1 - others[0] / reach if reach else 1.0), 1 - others[1]
    if min(named) < _KNOWN:
        return None
    return PlaceLaw(tuple(shares), exact, named, draws=not rule.whole)


def _others(
    reach: float, others: tuple[float, float], shares: list[Share], residual: Residual | None
) -> tuple[float, bool]:
    """How much of all other tokens passes, and whether that is told: the draw from the residual tells its
    sum, which is the reach − α. Otherwise they count as one token."""
    most = min(others)
    if residual is None or residual.total is None:
        return most, False
    return min(max(reach - residual.total - sum(share.accepted for share in shares), 0.0), most), True


_KNOWN = 0.2  # of p and of q, at least: less is no picture of them
_ROUNDING = 1e-4  # of a sum of shares of single precision


class Tally:
    """Draws by the law, again and again: how often each share came, accepted and in place of a refused
    one."""

    def __init__(self, law: PlaceLaw, seed: int) -> None:
        """`law` must be that of a single draw."""
        self._random = np.random.default_rng(seed)
        self._q = _scaled([share.q for share in law.shares])
        self._residual = _scaled([share.residual for share in law.shares])
        self._chance = np.array([share.accepted / share.q if share.q else 0.0 for share in law.shares])
        self.accepted, self.replaced = (np.zeros(len(law.shares), np.int64) for _ in range(2))

    @property
    def total(self) -> int:
        return int(self.accepted.sum() + self.replaced.sum())

    def draw(self, times: int) -> None:
        """Draw a token from q, accept or refuse it, and draw another one in place of a refused one."""
        drafted = self._random.choice(len(self._q), times, p=self._q)
        passed = self._random.random(times) < self._chance[drafted]
        came = self._random.choice(len(self._q), times - int(passed.sum()), p=self._residual)
        self.accepted += np.bincount(drafted[passed], minlength=len(self._q))
        self.replaced += np.bincount(came, minlength=len(self._q))


def _scaled(shares: list[float]) -> np.ndarray:
    """Shares that sum to one; where nothing is left, which nothing is drawn from, all alike."""
    whole = sum(shares)
    return np.array(shares) / whole if whole > 0 else np.full(len(shares), 1 / len(shares))
