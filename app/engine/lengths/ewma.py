"""length=ewma: smoothed acceptance moves k up and down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.engine.errors import SettingError
from app.engine.lengths.base import DraftLength, LengthRule, Outset, RoundCost
from app.engine.params import check_params, param


@dataclass(frozen=True, slots=True)
class Ewma(LengthRule):
    """length=ewma. The most that k can be is the strategy's own setting."""

    name = "ewma"
    summary = (
        "Follows the smoothed acceptance: one token more after good rounds, one fewer after bad ones. Its "
        "settings are below."
    )

    ewma_start: int = param(
        3,
        "Draft this many tokens at first. Usually 2 to 8: it matters only in short answers.",
        low=1,
        high=512,
        unit="tokens",
    )
    ewma_min: int = param(
        1,
        "Never draft fewer tokens than this. Usually 1 to 3: a higher limit recovers sooner after a bad "
        "stretch, but costs more during it.",
        low=1,
        high=512,
        unit="tokens",
    )
    ewma_weight: float = param(
        0.2,
        "Weight of the newest round in the smoothed acceptance. Usually 0.1 to 0.5: a higher weight reacts "
        "faster, to the text and to chance.",
        low=0.001,
        high=1,
    )
    ewma_lower: float = param(
        0.4,
        "Draft one token fewer while the smoothed acceptance is below this. Usually 0.3 to 0.5: a higher "
        "limit is more careful.",
        low=0,
        high=1,
    )
    ewma_raise: float = param(
        0.7,
        "Draft one token more while the smoothed acceptance is above this. Usually 0.6 to 0.9: a higher "
        "limit is more careful.",
        low=0,
        high=1,
    )

    def __post_init__(self) -> None:
        """Raises SettingError."""
        check_params(self)
        if self.ewma_lower > self.ewma_raise:
            raise SettingError(
                f"ewma_lower={self.ewma_lower:g} is above ewma_raise={self.ewma_raise:g}.",
                "k grows above ewma_raise and shrinks below ewma_lower.",
            )

    def make(self) -> DraftLength:
        return EwmaLength(self)


@dataclass(slots=True)
class _LengthState:
    shortest: int
    longest: int
    k: int
    acceptance: float


class EwmaLength(DraftLength):
    """k follows an exponentially weighted mean of accepted / drafted, from its own minimum to the strategy's
    maximum.

    k changes one step at a time, separately for every strategy. The rule ignores costs and never stops
    drafting.
    """

    reason = "as long as acceptance allows"

    def __init__(self, params: Ewma) -> None:
        self._params = params
        self._states: dict[str, _LengthState] = {}

    def begin(self, outset: Outset) -> None:
        for limits in outset.strategies:
            known = self._states.get(limits.name)
            if known is None or (known.shortest, known.longest) != (limits.shortest, limits.longest):
                params = self._params
                least = min(max(limits.shortest, params.ewma_min), limits.longest)
                start = max(least, min(params.ewma_start, limits.longest))
                even = (params.ewma_lower + params.ewma_raise) / 2  # leaves k unchanged
                self._states[limits.name] = _LengthState(limits.shortest, limits.longest, start, even)

    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        state = self._states[name]
        return room if state.k >= state.longest else min(state.k, room)

    def observe(self, cost: RoundCost) -> None:
        last = cost.attempts[-1] if cost.attempts else None
        if last is None or not last.ids:
            return
        state, params = self._states[last.name], self._params
        state.acceptance += params.ewma_weight * (cost.accepted / len(last.ids) - state.acceptance)
        if state.acceptance > params.ewma_raise:
            state.k = min(state.k + 1, state.longest)
        elif state.acceptance < params.ewma_lower:
            state.k = max(state.k - 1, min(max(state.shortest, params.ewma_min), state.longest))

    def k(self, name: str) -> int:
        return self._states[name].k

    def acceptance(self, name: str) -> float:
        return self._states[name].acceptance

    def know(self, name: str, k: int) -> None:
        self._states[name].k = k

    def reset(self) -> None:
        self._states.clear()
