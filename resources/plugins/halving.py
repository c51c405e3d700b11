"""halving: a length rule. It halves k after a rejected token, and adds 1 after a fully accepted draft.

draftscope run --drafter resources/plugins/halving.py --strategy draft-simple:length=halving --prompt Hi
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.engine.plugins import DraftLength, LengthRule, Outset, RoundCost, param


class HalvingLength(DraftLength):
    """k of every strategy, and the accepted share of its last draft."""

    reason = "as long as halving allows"

    def __init__(self, start: int) -> None:
        self._start = start
        self._k: dict[str, int] = {}
        self._passed: dict[str, float] = {}

    def begin(self, outset: Outset) -> None:
        self._longest = {limits.name: limits.longest for limits in outset.strategies}
        for name, longest in self._longest.items():
            self._k.setdefault(name, min(self._start, longest))

    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        return min(self._k[name], room)

    def observe(self, cost: RoundCost) -> None:
        last = cost.attempts[-1] if cost.attempts else None
        if last is None or not last.ids:
            return
        whole = cost.accepted == len(last.ids)
        k = self._k[last.name]
        self._k[last.name] = min(k + 1, self._longest[last.name]) if whole else max(1, k // 2)
        self._passed[last.name] = cost.accepted / len(last.ids)

    def k(self, name: str) -> int:
        """Recorded in the trace, and recomputed from it: k depends only on drafts and verdicts."""
        return self._k[name]

    def know(self, name: str, k: int) -> None:
        self._k[name] = k

    def acceptance(self, name: str) -> float:
        return self._passed.get(name, 1.0)

    def reset(self) -> None:
        self._k.clear()
        self._passed.clear()


@dataclass(frozen=True, slots=True)
class Halving(LengthRule):
    name = "halving"
    summary = "Half as many tokens after a rejection, one more after a fully accepted draft."

    halving_start: int = param(4, "Draft this many tokens at first.", low=1, high=512, unit="tokens")

    def make(self) -> DraftLength:
        return HalvingLength(self.halving_start)


LENGTH = Halving
