"""The race: recorded lanes replayed together, each at its true speed. Only the numbers; views paint them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.engine.record.trace import Trace


@dataclass(frozen=True, slots=True)
class LaneAt:
    """A lane's progress at one moment of the race."""

    rounds: int  # that are finished: a cursor into its trace
    tokens: int  # emitted
    finished: bool
    place: int | None  # 1 for the first to finish; None while the lane runs
    ahead: float | None
    """Seconds ahead of its baseline (negative: behind) at the lane's last token; None without a baseline, and
    for a baseline itself."""


class RaceLane:
    """One lane's tokens over time."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.times = tuple(round.offset + round.seconds for round in trace.rounds)
        """Seconds from the start of round 0 to the end of each round."""
        tokens = 0
        counts = []
        for round in trace.rounds:
            tokens += len(round.emitted)
            counts.append(tokens)
        self.tokens = tuple(counts)
        """Tokens emitted up to the end of each round."""

    @property
    def finish(self) -> float:
        """Seconds at the last token."""
        return self.times[-1] if self.times else 0.0

    def rounds_at(self, seconds: float) -> int:
        return bisect_right(self.times, seconds)

    def seconds_of(self, tokens: int) -> float:
        """Seconds until `tokens` were emitted; those of a round come together. The end for more than all."""
        if tokens <= 0 or not self.times:
            return 0.0
        index = bisect_right(self.tokens, tokens - 1)
        return self.times[min(index, len(self.times) - 1)]


class LaneRace:
    """The lanes of one prompt and repeat, started together."""

    def __init__(
        self,
        traces: Mapping[int, Trace],
        baseline_of: Callable[[int], int | None],
    ) -> None:
        """`traces` by lane; `baseline_of` is Experiment's: the lane that a lane is compared with."""
        self.lanes = {lane: RaceLane(trace) for lane, trace in traces.items()}
        self._baseline_of = baseline_of

    @property
    def seconds(self) -> float:
        """Seconds until the last lane finishes."""
        return max((lane.finish for lane in self.lanes.values()), default=0.0)

    @property
    def order(self) -> tuple[int, ...]:
        """The lanes by tokens/s, the fastest first: answers may differ in length."""

        def pace(lane: int) -> float:
            racer = self.lanes[lane]
            return racer.finish / racer.tokens[-1] if racer.tokens else float("inf")

        return tuple(sorted(self.lanes, key=pace))

    def at(self, seconds: float) -> dict[int, LaneAt]:
        """Every lane at one moment, from 0 to `seconds`."""
        places = {lane: place for place, lane in enumerate(self._by_finish(), start=1)}
        state = {}
        for lane, racer in self.lanes.items():
            rounds = racer.rounds_at(seconds)
            tokens = racer.tokens[rounds - 1] if rounds else 0
            finished = rounds == len(racer.times)
            baseline = self._baseline_of(lane)
            base = self.lanes.get(baseline) if baseline is not None else None
            ahead = None
            if base is not None and base is not racer:
                ahead = base.seconds_of(tokens) - racer.seconds_of(tokens)
            state[lane] = LaneAt(rounds, tokens, finished, places[lane] if finished else None, ahead)
        return state

    def _by_finish(self) -> list[int]:
        return sorted(self.lanes, key=lambda lane: self.lanes[lane].finish)
