"""The audit: does drafting change an answer? If so, is that rounding or a fault?

The request is answered with drafting and without. Then the target reads the drafted answer again, into an
empty cache, in passes as wide as a draft and, if needed, of single tokens. The difference between these two
readings is rounding. A fault is a place that differs from both by more, a verdict not following from its
record, or texts that diverge without rounding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Generator, Sequence
from itertools import zip_longest
from math import inf, log

from app.base.numbers import ordinal
from app.engine.errors import SettingError
from app.engine.process.messages import Judge, JudgedRow, JudgedRows
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.rules.registry import rule_of
from app.engine.sampling.draws import Draws, Purpose
from app.engine.sampling.logits import LARGEST_ROUNDING, TOP
from app.engine.sampling.noise import luck
from app.engine.strategy import NONE, SERVER, StrategySpec
from app.engine.types import UNTOLD, Alternatives, EmittedToken, GenerationRequest, Sampling
from app.lab.audit_finding import (
    KEPT,
    WITH,
    WITHOUT,
    Audit,
    AuditFinding,
    Cause,
    Parting,
    Readings,
    Shape,
    Step,
    Steps,
    largest,
    token_text,
)

_LAST = (0, 3, 15)  # last tokens of an answer that are read again, after what its cache holds
_OF_SERVER = SettingError("A server promises the same text only at temperature 0.", "Audit it there.")

Row = tuple[int, Alternatives]  # its place
Judging = Generator[Step, Trace | JudgedRows, tuple[JudgedRow, ...]]


def audit(request: GenerationRequest) -> Steps:
    """Audit the strategy of a request. Raises SettingError if there is nothing to audit."""
    warm = request.sampling.temperature > 0
    if request.strategy == SERVER and warm:
        raise _OF_SERVER
    if request.strategy == NONE:
        raise SettingError("This answer has no drafting to audit.", "Choose a strategy that drafts.")
    if request.strategy != SERVER:
        rule = StrategySpec.parse(request.strategy).verification_at(request.sampling.temperature)
        if not rule.keeps_text and not rule.keeps_law:
            raise SettingError(
                f"verify={rule} keeps neither the text nor its distribution.", "Audit a different rule."
            )
    drafted = _trace((yield dataclasses.replace(request, cold=True, continues=())))
    header, server = drafted.header, drafted.header.pair.server
    if header.strategy == NONE:
        raise SettingError("The server did not draft.", "Start it with drafting.")
    if server is not None and warm:
        raise _OF_SERVER
    sampling = dataclasses.replace(request.sampling, seed=header.seed)
    base = dataclasses.replace(request, strategy=NONE, sampling=sampling, cold=True, continues=())
    kept: list[Row] = []
    for many in _LAST if server is None else ():
        # Before another request: the cache holds what drafting made of it.
        ids = drafted.token_ids[:-1]
        first = max(0, len(ids) - many)
        rows = yield from _judged(Judge(0, base, ids, first, many + 1, fresh=False))
        kept += [(at, row.whole) for at, row in enumerate(rows, first)] or [(first, Alternatives((), (), ()))]
    plain = _trace((yield base))
    heads = (trace.header for trace in (plain, drafted))
    if len({(head.prompt, head.prompt_tokens, head.context_ids) for head in heads}) > 1:
        words = "The two answers read different prompts: the chat template does not give the same text twice."
        return Audit(AuditFinding.FAULT, words, plain, drafted, Cause.TEMPLATE)
    if server is not None:
        return (yield from _of_server(base, plain, drafted))
    return (yield from _of_engine(base, plain, drafted, kept))


def _trace(reply: Trace | JudgedRows) -> Trace:
    assert isinstance(reply, Trace)
    return reply


def _judged(asked: Judge) -> Judging:
    reply = yield asked
    assert isinstance(reply, JudgedRows)
    return reply.rows


def _of_engine(base: GenerationRequest, plain: Trace, drafted: Trace, kept: list[Row]) -> Steps:
    ids = drafted.token_ids
    promised = _promised(drafted)
    parting = _parting(plain, drafted) if promised else None
    both = tuple(token.id for token in parting.tokens if token) if parting else ()
    width = max(2, 1 + max(len(round.drafted) for round in drafted.rounds))
    wide = yield from _judged(Judge(0, base, ids[:-1], 0, width, both))
    tried = [
        "Every verdict was computed again from the record.",
        "The last places were judged again with the cache as drafting had left it.",
        f"The target read the text again in passes of {width} tokens.",
    ]

    told = {WITH: _rows(drafted), KEPT: kept}
    if promised:
        told[WITHOUT] = _rows(plain)[: min(len(ids), parting.place + 1 if parting else len(ids))]
    apart = _all_apart(told, [wide], base.sampling)
    rounding, alone = largest(apart.get(WITHOUT, {})), wide
    if not promised or parting or any(largest(places) > LARGEST_ROUNDING for places in apart.values()):
        alone = yield from _judged(Judge(0, base, ids[:-1], 0, 1, both))
        tried.append(
            "The target read it again in passes of one token, which sum as they do without drafting."
        )
        apart = _all_apart(told, [wide, alone], base.sampling)
        rounding = max(
            _apart(one.whole, _unfiltered(other), base.sampling)
            for one, other in zip(alone, wide, strict=True)
        )
    found = Readings(rounding, max(LARGEST_ROUNDING, 2 * rounding), apart)
    if parting and len(both) == 2:
        place = parting.place
        readings = {
            f"in passes of {width} throughout": wide[place],
            "in single passes throughout": alone[place],
        }
        shapes = yield from _shapes(base, place, both, plain, drafted, readings)
        parting = parting._replace(shapes=shapes)
        tried.append("It judged the place again with that round's draft.")
    problems = (*recheck(drafted), *(f"Without drafting: {problem}" for problem in recheck(plain)))
    evidence = Audit(AuditFinding.UNKNOWN, "", plain, drafted, None, parting, found, problems, tuple(tried))
    return _concluded(evidence, found, alone)


def _promised(trace: Trace) -> bool:
    """Whether drafting must keep the text (apart from rounding), for a rule that keeps the distribution."""
    return rule_of(trace.header.verification).keeps_text or trace.header.sampling.temperature == 0


def _concluded(audit: Audit, found: Readings, judged: Sequence[JudgedRow]) -> Audit:
    """The finding from this evidence."""
    drafted, header = audit.drafted, audit.drafted.header
    if audit.problems:
        words = f"A verdict does not follow from its record. {audit.problems[0]}"
        return _fault(
            audit, Cause.RULE, f"{words} {_diverge(audit.parting) if audit.parting else ''}".rstrip()
        )
    for name, places in found.apart.items():
        wrong = [place for place, moved in places.items() if moved > found.allowed]
        if not wrong:
            continue
        moved = places[wrong[0]]
        words = (
            f"Token {ordinal(wrong[0])}: {name} has other probabilities than a fresh reading of the text. "
            + (
                "A filter drops other tokens, by more than rounding explains."
                if moved == inf
                else f"They differ by {moved:.2f} logits; rounding explains {found.rounding:.2f}."
            )
        )
        of_cache = largest(found.apart[KEPT]) > found.allowed
        trace = audit.plain if name == WITHOUT else drafted
        if not of_cache and _only_penalised(trace, wrong, judged, found.allowed):
            return _fault(audit, Cause.RULE, f"{words} Only tokens under a penalty differ.")
        return _fault(audit, Cause.CACHE, words)
    if audit.parting is not None:
        return _parted(audit, audit.parting, found.allowed)
    many, moved = len(drafted.token_ids), largest(found.apart[WITH])
    explained = f"differs by at most {moved:.3f} logits; rounding explains {found.rounding:.3f}"
    fresh = f"A fresh reading {explained if moved else 'gives the very same probabilities'}."
    finding = AuditFinding.SAME
    if not _promised(drafted):
        finding = AuditFinding.LAW
        here = "the same here" if _parting(audit.plain, drafted) is None else "different here"
        words = (
            f"verify={header.verification} at temperature {header.sampling.temperature:g} keeps the "
            f"distribution of texts, not the text, which is {here}. All verdicts follow from their record. "
            f"{fresh}"
        )
    elif not any(round.drafted for round in drafted.rounds):
        words = f"The texts are the same, {many} tokens, but nothing was drafted."
    else:
        words = f"The texts are the same, all {many} tokens. {fresh}"
    return audit._replace(finding=finding, words=words)


def _fault(audit: Audit, cause: Cause, words: str) -> Audit:
    return audit._replace(finding=AuditFinding.FAULT, cause=cause, words=words)


def _parted(audit: Audit, parting: Parting, allowed: float) -> Audit:
    first, second = parting.tokens
    if first is None or second is None:
        ended = "without" if first is None else "with"
        words = f"Only the answer {ended} drafting ended after {parting.place:,} tokens."
        return _fault(audit, Cause.RULE, words)
    leads = [shape.lead for shape in parting.shapes[2:] if shape.lead is not None]
    gap, where = min((abs(lead) for lead in leads), default=inf), _diverge(parting)
    if gap > allowed and not (leads and min(leads) <= 0 <= max(leads)):
        many = "infinite" if gap == inf else f"{gap:.2f}"
        return _fault(
            audit, Cause.RULE, f"{where} The gap is at least {many} in every pass, so this is not rounding."
        )
    spread = max(leads) - min(leads)
    how = f"The gap is {gap:.4f}, and the width of the passes changes it by {spread:.4f} there."
    if spread == inf:
        how = "A filter drops one of them in a pass of one width, but not in a pass of a different width."
    return audit._replace(finding=AuditFinding.ROUNDING, words=f"{where} This is rounding. {how}")


def _diverge(parting: Parting) -> str:
    first, second = map(token_text, parting.tokens)
    where = ordinal(parting.place)
    return f"The texts diverge at token {where}: “{first}” without drafting, “{second}” with it."


def _rows(trace: Trace) -> list[Row]:
    """The target's recorded alternatives at every emitted token."""
    tops = (top for round in trace.rounds for top in round.target_top[: len(round.emitted)])
    return list(enumerate(tops))


def _all_apart(
    told: dict[str, list[Row]], readings: Sequence[Sequence[JudgedRow]], sampling: Sampling
) -> dict[str, dict[int, float]]:
    """How far each place is from the nearest of its readings."""
    found: dict[str, dict[int, float]] = {}
    for name, rows in told.items():
        places = found[name] = {}
        for place, row in rows:
            judged = [reading[place] for reading in readings]
            if name == KEPT:
                judged = list(map(_unfiltered, judged))
            moved = min(_apart(row, each, sampling) for each in judged)
            places[place] = max(moved, places.get(place, 0.0))
    return found


def _unfiltered(row: JudgedRow) -> JudgedRow:
    return JudgedRow(row.whole, row.whole)


def _apart(row: Alternatives, judged: JudgedRow, sampling: Sampling, left_out: Collection[int] = ()) -> float:
    """The largest difference, in logits, between the gaps of two tokens in a row and in a reading. Infinite
    if a filter drops a token in one of them and rounding does not explain it."""
    recorded, kept = set(row.ids), set(judged.top.ids)
    lacking = recorded - kept if len(kept) < TOP else set()
    lacking |= kept - recorded if len(recorded) < TOP else set()
    if not left_out and lacking.difference(judged.edge):  # else a filter follows those
        return inf
    mixed = sampling.xtc_probability > 0  # in part without its best tokens
    full = judged.top if mixed else judged.whole
    known = dict(zip(full.ids, full.p, strict=True))
    shared = [(p, known.get(id)) for id, p in zip(row.ids, row.p, strict=True) if id not in left_out]
    moved = sorted(log(p) - log(q) for p, q in shared if p and q)
    if moved and not mixed and len(recorded) == TOP:
        # A token that is not among the ten has at most the least p of these.
        gone = (kept - recorded).difference(judged.edge, left_out)
        at_most = [log(row.p[-1]) - log(known[id]) for id in gone if row.p[-1] and known.get(id)]
        moved[0] = min((moved[0], *at_most))
    if mixed and len(moved) > 2:  # at its threshold one token more or less may be dropped
        moved = min(moved[1:], moved[:-1], key=lambda rest: rest[-1] - rest[0])
    return (moved[-1] - moved[0]) * (sampling.temperature or 1.0) if moved else 0.0


def _only_penalised(trace: Trace, wrong: Sequence[int], judged: Sequence[JudgedRow], allowed: float) -> bool:
    """Whether the differing places agree in all tokens except those lowered by a penalty."""
    sampling, ids = trace.header.sampling, trace.token_ids
    if sampling.repeat_penalty == 1 and not sampling.frequency_penalty and not sampling.presence_penalty:
        return False
    rows, prompt = _rows(trace), trace.header.context_ids
    return all(
        _apart(rows[place][1], judged[place], sampling, {*prompt, *ids[:place]}) <= allowed for place in wrong
    )


def _parting(plain: Trace, drafted: Trace) -> Parting | None:
    """Where the tokens of two answers diverge, or their texts if a server does not report tokens."""
    tokens = ([token for round in trace.rounds for token in round.emitted] for trace in (plain, drafted))
    for place, (first, second) in enumerate(zip_longest(*tokens)):
        if first is None or second is None or _name(first) != _name(second):
            return Parting(place, (first, second))
    return None


def _name(token: EmittedToken) -> int | bytes:
    return token.id if token.id != UNTOLD else token.piece


def _shapes(
    base: GenerationRequest,
    place: int,
    tokens: tuple[int, ...],
    plain: Trace,
    drafted: Trace,
    readings: dict[str, JudgedRow],
) -> Generator[Step, Trace | JudgedRows, tuple[Shape, ...]]:
    """The two tokens' logits in both answers, with that round's draft again, and in both readings."""
    round = next(round for round in reversed(drafted.rounds) if round.position <= place)
    ids = (*drafted.token_ids[: round.position], *(token.id for token in round.drafted))
    width = len(round.drafted) + 1
    beside = yield from _judged(Judge(0, base, ids, round.position, width, tokens))
    again = {f"in a pass of {width}": beside[place - round.position]} | readings
    told = {WITHOUT: _recorded(plain, place, tokens), WITH: _recorded(drafted, place, tokens)}
    told |= {f"judged again, {how}": row.p for how, row in again.items()}
    return tuple(Shape(name, (p[0], p[1]), _lead(drafted, place, tokens, p)) for name, p in told.items())


def _recorded(trace: Trace, place: int, tokens: Sequence[int]) -> Sequence[float | None]:
    _, top = _rows(trace)[place]
    known: dict[int, float | None] = dict(zip(top.ids, top.p, strict=True))
    return [known.get(token) for token in tokens]


def _lead(trace: Trace, place: int, tokens: Sequence[int], p: Sequence[float | None]) -> float | None:
    first, second = p
    if first is None or second is None or first == second == 0:
        return None
    if not first or not second:
        return inf if first else -inf
    lead, temperature = log(first) - log(second), trace.header.sampling.temperature
    if temperature == 0:
        return lead
    key = Draws(trace.header.seed).key(place, Purpose.TOKEN)
    return (lead + luck(key, tokens[0]) - luck(key, tokens[1])) * temperature


def _of_server(base: GenerationRequest, plain: Trace, drafted: Trace) -> Steps:
    parting = _parting(plain, drafted)
    tried: tuple[str, ...] = ("Both requests were sent, and their texts compared.",)
    if parting is None or plain.text == drafted.text:
        words = f"The texts are the same, all {len(drafted.token_ids)} tokens."
        return Audit(AuditFinding.SAME, words, plain, drafted, tried=tried)
    words, place, (first, second) = _diverge(parting), parting.place, parting.tokens
    shared = [token for round in drafted.rounds for token in round.emitted][:place]
    text = b"".join(token.piece for token in shared).decode(errors="replace")
    asked = Judge(0, base, tuple(token.id for token in shared), place, 1, text=text)
    rows = (yield from _judged(asked)) if first and second else ()
    if not rows or not rows[0].top.ids or first is None or second is None:
        words = f"{words} The server does not say how close the two are."
        return Audit(AuditFinding.UNKNOWN, words, plain, drafted, None, parting, tried=tried)
    p = tuple(_told(rows[0].top, token) for token in (first, second))
    least = min(rows[0].top.p)
    lead = log(p[0] or least) - log(p[1] or least)
    shape = Shape("asked again for one token after the text", (p[0], p[1]), lead)
    tried += ("The server was asked for one token after the text that both share, which drafts nothing.",)
    words = f"{words} Asked for that token alone, the server gives a gap of {abs(lead):.4f}"
    found = Audit(AuditFinding.ROUNDING, f"{words}: this is rounding.", plain, drafted, tried=tried)
    found = found._replace(parting=parting._replace(shapes=(shape,)))
    if abs(lead) <= LARGEST_ROUNDING and any(p):
        return found
    wrong = f"the answer {'with' if lead > 0 else 'without'} drafting is not its model's."
    return _fault(found, Cause.SERVER, f"{words}{'' if all(p) else ' or more'}: {wrong}")


def _told(top: Alternatives, token: EmittedToken) -> float | None:
    """The p of a token among those that a server reports, by id or by text."""
    for id, piece, p in zip(top.ids, top.pieces, top.p, strict=True):
        if id == token.id if UNTOLD not in (id, token.id) else piece == token.piece:
            return p
    return None
