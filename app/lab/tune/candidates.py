"""The candidates of "tune for me": for every strategy that is registered, settings worth trying on an unknown
machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from app.engine.drafters.base import StrategyKind
from app.engine.drafters.registry import KINDS
from app.engine.strategy import SYNTHETIC


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
    usable = [kind for kind in KINDS.values() if not kind.is_synthetic and not kind.is_head]
    alone = [kind for kind in usable if not kind.needs_draft]
    drafting = [kind for kind in usable if kind.needs_draft and has_draft]
    found = [Family(kind.name, tuple(_settings_of(kind, temperature))) for kind in (*drafting, *alone)]
    found += [_mix(first, second.name, second.settings_behind) for second in drafting for first in alone]
    # Without a draft model: long repetitions first, then short ones.
    found += [_mix(kind, kind.before, KINDS[kind.before].settings[:1]) for kind in alone if kind.before]
    return tuple(found)


def cannot_work(*, has_draft: bool) -> tuple[LeftOut, ...]:
    """The registered strategies that `families` leaves out, and why."""
    found = [LeftOut(kind.name, SYNTHETIC) for kind in KINDS.values() if kind.is_synthetic]
    if not has_draft:
        found.append(LeftOut("strategies with a draft model", "there is no draft model"))
    return tuple(found)


def _settings_of(kind: StrategyKind, temperature: float) -> Iterator[str]:
    settings = kind.settings
    if temperature > 0:
        settings = (*settings[:2], *kind.settings_drawn, *settings[2:])
    for setting in settings:
        yield f"{kind.name}:{setting}".rstrip(":")


def _mix(first: StrategyKind, second: str, settings: Iterable[str]) -> Family:
    """The first strategy with its most promising settings, then the second."""
    (best, *_) = _settings_of(first, 0.0)
    return Family(f"{first.name}+{second}", tuple(f"{best}+{second}:{setting}" for setting in settings))
