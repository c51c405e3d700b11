"""Drafters and length rules that outlive an answer and make the next one warm."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from app.engine.drafters.base import Drafter, StrategyKind
from app.engine.drafters.registry import KINDS
from app.engine.lengths.base import DraftLength, LengthRule
from app.engine.strategy import StrategyPart, StrategySpec

_MOST = 2  # drafters kept for one strategy, with different settings: some take 100 MB or more


@dataclass(slots=True)
class _WarmDrafter:
    """A drafter and the settings of its last use."""

    drafter: Drafter
    params: Any


class WarmDrafters:
    """The drafters of one loaded pair, with what they learned in earlier answers."""

    def __init__(self, make: Callable[[StrategyPart], Drafter]) -> None:
        """`make` gives a drafter that has learned nothing yet."""
        self._make = make
        self._kept: dict[tuple[StrategyKind, Hashable], _WarmDrafter] = {}  # the latest used last
        self.lengths: dict[LengthRule, DraftLength] = {}

    def __len__(self) -> int:
        """The number of drafters kept."""
        return len(self._kept)

    def of(self, spec: StrategySpec) -> list[tuple[str, Drafter]]:
        """The drafters of a spec; settings that do not shape their memory are adjusted to it."""
        # A plug-in that was read again has a new kind.
        self._kept = {key: drafter for key, drafter in self._kept.items() if KINDS.get(key[0].name) is key[0]}
        drafters = [(part.name, self._drafter(part)) for part in spec.parts]
        for kind in {key[0] for key in self._kept}:
            keys = [key for key in self._kept if key[0] is kind]  # those in use are the last
            for key in keys[:-_MOST]:
                del self._kept[key]
        return drafters

    def length(self, spec: StrategySpec) -> DraftLength:
        rule = spec.length
        if rule not in self.lengths:
            others = {known: length for known, length in self.lengths.items() if known.name != rule.name}
            self.lengths = others | {rule: rule.make()}
        return self.lengths[rule]

    def reset(self) -> None:
        """Make all of them forget."""
        for kept in self._kept.values():
            kept.drafter.reset()
        for length in self.lengths.values():
            length.reset()

    def _drafter(self, part: StrategyPart) -> Drafter:
        kind = KINDS[part.name]
        shape = kind.memory
        key = kind, str(part) if shape is None else tuple(getattr(part.params, name) for name in shape)
        kept = self._kept.pop(key, None) or _WarmDrafter(self._make(part), part.params)
        self._kept[key] = kept
        if kept.params != part.params:
            kept.drafter.adjust(part.params)
            kept.params = part.params
        return kept.drafter
