"""What length=auto knows: a strategy's acceptance and times, its next trial, and how much drafting may still
cost. Also its acceptance, computed from recorded rounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from app.engine.lengths.base import RIDE_ALONG, Attempt, LengthAt, LengthFold, StrategyLimits, ended_by
from app.engine.lengths.cost_curve import DraftCost, UsualTime

if TYPE_CHECKING:
    from app.engine.types import Round

REASON = "longer does not pay"
"""Why a draft ended at the length that length=auto chose."""

_POSITIONS = 24  # later positions count as the last of these
_FADE = 0.025  # share of the running counts lost with every written token
_LONG_FADE = 0.005  # the same for the counts over the longer past
_OLDEST = 20_000  # tokens after which nothing is left of either; many more would overflow the weights


class Prior(NamedTuple):
    """The acceptance before anything was judged, and its weights in judged tokens."""

    guess: float
    against_long: float  # of the guess, against the long past
    against_running: float  # of the long past, against the running counts
    against_place: float  # of all positions together, against a single one
    of_drafts: float  # that there is a draft, in rounds


PRIOR = Prior(0.75, 2.0, 3.0, 4.0, 1.0)
HEAD_PRIOR = Prior(0.65, 8.0, 8.0, 8.0, 4.0)
"""Texts differ less for a head: one refused token, or a draft that was not sure enough, says little about the
next."""


class Prospect(NamedTuple):
    """The expected result of a round with a draft of at most k tokens."""

    k: int
    drafted: float  # tokens in the draft; fewer than k if it ends early
    tokens: float  # emitted


class Acceptance:
    """Discounted counts of judged drafts, by their position in the draft.

    Hierarchical shrinkage: the chance of a position (given that those before it passed) → of all positions →
    of a longer past → a guess. So new positions and first rounds have estimates too.
    """

    def __init__(self, prior: Prior = PRIOR) -> None:
        self._prior = prior
        self._judged = [0.0] * _POSITIONS
        self._passed = [0.0] * _POSITIONS
        self._all_judged = self._all_passed = 0.0
        self._long_judged = self._long_passed = 0.0
        self._asked = self._came = (
            0.0  # rounds in which it was asked, and rounds in which it proposed a draft
        )
        self._wanted = self._given = 0.0  # tokens asked for and given after the first token of a proposal
        # Counts are not aged: instead new ones get ever larger weights.
        self._weight = self._long_weight = 1.0

    def age(self, tokens: int) -> None:
        """Age the counts by `tokens` written tokens."""
        tokens = min(tokens, _OLDEST)
        self._weight *= (1 - _FADE) ** -tokens
        self._long_weight *= (1 - _LONG_FADE) ** -tokens
        if self._weight > 1e9:
            self._rescale()

    def _rescale(self) -> None:
        for counts in (self._judged, self._passed):
            counts[:] = [count / self._weight for count in counts]
        for name in ("_all_judged", "_all_passed", "_asked", "_came", "_wanted", "_given"):
            setattr(self, name, getattr(self, name) / self._weight)
        self._long_judged /= self._long_weight
        self._long_passed /= self._long_weight
        self._weight = self._long_weight = 1.0

    def add(self, asked: int, proposed: int, accepted: int) -> None:
        """Add a draft of at most `asked` tokens: `proposed` were drafted, `accepted` passed."""
        weight = self._weight
        self._asked += weight
        if not proposed:
            return
        self._came += weight
        self._wanted += weight * (min(asked, proposed + 1) - 1)
        self._given += weight * (proposed - 1)
        judged = min(accepted + 1, proposed)
        for place in range(min(judged, _POSITIONS)):
            self._judged[place] += weight
            if place < accepted:
                self._passed[place] += weight
        self._all_judged += weight * judged
        self._all_passed += weight * accepted
        self._long_judged += self._long_weight * judged
        self._long_passed += self._long_weight * accepted

    @property
    def hit_rate(self) -> float:
        """The share of rounds in which the strategy proposes a draft."""
        expected = self._weight * self._prior.of_drafts
        return (self._came + expected) / (self._asked + expected)

    @property
    def seen(self) -> float:
        """The number of tokens that were judged or compared; older ones count less."""
        return self._all_judged / self._weight

    @property
    def overall(self) -> float:
        """The chance that a drafted token passes whose predecessors passed, over all positions."""
        long = self._long_weight * self._prior.against_long
        general = (self._long_passed + long * self._prior.guess) / (self._long_judged + long)
        trust = self._weight * self._prior.against_running
        return (self._all_passed + trust * general) / (self._all_judged + trust)

    def expected(self, k: int) -> float:
        """The expected number of tokens emitted by a round with a draft of at most k tokens."""
        return next(self.prospects((k,))).tokens

    def prospects(self, lengths: Iterable[int], optimism: float = 0.0) -> Iterator[Prospect]:
        """Yield the prospects of these lengths, in ascending order, for rounds with a proposal.

        `optimism` is a lower bound for the chance that a position passes.
        """
        weight, overall = self._weight, self.overall
        goes_on = (self._given + weight) / (self._wanted + weight)
        drafted, there, tokens, reach = 0.0, 1.0, 1.0, 1.0
        trust = weight * self._prior.against_place
        last, shorter = _POSITIONS - 1, 0
        for k in lengths:
            for place in range(shorter, k):
                counted = min(place, last)
                chance = (self._passed[counted] + trust * overall) / (self._judged[counted] + trust)
                drafted += there
                reach *= max(chance, optimism) * (goes_on if place else 1.0)
                tokens += reach
                there *= goes_on
            shorter = k
            yield Prospect(k, drafted, tokens)


_CREDIT = 4.5  # single-token passes that may be lost from the start
_CREDIT_SHARE = 0.0176  # share of the tokens wanted, if the answer is short
_HEAD_CREDIT = 2.0  # the same for a head
_SHARE = 0.008  # share of the passes so far that may be lost besides,
_KNOWN_SHARE = 0.027  # all that may be lost so far where costs are known, besides reading,
_LATER_SHARE = 0.02  # and of the passes after the first `_EARLY`, of which the credit is a smaller part
_EARLY = 256
_IN_ALL = 0.024  # share of the tokens wanted that drafts may lose: 3 %, less what times are misjudged by
_KNOWN_IN_ALL = 0.018  # the same where costs are known, and what learning takes is counted
_EARNED = 64.0  # most passes won that count against later losses


class Ledger:
    """The net cost of one answer's drafts, in single-token passes."""

    def __init__(self, wanted: int, known: bool = False, for_reading: bool = True) -> None:
        """For an answer of at most `wanted` tokens. If the costs of drafts are `known`, the credit is only
        for a draft model's reading of the prompt, because the answer may end early.

        A head is not `for_reading`, because it has already read the prompt. It may spend its whole credit at
        once: its first draft is the cheapest, and later it would have to read new text.
        """
        self._credit = min(_CREDIT, _CREDIT_SHARE * wanted)
        if known and not for_reading:
            self._credit = min(self._credit, _HEAD_CREDIT)
        self._for_reading = self._credit if known and for_reading else 0.0
        self._share = _KNOWN_SHARE if known else _SHARE
        self._loss = 0.0
        self._in_all = (_KNOWN_IN_ALL if known else _IN_ALL) * wanted

    @property
    def loss(self) -> float:
        """The loss so far; negative for a gain."""
        return self._loss

    def add(self, loss: float, reading: float = 0.0) -> None:
        """Add a round's loss (negative for a gain), and the part of it that was a draft model's reading."""
        self._for_reading -= min(reading, self._for_reading)
        self._loss = max(self._loss + loss, -_EARNED)

    @property
    def left_in_all(self) -> float:
        """The loss still allowed until the end of the answer."""
        return self._in_all - self._loss

    def left(self, written: int, reading: float = 0.0) -> float:
        """The loss still allowed after `written` tokens, of which `reading` would be a draft model's
        reading."""
        later = max(0, written - _EARLY)
        credit = self._credit - max(0.0, self._for_reading - reading)
        return credit + self._share * (written - later) + _LATER_SHARE * later - self._loss

    def tokens_for(self, loss: float) -> int:
        """The tokens until this much more loss is allowed; 0 if it is not positive."""
        return math.ceil(max(0.0, loss) / self._share)


_PROBE = 1  # tokens of a probe; two cost more than they tell
_WAIT = (8, 128)  # tokens between two probes: at first, and after many that failed
_HEAD_WAIT = 3  # the first wait for a head, which would have to read more than a few tokens


@dataclass(slots=True)
class LengthFacts:
    """A strategy's times, acceptance and next trial. A place counts all tokens ever written."""

    limits: StrategyLimits
    acceptance: Acceptance = field(init=False)
    drafting: DraftCost = field(default_factory=DraftCost)
    read_seconds: UsualTime = field(default_factory=UsualTime)  # of one token read by its draft model
    token_share: float = 0.0  # of a draft token in a single-token pass, where a calibration told it
    probing: bool = False  # the current draft is only a trial
    trial: int = _PROBE  # tokens of the next trial
    rests_until: int = 0  # before this place the strategy is not considered
    affords_at: int = 0  # before this place no draft can be afforded, if costs are known
    chosen: int = 0  # the length that holds for the next drafts,
    chosen_until: int = 0  # before this place,
    chosen_to: float = 0.0  # and while the ledger's loss is at most this
    looked_at: int = 0  # place of its last proposal for comparison only,
    look_seconds: float = 0.0  # and the time of that round's strategies and choices
    watched: Attempt | None = None  # that proposal, while it is compared with the target's text
    _agreed: int = 0  # how many of its tokens agreed so far
    _asked_at: int = 0  # place of the last request for a draft
    _aged_at: int = 0  # place up to which its acceptance was aged
    _wait: int = field(init=False)  # tokens to be written between the last draft and a trial
    _patience: int = field(init=False)  # the same after a failed trial

    def __post_init__(self) -> None:
        self.acceptance = Acceptance(HEAD_PRIOR if self.limits.is_head else PRIOR)
        self._wait = self._patience = self.shortest_wait

    @property
    def shortest_wait(self) -> int:
        """The tokens until a strategy that just failed is considered again."""
        return _HEAD_WAIT if self.limits.is_head else _WAIT[0]

    def begin(self, limits: StrategyLimits) -> None:
        """Start an answer."""
        self.limits = limits
        self.watched = None
        self.rests_until = self.affords_at = self.chosen_until = 0

    @property
    def trial_due(self) -> int:
        """The place of the next trial."""
        return self._asked_at + self._wait

    def age(self, place: int) -> None:
        """Make what was learned count less for every token written since."""
        self.acceptance.age(place - self._aged_at)
        self._aged_at = place

    def learn(self, attempt: Attempt, accepted: int, place: int) -> None:
        """Learn from a draft that was verified, or from an attempt without a draft."""
        self.age(place)
        proposed = len(attempt.ids)
        if attempt.unread > RIDE_ALONG:
            self.read_seconds.add(attempt.read_seconds / attempt.unread)
        self.drafting.add(max(1, proposed), attempt.seconds)
        self.acceptance.add(min(attempt.asked, self.limits.longest), proposed, accepted)
        self.watched = None
        self._asked_at = place
        self.rests_until = 0
        if self.probing and proposed:
            self._judge_trial(accepted == proposed)

    def _judge_trial(self, passed: bool) -> None:
        if passed:
            self.trial = min(2 * self.trial, self.limits.longest)
            self._wait, self._patience = 0, max(self._patience // 2, self.shortest_wait)
        else:
            self.trial, self._wait = _PROBE, self._patience
            self._patience = min(2 * self._patience, _WAIT[1])

    def look(self, attempt: Attempt, place: int, seconds: float) -> None:
        """Take a proposal for comparison only. Its round ended at `place`; strategies and choices took
        `seconds`."""
        self.age(place)
        self.look_seconds, self.looked_at = seconds, place
        self.watched, self._agreed = attempt if attempt.ids else None, 0
        if not attempt.ids:
            self.acceptance.add(attempt.asked, 0, 0)

    def watch(self, written: Iterable[int], place: int) -> None:
        """Compare that proposal with the target's new tokens."""
        if self.watched is None:
            return
        ids = self.watched.ids
        for token in written:
            agrees = token == ids[self._agreed]
            self._agreed += agrees
            if not agrees or self._agreed == len(ids):
                self.age(place)
                self.acceptance.add(self.watched.asked, len(ids), self._agreed)
                self.watched = None
                self.rests_until = 0
                return


class AutoFold(LengthFold):
    """The running acceptance of length=auto in recorded rounds.

    Exact for a cold answer, except for proposals that were only compared with the text: rounds do not record
    those. What a warm rule learned from earlier answers fades within about twenty drafts.
    """

    def __init__(self, strategies: Sequence[StrategyLimits]) -> None:
        super().__init__(strategies)
        heads = {limits.name for limits in strategies if limits.is_head}
        self._counts = {name: Acceptance(HEAD_PRIOR if name in heads else PRIOR) for name in self._names}
        self._aged = dict.fromkeys(self._names, 0)
        self._written = 0  # tokens of the answer

    def computed(self, round: Round) -> LengthAt:
        self._written += len(round.emitted)
        self._follow(round)
        drafted = len(round.drafted)
        for name in round.asked if round.asked is not None else (round.strategy,):
            if name not in self._counts:
                continue
            counts = self._counts[name]
            counts.age(self._written - self._aged[name])
            self._aged[name] = self._written
            if name == round.strategy:
                counts.add(drafted, drafted, round.accepted)
            else:
                counts.add(1, 0, 0)
        at_least = drafted > 0 and not ended_by(round, REASON)
        return LengthAt(drafted, at_least, self._counts[self._name].overall)
