"""What if: the rounds that a recorded answer would have had with other draft settings.

A round of the answer with other settings begins at some place of the recorded text. What the draft model
proposes there is known as far as a recorded draft covers it: its accepted tokens are the text itself, so the
rest of a draft is the draft that begins in the middle of it, and behind a rejected token it goes on as
recorded. What is never recorded is the proposal at the place of a bonus token (the draft had ended before
it), of a plain token, or of a token that the draft model was too unsure to propose under the recorded p_min.

So the counts are exact where

- the verification is `greedy` or `match`: the text is then the same whatever is drafted (near-ties of the
  target apart, since passes have another shape);
- the strategy is `draft-simple` without `sample`: a proposal then follows from the text alone;
- the length rule is `fixed` or `ewma`, which know no clock, and the answer was cold;
- no round needs an open place. Rounds that begin where the recorded ones begin and draft no more never do;
  others may, where the recorded drafts were accepted whole. A record with a large n_max has few open places.

Elsewhere the open places are filled, many times over, with recorded places that follow an accepted token
(of a token below the recorded p_min only a probability is drawn, which is also its chance to agree), and the
counts are means of the outcomes. Times are never recorded for another setting: the factor is always
a prediction of the cost model.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.explain.cost import CostModel
from app.engine.fates import Verdict
from app.engine.lengths.base import Attempt, DraftLength, Outset, RoundCost, StrategyLimits
from app.engine.lengths.registry import make_length
from app.engine.record.trace import Trace
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.types import DraftedToken, FinishReason, LengthRule, Round, Verification

FILLINGS = 24
"""How often the open places are filled where there are any; fewer times in a long answer."""
_WORK = 24_000  # places that the walks of an answer may have in all

_ENDED = "the draft ended the answer"
_UNSURE = "p_min"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The outcome of other settings. Counts are whole numbers where it is exact, else means."""

    strategy: str
    tokens: int
    rounds: float
    drafted: float
    accepted: float
    factor: float | None
    """Predicted: the time of a target pass for every token / the time of these rounds. None if the recorded
    times do not tell."""
    reasons: tuple[str, ...] = ()
    """Why the counts are an estimate, a sentence each; none if they are exact."""
    fewest: int = 0  # rounds of the best filling of the open places
    most: int = 0  # and of the worst

    @property
    def exact(self) -> bool:
        """Whether the record decides the counts."""
        return not self.reasons

    @property
    def acceptance_rate(self) -> float | None:
        return self.accepted / self.drafted if self.drafted else None


@dataclass(frozen=True, slots=True)
class _DraftPlace:
    """The draft model's proposal at a place of the text."""

    agrees: bool
    p: float  # the draft model's own probability of it
    ends: bool = False  # the draft ends with it: it ends the answer
    tail: tuple[float, ...] = ()  # not accepted: the p of the tokens that were drafted behind it
    tail_end: str | None = None  # why the draft ended behind them; None where that is not known


_UNSURE_PLACE = _DraftPlace(False, 0.0)
"""A place where the draft model was less sure than the recorded p_min."""


@dataclass(slots=True)
class _Counts:
    """The rounds of one walk through the text."""

    rounds: int = 0
    accepted: int = 0
    lengths: Counter[int] = field(default_factory=Counter)  # rounds by tokens drafted
    open_places: int = 0  # reached, and filled
    open_tails: int = 0  # drafts whose end behind a rejected token is not recorded

    @property
    def drafted(self) -> int:
        return sum(length * rounds for length, rounds in self.lengths.items())


def what_if(trace: Trace, spec: StrategySpec, cost: CostModel | None = None) -> WhatIf:
    """The outcome of `spec` for a recorded answer; its strategy must be that of the answer, with other
    settings. `cost` is measured elsewhere, by default the answer's own. Raises SettingError."""
    recorded = StrategySpec.parse(trace.header.strategy)
    part = check_what_if(recorded, spec)
    cost = cost if cost is not None else CostModel.of(trace.rounds)
    if spec.length is LengthRule.AUTO and (cost.single_pass is None or cost.c is None):
        raise SettingError(
            "length=auto decides by times, and the answer has no pass without a draft to compare with.",
            "Measure the baseline first.",
        )
    walk = _Walk(trace, recorded.parts[0], part, spec, cost)
    first = walk.through(random.Random(0))
    fillings = [first]
    if first.open_places:
        often = min(FILLINGS, max(2, _WORK // len(walk.text)))
        fillings += [walk.through(random.Random(filling)) for filling in range(1, often)]
    n = len(fillings)
    rounds = [counts.rounds for counts in fillings]
    lengths = sum((counts.lengths for counts in fillings), Counter[int]())
    return WhatIf(
        strategy=str(spec),
        tokens=len(walk.text),
        rounds=sum(rounds) / n,
        drafted=sum(counts.drafted for counts in fillings) / n,
        accepted=sum(counts.accepted for counts in fillings) / n,
        factor=_factor(len(walk.text) * n, lengths, cost),
        reasons=_reasons(trace, spec, part, fillings),
        fewest=min(rounds),
        most=max(rounds),
    )


def check_what_if(recorded: StrategySpec, spec: StrategySpec) -> StrategyPart:
    """The part of `spec` whose settings differ; raises SettingError where the record says nothing about
    it."""
    names = [part.name for part in recorded.parts]
    if len(names) != 1:
        what = "drafted nothing" if not names else "is of a mix of strategies"
        raise SettingError(f"This answer {what}.", "What if needs an answer of a single strategy.")
    if [part.name for part in spec.parts] != names or spec.verification is not recorded.verification:
        raise SettingError(f"This answer was made with {recorded}.", "What if changes its settings only.")
    return spec.parts[0]


def with_settings(
    recorded: StrategySpec,
    longest: int | None = None,
    p_min: float | None = None,
    length: LengthRule | None = None,
) -> StrategySpec:
    """The recorded spec with another longest draft, p_min or length rule, as far as its strategy has them."""
    part = check_what_if(recorded, recorded)
    changed: dict[str, object] = {}
    if longest is not None and part.length_key is not None:
        changed[part.length_key] = longest
        least = KINDS[part.name].least
        if least != part.length_key and getattr(part.params, least, 0) > longest:
            changed[least] = longest
    if p_min is not None and hasattr(part.params, "p_min"):
        changed["p_min"] = p_min
    part = replace(part, params=replace(part.params, **changed))
    rule = length if length is not None else recorded.length
    return replace(recorded, parts=(part,), length=rule)


class _Walk:
    """Walks through the recorded text with other settings."""

    def __init__(
        self, trace: Trace, before: StrategyPart, part: StrategyPart, spec: StrategySpec, cost: CostModel
    ) -> None:
        header = trace.header
        self.text = trace.token_ids
        self._part, self._spec, self._cost, self._header = part, spec, cost, header
        self._p_min = getattr(part.params, "p_min", 0.0)
        self._n_min = part.shortest if KINDS[part.name].least == "n_min" else 0
        # A draft that ended by the recorded p_min ends there under every higher one.
        self._stricter = self._p_min >= getattr(before.params, "p_min", 0.0)
        self._places: list[_DraftPlace | None] = [None] * len(self.text)
        for round in trace.rounds:
            for at, place in _places(round):
                self._places[at] = place
        known = [place for place in self._places if place is not None]
        following = [
            place
            for last, place in pairwise(self._places)
            if last is not None and last.agrees and place is not None
        ]
        self._pool = following or known
        self._below = getattr(before.params, "p_min", 0.0)

    def through(self, chance: random.Random) -> _Counts:
        """One walk, in which `chance` fills the open places."""
        counts = _Counts()
        length = make_length(self._spec.length, self._spec.ewma)
        length.begin(self._outset())
        at = 0
        while at < len(self.text):
            room = min(self._header.max_tokens - at - 1, self._header.pair.target.n_ctx - self._context(at))
            asked = self._asked(length, room)
            drafted, accepted = self._draft(at, min(asked or 0, room), chance, counts)
            emitted = min(accepted + 1, len(self.text) - at)
            accepted = min(accepted, emitted)
            counts.rounds += 1
            counts.accepted += accepted
            counts.lengths[drafted] += 1
            if asked is not None:
                length.observe(self._round_cost(asked, drafted, accepted, self.text[at : at + emitted]))
            at += emitted
        return counts

    def _context(self, at: int) -> int:
        return self._header.prompt_tokens + at

    def _asked(self, length: DraftLength, room: int) -> int | None:
        """The tokens that the strategy is asked for; None if the rule is not asked."""
        if room <= 0 or length.sit_out():
            return None
        return min(length.choose(self._part.name, room, lambda: 0), self._part.longest)

    def _draft(self, at: int, limit: int, chance: random.Random, counts: _Counts) -> tuple[int, int]:
        """The tokens drafted at a place of the text, and how many of them agree with it."""
        drafted = accepted = 0
        while drafted < limit:
            if at + drafted >= len(self.text):  # behind the end of the answer
                counts.open_tails += 1
                drafted = limit
                break
            place = self._places[at + drafted]
            if place is None or (place is _UNSURE_PLACE and not self._stricter):
                counts.open_places += 1
                place = self._filled(place, chance)
            if place is _UNSURE_PLACE or place.p < self._p_min:
                break
            drafted += 1
            if not place.agrees:
                drafted = self._behind(place, drafted, limit, counts)
                break
            accepted += 1
            if place.ends:
                break
        return (drafted, accepted) if drafted >= self._n_min else (0, 0)

    def _filled(self, place: _DraftPlace | None, chance: random.Random) -> _DraftPlace:
        """A place that may stand in for an open one."""
        if place is None:
            place = chance.choice(self._pool) if self._pool else _UNSURE_PLACE
        if place is _UNSURE_PLACE and not self._stricter:
            p = chance.uniform(0, self._below)
            place = _DraftPlace(chance.random() < p, p)
        return place

    def _behind(self, place: _DraftPlace, drafted: int, limit: int, counts: _Counts) -> int:
        """The tokens drafted in all, where the token at `place` was rejected as number `drafted`."""
        for p in place.tail:
            if drafted == limit or p < self._p_min:
                return drafted
            drafted += 1
        known = place.tail_end == _ENDED or (place.tail_end == _UNSURE and self._stricter)
        if drafted < limit and not known:
            counts.open_tails += 1
            return limit
        return drafted

    def _outset(self) -> Outset:
        part, pair = self._part, self._header.pair
        relative = pair.draft.size / pair.target.size if pair.draft and KINDS[part.name].needs_draft else 0.0
        limits = StrategyLimits(part.name, part.shortest, part.longest, relative)
        return Outset([limits], self._header.max_tokens)

    def _round_cost(self, asked: int, drafted: int, accepted: int, emitted: Sequence[int]) -> RoundCost:
        """The round as its length rule sees it, with the times of the cost model."""
        single = self._cost.single_pass or 0.0
        draft = drafted * (self._cost.c or 0.0) * single
        target = (self._cost.v(drafted) or 1.0) * single
        attempt = Attempt(self._part.name, asked, (0,) * drafted, seconds=draft)
        return RoundCost([attempt] if asked else [], accepted, emitted, draft, target)


def _places(round: Round) -> Iterator[tuple[int, _DraftPlace]]:
    """What a round tells about the places of the text, by their index in the answer."""
    last = len(round.drafted) - 1
    for at, token in enumerate(round.drafted):
        if token.verdict is Verdict.IGNORED:
            return
        agrees = token.verdict is Verdict.ACCEPTED
        ends = at == last and round.draft_end == _ENDED
        if agrees:
            yield round.position + at, _DraftPlace(True, _p(token), ends)
        else:
            tail = tuple(_p(behind) for behind in round.drafted[at + 1 :])
            end = round.draft_end if round.draft_end in (_ENDED, _UNSURE) else None
            yield round.position + at, _DraftPlace(False, _p(token), ends, tail, end)
            return
    behind = round.position + len(round.drafted)
    if round.draft_end == _UNSURE and len(round.emitted) > len(round.drafted):
        yield behind, _UNSURE_PLACE


def _p(token: DraftedToken) -> float:
    return token.draft_p if token.draft_p is not None else 1.0


def _factor(tokens: int, lengths: Counter[int], cost: CostModel) -> float | None:
    """Tokens / the time of rounds of these draft lengths, in target passes over one token."""
    taken = 0.0
    for k, rounds in lengths.items():
        v = cost.v(k)
        if v is None or (k and cost.c is None):
            return None
        taken += rounds * (v + k * (cost.c or 0.0))
    return tokens / taken if taken else None


def _reasons(
    trace: Trace, spec: StrategySpec, part: StrategyPart, fillings: Sequence[_Counts]
) -> tuple[str, ...]:
    """Why the counts are an estimate."""
    reasons = []
    if trace.header.verification in (Verification.SPECULATIVE, Verification.BLOCK):
        reasons.append("At this temperature other drafts make other draws, and so another text.")
    if part.name != "draft-simple":
        reasons.append("What would be drafted elsewhere was not recorded: the recorded drafts go on.")
    elif part.params.sample and trace.header.sampling.temperature > 0:
        reasons.append("The draft draws its tokens too: begun elsewhere, it would draw others.")
    if spec.length is LengthRule.AUTO:
        reasons.append("length=auto decides by the clock: recorded times take its place.")
    elif spec.length is LengthRule.EWMA and not trace.header.cold:
        reasons.append("The answer was warm: what the length rule knew before it is not recorded.")
    if trace.totals is None or trace.totals.finish_reason in (FinishReason.CANCELLED, FinishReason.FAILED):
        reasons.append("The answer was broken off: its last round is not whole.")
    n = len(fillings)
    if places := sum(counts.open_places for counts in fillings) / n:
        reasons.append(f"At {_about(places, 'place')} no draft was recorded: other recorded places stand in.")
    if not reasons and (tails := sum(counts.open_tails for counts in fillings) / n):
        # Of a single filling: whatever is drafted behind a rejected token, none of it is accepted.
        reasons.append(
            f"Rounds and accepted are exact. {_about(tails, 'draft')} would go on behind a rejected token "
            "for longer than recorded: drafted assumes that none of them ends early."
        )
    return tuple(reasons)


def _about(number: float, noun: str) -> str:
    whole = max(1, round(number))
    return f"{whole:,} {noun}{'s' * (whole != 1)}"
