"""The audit: does drafting change an answer, and if it does, is that rounding or a fault?

The request is answered with drafting and without. Then the target reads the answer with drafting again, into
an empty cache, in passes as wide as a draft, and if needed in passes over one token each: what these two
disagree by is rounding. A place of an answer that disagrees with both by more is a fault. So is a verdict
that does not follow from its record, or a parting of the texts that rounding does not explain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from math import inf, log

from app.engine.errors import SettingError
from app.engine.process.messages import Judge, JudgedRow, JudgedRows
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.rules.base import Rule
from app.engine.rules.registry import rule_of
from app.engine.sampling.draws import Draws, Purpose
from app.engine.sampling.logits import TOP
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
from app.lab.runs.compare import LARGEST_ROUNDING

_NOTHING = Alternatives((), (), ())
_KEPT = (0, 3, 15)  # last tokens of an answer that are read again, after what its cache holds


def audit(request: GenerationRequest) -> Steps:
    """Audit the strategy of a request. Raises SettingError if there is nothing to audit."""
    if request.strategy == SERVER and request.sampling.temperature > 0:
        raise SettingError("A server promises the same text only at temperature 0.", "Audit it there.")
    if request.strategy == NONE:
        raise SettingError("This answer has no drafting to audit.", "Choose a strategy that drafts.")
    if request.strategy != SERVER:
        rule = StrategySpec.parse(request.strategy).verification_at(request.sampling.temperature)
        if not rule.keeps_text and not rule.keeps_law:
            raise SettingError(f"verify={rule} keeps neither the text nor its law.", "Audit another rule.")
    drafted = _trace((yield dataclasses.replace(request, cold=True, continues=())))
    header = drafted.header
    if header.strategy == NONE:
        raise SettingError("The server did not draft.", "Start it with drafting.")
    if header.pair.server is not None and request.sampling.temperature > 0:
        raise SettingError("A server promises the same text only at temperature 0.", "Audit it there.")
    sampling = dataclasses.replace(request.sampling, seed=header.seed)
    base = dataclasses.replace(request, strategy=NONE, sampling=sampling, cold=True, continues=())
    kept: list[tuple[int, Alternatives]] = []
    for many in _KEPT if header.pair.server is None else ():
        # Before another request: the cache holds what drafting made of it.
        ids = drafted.token_ids[:-1]
        first = max(0, len(ids) - many)
        rows = yield from _judged(Judge(0, base, ids, first, many + 1, fresh=False))
        kept += [(place, row.whole) for place, row in enumerate(rows, first)] or [(first, _NOTHING)]
    plain = _trace((yield base))
    if _prompt(plain) != _prompt(drafted):
        words = "The two answers read different prompts: the chat template does not give the same text twice."
        return Audit(AuditFinding.FAULT, words, plain, drafted, Cause.TEMPLATE)
    if header.pair.server is not None:
        return (yield from _of_server(base, plain, drafted))
    return (yield from _of_engine(base, plain, drafted, kept))


def _promises(rule: Rule, temperature: float) -> bool:
    """Whether drafting leaves the text as it is, rounding apart."""
    return rule.keeps_text or (rule.keeps_law and temperature == 0)


def _trace(reply: Trace | JudgedRows) -> Trace:
    assert isinstance(reply, Trace)
    return reply


def _prompt(trace: Trace) -> tuple[str, int, tuple[int, ...]]:
    header = trace.header
    return header.prompt, header.prompt_tokens, header.context_ids


def _judged(asked: Judge) -> Generator[Step, Trace | JudgedRows, tuple[JudgedRow, ...]]:
    reply = yield asked
    assert isinstance(reply, JudgedRows)
    return reply.rows


def _of_engine(
    base: GenerationRequest, plain: Trace, drafted: Trace, kept: list[tuple[int, Alternatives]]
) -> Steps:
    sampling, ids = base.sampling, drafted.token_ids
    promised = _promises(rule_of(drafted.header.verification), sampling.temperature)
    parting = _parting(plain, drafted) if promised else None
    width = max(2, 1 + max(len(round.drafted) for round in drafted.rounds))
    wide = yield from _judged(Judge(0, base, ids[:-1], 0, width))
    tried = ["Every verdict was computed again from the record."]
    tried.append("The last places were judged again with the cache as drafting had left it.")
    tried.append(f"The target read the text again in passes of {width} tokens.")

    told = {WITH: list(enumerate(_rows(drafted))), KEPT: kept}
    if promised:
        shared = min(parting.place + 1 if parting else len(ids), len(ids))
        told[WITHOUT] = list(enumerate(_rows(plain)[:shared]))
    apart = _all_apart(told, [wide], sampling)
    rounding, alone = largest(apart.get(WITHOUT, {})), wide
    if not promised or parting or any(largest(places) > LARGEST_ROUNDING for places in apart.values()):
        candidates = tuple(token.id for token in parting.tokens if token) if parting else ()
        alone = yield from _judged(Judge(0, base, ids[:-1], 0, 1, candidates))
        tried.append(
            "The target read it again in passes of one token, which sum as they do without drafting."
        )
        apart = _all_apart(told, [wide, alone], sampling)
        both = zip(alone, wide, strict=True)
        rounding = max(_apart(one.whole, other.whole, sampling) for one, other in both)
    found = Readings(rounding, max(LARGEST_ROUNDING, 2 * rounding), apart)
    if parting and all(parting.tokens):
        parting = parting._replace(shapes=(yield from _shapes(base, parting, plain, drafted, alone)))
        tried.append("It judged the place again: after the text in one pass, and with that round's draft.")
    problems = (*recheck(drafted), *(f"Without drafting: {problem}" for problem in recheck(plain)))
    finding, cause, words = _finding(plain, drafted, promised, parting, found, problems, alone)
    return Audit(finding, words, plain, drafted, cause, parting, found, problems, tuple(tried))


def _finding(
    plain: Trace,
    drafted: Trace,
    promised: bool,
    parting: Parting | None,
    found: Readings,
    problems: Sequence[str],
    judged: Sequence[JudgedRow],
) -> tuple[AuditFinding, Cause | None, str]:
    if problems:
        return AuditFinding.FAULT, Cause.RULE, f"A verdict does not follow from its record. {problems[0]}"
    for name, places in found.apart.items():
        place = next((place for place, moved in places.items() if moved > found.allowed), None)
        if place is not None:
            words = (
                f"Token {place}: {name} has other probabilities than a fresh reading of the text. They "
                f"differ by {_logits(places[place])} logits; rounding explains {found.rounding:.2f}."
            )
            trace = plain if name == WITHOUT else drafted
            if name != KEPT and _only_penalised(trace, places, judged, found.allowed):
                return AuditFinding.FAULT, Cause.RULE, f"{words} Only tokens under a penalty differ."
            return AuditFinding.FAULT, Cause.CACHE, words
    if parting is not None:
        return _parting_finding(parting, found.allowed)
    many, header = len(drafted.token_ids), drafted.header
    if not promised:
        return (
            AuditFinding.LAW,
            None,
            f"verify={header.verification} at temperature {header.sampling.temperature:g} keeps the law of "
            "the text, not the text. All verdicts follow from their record, and all probabilities are the "
            f"target's: a fresh reading differs by {largest(found.apart[WITH]):.3f} logits at most.",
        )
    if not any(round.drafted for round in drafted.rounds):
        return AuditFinding.SAME, None, f"The texts are the same, {many} tokens, but nothing was drafted."
    return (
        AuditFinding.SAME,
        None,
        f"The texts are the same, all {many} tokens. A fresh reading differs by "
        f"{largest(found.apart[WITH]):.3f} logits at most; rounding explains {found.rounding:.3f}.",
    )


def _parting_finding(parting: Parting, allowed: float) -> tuple[AuditFinding, Cause | None, str]:
    first, second = parting.tokens
    if first is None or second is None:
        ended, other = ("without", "with") if first is None else ("with", "without")
        words = f"The answer {ended} drafting ended at token {parting.place}; the one {other} it continued."
        return AuditFinding.FAULT, Cause.RULE, words
    leads = [shape.lead for shape in parting.shapes[2:] if shape.lead is not None]
    gap, where = min((abs(lead) for lead in leads), default=inf), _diverge(parting)
    if gap > allowed and not (leads and min(leads) <= 0 <= max(leads)):
        return (
            AuditFinding.FAULT,
            Cause.RULE,
            f"{where} The gap is {_logits(gap)} in every pass: that is no rounding.",
        )
    spread = max(leads) - min(leads)
    how = f"The gap is {gap:.4f}, and the width of the passes changes it by {spread:.4f} there."
    if spread == inf:
        how = "A filter drops one of them in a pass of one width, and not in another."
    return AuditFinding.ROUNDING, None, f"{where} This is rounding. {how}"


def _diverge(parting: Parting) -> str:
    first, second = parting.tokens
    return (
        f"The texts diverge at token {parting.place}: “{token_text(first)}” without drafting, "
        f"“{token_text(second)}” with it."
    )


def _logits(value: float) -> str:
    return "infinitely many" if value == inf else f"{value:.2f}"


def _rows(trace: Trace) -> list[Alternatives]:
    """The target's recorded alternatives at every emitted token."""
    return [top for round in trace.rounds for top in round.target_top[: len(round.emitted)]]


def _all_apart(
    told: dict[str, list[tuple[int, Alternatives]]],
    readings: Sequence[Sequence[JudgedRow]],
    sampling: Sampling,
) -> dict[str, dict[int, float]]:
    """By how much each place differs from the nearest of its readings."""
    found: dict[str, dict[int, float]] = {}
    for name, rows in told.items():
        places = found[name] = {}
        for place, row in rows:
            both = [reading[place].whole if name == KEPT else reading[place].top for reading in readings]
            moved = min(_apart(row, one, sampling) for one in both)
            places[place] = max(moved, places.get(place, 0.0))
    return found


def _apart(
    first: Alternatives, second: Alternatives, sampling: Sampling, left_out: frozenset[int] = frozenset()
) -> float:
    """The most that the gap of two tokens differs by between two rows of a place, in logits; infinite where
    a row lacks several tokens of the other. One token may be lacking, at the edge of a filter."""
    known = dict(zip(second.ids, second.p, strict=True))
    shared = {id: p for id, p in zip(first.ids, first.p, strict=True) if id in known and id not in left_out}
    lacking = [
        min(row.p, default=0.0)
        for row, other in ((first, second), (second, first))
        if len(other.ids) < TOP and len(set(row.ids) - set(other.ids)) > 1
    ]
    if lacking or (first.ids and not shared and not left_out):
        return inf
    moved = sorted(log(p) - log(known[id]) for id, p in shared.items() if p and known[id])
    if sampling.xtc_probability > 0 and len(moved) > 2:
        # At its threshold one token more or less may be dropped.
        moved = min(moved[1:], moved[:-1], key=lambda rest: rest[-1] - rest[0])
    return (moved[-1] - moved[0]) * (sampling.temperature or 1.0) if moved else 0.0


def _only_penalised(
    trace: Trace, places: dict[int, float], judged: Sequence[JudgedRow], allowed: float
) -> bool:
    """Whether the places that differ agree in all tokens but those that a penalty lowers."""
    sampling, ids = trace.header.sampling, trace.token_ids
    if sampling.repeat_penalty == 1 and not sampling.frequency_penalty and not sampling.presence_penalty:
        return False
    rows, prompt = _rows(trace), trace.header.context_ids
    return all(
        _apart(rows[place], judged[place].top, sampling, frozenset((*prompt, *ids[:place]))) <= allowed
        for place, moved in places.items()
        if moved > allowed
    )


def _parting(plain: Trace, drafted: Trace) -> Parting | None:
    """Where the tokens of two answers part; where a server does not tell tokens, their texts."""
    tokens = [[token for round in trace.rounds for token in round.emitted] for trace in (plain, drafted)]
    one, two = ([_name(token) for token in row] for row in tokens)
    place = next(
        (at for at, (x, y) in enumerate(zip(one, two, strict=False)) if x != y), min(len(one), len(two))
    )
    if len(one) == len(two) == place:
        return None
    first, second = (row[place] if place < len(row) else None for row in tokens)
    return Parting(place, (first, second))


def _name(token: EmittedToken) -> int | bytes:
    return token.id if token.id != UNTOLD else token.piece


def _shapes(
    base: GenerationRequest, parting: Parting, plain: Trace, drafted: Trace, rows: Sequence[JudgedRow]
) -> Generator[Step, Trace | JudgedRows, tuple[Shape, ...]]:
    """How the two tokens stand in both answers, and in the place judged again."""
    place, (first, second) = parting.place, parting.tokens
    assert first is not None and second is not None
    ids, tokens = drafted.token_ids, (first.id, second.id)
    round = next(round for round in reversed(drafted.rounds) if round.position <= place)
    with_draft = (*ids[: round.position], *(token.id for token in round.drafted))
    alone = yield from _judged(Judge(0, base, ids[:place], place, 1, tokens))
    width = len(round.drafted) + 1
    beside = yield from _judged(Judge(0, base, with_draft, round.position, width, tokens))
    told = {
        WITHOUT: _recorded(plain, place, tokens),
        WITH: _recorded(drafted, place, tokens),
        "judged again, one token after the text": alone[0].p,
        f"judged again, in a pass of {width}": beside[place - round.position].p,
        "judged again, single passes throughout": rows[place].p,
    }
    return tuple(
        Shape(name, (p[0], p[1]), _lead(drafted, place, tokens, (p[0], p[1]))) for name, p in told.items()
    )


def _recorded(trace: Trace, place: int, tokens: tuple[int, int]) -> tuple[float | None, ...]:
    top = _rows(trace)[place]
    known: dict[int, float | None] = dict(zip(top.ids, top.p, strict=True))
    return tuple(known.get(token) for token in tokens)


def _lead(
    trace: Trace, place: int, tokens: tuple[int, int], p: tuple[float | None, float | None]
) -> float | None:
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
    place, (first, second) = parting.place, parting.tokens
    shared = [token for round in drafted.rounds for token in round.emitted][:place]
    text = b"".join(token.piece for token in shared).decode(errors="replace")
    asked = Judge(0, base, tuple(token.id for token in shared), place, 1, text=text)
    rows = (yield from _judged(asked)) if first and second else ()
    if not rows or not rows[0].top.ids or first is None or second is None:
        words = f"{_diverge(parting)} The server does not say how close the two are."
        return Audit(AuditFinding.UNKNOWN, words, plain, drafted, None, parting, tried=tried)
    p = tuple(_told(rows[0].top, token) for token in (first, second))
    least = min(rows[0].top.p)
    lead = log(p[0] or least) - log(p[1] or least)
    shape = Shape("asked again for one token after the text", (p[0], p[1]), lead)
    parting = parting._replace(shapes=(shape,))
    tried += ("The server was asked for one token after the text that both share, which drafts nothing.",)
    gap, wrong = abs(lead), "with" if lead > 0 else "without"
    asked_again = f"{_diverge(parting)} Asked for that token alone, the server gives a gap of {gap:.4f}"
    if gap <= LARGEST_ROUNDING and any(p):
        words = f"{asked_again}: this is rounding."
        return Audit(AuditFinding.ROUNDING, words, plain, drafted, None, parting, tried=tried)
    words = f"{asked_again}{'' if all(p) else ' or more'}: the answer {wrong} drafting is not its model's."
    return Audit(AuditFinding.FAULT, words, plain, drafted, Cause.SERVER, parting, tried=tried)


def _told(top: Alternatives, token: EmittedToken) -> float | None:
    """The p of a token among those that a server tells, by its id, or by its text."""
    for id, piece, p in zip(top.ids, top.pieces, top.p, strict=True):
        if id == token.id if UNTOLD not in (id, token.id) else piece == token.piece:
            return p
    return None
