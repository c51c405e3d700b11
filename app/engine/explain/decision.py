"""The numbers behind a round: how the token after the accepted ones was chosen, and both models'
probabilities. (The rule says why each drafted token passed or not: `rules/`.)

Pure functions of a recorded round and its header. What a trace does not record is None, never a guess. It has
each model's ten most probable tokens, and of a sampled draft only the q of the drafted tokens. p is the
target's distribution and q the proposal's.

The last part is the law of speculative sampling at a place: p and q over the same tokens, and draws by that
law. A token drawn from q passes with chance min(1, p / q). So each token is accepted in min(p, q) of all
draws, and all tokens in Σ min(p, q) = α of them. Otherwise a token is drawn from the residual: max(p − q, 0),
scaled to sum to one. Both ways together give each token its p (Leviathan et al. 2023). No model is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log

import numpy as np

from app.engine import types
from app.engine.fates import JUDGED, Origin
from app.engine.rules.registry import rule_of
from app.engine.sampling.draws import Draws, Purpose
from app.engine.sampling.logits import TOP
from app.engine.sampling.noise import luck

# ------------------------------------------------------- how the token after the draft was chosen


@dataclass(frozen=True, slots=True)
class Residual:
    """The draw that replaces a rejected token, from max(reach p - q, 0), scaled to sum to one.

    `reach` is 1 except in a block. `q` is the emitted token's; if the trace lacks it, `q`, `rest` and `total`
    are None. `share` is the emitted token's probability under the residual: its score without its luck, or
    the width of its interval.
    """

    reach: float
    p: float
    q: float | None
    draw: types.Race | types.Draw
    share: float

    def left(self, p: float | None, q: float | None) -> float | None:
        """What a token has left; None if its p or its q is not known."""
        return max(self.reach * p - q, 0.0) if p is not None and q is not None else None

    def scaled(self, p: float | None, q: float | None) -> float | None:
        """Its probability under the residual."""
        left = self.left(p, q)
        return left / self.total if left is not None and self.total else None

    @property
    def rest(self) -> float | None:
        """What the emitted token has left."""
        return self.left(self.p, self.q)

    @property
    def total(self) -> float | None:
        """The sum of max(reach p - q, 0) over the vocabulary, derived from the share.

        Also None if nothing is left: both models agree apart from rounding, and the token was drawn from p.
        """
        return self.rest / self.share if self.rest and self.share > 0 else None


def own_token(round: types.Round) -> types.EmittedToken | None:
    """The target's token after the accepted ones; None if the answer ended before it."""
    last = round.emitted[-1] if round.emitted else None
    return last if last is not None and last.origin is not Origin.ACCEPTED else None


def residual_of(round: types.Round, header: types.TraceHeader) -> Residual | None:
    """How the resampled token was drawn; None if it did not come from a residual."""
    token, place = own_token(round), len(round.emitted) - 1
    rule = rule_of(header.verification)
    if token is None or token.origin is not Origin.RESAMPLED or token.drawn is None or not rule.from_residual:
        return None
    if token.p is None:
        return None  # a server's
    if place >= len(round.drafted):
        return None  # no token was rejected: `recheck` reports it
    found = next(odds for odds in odds_of(round, place, header) if odds.id == token.id)
    if token.race is not None:
        key = Draws(header.seed).key(round.position + place, Purpose.RESIDUAL)
        share = exp(min(token.race.score - luck(key, token.id), 0.0))
    else:
        assert token.draw is not None
        share = token.draw.high - token.draw.low
    return Residual(rule.reach(round, place), token.p, found.q, token.drawn, share)


# --------------------------------------------------------------------- what both models thought


@dataclass(frozen=True, slots=True)
class TokenOdds:
    """A token at a place, under both models; values that the trace lacks are None."""

    id: int
    piece: bytes
    label: str = ""
    p: float | None = None
    q: float | None = None
    draft_p: float | None = None  # the draft model's own probability, before the settings: see `own_shares`


def odds_of(round: types.Round, place: int, header: types.TraceHeader) -> tuple[TokenOdds, ...]:
    """The known tokens at a place: the drafted one, the emitted one, and both models' alternatives.

    Sorted by p, then q, then the draft's own probability, most probable first.
    """
    target, draft = _top(round.target_top, place), _top(round.draft_top, place)
    drafted = round.drafted[place] if place < len(round.drafted) else None
    emitted = round.emitted[place] if place < len(round.emitted) else None
    p, own = _by_id(target), own_shares(drafted, draft)
    q, other_q = proposal_of(drafted, draft, header.sampling)
    drawn = header.sampling.temperature > 0 and rule_of(header.verification).draws
    other_p = 0.0 if drawn and 0 < len(target.ids) < TOP else None  # the filters left no other token
    pieces = {
        id: (piece, "") for top in (draft, target) for id, piece in zip(top.ids, top.pieces, strict=False)
    }
    for token in (drafted, emitted):
        if token is not None:
            pieces[token.id] = token.piece, token.label
            if token.p is not None:
                p.setdefault(token.id, token.p)
    found = [
        TokenOdds(id, piece, label, p.get(id, other_p), q.get(id, other_q), own.get(id))
        for id, (piece, label) in pieces.items()
    ]
    return tuple(sorted(found, key=lambda odds: (-(odds.p or 0.0), -(odds.q or 0.0), -(odds.draft_p or 0.0))))


def draft_heading(round: types.Round, header: types.TraceHeader) -> str:
    """What the draft's bars show: q if it is known for more than the drafted token, else the draft model's
    own probability; "" without a draft."""
    if not round.drafted:
        return ""
    first = round.drafted[0]
    sampled = first.draft_drawn is not None and q_follows(header.sampling)
    return "q" if sampled or first.draft_p is None else "draft_p"


def own_shares(drafted: types.DraftedToken | None, draft: types.Alternatives) -> dict[int, float]:
    """The draft model's own probabilities, on the scale of draft_p: shares of all tokens if it was drawn,
    else of the ten best."""
    own = _by_id(draft)
    if drafted is None or drafted.draft_p is None:
        return own
    recorded = own.get(drafted.id)
    if drafted.draft_drawn is not None and recorded:
        return {id: share * drafted.draft_p / recorded for id, share in own.items()}
    if drafted.draft_drawn is not None:
        return {drafted.id: drafted.draft_p}  # the ten best are shares of another whole
    return own | {drafted.id: drafted.draft_p}


def proposal_of(
    drafted: types.DraftedToken | None, draft: types.Alternatives, sampling: types.Sampling
) -> tuple[dict[int, float], float | None]:
    """The known q at a place by token, and the q of every other token: 0, or None if not known.

    A sampled draft records the q of its token alone. If the only settings are a temperature and filters that
    keep the most probable tokens, q ∝ draft_p^(1 / temperature). So the others follow from it, until the q
    add up to one.
    """
    if drafted is None or drafted.q is None:
        return {}, None
    known = {drafted.id: drafted.q}
    if drafted.draft_drawn is None:
        return known, 0.0
    own = _by_id(draft)
    from_p, filters = own.get(drafted.id, 0.0), not _plain(sampling, _FILTERS)
    if not q_follows(sampling) or drafted.q <= 0 or from_p <= 0:
        return known, None
    whole = 0.0
    for id, share in own.items():
        power = log(drafted.q) + (log(share) - log(from_p)) / sampling.temperature if share > 0 else -inf
        if power > 0:  # no probability: the trace is not what it says
            continue
        q = exp(power)
        if filters and whole + q > 1 + _ROUNDING:
            return known, 0.0  # this token and those after it were left out
        if filters and whole > 1 - _ROUNDING:
            break  # so small that it may have been left out or not
        whole += q
        known.setdefault(id, q)
    return known, None


def q_follows(sampling: types.Sampling) -> bool:
    """Whether the q of a draft's ten best follow from one q: no setting changes their proportions."""
    return sampling.temperature > 0 and _plain(sampling, _BENDING)


def _plain(sampling: types.Sampling, names: tuple[str, ...]) -> bool:
    """Whether these settings are off."""
    return all(getattr(sampling, name) == getattr(_OFF, name) for name in names)


_OFF = types.Sampling()
_FILTERS = ("top_k", "top_p", "min_p", "top_n_sigma")  # each keeps the most probable tokens
_BENDING = ("repeat_penalty", "frequency_penalty", "presence_penalty", "dry_multiplier", "typical_p",
            "xtc_probability")  # fmt: skip
_ROUNDING = 1e-4  # of a sum of shares of single precision


def _top(tops: tuple[types.Alternatives, ...], place: int) -> types.Alternatives:
    return tops[place] if place < len(tops) else types.Alternatives((), (), ())


def _by_id(top: types.Alternatives) -> dict[int, float]:
    return dict(zip(top.ids, top.p, strict=False))


@dataclass(frozen=True, slots=True)
class Share:
    """The p and q of a token, or of all other tokens together, and the part of both that passes."""

    p: float
    q: float
    accepted: float  # min(p, q); of several tokens the sum, which may be less
    odds: TokenOdds | None = None  # None: all others

    @property
    def uncovered(self) -> float:
        """max(p − q, 0)."""
        return self.p - self.accepted

    @property
    def refused(self) -> float:
        """max(q − p, 0)."""
        return self.q - self.accepted


@dataclass(frozen=True, slots=True)
class PlaceLaw:
    """The shares at a place: p and q each sum to one. All unnamed tokens are one share at the end."""

    shares: tuple[Share, ...]
    exact: bool  # whether α is known; otherwise it may be smaller, as all others count as one token
    named: tuple[float, float]  # the shares of p and of q that the trace records by token
    draws: bool = True  # whether a single draw decides here; in a block the tokens decide together

    @property
    def alpha(self) -> float:
        """The chance that a token drawn from q passes."""
        return sum(share.accepted for share in self.shares)

    def tally(self, seed: int) -> Tally:
        """Repeatable draws by this law: the same seed gives the same draws."""
        return Tally(self, seed)

    def first(self, ids: Sequence[int], most: int) -> PlaceLaw:
        """The law with at most this many named tokens: those in `ids`, then the most probable. All others
        become one share, unless it is negligible."""
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


def place_law(round: types.Round, place: int, header: types.TraceHeader) -> PlaceLaw | None:
    """The law at a place of a draft. None if no token was drawn there by the law, or if the trace lacks the
    drafted token's p and q, or too many others.

    In a block, only the place whose token came from the residual has a law. Its p are reach · p, and sum to
    the reach.
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
    """How much of all other tokens passes, and whether that is known: a draw from the residual gives
    the sum of max(reach p − q, 0), which is reach − α. Else they count as one token."""
    most = min(others)
    if residual is None or residual.total is None:
        return most, False
    return min(max(reach - residual.total - sum(share.accepted for share in shares), 0.0), most), True


_KNOWN = 0.2  # of p and of q, at least: less is no picture of them


class Tally:
    """Repeated draws by the law: how often each share was drawn, accepted or as a replacement."""

    def __init__(self, law: PlaceLaw, seed: int) -> None:
        """`law` must be that of a single draw."""
        self._random = np.random.default_rng(seed)
        self._q = _scaled([share.q for share in law.shares])
        self._residual = _scaled([share.uncovered for share in law.shares])
        self._chance = np.array([share.accepted / share.q if share.q else 0.0 for share in law.shares])
        self.accepted, self.replaced = (np.zeros(len(law.shares), np.int64) for _ in range(2))

    @property
    def total(self) -> int:
        return int(self.accepted.sum() + self.replaced.sum())

    def draw(self, times: int) -> None:
        """Draw a token from q, accept or reject it, and draw a replacement for a rejected one."""
        drafted = self._random.choice(len(self._q), times, p=self._q)
        passed = self._random.random(times) < self._chance[drafted]
        came = self._random.choice(len(self._q), times - int(passed.sum()), p=self._residual)
        self.accepted += np.bincount(drafted[passed], minlength=len(self._q))
        self.replaced += np.bincount(came, minlength=len(self._q))


def _scaled(shares: list[float]) -> np.ndarray:
    """Shares scaled to sum to one; all alike if nothing is left, because then nothing is drawn from them."""
    whole = sum(shares)
    return np.array(shares) / whole if whole > 0 else np.full(len(shares), 1 / len(shares))
