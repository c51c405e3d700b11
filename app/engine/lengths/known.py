"""What length=auto knows about one strategy, and when it will try it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.engine.lengths.acceptance import Acceptance
from app.engine.lengths.base import RIDE_ALONG, Attempt, StrategyLimits
from app.engine.lengths.cost_curve import DraftCost, UsualTime

_PROBE = 1  # tokens of a probe; two cost more than they tell
_WAIT = (8, 128)  # tokens between two probes: at first, and after many that failed


@dataclass(slots=True)
class LengthFacts:
    """A strategy's times, acceptance and next trial. A place counts all tokens ever written."""

    limits: StrategyLimits
    acceptance: Acceptance = field(default_factory=Acceptance)
    drafting: DraftCost = field(default_factory=DraftCost)
    read_seconds: UsualTime = field(default_factory=UsualTime)  # of one token read by its draft model
    token_share: float = 0.0  # of a draft token in a single-token pass, where a calibration told it
    probing: bool = False  # the current draft is only a trial
    trial: int = _PROBE  # tokens of the next trial
    rests_until: int = 0  # before this place the strategy is not considered
    looked_at: int = 0  # place of its last proposal for comparison only,
    look_seconds: float = 0.0  # and the time of that round's strategies and choices
    watched: Attempt | None = None  # that proposal, while it is compared with the target's text
    _agreed: int = 0  # how many of its tokens agreed so far
    _asked_at: int = 0  # place of the last request for a draft
    _aged_at: int = 0  # place up to which its acceptance was aged
    _wait: int = _WAIT[0]  # tokens to be written between the last draft and a trial
    _patience: int = _WAIT[0]  # the same after a failed trial

    def begin(self, limits: StrategyLimits) -> None:
        """Start an answer."""
        self.limits = limits
        self.watched = None
        self.rests_until = 0

    @property
    def trial_due(self) -> int:
        """The place of the next trial."""
        return self._asked_at + self._wait

    def age(self, place: int) -> None:
        """Let what was learned count less with every token written since."""
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
            self._wait, self._patience = 0, max(self._patience // 2, _WAIT[0])
        else:
            self.trial, self._wait = _PROBE, self._patience
            self._patience = min(2 * self._patience, _WAIT[1])

    def look(self, attempt: Attempt, place: int, seconds: float) -> None:
        """Take a proposal for comparison only, of the round that ended at `place`, whose strategies and
        choices took so many seconds."""
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
