"""Common checks of records: draws, races and greedy choices, recomputed."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, log
from typing import NamedTuple

from app.engine.fates import Verdict
from app.engine.sampling.draws import Draws, Purpose
from app.engine.sampling.logits import TOP
from app.engine.sampling.noise import luck
from app.engine.types import Alternatives, DraftedToken, Draw, EmittedToken, Race, TraceHeader

WIDTH = 1e-5  # probabilities are single precision, and a row sums to one only nearly
_TICK = 1e-6  # of a score: the C library's logarithms of two machines differ in their last bit
_NOTHING = 1e-3  # if less of p is left, the residual is too inexact for checks


class Judged(NamedTuple):
    """A judged token of a record."""

    where: str  # in words
    position: int  # in the answer
    token: DraftedToken
    emitted: EmittedToken | None  # at its place
    top: Alternatives | None  # the target's, there


class Own(NamedTuple):
    """The token after the accepted ones of a record."""

    where: str
    position: int
    token: EmittedToken
    rejected: DraftedToken | None  # the drafted token at its place
    top: Alternatives | None


class Check:
    """Recomputes the draws of a trace with this header."""

    def __init__(self, header: TraceHeader) -> None:
        self._warm = header.sampling.temperature > 0  # at 0 the alternatives are not what was drawn from
        self.draws = Draws(header.seed)

    def drafted(self, at: Judged, start: int, *, shares_luck: bool) -> Iterator[str]:
        """Check how a drafted token was drawn, in the round that begins at `start`."""
        token = at.token
        if token.draft_race is not None:
            own = (Purpose.TOKEN, 0) if shares_luck else (Purpose.DRAFT, start)
            key = self.draws.key(at.position, *own)
            yield from _won(at.where, token.draft_race, key, {token.id: token.q}, token.id)
        elif token.draft_draw is not None:
            u = self.draws.uniform(at.position, Purpose.DRAFT, start)
            yield from _drawn(at.where, token.draft_draw, u, token.q)
        elif token.q != 1:
            yield f"{at.where} was not drawn, but its q is {token.q:g}"

    def same_token(self, at: Judged) -> Iterator[str]:
        """Check a token that passes if it equals the target's own, and is else replaced by it."""
        token = at.token
        if (token.verdict is Verdict.ACCEPTED) != (token.target_id == token.id):
            yield f"{at.where} is {token.verdict}, but the target's token is {token.target_id}"
        if at.emitted is not None and at.emitted.id != token.target_id:
            yield f"{at.where} gave {at.emitted.id}, but the target's token is {token.target_id}"

    def from_p(
        self, at: Judged | Own, draw: Race | Draw, winner: int, emitted: EmittedToken | None
    ) -> Iterator[str]:
        """Check a draw from the target's own distribution, whose p are recorded."""
        if isinstance(draw, Draw):
            u = self.draws.uniform(at.position, Purpose.TOKEN)
            yield from _drawn(at.where, draw, u, emitted.p if emitted else None)
            return
        top = at.top if self._warm else None
        p = _listed(top)
        most = min(top.p) if top is not None and len(top.ids) == len(top.p) == TOP else 1.0
        if emitted is not None and emitted.id == winner:
            p[winner] = emitted.p
        yield from _won(at.where, draw, self.draws.key(at.position, Purpose.TOKEN), p, winner, most)

    def from_residual(self, at: Own, emitted: EmittedToken, rejected: DraftedToken) -> Iterator[str]:
        """Check a draw from a residual. For a one-hot draft it is p without the rejected token. For a sampled
        draft only the rejected token's part is recorded."""
        rest = 1 - (rejected.p or 0.0)
        known = rejected.draft_drawn is None and rejected.p is not None and rest >= _NOTHING
        if emitted.race is None:
            assert emitted.draw is not None
            u = self.draws.uniform(at.position, Purpose.RESIDUAL)
            width = ((emitted.p or 0.0) / rest, WIDTH / rest) if known else (None, 0.0)
            yield from _drawn(at.where, emitted.draw, u, *width)
            return
        p: dict[int, float | None] = {}
        if known and self._warm:
            p = {id: (share or 0.0) / rest for id, share in _listed(at.top).items() if id != rejected.id}
            p[emitted.id] = (emitted.p or 0.0) / rest
        elif not self._warm:
            p[emitted.id] = emitted.p
        key = self.draws.key(at.position, Purpose.RESIDUAL)
        yield from _won(at.where, emitted.race, key, p, emitted.id, tolerance=WIDTH / max(rest, _NOTHING))


def _listed(top: Alternatives | None) -> dict[int, float | None]:
    return dict(zip(top.ids, top.p, strict=False)) if top is not None else {}


def _won(
    where: str,
    race: Race,
    key: int,
    p: dict[int, float | None],
    winner: int,
    most: float = 1.0,
    tolerance: float = _TICK,
) -> Iterator[str]:
    """Check a race: the scores of its tokens, whose p is known or at most `most`, and that none beats the
    second."""
    if race.rival is None and (race.rival_score is not None or race.piece or race.label):
        yield f"{where}: its race has a second without a token"
    if race.rival is not None and race.rival_score is None:
        yield f"{where}: the second of its race has no score"
    if race.rival == winner or race.gap < 0:
        yield f"{where} was drawn, but its second is better, or is the token itself"
    told = {winner: race.score}
    if race.rival is not None and race.rival_score is not None:
        told[race.rival] = race.rival_score
    for id, said in told.items():
        known = p.get(id)
        score = log(known or most or 1.0) + luck(key, id)
        if said > score + tolerance or (known and said < score - tolerance):
            yield f"{where}: the score of token {id} is {said:g}, but its seed and its p give {score:g}"
    second = race.rival_score if race.rival_score is not None else -inf
    for id, share in p.items():
        if share and id not in told and log(share) + luck(key, id) > second + tolerance:
            yield f"{where} was drawn, but token {id} comes before the second"


def _drawn(where: str, draw: Draw, u: float, width: float | None, tolerance: float = WIDTH) -> Iterator[str]:
    """Check a draw: `u` is the seed's draw, `width` the probability of its interval, if known."""
    if draw.u != u:
        yield f"{where} was drawn with {draw.u:g}, but its seed gives {u:g}"
    if not draw.low <= draw.u < draw.high:
        yield f"{where}: its draw {draw.u:g} is not in [{draw.low:g}, {draw.high:g})"
    if not 0 <= draw.low < draw.high <= 1:
        yield f"{where}: [{draw.low:g}, {draw.high:g}) is not within [0, 1]"
    if width is not None and abs(draw.high - draw.low - width) > tolerance:
        yield f"{where}: its interval is {draw.high - draw.low:g} wide, but its probability is {width:g}"


def is_argmax(at: Judged | Own, id: int | None) -> Iterator[str]:
    """Check that greedy took the most probable token, or one of equal ones."""
    top = at.top
    if id is None:
        yield f"{at.where} was judged without the target's argmax"
        return
    if top is None or not top.ids:
        return
    if len(top.p) != len(top.ids):
        yield f"{at.where}: its alternatives do not have a p each"
        return
    p = dict(zip(top.ids, top.p, strict=True))
    if p.get(id) != max(top.p):
        yield f"{at.where}: the target's most probable token is {top.ids[0]}, not {id}"
