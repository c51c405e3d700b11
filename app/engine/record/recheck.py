"""Recompute every verdict of a recorded trace from the trace alone, without the model.

Checks that each race has the scores that its seed's luck and the probabilities give, and that no recorded
alternative would have won it (before format 1.10: that each draw comes from its seed and lies in the recorded
interval, whose width is the token's probability); that each verdict follows from p, q and the draw by the
rule; that verdicts, origins, positions, counts, text and the end of the answer agree; and the consistency of
all other parts (`consistency.py`). A server tells neither p nor q nor draws: of its answers only verdicts,
origins, positions, counts and text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, log

from app.engine.fates import JUDGED, Origin, Verdict
from app.engine.loop.text import TextStream
from app.engine.loop.verify import block_reach, passes
from app.engine.record.consistency import Consistency, header_problems, totals_problems
from app.engine.record.trace import Trace
from app.engine.sampling.draws import Draws, Purpose
from app.engine.sampling.logits import TOP
from app.engine.sampling.noise import luck
from app.engine.types import (
    Alternatives,
    DraftedToken,
    Draw,
    EmittedToken,
    FinishReason,
    Race,
    Round,
    TraceHeader,
    Verification,
)

_WIDTH = 1e-5  # probabilities are single precision, and a row sums to one only nearly
_TICK = 1e-6  # of a score: the C library's logarithms of two machines differ in their last bit
_NOTHING = 1e-3  # a smaller residual is too inexact for checks
_FROM_RESIDUAL = (Verification.SPECULATIVE, Verification.BLOCK)
_CUT = (FinishReason.END, FinishReason.STOP)  # reasons that end an answer in the middle of a round


def recheck(trace: Trace) -> list[str]:
    """Return the disagreements found, one sentence each; empty if the trace holds. Of a record without totals
    nobody knows what the last round was to be: an end or a stop may have cut it."""
    checker, consistency = _Checker(trace.header), Consistency(trace.header)
    found = [f"Header: {problem}." for problem in header_problems(trace.header)]
    position = 0
    finish = trace.totals.finish_reason if trace.totals else None
    for index, round in enumerate(trace.rounds):
        last = index == len(trace.rounds) - 1
        problems = []
        if round.index != index:
            problems.append(f"its index is {round.index}")
        if round.position != position:
            problems.append(f"it starts at token {round.position}, not {position}")
        problems += _shape(round, cut=last and (finish is None or finish in _CUT))
        if trace.header.pair.server is None:
            if any(token.q is None for token in round.drafted) or any(
                token.p is None for token in round.emitted
            ):
                problems.append("a token has no p or q, which only a server leaves out")
            else:
                problems += checker.verdicts(round, position)
                problems += consistency.problems(round)
            consistency.follow(round)
        found += [f"Round {index}: {problem}." for problem in problems]
        position += len(round.emitted)
    return found + [
        f"Totals: {problem}." for problem in (*_end(trace, position), *totals_problems(trace, position))
    ]


def _shape(round: Round, *, cut: bool) -> Iterator[str]:
    """Check the order and number of verdicts and origins; `cut`: an end or a stop ended the answer in this
    round."""
    verdicts = [token.verdict for token in round.drafted]
    accepted, rejected = round.accepted, round.rejected
    if verdicts != [verdict for verdict in Verdict for _ in range(round.count(verdict))]:
        yield f"its verdicts are not in the order {_words(list(Verdict))}"
    if rejected > 1:
        yield f"{rejected} tokens are rejected"
    if round.ignored and not rejected and not cut:
        yield "tokens are ignored without a rejected token or an end before them"

    behind = [] if cut and len(round.emitted) == accepted else [_origin_behind(round)]
    expected = [Origin.ACCEPTED] * accepted + behind
    origins = [token.origin for token in round.emitted]
    if origins != expected:
        yield f"it emitted {_words(origins)}, not {_words(expected)}"
    for place, (drafted, emitted) in enumerate(zip(round.drafted[:accepted], round.emitted, strict=False)):
        if drafted.id != emitted.id:
            yield f"token {drafted.id} was accepted at place {place} and {emitted.id} emitted"
    if rejected and len(round.emitted) == accepted + 1:
        refused = round.drafted[accepted].id
        if refused == round.emitted[-1].id:
            yield f"token {refused} was rejected and emitted"


def _origin_behind(round: Round) -> Origin:
    if not round.drafted:
        return Origin.PLAIN
    return Origin.RESAMPLED if round.rejected else Origin.BONUS


def _words(values: Sequence[str]) -> str:
    return ", ".join(values) or "nothing"


class _Checker:
    """Recomputes draws and verdicts under one header."""

    def __init__(self, header: TraceHeader) -> None:
        self._rule = header.verification
        self._warm = header.sampling.temperature > 0  # at 0 the alternatives are not what was drawn from
        self._draws = Draws(header.seed)

    def verdicts(self, round: Round, position: int) -> Iterator[str]:
        """Check every judged token and the token emitted after them."""
        for place, token in enumerate(round.drafted):
            where = f"the draft at place {place}"
            if token.draft_race is not None:
                own = (Purpose.TOKEN, 0) if self._rule is Verification.MATCH else (Purpose.DRAFT, position)
                key = self._draws.key(position + place, *own)
                yield from _won(where, token.draft_race, key, {token.id: token.q}, token.id)
            elif token.draft_draw is not None:
                u = self._draws.uniform(position + place, Purpose.DRAFT, position)
                yield from _drawn(where, token.draft_draw, u, token.q)
            elif token.q != 1:
                yield f"{where} was not drawn, but its q is {token.q:g}"
            if token.verdict in JUDGED:
                top = round.target_top[place] if place < len(round.target_top) else None
                emitted = round.emitted[place] if place < len(round.emitted) else None
                yield from self._judged(where, token, position + place, top, emitted)
        if self._rule is Verification.BLOCK:
            yield from self._block(round, position)
        if round.emitted and round.emitted[-1].origin is not Origin.ACCEPTED:
            place = len(round.emitted) - 1
            top = round.target_top[place] if place < len(round.target_top) else None
            yield from self._behind(round, round.emitted[-1], position + place, top)

    def _judged(
        self,
        where: str,
        token: DraftedToken,
        position: int,
        top: Alternatives | None,
        emitted: EmittedToken | None,
    ) -> Iterator[str]:
        accepted = token.verdict is Verdict.ACCEPTED
        if token.p is None or token.q is None:
            yield f"{where} was judged without its p or q"
            return
        if accepted and emitted is not None and emitted.p != token.p:
            yield f"{where} has p {token.p:g} as a draft and {emitted.p:g} as emitted"
        match self._rule:  # a block is judged as a whole: see _block
            case Verification.SPECULATIVE:
                if token.u is None or token.u != self._draws.uniform(position, Purpose.ACCEPT):
                    yield f"{where} was judged by a draw that is not its seed's"
                elif accepted != passes(token.u, token.p, token.q):
                    sign = "<" if passes(token.u, token.p, token.q) else "≥"
                    yield f"{where} is {token.verdict}, but u·q {sign} p"
            case Verification.GREEDY | Verification.MATCH:
                if accepted != (token.target_id == token.id):
                    yield f"{where} is {token.verdict}, but the target's token is {token.target_id}"
                if emitted is not None and emitted.id != token.target_id:
                    yield f"{where} gave {emitted.id}, but the target's token is {token.target_id}"
                if self._rule is Verification.GREEDY:
                    yield from _is_argmax(where, token.target_id, top)
                elif token.race is not None and token.target_id is not None:
                    yield from self._from_p(where, token.race, position, token.target_id, emitted, top)
                elif token.draw is not None:
                    u = self._draws.uniform(position, Purpose.TOKEN)
                    yield from _drawn(where, token.draw, u, emitted.p if emitted else None)
                else:
                    yield f"{where} was judged without a draw"

    def _block(self, round: Round, position: int) -> Iterator[str]:
        """Check a draft judged as a block: accepted up to the last token whose u is below its h."""
        reach = [1.0]
        for token in round.drafted:
            if token.p is None or not token.q:
                break
            reach.append(block_reach(reach[-1], token.p, token.q))
        judged = round.drafted[: len(reach) - 1]
        if len(judged) < len(round.drafted) and reach[-1] > 0:
            yield f"the draft at place {len(judged)} was judged without its p or q"
        passed = 0
        for place, token in enumerate(judged):
            where = f"the draft at place {place}"
            if token.h is None:
                if token.u is not None:
                    yield f"{where} has a draw that was not compared with anything"
                continue
            if token.u is None or token.u != self._draws.uniform(position + place, Purpose.ACCEPT, position):
                yield f"{where} was judged by a draw that is not its seed's"
                continue
            if token.u < token.h:
                passed = place + 1
            low, high = _left(reach[place + 1], judged[place + 1] if place + 1 < len(judged) else None)
            if not _is_block_value(token.h, reach[place + 1], low, high):
                yield f"{where} has the acceptance value {token.h:g}, which its p and q do not give"
        for place, token in enumerate(judged[passed:], passed):
            if token.h is None:
                yield f"the draft at place {place} was judged without its acceptance value"
        cut = bool(round.emitted) and round.emitted[-1].origin is Origin.ACCEPTED
        if round.accepted > passed or (round.accepted < passed and not cut):
            yield f"{round.accepted} drafted tokens are accepted, but {passed} pass as a block"

    def _behind(
        self, round: Round, emitted: EmittedToken, position: int, top: Alternatives | None
    ) -> Iterator[str]:
        where = f"the {emitted.origin} token"
        if self._rule is Verification.GREEDY:
            if emitted.drawn is not None:
                yield f"{where} was drawn, which greedy never does"
            yield from _is_argmax(where, emitted.id, top)
            return
        if emitted.drawn is None:
            yield f"{where} has no draw"
            return
        rejected = None
        if emitted.origin is Origin.RESAMPLED and self._rule in _FROM_RESIDUAL:
            if len(round.drafted) < len(round.emitted):
                return  # no token was rejected: `_shape` reports it
            rejected = round.drafted[len(round.emitted) - 1]
        if emitted.race is not None:
            if rejected is None:
                yield from self._from_p(where, emitted.race, position, emitted.id, emitted, top)
            else:
                yield from self._from_residual(where, emitted.race, position, emitted, rejected, top)
            return
        assert emitted.draw is not None
        u = self._draws.uniform(position, Purpose.RESIDUAL if rejected else Purpose.TOKEN)
        if rejected is None:
            yield from _drawn(where, emitted.draw, u, emitted.p)
        elif rejected.draft_draw is not None or rejected.p is None or 1 - rejected.p < _NOTHING:
            # For a sampled draft only the rejected token's part of the residual is recorded.
            yield from _drawn(where, emitted.draw, u, None)
        else:
            # The residual of a one-hot draft is p without the rejected token.
            rest = 1 - rejected.p
            yield from _drawn(where, emitted.draw, u, (emitted.p or 0.0) / rest, _WIDTH / rest)

    def _from_p(
        self,
        where: str,
        race: Race,
        position: int,
        winner: int,
        emitted: EmittedToken | None,
        top: Alternatives | None,
    ) -> Iterator[str]:
        """Check a race of the target's own distribution, whose p are recorded."""
        p = _listed(top) if self._warm else {}
        most = min(top.p) if self._warm and top is not None and len(top.ids) == len(top.p) == TOP else 1.0
        if emitted is not None and emitted.id == winner:
            p[winner] = emitted.p
        yield from _won(where, race, self._draws.key(position, Purpose.TOKEN), p, winner, most)

    def _from_residual(
        self,
        where: str,
        race: Race,
        position: int,
        emitted: EmittedToken,
        rejected: DraftedToken,
        top: Alternatives | None,
    ) -> Iterator[str]:
        """Check a race of a residual. That of a one-hot draft is p without the rejected token; of a sampled
        one only the rejected token's part is recorded."""
        p: dict[int, float | None] = {}
        rest = 1 - (rejected.p or 0.0)
        known = rejected.draft_drawn is None and rejected.p is not None and rest >= _NOTHING
        if known and self._warm:
            p = {id: (share or 0.0) / rest for id, share in _listed(top).items() if id != rejected.id}
            p[emitted.id] = (emitted.p or 0.0) / rest
        elif not self._warm:
            p[emitted.id] = emitted.p
        key = self._draws.key(position, Purpose.RESIDUAL)
        yield from _won(where, race, key, p, emitted.id, tolerance=_WIDTH / max(rest, _NOTHING))


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
    """Check a race: the scores of tokens whose p is known or, for others, at most `most`, and that none of
    them but the second comes before the second."""
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


def _drawn(where: str, draw: Draw, u: float, width: float | None, tolerance: float = _WIDTH) -> Iterator[str]:
    """Check a draw: `u` is the seed's draw, `width` the probability of its interval, if known."""
    if draw.u != u:
        yield f"{where} was drawn with {draw.u:g}, but its seed gives {u:g}"
    if not draw.low <= draw.u < draw.high:
        yield f"{where}: its draw {draw.u:g} is not in [{draw.low:g}, {draw.high:g})"
    if not 0 <= draw.low < draw.high <= 1:
        yield f"{where}: [{draw.low:g}, {draw.high:g}) is not within [0, 1]"
    if width is not None and abs(draw.high - draw.low - width) > tolerance:
        yield f"{where}: its interval is {draw.high - draw.low:g} wide, but its probability is {width:g}"


def _left(reach: float, behind: DraftedToken | None) -> tuple[float, float]:
    """Bounds for what the next drafted token leaves of `reach`; `behind` is that token, if one was judged.
    For a sampled draft only the drafted token's part of a row is recorded."""
    if behind is None or behind.p is None:
        return reach, reach
    if behind.draft_drawn is None or behind.q is None:
        left = reach * (1 - behind.p)
        return left, left
    taken = min(reach * behind.p, behind.q)
    return reach * behind.p - taken, reach - taken


def _is_block_value(h: float, reach: float, low: float, high: float) -> bool:
    """Whether h = left / (left + 1 - reach) for a `left` between `low` and `high`."""
    if reach == 1:
        return h == 1

    def excess(left: float) -> float:
        """Grows with `left`, and is zero where `left` gives h."""
        return left - h * (left + (1 - reach))

    return excess(low) <= _WIDTH and excess(high) >= -_WIDTH


def _is_argmax(where: str, id: int | None, top: Alternatives | None) -> Iterator[str]:
    """Check that greedy took the most probable token, or any of equal ones."""
    if id is None:
        yield f"{where} was judged without the target's argmax"
        return
    if top is None or not top.ids:
        return
    if len(top.p) != len(top.ids):
        yield f"{where}: its alternatives do not have a p each"
        return
    p = dict(zip(top.ids, top.p, strict=True))
    if p.get(id) != max(top.p):
        yield f"{where}: the target's most probable token is {top.ids[0]}, not {id}"


def _end(trace: Trace, emitted: int) -> Iterator[str]:
    """Compare the totals with the rounds."""
    header, totals = trace.header, trace.totals
    if emitted > header.max_tokens:
        yield f"{emitted} tokens were emitted where {header.max_tokens} were asked for"
    if totals is None:
        return
    tokens = [token for round in trace.rounds for token in round.emitted]
    stream = TextStream(header.stop if header.pair.server is None else ())  # a server leaves the stop out
    for place, token in enumerate(tokens):
        if stream.stopped:
            yield f"text continues after a stop at token {place - 1}"
            break
        ended = totals.finish_reason is FinishReason.END and place == len(tokens) - 1
        stream.add(b"" if ended else token.piece)
    stopped = totals.finish_reason is FinishReason.STOP
    if stream.stopped != stopped and header.pair.server is None:
        yield f"it ended by {totals.finish_reason}, but a stop was {'' if stream.stopped else 'not '}reached"
    stream.finish()
    if stream.text != totals.text:
        yield "the text is not that of the emitted tokens"
    full = header.prompt_tokens + emitted > header.pair.target.n_ctx or header.pair.server is not None
    if totals.finish_reason is FinishReason.LENGTH and emitted != header.max_tokens:
        yield f"it ended at {emitted} tokens where {header.max_tokens} were asked for"
    if totals.finish_reason is FinishReason.CONTEXT and not full:
        yield "it ended for a full context, but the context was not full"
    if totals.finish_reason is FinishReason.END and not emitted:
        yield "the model ended it, but nothing was emitted"
