"""The time that the rest of an experiment will take, estimated from its finished runs."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from app.lab.experiment import Job


class TimeLeft:
    """Collects the times of finished runs and estimates the rest."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[float]] = {}

    def add(self, job: Job, seconds: float) -> None:
        self._known.setdefault((job.prompt, job.lane), []).append(seconds)

    def seconds(self, todo: Mapping[tuple[int, int], int]) -> float | None:
        """Seconds for the runs in `todo`, counted by (prompt, lane): a search has a million of them. A run
        that was not seen yet takes as long as others of its prompt, or of its lane, or of all. None while
        nothing is known."""
        if not self._known:
            return None
        by_prompt, by_lane = self._means(0), self._means(1)
        every = fmean(seconds for times in self._known.values() for seconds in times)
        total = 0.0
        for (prompt, lane), runs in todo.items():
            seen = self._known.get((prompt, lane))
            total += runs * (fmean(seen) if seen else by_prompt.get(prompt, by_lane.get(lane, every)))
        return total

    def _means(self, key: int) -> dict[int, float]:
        groups: dict[int, list[float]] = {}
        for where, times in self._known.items():
            groups.setdefault(where[key], []).extend(times)
        return {index: fmean(times) for index, times in groups.items()}
