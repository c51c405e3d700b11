"""length=auto: drafts the number of tokens, possibly 0, that gives most tokens per second.

The rate of a draft of k tokens is E(k) / (v(k) + k c): the expected tokens over the measured times. A ledger
limits the net cost of drafting to a small share of the answer. It counts wrong guesses, probes and a costly
reading of the prompt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.engine.lengths import base
from app.engine.lengths.cost_curve import TargetCost
from app.engine.lengths.known import REASON, AutoFold, Ledger, LengthFacts
from app.engine.process.messages import DOUBTFUL

if TYPE_CHECKING:
    from app.engine.types import TokenIds

_PLAIN_FIRST = 2  # passes without a draft, measured before the first draft for comparison
_HOPE = 0.6  # share of the expected tokens that is counted when a loss is estimated,
_DOUBT = 8.0  # and how many judged tokens it takes until half of that is: a guess is no gain
_MARGIN = 1.03  # gain that a draft must promise, relative to drafting nothing
_CAUTION = 1.25  # factor on the time predicted by size for a draft model's reading, until it is measured
_WORTH_A_TRIAL = 1.05  # gain that a trial must promise in the best case
_OPTIMISM = 0.9  # acceptance that a probe hopes for
_REFRESH = 0.004  # share of the time for passes without a draft while drafting pays
_RECHECK = 8  # tokens until the next pass without a draft is due; doubled with every such pass
_CLEAR = 1.25  # a gain that holds even if the first passes without a draft took a quarter too long
_PLANS_HOLD = 8  # tokens for which a plan holds while nothing is drafted
_LONGEST_REST = 48  # tokens until a strategy that does not pay is considered again, late in an answer
_FIRST = 3  # most tokens of the first draft: what passes over drafts take is not known
_OVERDRAWN = -1.0  # what the ledger may have left, in single-token passes, where seen drafts promise a gain
_UNUSUAL = 2.0  # a time longer than this many usual ones is blamed on the machine
_THOUGHT = 0.2  # most of a single-token pass that choosing a length takes, or learning a token
_UNTIMED = 1e-5  # seconds per token that strategies and rule take outside the measured times,
_UNTIMED_MOST = 0.012  # of a single-token pass: drafts must remain affordable
_PAST_THE_BEST = 0.9  # a length with less than this share of the best rate ends the search
_LOOKED_AT = 8  # tokens of a proposal that is compared, not verified
_LEAST = 0.2  # single-token passes that a draft costs at least: none is considered before that may be lost
_CHOOSING = 0.005  # most of the time that is spent on choosing to draft nothing
_LOOK = 0.003  # share of the time for comparing what a draftless strategy would propose
MEASURES = "to time a plain pass"
"""Why nothing is drafted in a round in which no length is considered."""


@dataclass(frozen=True, slots=True)
class _Plan:
    k: int
    factor: float  # predicted, relative to drafting nothing


class AutoLength(base.DraftLength):
    """The cost-aware rule. Learned times and acceptance are kept in a warm engine."""

    lazy = True
    reason = REASON

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._target = TargetCost()
        self._strategies: dict[str, LengthFacts] = {}
        self._order: list[LengthFacts] = []
        self._plans: dict[str, _Plan] = {}
        self._plain_at = 0  # where a plain pass was measured last
        self._plans_until = 0
        self._place = 0  # tokens written since a cold start

    def begin(self, outset: base.Outset) -> None:
        self._order = []
        for limits in outset.strategies:
            known = self._strategies.setdefault(limits.name, LengthFacts(limits))
            known.begin(limits)
            self._order.append(known)
        self._prompt_token, passes = 0.0, outset.passes
        if passes is not None and passes.doubt < DOUBTFUL:
            self._target.know(passes.target)
            for facts in self._order if passes.draft else ():
                facts.token_share = passes.draft / passes.target[1]
        if outset.prompt_tokens >= 4:
            self._prompt_token = outset.prompt_seconds / outset.prompt_tokens
            self._target.add_prompt(outset.prompt_tokens, outset.prompt_seconds)
        self._began_at = self._observed_at = self._place
        self._rounds_of_rest = self._read = 0
        # A pass takes longer if its shape differs from the previous pass: v(0) is learned from consecutive
        # plain passes.
        self._drafted_last = True
        heads = [facts for facts in self._order if facts.limits.is_head]
        for facts in heads if outset.head_token else ():
            facts.read_seconds.add(outset.head_token)
        self._ledger = Ledger(outset.max_tokens, self._target.known, for_reading=not heads)
        for facts in self._order if self._target.known and not heads else ():
            facts.affords_at = self._place + self._ledger.tokens_for(_LEAST)
        self._plans = {}

    # --- what things are expected to cost, in seconds

    def _drafting(self, facts: LengthFacts, k: int) -> float:
        if facts.drafting.knows_drafts:
            return facts.drafting.seconds(k)
        share = facts.limits.relative_size and (facts.token_share or facts.limits.relative_size)
        return k * share * self._target.seconds(0)

    def _reading(self, facts: LengthFacts, unread: int) -> float:
        """The time for `unread` tokens that the draft model must read first; the first few are read with the
        draft."""
        if unread <= base.RIDE_ALONG:
            return 0.0
        if len(facts.read_seconds):
            return unread * facts.read_seconds.value
        token = self._prompt_token or self._target.seconds(0)
        return _CAUTION * unread * token * facts.limits.relative_size

    def _excess(self, facts: LengthFacts, k: int, unread: int, expected: float) -> float:
        """By how much a round's loss, in single-token passes, exceeds what is allowed. `expected` is the
        number of tokens that the round should emit. If costs are known, the loss is that of a draft rejected
        at once, because the answer may end there. Else it is between that and the expected loss, with more
        caution for the whole answer: then a shorter draft pays too."""
        single, feared, known = self._target.seconds(0), self._target.feared(k), self._target.known
        verifying = min(feared, self._target.undisturbed(k)) if facts.probing and not known else feared
        reading = self._reading(facts, unread)
        others = self._drafting(facts, k) + reading - single
        spent, at_worst = (verifying + others) / single, (feared + others) / single
        hoped, seen = _HOPE * (expected - 1), 0.0 if known else facts.acceptance.seen
        left = self._ledger.left(self._place - self._began_at, reading / single)
        late = hoped * seen / (seen + 2 * _DOUBT)
        return max(spent - hoped * seen / (seen + _DOUBT) - left, at_worst - late - self._ledger.left_in_all)

    # --- planning

    def _planned(self, room: int) -> dict[str, _Plan]:
        """The best length for every strategy; if a strategy has no proposal, the next is asked."""
        if self._plans and self._place < self._plans_until:
            return self._plans
        self._plans_until = self._place + _PLANS_HOLD
        self._plans = {}
        single = self._target.seconds(0)
        tokens, seconds = 1.0, single
        for facts in reversed(self._order):
            facts.age(self._place)
            best = _Plan(0, 1.0)
            rest_rate = best_rate = tokens / seconds
            hit = facts.acceptance.hit_rate
            in_vain = self._drafting(facts, 1)
            after = tokens, seconds
            most = min(facts.limits.longest, room)
            for prospect in facts.acceptance.prospects(self._compared(facts.limits.shortest, most)):
                cost = self._round_seconds(facts, prospect.drafted, self._target.seconds)
                mixed = (
                    hit * prospect.tokens + (1 - hit) * tokens,
                    hit * cost + (1 - hit) * (seconds + in_vain),
                )
                rate = mixed[0] / mixed[1]
                if rate > best_rate * (1 if best.k else _MARGIN):
                    best_rate = rate
                    best = _Plan(prospect.k, rate / rest_rate)
                    after = mixed
                elif best.k and rate < _PAST_THE_BEST * best_rate and not self._target.known:
                    break
            tokens, seconds = after
            self._plans[facts.limits.name] = best
        return self._plans

    def _compared(self, shortest: int, most: int) -> Sequence[int]:
        """The lengths that are looked at: of known curves the timed ones and a few more. All of these are, as
        kernels compute in tiles: a longer draft may cost less."""
        every = range(max(1, shortest), most + 1)
        if not self._target.known:
            return every
        return [k for k in every if k == most or self._target.is_timed(k)]

    def _round_seconds(self, facts: LengthFacts, drafted: float, verifying: Callable[[int], float]) -> float:
        """The mean time of a round with `drafted` tokens."""
        low = int(drafted)
        seconds = verifying(low) + self._drafting(facts, low)
        if drafted > low:
            more = verifying(low + 1) + self._drafting(facts, low + 1)
            seconds += (drafted - low) * (more - seconds)
        return seconds

    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        if len(self._target) < _PLAIN_FIRST:
            self.rest_reason = MEASURES
            return 0
        self.rest_reason = base.DraftLength.rest_reason
        facts = self._strategies[name]
        facts.probing = False
        if self._place < max(facts.rests_until, facts.affords_at):
            return 0
        if self._ledger.left(self._place - self._began_at) <= _OVERDRAWN:
            facts.rests_until = self._place + self._rest(facts)
            return 0
        if self._place < facts.chosen_until and self._ledger.loss <= facts.chosen_to and facts.chosen <= room:
            return self._at_most(facts, facts.chosen, room)
        plan = self._planned(room)[name]
        if plan.k:
            if self._refreshes(plan):
                self.rest_reason = MEASURES
                return 0
            behind = unread()
            k = self._affordable(facts, min(plan.k, room), behind)
            reading = self._reading(facts, behind) / self._target.seconds(0)
            if k and reading < (1 - 1 / plan.factor) * min(room, 256):
                if not facts.limits.relative_size:  # it may find nothing, and be asked again at once
                    facts.chosen, facts.chosen_until = k, self._plans_until
                return self._at_most(facts, k, room)
            facts.rests_until = self._place + self._rest(facts)
            return 0
        return self._probe(facts, room, unread)

    def _affordable(self, facts: LengthFacts, k: int, unread: int) -> int:
        """The longest draft of at most k tokens whose loss is allowed; 0 if there is none."""
        if not self._target.knows_drafts:
            k = min(k, max(_FIRST, facts.limits.shortest))
        prospects = [*facts.acceptance.prospects(range(max(1, facts.limits.shortest), k + 1))]
        while prospects:
            longest, _, tokens = prospects.pop()
            excess = self._excess(facts, longest, unread, tokens)
            if excess <= 0 and self._may_pay(facts, longest):
                facts.chosen_to = self._ledger.loss - excess
                return longest
        if self._target.known and not facts.limits.is_head:
            facts.affords_at = self._place + self._wait(facts, unread)
        return 0

    def _wait(self, facts: LengthFacts, unread: int) -> int:
        """The tokens until a draft can be afforded, at most the longest rest. To consider one takes up to a
        tenth of a pass."""
        shortest = max(1, facts.limits.shortest)
        for k in range(shortest, min(shortest + _LOOKED_AT, facts.limits.longest + 1)):
            if self._may_pay(facts, k):
                excess = self._excess(facts, k, unread, facts.acceptance.expected(k))
                return min(self._ledger.tokens_for(excess), _LONGEST_REST)
        return _LONGEST_REST

    def _may_pay(self, facts: LengthFacts, k: int) -> bool:
        """Whether a draft of k tokens gains if all of it is accepted, as far as costs are known."""
        taken = self._target.seconds(k) + self._drafting(facts, k)
        return not self._target.is_sure(k) or taken < (k + 1) * self._target.seconds(0)

    def _at_most(self, facts: LengthFacts, k: int, room: int) -> int:
        return room if k >= facts.limits.longest else min(k, room)

    def _refreshes(self, plan: _Plan) -> bool:
        """Whether a round without a draft is due, to keep the time for k = 0 up to date."""
        seldom = min(max((plan.factor - 1) / _REFRESH, 24), 400)
        if plan.factor < _CLEAR:
            seldom = min(_RECHECK << len(self._target), seldom)
        return self._place - self._plain_at > seldom

    def _probe(self, facts: LengthFacts, room: int, unread: Callable[[], int]) -> int:
        """The length of a trial if one is due, may pay and is affordable; else 0."""
        if self._place < facts.trial_due:
            facts.rests_until = min(facts.trial_due, self._place + self._rest(facts))
            return 0
        single = self._target.seconds(0)
        hopes = []
        lengths = self._compared(1, min(facts.limits.longest, room))
        for prospect in facts.acceptance.prospects(lengths, _OPTIMISM):
            seconds = self._round_seconds(facts, prospect.drafted, self._target.undisturbed)
            hopes.append((prospect.tokens * single / seconds, prospect.k))
        factor, k = max(hopes)
        if factor >= _WORTH_A_TRIAL:
            least = min(k, max(facts.trial, facts.limits.shortest))
            k = next((at for at in range(least, k) if self._may_pay(facts, at)), k)
            facts.probing = True
            if k := self._affordable(facts, k, unread()):
                return self._at_most(facts, k, room)
        facts.rests_until = self._place + self._rest(facts)
        return 0

    def look(self, name: str, room: int) -> int:
        facts = self._strategies[name]
        if facts.limits.relative_size or facts.watched is not None or len(self._target) < 1:
            return 0
        if self._place < self._looks_at(facts):
            return 0
        return min(max(_LOOKED_AT, facts.limits.shortest), facts.limits.longest, room)

    def _rest(self, facts: LengthFacts) -> int:
        """The tokens until a strategy is considered again, which for a small target costs noticeable time."""
        return min(max((self._place - self._began_at) // 4, facts.shortest_wait), _LONGEST_REST)

    def sit_out(self, truth: TokenIds) -> bool:
        if self._rounds_of_rest:
            self._rounds_of_rest -= 1
            self._place += 1
            return True
        for facts in self._order:
            if facts.watched is not None:
                facts.watch(truth[self._read :], self._place)
        self._read = len(truth)
        return False

    def _wakes_at(self, facts: LengthFacts) -> int:
        """The place before which the strategy need not be asked."""
        rests_until = max(facts.rests_until, facts.affords_at)
        if facts.limits.relative_size:
            return rests_until
        ends = facts.looked_at + len(facts.watched.ids) - 1 if facts.watched else self._looks_at(facts)
        return min(rests_until, ends)

    def _looks_at(self, facts: LengthFacts) -> int:
        """The place of the strategy's next proposal for comparison."""
        return facts.looked_at + math.ceil(facts.look_seconds / (self._target.seconds(0) * _LOOK))

    # --- learning

    def observe(self, cost: base.RoundCost) -> None:
        self._place += len(cost.emitted)
        verified = self._observe_attempts(cost) if cost.attempts else 0
        if not cost.attempts:
            self._observe_target(cost, 0, 0.0)
        left = self._ledger.left(self._place - self._began_at)
        for facts in self._order if self._target.known and left < _LEAST else ():
            if not facts.limits.is_head:
                facts.affords_at = max(facts.affords_at, self._place + self._ledger.tokens_for(_LEAST - left))
        if not verified and len(self._target):
            rest = min(map(self._wakes_at, self._order)) - self._place
            if all(attempt.looked for attempt in cost.attempts):
                choosing = min(cost.draft_seconds / self._target.seconds(0), _THOUGHT)
                rest = max(rest, math.ceil(choosing / _CHOOSING))
            self._rounds_of_rest = max(0, rest)

    def _observe_attempts(self, cost: base.RoundCost) -> int:
        """Learn from the strategies that were asked; returns the tokens that were verified."""
        verified, usual = 0, 0.0
        for attempt in cost.attempts:
            facts = self._strategies[attempt.name]
            if len(self._target):
                usual += self._drafting(facts, max(1, len(attempt.ids))) + self._reading(
                    facts, attempt.unread
                )
            if attempt.looked:
                facts.look(attempt, self._place, cost.draft_seconds)
            else:
                verified = len(attempt.ids)
                if verified:
                    self._plans = {}
                for each in self._order:
                    each.affords_at = 0
                    each.chosen_until = 0 if verified else each.chosen_until
                facts.learn(attempt, cost.accepted if verified else 0, self._place)
        self._observe_target(cost, verified, usual)
        return verified

    def _observe_target(self, cost: base.RoundCost, verified: int, drafting: float) -> None:
        """Learn the time of the pass, and update the ledger; `drafting` is the expected time of the
        drafts."""
        seconds, switched = cost.target_seconds, self._drafted_last and not verified
        most = _UNUSUAL * self._target.feared(verified) if len(self._target) else math.inf
        self._drafted_last = verified > 0
        if not switched:
            self._target.add(verified, seconds)
        if not verified and not switched:
            self._plain_at = self._place
        if not len(self._target):
            return
        single = self._target.seconds(0)
        drafting = min(cost.draft_seconds, _UNUSUAL * drafting + _THOUGHT * single)
        since, self._observed_at = self._place - self._observed_at, self._place
        if self._target.known:  # else the allowance is too small for it: late drafts would never begin
            untimed = since * min(_UNTIMED, _UNTIMED_MOST * single)
            drafting += min(cost.upkeep_seconds + untimed, _THOUGHT * single * since)
        if verified or switched:
            reading = sum(attempt.read_seconds for attempt in cost.attempts) / single
            self._ledger.add((min(seconds, most) + drafting) / single - len(cost.emitted), reading)
        else:  # the draft is not blamed for a slow pass
            self._ledger.add(drafting / single)


class Auto(base.LengthRule):
    """length=auto."""

    name = "auto"
    summary = (
        "The length with the highest predicted tokens/s, from the measured cost of drafts and passes. If no "
        "draft pays, nothing is drafted."
    )
    by_clock = True

    def make(self) -> base.DraftLength:
        return AutoLength()

    def fold(self, strategies: Sequence[base.StrategyLimits]) -> base.LengthFold | None:
        return AutoFold(strategies)
