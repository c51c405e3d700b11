"""length=auto: drafts as many tokens as make most tokens a second, none included.

The rate of a draft of k tokens is E(k) / (v(k) + k c): what running acceptance lets expect over what the
passes were measured to take. What drafting has cost and not brought back is kept in a ledger and may never
exceed a small share of the answer: a wrong guess, a probe, a costly reading of the prompt cannot lose more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.engine.lengths.acceptance import Acceptance
from app.engine.lengths.base import Attempt, DraftLength, Outset, RoundCost, StrategyLimits
from app.engine.lengths.target_cost import TargetCost, UsualTime

_PLAIN_FIRST = 2  # rounds without a draft before the first one: what drafts are measured against
_CREDIT = 4.0  # single-token passes that may be lost from the start
_CREDIT_SHARE = 0.016  # of the tokens wanted, where the answer is short
_SHARE = 0.005  # of the passes so far that may be lost besides,
_LATER_SHARE = 0.025  # and of those behind the first `_EARLY`, of which the credit is a smaller part
_EARLY = 256
_EARNED = 8.0  # passes that were won count no further than this against later losses
_HOPE = 0.6  # share of the expected tokens that is counted on when a loss is weighed
_MARGIN = 1.01  # what a draft must promise, relative to drafting nothing
_CAUTION = 1.25  # times what its size lets expect of a model's reading that was not measured yet
_WORTH_A_TRIAL = 1.05  # what a trial must promise in the best case
_OPTIMISM = 0.9  # acceptance that a probe hopes for
_PROBE = 2  # tokens of a probe
_WAIT = (8, 128)  # tokens between two probes: at first, and after many that failed
_REFRESH = 0.004  # share of the time for passes without a draft where drafting pays
_RIDES_ALONG = 8  # unread tokens that are read together with the first drafted one
_RECHECK = 4  # doubled with every pass without a draft: tokens after which the next one is due
_PLANS_HOLD = 8  # tokens that a plan is good for while nothing is drafted
_PAST_THE_BEST = 0.9  # a length that promises less than this of the best shorter one ends the search
_LOOKED_AT = 8  # tokens of a proposal that is only looked at
_MEASURES = "to measure a pass without a draft"
_LOOK = 0.003  # share of the time for looking at what a strategy without a model would propose


@dataclass(slots=True)
class _Strategy:
    """What was learned about one strategy."""

    limits: StrategyLimits
    acceptance: Acceptance = field(default_factory=Acceptance)
    token_seconds: UsualTime = field(default_factory=UsualTime)  # of one drafted token
    read_seconds: UsualTime = field(default_factory=UsualTime)  # of one token that its model reads
    probing: bool = False  # the draft under way is only a trial
    trial: int = _PROBE  # tokens of the next one
    wait: int = _WAIT[0]  # tokens to be written before it
    patience: int = _WAIT[0]  # the same after one that fails
    pause: int = 0  # tokens of rest before which it is not worth looking at its prospects again
    rested: int = 0  # tokens written since it was last asked
    looked: int = 0  # tokens written since it was last looked at
    look_seconds: float = 0.0
    watched: Attempt | None = None  # a proposal that is compared with what the target writes
    agreed: int = 0  # how far it went


@dataclass(frozen=True, slots=True)
class _Plan:
    k: int
    factor: float  # promised, relative to drafting nothing


class AutoLength(DraftLength):
    """The cost-aware rule. What was learned of times and acceptance lives on in a warm engine."""

    lazy = True
    reason = "longer does not pay"

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._target = TargetCost()
        self._strategies: dict[str, _Strategy] = {}
        self._order: list[_Strategy] = []
        self._plans: dict[str, _Plan] = {}
        self._since_plain = 0
        self._planned_for = 0

    def begin(self, outset: Outset) -> None:
        self._order = []
        for limits in outset.strategies:
            known = self._strategies.setdefault(limits.name, _Strategy(limits))
            known.limits = limits
            known.watched = None
            known.pause = 0
            self._order.append(known)
        self._prompt_token = 0.0
        if outset.prompt_tokens >= 4:
            self._prompt_token = outset.prompt_seconds / outset.prompt_tokens
            self._target.add_prompt(outset.prompt_tokens, outset.prompt_seconds)
        self._left = outset.max_tokens
        self._written = 0
        self._loss = 0.0  # single-token passes
        self._credit = min(_CREDIT, _CREDIT_SHARE * outset.max_tokens)
        self._plans = {}

    # --- what things are expected to cost, in seconds

    def _token_seconds(self, one: _Strategy) -> float:
        if len(one.token_seconds):
            return one.token_seconds.value
        return one.limits.relative_size * self._target.seconds(0)

    def _reading(self, one: _Strategy, unread: int) -> float:
        """Of `unread` tokens that its model has to read first; the first few ride along with the draft."""
        if unread <= _RIDES_ALONG:
            return 0.0
        if len(one.read_seconds):
            return unread * one.read_seconds.value
        token = self._prompt_token or self._target.seconds(0)
        return _CAUTION * unread * token * one.limits.relative_size

    def _price(self, one: _Strategy, k: int, unread: int) -> float:
        """What a round is feared to lose, in single-token passes: between what it loses where its draft is
        rejected at once, and what it is expected to lose."""
        single = self._target.seconds(0)
        spent = self._target.feared(k) - single + k * self._token_seconds(one) + self._reading(one, unread)
        return spent / single - _HOPE * (one.acceptance.expected(k) - 1)

    # --- planning

    def _planned(self, room: int) -> dict[str, _Plan]:
        """The best length for every strategy; where it has no proposal, those behind it are asked."""
        if self._plans:
            return self._plans
        self._planned_for = _PLANS_HOLD
        single = self._target.seconds(0)
        tokens, seconds = 1.0, single
        for one in reversed(self._order):
            best = _Plan(0, 1.0)
            rest_rate = best_rate = tokens / seconds
            hit = one.acceptance.hit_rate
            token_seconds = self._token_seconds(one)
            after = tokens, seconds
            for prospect in one.acceptance.prospects(min(one.limits.longest, room)):
                if prospect.k < one.limits.shortest:
                    continue
                cost = self._round_seconds(one, prospect.drafted)
                mixed = (
                    hit * prospect.tokens + (1 - hit) * tokens,
                    hit * cost + (1 - hit) * (seconds + token_seconds),
                )
                rate = mixed[0] / mixed[1]
                if rate > best_rate * (1 if best.k else _MARGIN):
                    best_rate = rate
                    best = _Plan(prospect.k, rate / rest_rate)
                    after = mixed
                elif best.k and rate < _PAST_THE_BEST * best_rate:
                    break
            tokens, seconds = after
            self._plans[one.limits.name] = best
        return self._plans

    def _round_seconds(self, one: _Strategy, drafted: float) -> float:
        """Of a round with so many drafted tokens, on average."""
        low = int(drafted)
        seconds = self._target.seconds(low)
        if drafted > low:
            seconds += (drafted - low) * (self._target.seconds(low + 1) - seconds)
        return seconds + drafted * self._token_seconds(one)

    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        if len(self._target) < _PLAIN_FIRST:
            self.rest_reason = _MEASURES
            return 0
        self.rest_reason = DraftLength.rest_reason
        one = self._strategies[name]
        one.probing = False
        if one.rested < one.pause:
            return 0
        plan = self._planned(room)[name]
        later = max(0, self._written - _EARLY)
        left = self._credit + _SHARE * (self._written - later) + _LATER_SHARE * later - self._loss
        if plan.k:
            if self._refreshes(plan):
                self.rest_reason = _MEASURES
                return 0
            behind = unread()
            k = self._affordable(one, plan.k, behind, left)
            reading = self._reading(one, behind) / self._target.seconds(0)
            if k and reading < (1 - 1 / plan.factor) * min(room, 256):
                return self._at_most(one, k, room)
            one.pause = one.rested + _PLANS_HOLD
            return 0
        return self._probe(one, room, unread, left)

    def _affordable(self, one: _Strategy, k: int, unread: int, left: float) -> int:
        """The longest draft of at most k tokens whose price is at most `left`; 0 where there is none."""
        while k >= one.limits.shortest and self._price(one, k, unread) > left:
            k -= 1
        return k if k >= one.limits.shortest else 0

    def _at_most(self, one: _Strategy, k: int, room: int) -> int:
        return room if k >= one.limits.longest else min(k, room)

    def _refreshes(self, plan: _Plan) -> bool:
        """Whether a round without a draft is due: k = 0 must be known as well as the others."""
        seldom = min(max((plan.factor - 1) / _REFRESH, 24), 400)
        known = len(self._target)
        return self._since_plain > min(_RECHECK << known, seldom)

    def _probe(self, one: _Strategy, room: int, unread: Callable[[], int], left: float) -> int:
        """Tokens of a trial, where one is due, could pay and can be afforded."""
        if one.rested < one.wait:
            return 0
        single = self._target.seconds(0)
        hopes = [
            (prospect.tokens * single / self._round_seconds(one, prospect.drafted), prospect.k)
            for prospect in one.acceptance.prospects(min(one.limits.longest, room), _OPTIMISM)
        ]
        factor, k = max(hopes)
        if factor >= _WORTH_A_TRIAL:
            k = min(k, max(one.trial, one.limits.shortest))
            if k := self._affordable(one, k, unread(), left):
                one.probing = True
                return self._at_most(one, k, room)
        one.pause = one.rested + _PLANS_HOLD
        return 0

    def look(self, name: str, room: int) -> int:
        one = self._strategies[name]
        if one.limits.relative_size or one.watched is not None or len(self._target) < 1:
            return 0
        if one.looked * self._target.seconds(0) * _LOOK < one.look_seconds:
            return 0
        return min(max(_LOOKED_AT, one.limits.shortest), one.limits.longest, room)

    # --- learning

    def observe(self, cost: RoundCost) -> None:
        count = len(cost.emitted)
        self._planned_for -= count
        if cost.attempts or self._planned_for <= 0:
            self._plans = {}
        spent, verified = cost.seconds, 0
        for attempt in cost.attempts:
            one = self._strategies[attempt.name]
            spent -= attempt.seconds + attempt.read_seconds
            if attempt.looked:
                self._start_watching(one, attempt)
            else:
                verified = len(attempt.ids)
                self._learn(one, attempt, cost.accepted if verified else 0)
        self._target.add(verified, spent)
        if cost.attempts:
            loss = cost.seconds / self._target.seconds(0) - count
            self._loss = max(self._loss + loss, -_EARNED)
        for one in self._order:
            self._watch(one, cost.emitted)
            one.acceptance.age(count)
            one.rested += count
            one.looked += count
        self._written += count
        self._since_plain = self._since_plain + count if verified else 0

    def _learn(self, one: _Strategy, attempt: Attempt, accepted: int) -> None:
        """From a draft that was verified, or that came to nothing."""
        proposed = len(attempt.ids)
        if attempt.unread > _RIDES_ALONG:
            one.read_seconds.add(attempt.read_seconds / attempt.unread)
        one.token_seconds.add(attempt.seconds / max(1, proposed))
        one.acceptance.add(min(attempt.asked, one.limits.longest), proposed, accepted)
        one.watched = None
        one.rested = one.pause = 0
        if one.probing and proposed:
            self._judge_trial(one, accepted == proposed)

    def _judge_trial(self, one: _Strategy, passed: bool) -> None:
        if passed:
            one.trial, one.wait, one.patience = min(2 * one.trial, one.limits.longest), 0, _WAIT[0]
        else:
            one.trial, one.wait = _PROBE, one.patience
            one.patience = min(2 * one.patience, _WAIT[1])

    def _start_watching(self, one: _Strategy, attempt: Attempt) -> None:
        one.look_seconds, one.looked = attempt.seconds, 0
        one.watched, one.agreed = attempt if attempt.ids else None, 0
        if not attempt.ids:
            one.acceptance.add(attempt.asked, 0, 0)

    def _watch(self, one: _Strategy, written: Sequence[int]) -> None:
        """Compare what was proposed without being verified with what the target wrote."""
        if one.watched is None:
            return
        ids = one.watched.ids
        for token in written:
            agrees = token == ids[one.agreed]
            one.agreed += agrees
            if not agrees or one.agreed == len(ids):
                one.acceptance.add(one.watched.asked, len(ids), one.agreed)
                one.watched = None
                return
