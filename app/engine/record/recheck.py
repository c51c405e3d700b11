"""Recompute every verdict of a recorded trace from the trace alone, without the model.

- Each race has the scores given by its seed's luck and the probabilities, and no recorded alternative would
  have won it. (Before format 1.10: each draw comes from its seed and is in the recorded interval, whose width
  is the token's probability.)
- Each verdict follows from p, q and the draw by the rule.
- Verdicts, origins, positions, counts, text and the end of the answer agree.
- All other parts are consistent (`consistency.py`, `frame.py`).

A server reports neither p nor q nor draws: of its answers only the third point is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.base.numbers import ordinal
from app.engine.fates import JUDGED, Origin, Verdict
from app.engine.loop.text import TextStream
from app.engine.record.consistency import Consistency
from app.engine.record.frame import header_problems, prompt_problems, totals_problems
from app.engine.record.trace import Trace
from app.engine.rules.base import Rule
from app.engine.rules.checks import Check, Judged, Own
from app.engine.rules.registry import RULES, rule_of
from app.engine.types import UNTOLD, FinishReason, Round

_CUT = (FinishReason.END, FinishReason.STOP)  # reasons that end an answer in the middle of a round
_STOPPED = (FinishReason.CANCELLED, FinishReason.FAILED)


def recheck(trace: Trace) -> list[str]:
    """Return the disagreements, one sentence each; empty if there are none. Without totals the intended
    length of the last round is unknown: an end or a stop may have cut it."""
    # Where it had reached its length and was continued, strategies began again. If nothing came of that but a
    # stop, the record does not say so.
    limits = [round.position for round in trace.rounds if round.index and round.begin_seconds]
    stopped = trace.totals is None or trace.totals.finish_reason in _STOPPED
    perhaps = [len(trace.token_ids)] if stopped else []
    check, consistency = Check(trace.header), Consistency(trace.header, limits, perhaps)
    rule = rule_of(trace.header.verification)
    found = [f"Header: {problem}." for problem in header_problems(trace.header)]
    position = 0
    finish = trace.totals.finish_reason if trace.totals else None
    for index, round in enumerate(trace.rounds):
        last = index == len(trace.rounds) - 1
        problems = []
        if round.index != index:
            problems.append(f"its index in the file is {round.index}, not {index}")
        if round.position != position:
            problems.append(f"it starts at token {ordinal(round.position)}, not {ordinal(position)}")
        problems += _shape(round, cut=last and (finish is None or finish in _CUT))
        if trace.header.pair.server is None and trace.header.verification in RULES:
            if any(token.q is None for token in round.drafted) or any(
                token.p is None for token in round.emitted
            ):
                problems.append("a token has no p or q, which only a server leaves out")
            else:
                problems += _verdicts(rule, check, round, position)
                problems += consistency.problems(round)
            consistency.follow(round)
        found += [f"Round {ordinal(index)}: {problem}." for problem in problems]
        position += len(round.emitted)
    found += [f"Header: {problem}." for problem in prompt_problems(trace.header, consistency.texts)]
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
            yield f"token id {drafted.id} was accepted at place {ordinal(place)}, and {emitted.id} emitted"
    if rejected and len(round.emitted) == accepted + 1:
        refused = round.drafted[accepted].id
        if refused == round.emitted[-1].id != UNTOLD:
            yield f"token id {refused} was rejected and emitted"


def _origin_behind(round: Round) -> Origin:
    if not round.drafted:
        return Origin.PLAIN
    return Origin.RESAMPLED if round.rejected else Origin.BONUS


def _words(values: Sequence[str]) -> str:
    return ", ".join(values) or "nothing"


def _verdicts(rule: Rule, check: Check, round: Round, start: int) -> Iterator[str]:
    """Check every judged token and the token emitted after them."""
    tops = dict(enumerate(round.target_top))
    emitted = dict(enumerate(round.emitted))
    for place, token in enumerate(round.drafted):
        at = Judged(
            f"the draft at place {ordinal(place)}", start + place, token, emitted.get(place), tops.get(place)
        )
        yield from check.drafted(at, start, shares_luck=rule.shares_luck)
        if token.verdict not in JUDGED:
            continue
        if token.p is None or token.q is None:
            yield f"{at.where} was judged without its p or q"
            continue
        if token.verdict is Verdict.ACCEPTED and at.emitted is not None and at.emitted.p != token.p:
            yield f"{at.where} has p {token.p:g} as a draft and {at.emitted.p:g} as emitted"
        yield from rule.recheck(at, check)
    yield from rule.recheck_draft(check, round, start)
    last = len(round.emitted) - 1
    if last >= 0 and (own := round.emitted[last]).origin is not Origin.ACCEPTED:
        rejected = dict(enumerate(round.drafted)).get(last)
        where = f"the {own.origin} token"
        yield from rule.recheck_own(Own(where, start + last, own, rejected, tops.get(last)), check)


def _end(trace: Trace, emitted: int) -> Iterator[str]:
    """Compare the totals with the rounds."""
    header, totals = trace.header, trace.totals
    if emitted > header.max_tokens:
        yield f"{emitted} tokens were emitted, but at most {header.max_tokens} were requested"
    if totals is None:
        return
    tokens = [token for round in trace.rounds for token in round.emitted]
    stream = TextStream(header.stop if header.pair.server is None else ())  # a server leaves the stop out
    for place, token in enumerate(tokens):
        if stream.stopped:
            yield f"text continues after a stop at token {ordinal(place - 1)}"
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
        yield f"it ended at {emitted} tokens, but {header.max_tokens} were requested"
    if totals.finish_reason is FinishReason.CONTEXT and not full:
        yield "it ended for a full context, but the context was not full"
    if totals.finish_reason is FinishReason.END and not emitted:
        yield "the model ended it, but nothing was emitted"
