"""The candidates of "tune for me": for every strategy that is registered, settings worth trying on an unknown
machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from app.engine.compat import HEAD_STRATEGIES
from app.engine.drafters.registry import KINDS, StrategyKind
from app.engine.strategy import SYNTHETIC

SAMPLED = ("n_max=4:sample=1", "n_max=8:sample=1")
"""More settings of a draft model above temperature 0."""
DRAFTED = ("n_max=4", "n_max=8:p_min=0.5")
"""Settings of a draft model behind a strategy that drafts first."""
PAIRS = (("ngram-mod", "suffix"), ("ngram-map-k4v", "prompt-lookup"))
"""Mixes without a draft model: long repetitions first, then short ones."""

HEADS = frozenset(HEAD_STRATEGIES.values())
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
        found.append(LeftOut("strategies with a draft model", "there is no draft model"))
    return tuple(found)


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
