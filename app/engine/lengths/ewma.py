"""length=ewma: smoothed acceptance moves k up and down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.engine.lengths.base import DraftLength, Outset, RoundCost

_WEIGHT = 0.2  # of the newest round
_RAISE = 0.7  # above this smoothed acceptance k grows by one
_LOWER = 0.4  # below it k shrinks by one
_START = 3
_EVEN = 0.55  # where acceptance is taken to start: it moves k neither way


@dataclass(slots=True)
class _State:
    shortest: int
    longest: int
    k: int
    acceptance: float = _EVEN


class EwmaLength(DraftLength):
    """k follows an exponentially weighted mean of accepted / drafted, between 1 and the strategy's maximum.

    One step at a time, for every strategy of its own. It knows nothing of costs and never stops drafting.
    """

    reason = "as long as acceptance allows"

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}

    def begin(self, outset: Outset) -> None:
        for one in outset.strategies:
            known = self._states.get(one.name)
            if known is None or (known.shortest, known.longest) != (one.shortest, one.longest):
                start = max(one.shortest, min(_START, one.longest))
                self._states[one.name] = _State(one.shortest, one.longest, start)

    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        state = self._states[name]
        return room if state.k >= state.longest else min(state.k, room)

    def observe(self, cost: RoundCost) -> None:
        last = cost.attempts[-1] if cost.attempts else None
        if last is None or not last.ids:
            return
        state = self._states[last.name]
        state.acceptance += _WEIGHT * (cost.accepted / len(last.ids) - state.acceptance)
        if state.acceptance > _RAISE:
            state.k = min(state.k + 1, state.longest)
        elif state.acceptance < _LOWER:
            state.k = max(state.k - 1, state.shortest)

    def reset(self) -> None:
        self._states.clear()
