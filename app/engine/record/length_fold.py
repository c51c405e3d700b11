"""What a draft length rule went by, computed again from recorded rounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.engine.errors import SettingError
from app.engine.lengths.acceptance import Acceptance
from app.engine.lengths.auto import AutoLength
from app.engine.lengths.base import Attempt, Outset, RoundCost, StrategyLimits
from app.engine.lengths.ewma import EwmaLength
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import LengthRule, Round


@dataclass(frozen=True, slots=True)
class LengthAt:
    """The state of a rule at a round."""

    k: int  # most tokens that the round was allowed to draft
    at_least: bool  # the draft ended for another reason: k may be larger
    acceptance: float  # smoothed, of the strategy that drafted last, with this round counted


class LengthFold:
    """Folds rounds with the code of `length=ewma` or `length=auto` itself.

    Exact for a cold answer, but for proposals that `auto` only compared with the text: rounds do not hold
    those. What a warm rule had learned from earlier answers only rounds of `ewma` hold, from format 1.8 on;
    in others it fades within some twenty drafts.
    """

    def __init__(self, spec: StrategySpec) -> None:
        self._ewma = EwmaLength(spec.ewma) if spec.length is LengthRule.EWMA else None
        self._limits = {
            part.name: StrategyLimits(part.name, part.shortest, part.longest) for part in spec.parts
        }
        if self._ewma is not None:
            self._ewma.begin(Outset(tuple(self._limits.values()), 0))
        self._counts = {name: Acceptance() for name in self._limits}  # of length=auto
        self._aged = dict.fromkeys(self._limits, 0)
        self._written = 0  # tokens of the answer
        self._name = next(iter(self._limits))  # of the strategy that drafted last

    def add(self, round: Round) -> LengthAt:
        """Add the next round: what it records, else what is computed."""
        at = self.computed(round)
        return at if round.k is None or round.smoothed is None else LengthAt(round.k, False, round.smoothed)

    def computed(self, round: Round) -> LengthAt:
        """Add the next round, whatever it records of the rule."""
        self._written += len(round.emitted)
        drafted = len(round.drafted)
        if round.strategy in self._limits:
            self._name = round.strategy
        return self._add_ewma(round, drafted) if self._ewma is not None else self._add_auto(round, drafted)

    def _add_ewma(self, round: Round, drafted: int) -> LengthAt:
        rule, name = self._ewma, self._name
        assert rule is not None
        if _ended(round, EwmaLength.reason):
            rule.know(name, drafted)
        k = max(rule.k(name), drafted)
        ids = [token.id for token in round.drafted]
        rule.observe(RoundCost([Attempt(name, k, ids)], round.accepted, (), 0.0, 0.0))
        return LengthAt(k, False, rule.acceptance(name))

    def _add_auto(self, round: Round, drafted: int) -> LengthAt:
        for name in self._asked(round):
            counts = self._counts[name]
            counts.age(self._written - self._aged[name])
            self._aged[name] = self._written
            if name == round.strategy:
                counts.add(drafted, drafted, round.accepted)
            else:
                counts.add(1, 0, 0)
        at_least = drafted > 0 and not _ended(round, AutoLength.reason)
        return LengthAt(drafted, at_least, self._counts[self._name].overall)

    def _asked(self, round: Round) -> Iterable[str]:
        asked = round.asked if round.asked is not None else filter(None, [round.strategy])
        return [name for name in asked if name in self._counts]


def length_fold(spec: StrategySpec) -> LengthFold | None:
    """The fold for a strategy; None where its drafts are as long as its own settings say."""
    return LengthFold(spec) if spec.parts and spec.length is not LengthRule.FIXED else None


def lengths_of(trace: Trace) -> list[LengthAt]:
    """The state of the rule at every round; empty where drafts are as long as the strategy's settings say, or
    the strategy is of another version."""
    try:
        fold = length_fold(StrategySpec.parse(trace.header.strategy))
    except SettingError:
        return []
    return list(map(fold.add, trace.rounds)) if fold is not None else []


def _ended(round: Round, reason: str) -> bool:
    return reason in round.draft_end.split("; ")
