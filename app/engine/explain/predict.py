"""The speed-up that a setting is expected to bring to a whole answer, with its range."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cached_property
from math import exp, sqrt
from statistics import fmean

from app.engine.drafters.registry import KINDS
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import AdviceFacts, Factor
from app.engine.explain.walk import DraftPlace, Text, Walked, pool_of, recorded_places, walk, walks
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec

CLEAR = 2.0
"""A range whose ends differ by more than this factor says nothing."""
_TOKENS = 256  # of the answer that are walked through; a longer answer goes on as it began
_FILLINGS = 5  # of what a draft model was not seen to propose
_NEVER_SEEN = (0.3, 0.45, 0.6, 0.75, 0.9)  # the acceptance of a draft model that has not drafted yet
_STAND_IN = 0.06  # relative error of walks in which recorded places stand in for others
_OTHER_TEXT = 0.05  # relative error where other drafts make other draws, and so another text
_DRAFTING = 0.1  # relative error of the time that drafts take
_SIGMAS = 2.0  # of the range: 95 % of cases are inside


class Predictor:
    """Predicts settings for one answer; the answer is looked at once."""

    def __init__(self, facts: AdviceFacts) -> None:
        self.facts = facts
        self._known: dict[str, Factor | None] = {}
        self._drafting: dict[str, float] = {}  # shares of rounds with a draft

    @cached_property
    def own(self) -> Factor | None:
        """The factor of the answer as it was: measured, or by the cost model."""
        facts = self.facts
        if facts.measured is not None:
            return facts.measured
        if not facts.statistics.drafted and facts.cost.single_pass is not None:
            return Factor(1.0, 1.0, 1.0)
        return predicted(facts.statistics, facts.cost)

    def of(self, spec: StrategySpec) -> Factor | None:
        """The expected factor of a strategy; None where nothing is known about it."""
        name = str(spec)
        if name not in self._known:
            self._known[name] = self._of(spec)
        return self._known[name]

    def as_measured(self, spec: StrategySpec) -> Factor | None:
        """The expected factor of settings that draft as the answer's do, by a model or by copying: as far off
        the prediction as the measured one is, if they draft as often."""
        factor, here, measured = self.of(spec), self.of(self.facts.spec), self.facts.measured
        same = _by_model(spec) == _by_model(self.facts.spec)
        if factor is None or here is None or measured is None or not same:
            return factor
        often = self._drafting[str(self.facts.spec)]
        alike = min(1.0, self._drafting[str(spec)] / often) if often else 0.0
        ratio = (measured.value / here.value) ** alike
        return Factor(*(each * ratio for each in factor))

    def is_clear(self, spec: StrategySpec, factor: Factor) -> bool:
        """Whether an expected factor is known well enough to be shown: that of a draft model which has not
        drafted yet is not."""
        return is_clear(factor) and (bool(self.text.pool) or not spec.needs_draft)

    def _of(self, spec: StrategySpec) -> Factor | None:
        if not spec.parts:
            return Factor(1.0, 1.0, 1.0)
        copies = any(not KINDS[part.name].by_model for part in spec.parts)
        if not walks(spec) or (copies and not self.facts.prompt_ids) or not self.text.ids:
            return None
        first = walk(self.text, spec, self.facts.cost, random.Random(0))
        walked = [first]
        if first.open_places:
            walked = [self._filled(spec, filling) for filling in range(_FILLINGS)]
        self._drafting[str(spec)] = fmean(1 - each.lengths[0] / max(1, each.rounds) for each in walked)
        return self._factor(walked)

    def _filled(self, spec: StrategySpec, filling: int) -> Walked:
        """A walk with another sample of the recorded places, as another answer would have had them."""
        chance, text = random.Random(filling), self.text
        pool = chance.choices(text.pool, k=len(text.pool)) if text.pool else _pool(_NEVER_SEEN[filling])
        return walk(replace(text, pool=pool), spec, self.facts.cost, chance)

    @cached_property
    def text(self) -> Text:
        """What is walked through."""
        facts, pair = self.facts, self.facts.pair
        ids = facts.token_ids[:_TOKENS]
        places = recorded_places(facts.rounds, len(ids))
        drafting = [part for part in facts.spec.parts if KINDS[part.name].by_model]
        return Text(
            facts.prompt_ids or (0,),
            ids,
            max_tokens=facts.max_tokens or len(facts.token_ids),
            n_ctx=pair.target.n_ctx if pair is not None else 2**31,
            n_vocab=pair.target.n_vocab if pair is not None else 2**31,
            relative_size=facts.relative_size,
            places=places,
            pool=pool_of(places),
            p_min=max((getattr(part.params, "p_min", 0.0) for part in drafting), default=0.0),
        )

    def _factor(self, walked: list[Walked]) -> Factor | None:
        """The factor over some walks, and its range."""
        found = [_one(self.facts.cost, each) for each in walked]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        value = fmean(factor for factor, _ in known)
        between = fmean((factor / value - 1) ** 2 for factor, _ in known)
        drawn = any(token.u is not None for round in self.facts.rounds for token in round.drafted)
        filled = any(each.open_places for each in walked)
        errors = fmean(error for _, error in known), sqrt(between), _STAND_IN * filled, _OTHER_TEXT * drawn
        return _ranged(value, *errors)


def predicted(statistics: Statistics, cost: CostModel) -> Factor | None:
    """The factor of the rounds of an answer as they were, drafted or not; None without a draft, or where too
    little was measured."""
    if not statistics.drafted:
        return None
    walked = Walked(statistics.emitted, statistics.rounds, lengths=cost.lengths)
    found = _one(cost, walked, statistics.draft_seconds)
    return _ranged(*found) if found is not None else None


def _ranged(value: float, *errors: float) -> Factor:
    """The factor with its range, from independent relative errors."""
    reach = exp(_SIGMAS * sqrt(sum(error * error for error in errors)))
    return Factor(value, value / reach, value * reach)


def _one(cost: CostModel, walked: Walked, drafting: float | None = None) -> tuple[float, float] | None:
    """The factor of a walk, and its relative error; `drafting` are the seconds of all drafts, if known."""
    single = cost.single_pass
    if single is None or not walked.tokens:
        return None
    rest = cost.rest.median if cost.rest.seconds else 0.0
    if drafting is None:
        if any(KINDS[name].by_model and not cost.step_seconds(name) for name in walked.steps):
            return None
        drafting = sum(cost.step_seconds(name) * steps for name, steps in walked.steps.items())
    taken, spread = drafting + walked.rounds * rest, drafting * _DRAFTING
    for k, rounds in walked.lengths.items():
        seconds = cost.seconds(k + 1)
        if seconds is None:
            return None
        taken += rounds * seconds
        if k:
            spread += rounds * seconds * cost.error(k + 1)  # one slope prices all of them
    plain = walked.tokens * (single + rest)
    # An error of the single pass cancels where both sides have such passes.
    alone = walked.tokens / plain - walked.lengths[0] / taken
    return plain / taken, sqrt((spread / taken) ** 2 + (alone * single * cost.error(1)) ** 2)


def _by_model(spec: StrategySpec) -> bool:
    return any(KINDS[part.name].by_model for part in spec.parts)


def is_clear(factor: Factor) -> bool:
    """Whether a factor is known well enough to be shown."""
    return factor.high <= CLEAR * factor.low


def factor_words(factor: Factor) -> str:
    """Such as "1.32× (1.20 to 1.45)"."""
    return f"{factor.value:.2f}× ({factor.low:.2f} to {factor.high:.2f})"


def _pool(alpha: float) -> list[DraftPlace]:
    """Places of a draft model with that acceptance, which is surer where it agrees."""
    agreeing = round(20 * alpha)
    return [
        DraftPlace(at < agreeing, 0.5 + 0.025 * at if at < agreeing else 0.1 + 0.035 * (at - agreeing))
        for at in range(20)
    ]
