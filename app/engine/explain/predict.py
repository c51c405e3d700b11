"""Predicts the speed-up of a whole answer with other settings, and the range of that prediction."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import exp, log, sqrt
from statistics import fmean

from app.engine.drafters.registry import KINDS
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import AdviceFacts, AnsweredPrompt, Factor
from app.engine.explain.walk import (
    THOUGHT,
    DraftPlace,
    Text,
    Walked,
    places_of_both,
    pools_of,
    recorded_places,
    same_text,
    walk,
    walks,
)
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec

CLEAR = 2.0
"""A range wider than this factor is not shown."""
_TOKENS = 256  # walked through in all answers; longer ones are expected to go on as they began
_FEWEST_TOKENS = 64  # walked through in each answer
_FILLINGS = 5  # walks with different replacements for open places
_NEVER_SEEN = (0.3, 0.45, 0.6, 0.75, 0.9)  # acceptance of a draft model that has not drafted yet, by walk
_SIGMAS = 1.64  # half the range: 90 % of measurements are inside
# Relative standard errors:
_STAND_IN = 0.06  # of walks with replaced places
_OTHER_TEXT = 0.05  # if drafts are drawn: other drafts lead to another text
_BY_CLOCK = 0.05  # of length=auto: the times that come decide which drafts it affords (docs/measuring.md)
_DRAFTING = 0.1  # of the time that drafts take
_STEADY, _UNSTEADY = 0.03, 0.06  # of one measurement: at best, and if nothing was measured


class Predictor:
    """Predicts the factors of settings for an answer, each once."""

    def __init__(self, facts: AdviceFacts) -> None:
        self.facts = facts
        self._known: dict[str, Factor | None] = {}
        self._drafting: dict[str, float] = {}  # shares of rounds with a draft

    @cached_property
    def own(self) -> Factor | None:
        """The factor of the answer itself: measured, or by the cost model."""
        facts = self.facts
        if facts.measured is not None:
            return facts.measured
        if not facts.statistics.drafted and facts.cost.single_pass is not None:
            return Factor(1.0, 1.0, 1.0)
        return predicted(facts.statistics, facts.cost, by_clock=facts.spec.length.by_clock)

    def of(self, spec: StrategySpec) -> Factor | None:
        """The factor of a strategy by the cost model; None if nothing is known about it."""
        name = str(spec)
        if name not in self._known:
            self._known[name] = self._of(spec)
        return self._known[name]

    def as_measured(self, spec: StrategySpec) -> Factor | None:
        """The factor that a measurement of the strategy would show. Predictions of what was measured can be
        checked. Settings that draft alike, by a model or by copying, are corrected by the same error, unless
        it is small enough to be noise."""
        factor, noise, ratio = self.of(spec), self._noise, 1.0
        if factor is None:
            return None
        for checked, measured in self._measured:
            here = self.of(checked)
            if here is not None and _by_model(spec) == _by_model(checked):
                often = self._drafting.get(str(checked), 0.0)
                if not often:  # it shows nothing about drafts
                    continue
                alike = min(1.0, self._drafting.get(str(spec), 0.0) / often)
                unsure = _error(here) ** 2
                ratio = (measured.value / here.value) ** (alike * unsure / (unsure + noise**2))
                break
        return _ranged(factor.value * ratio, _error(factor), noise)

    @cached_property
    def _measured(self) -> Sequence[tuple[StrategySpec, Factor]]:
        """What was measured on this prompt, the answer's own strategy first."""
        facts = self.facts
        tried = [(StrategySpec.parse(name), each.factor) for name, each in facts.tried.items()]
        return [(facts.spec, facts.measured), *tried] if facts.measured is not None else tried

    @cached_property
    def _cost(self) -> CostModel:
        """The answer's costs, with those of strategies that were tried."""
        tried = CostModel.of(round for each in self.facts.tried.values() for round in each.rounds)
        return replace(self.facts.cost, strategies=tried.strategies | self.facts.cost.strategies)

    @property
    def _noise(self) -> float:
        """The relative error of one measurement, by how far this answer's measurements were apart."""
        measured = self.facts.measured
        return max(_STEADY, log(measured.high / measured.low) / 2) if measured is not None else _UNSTEADY

    def is_told(self, spec: StrategySpec) -> bool:
        """Whether the answer says enough about a strategy: if that needs a draft model, one must have drafted
        in it."""
        return any(text.pools for text in self.texts) or not spec.needs_draft

    def copied(self, spec: StrategySpec) -> float:
        """The share of the text that a copying strategy would have drafted; 0 if the prompt is not known."""
        if not all(answer.prompt_ids and answer.token_ids for answer in self._answers):
            return 0.0
        chance = random.Random(0)
        walked = Walked.of_all(walk(text, spec, self._cost, chance) for text in self.texts)
        return walked.accepted / walked.tokens

    def _of(self, spec: StrategySpec) -> Factor | None:
        if not spec.parts:
            return Factor(1.0, 1.0, 1.0)
        copies = any(not KINDS[part.name].by_model for part in spec.parts)
        readable = not copies or all(answer.prompt_ids for answer in self._answers)
        if not walks(spec) or not readable or not self.texts[0].ids:
            return None
        if self._without_p and any(getattr(part.params, "p_min", 0.0) > 0 for part in spec.parts):
            return None
        cost, chance = self._cost, random.Random(0)
        first = Walked.of_all(walk(text, spec, cost, chance) for text in self.texts)
        walked = [first]
        if first.open_places:
            walked = [self._filled(spec, filling) for filling in range(_FILLINGS)]
        self._drafting[str(spec)] = fmean(1 - each.lengths[0] / max(1, each.rounds) for each in walked)
        return self._factor(walked)

    def _filled(self, spec: StrategySpec, filling: int) -> Walked:
        """A walk with the open places filled by a new sample of recorded ones."""
        chance = random.Random(filling)

        def filled(text: Text) -> Text:
            pools = [chance.choices(pool, k=len(pool)) for pool in text.pools]
            return replace(text, pools=pools or [_pool(_NEVER_SEEN[filling])])

        return Walked.of_all(walk(filled(text), spec, self._cost, chance) for text in self.texts)

    @cached_property
    def _without_p(self) -> bool:
        """Whether the draft model's own probabilities are unknown, as they are through text."""
        return any(
            token.draft_p is None
            for answer in self._answers
            for round in answer.rounds
            if round.strategy in KINDS and KINDS[round.strategy].by_model
            for token in round.drafted
        )

    @property
    def _answers(self) -> Sequence[AnsweredPrompt]:
        facts = self.facts
        own = AnsweredPrompt(facts.rounds, facts.prompt_ids, facts.token_ids, facts.max_tokens)
        return own, *facts.others

    @cached_property
    def texts(self) -> Sequence[Text]:
        """The texts to walk through: one answer to each prompt. More answers mean less of each."""
        most = max(_TOKENS // len(self._answers), _FEWEST_TOKENS)
        return [self._text(answer, most) for answer in self._answers]

    def _text(self, answer: AnsweredPrompt, most: int) -> Text:
        facts, pair, ids = self.facts, self.facts.pair, answer.token_ids[:most]
        places = recorded_places(answer.rounds, len(ids))
        drafting = [*facts.spec.parts]
        for strategy, tried in facts.tried.items():
            same = same_text(tried.rounds, ids)
            places = places_of_both(places, recorded_places(same, len(ids)))
            drafting += StrategySpec.parse(strategy).parts if same else ()
        return Text(
            answer.prompt_ids or (0,),
            ids,
            max_tokens=answer.max_tokens or len(answer.token_ids),
            n_ctx=pair.target.n_ctx if pair is not None else 2**31,
            n_vocab=pair.target.n_vocab if pair is not None else 2**31,
            relative_size=facts.relative_size,
            places=places,
            pools=pools_of(places),
            p_min=max((getattr(part.params, "p_min", 0.0) for part in drafting), default=0.0),
        )

    def _factor(self, walked: list[Walked]) -> Factor | None:
        """The mean factor of some walks, with its range."""
        found = [_one(self._cost, each) for each in walked]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        value = fmean(factor for factor, _ in known)
        between = fmean((factor / value - 1) ** 2 for factor, _ in known)
        drawn = any(token.u is not None for round in self.facts.rounds for token in round.drafted)
        filled = any(each.open_places for each in walked)
        errors = [fmean(error for _, error in known), sqrt(between), _STAND_IN * filled, _OTHER_TEXT * drawn]
        return _ranged(value, *errors, _BY_CLOCK * any(each.thoughts for each in walked))


def predicted(statistics: Statistics, cost: CostModel, *, by_clock: bool) -> Factor | None:
    """The factor of all recorded rounds of an answer; None without a draft, or if too little was measured. If
    times decide its lengths (`by_clock`), a measured answer may draft at other places."""
    if not statistics.drafted:
        return None
    # Not the lengths of the costs: those may be of repeats too.
    lengths = Counter({k: rounds for k, rounds in enumerate(statistics.lengths) if rounds})
    lengths[0] = statistics.rounds - statistics.drafted_rounds
    walked = Walked(statistics.emitted, statistics.rounds, lengths=lengths)
    found = _one(cost, walked, statistics.draft_seconds)
    return _ranged(*found, _BY_CLOCK * by_clock) if found is not None else None


def _ranged(value: float, *errors: float) -> Factor:
    """The factor with the range from these independent relative errors."""
    reach = exp(_SIGMAS * sqrt(sum(error * error for error in errors)))
    return Factor(value, value / reach, value * reach)


def _error(factor: Factor) -> float:
    """The relative error behind a range."""
    return log(factor.high / factor.low) / (2 * _SIGMAS)


def _one(cost: CostModel, walked: Walked, drafting: float | None = None) -> tuple[float, float] | None:
    """The factor of a walk, and its relative error; None if a time is unknown. `drafting` are the measured
    seconds of all drafts."""
    single = cost.plain_pass
    if not single or not walked.tokens:  # a file from elsewhere may say 0
        return None
    rest = cost.rest.median if cost.rest.seconds else 0.0
    if drafting is None:
        if any(KINDS[name].by_model and not cost.step_seconds(name) for name in walked.steps):
            return None
        drafting = sum(cost.step_seconds(name) * steps for name, steps in walked.steps.items())
    drafting += walked.thoughts * THOUGHT
    taken, spread = drafting + walked.rounds * rest, drafting * _DRAFTING
    for k, rounds in walked.lengths.items():
        seconds = cost.seconds(k + 1) if k else single
        if seconds is None:
            return None
        taken += rounds * seconds
        if k:
            spread += rounds * seconds * cost.error(k + 1)  # one slope prices all of them
    plain = walked.tokens * (single + rest)
    if not taken:
        return None
    # An error of the single pass cancels where both sides have such passes.
    alone = walked.tokens / plain - walked.lengths[0] / taken
    return plain / taken, sqrt((spread / taken) ** 2 + (alone * single * cost.error(1)) ** 2)


def _by_model(spec: StrategySpec) -> bool:
    return any(KINDS[part.name].by_model for part in spec.parts)


def is_clear(factor: Factor) -> bool:
    """Whether the range is narrow enough to be shown."""
    return factor.high <= CLEAR * factor.low


def factor_words(factor: Factor) -> str:
    """For example "1.32× (1.20 to 1.45)"."""
    return f"{factor.value:.2f}× ({factor.low:.2f} to {factor.high:.2f})"


def _pool(alpha: float) -> list[DraftPlace]:
    """Places of an assumed draft model with this acceptance, which is surer when it is right."""
    agreeing = round(20 * alpha)
    return [
        DraftPlace(at < agreeing, 0.5 + 0.025 * at if at < agreeing else 0.1 + 0.035 * (at - agreeing))
        for at in range(20)
    ]
