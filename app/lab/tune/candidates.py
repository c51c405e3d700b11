"""The candidates of "tune for me": for every strategy that is registered, settings worth trying on an unknown
machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import NamedTuple

import msgspec

from app.base import numbers
from app.engine.compat import HEAD_STRATEGIES
from app.engine.drafters.registry import KINDS, StrategyKind
from app.engine.explain.predict import Predictor
from app.engine.strategy import SYNTHETIC, StrategySpec
from app.lab.runs.events import LabEvent

SAMPLED = ("n_max=4:sample=1", "n_max=8:sample=1")
"""More settings of a draft model above temperature 0."""
DRAFTED = ("n_max=4", "n_max=8:p_min=0.5")
"""Settings of a draft model behind a strategy that drafts first."""
PAIRS = (("ngram-mod", "suffix"), ("ngram-map-k4v", "prompt-lookup"))
"""Mixes without a draft model: long repetitions first, then short ones."""

HEADS = (*HEAD_STRATEGIES.values(), "draft-mtp")
"""Strategies of drafts that read their target, which few pairs have."""


class Family(NamedTuple):
    """A strategy, or a mix of strategies, with settings that are worth trying, the most promising first."""

    name: str
    settings: tuple[str, ...]


class LeftOut(msgspec.Struct, frozen=True):
    """Settings that are not tried, in words, and why."""

    what: str
    reason: str
    strategies: tuple[str, ...] = ()


def families(*, has_draft: bool, temperature: float = 0.0) -> tuple[Family, ...]:
    """All that can work, the most promising first; strategies with a draft model only if there is one."""
    usable = [kind for kind in KINDS.values() if not kind.is_synthetic and kind.name not in HEADS]
    alone = [kind for kind in usable if not kind.needs_draft]
    drafting = [kind for kind in usable if kind.needs_draft and has_draft]
    found = [Family(kind.name, tuple(_settings_of(kind, temperature))) for kind in (*drafting, *alone)]
    found += [_mix(first, second.name, DRAFTED) for second in drafting for first in alone]
    named = {kind.name: kind for kind in alone}
    found += [
        _mix(named[first], second, KINDS[second].settings[:1])
        for first, second in PAIRS
        if first in named and second in named
    ]
    return tuple(found)


def cannot_work(*, has_draft: bool) -> tuple[LeftOut, ...]:
    """The registered strategies that `families` leaves out, and why."""
    found = [LeftOut(kind.name, SYNTHETIC) for kind in KINDS.values() if kind.is_synthetic]
    if not has_draft:
        needing = [kind.name for kind in KINDS.values() if kind.needs_draft]
        found += [LeftOut(f"{name} and mixes with it", "there is no draft model") for name in needing]
    return tuple(found)


class Planned(LabEvent, frozen=True):
    """The cost model has ruled out settings: `promising` of `candidates` are left, and `tried` will be. To
    measure all that are left would take `seconds`."""

    tried: int
    promising: int
    candidates: int
    seconds: float

    @property
    def words(self) -> str:
        may = f"{self.promising} of {numbers.count(self.candidates, 'setting')} may win on these prompts"
        takes = f"measuring them takes {numbers.duration(self.seconds)}"
        if self.tried < self.promising:
            return f"{may}; {takes}, so the {self.tried} best by prediction are measured."
        return f"{may}; {takes}."


def promising(
    candidates: Sequence[str], predictors: Sequence[Predictor], least: float, fewest: int
) -> tuple[tuple[str, ...], int]:
    """(the candidates, the most promising first; how many of them may reach `least` on one of some answers by
    the cost model, and at least `fewest`: what is recommended is measured, even if it is none)."""
    found = {name: [each.of(StrategySpec.parse(name)) for each in predictors] for name in candidates}

    def value(name: str, at: int) -> float:
        factor = found[name][at]
        return factor.value if factor is not None else 0.0

    def may_win(name: str) -> bool:
        return not found[name] or any(factor is None or factor.high >= least for factor in found[name])

    answers = range(len(predictors))
    # The best on all answers, then the best on each in turn: kinds of prompt may differ.
    groups = [sorted(candidates, key=lambda name: -sum(value(name, at) for at in answers))]
    groups += [sorted(candidates, key=partial(value, at=at), reverse=True) for at in answers]
    ranked = tuple(sorted(in_turn(groups), key=may_win, reverse=True))
    return ranked, max(sum(map(may_win, ranked)), min(fewest, len(ranked)))


def in_turn(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The first of each group, then the second of each, each setting once."""
    rows = zip_longest(*groups)
    return tuple(dict.fromkeys(spec for spec in chain.from_iterable(rows) if spec))


def _settings_of(kind: StrategyKind, temperature: float) -> Iterator[str]:
    settings = kind.settings
    if kind.name == "draft-simple" and temperature > 0:
        settings = (*settings[:2], *SAMPLED, *settings[2:])
    for setting in settings:
        yield f"{kind.name}:{setting}".rstrip(":")


def _mix(first: StrategyKind, second: str, settings: Iterable[str]) -> Family:
    """The first strategy with its most promising settings, then the second."""
    (best, *_) = _settings_of(first, 0.0)
    return Family(f"{first.name}+{second}", tuple(f"{best}+{second}:{setting}" for setting in settings))
