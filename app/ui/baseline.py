"""Measures the baseline: the same request with strategy none, and with its own strategy, both cold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from app.engine.cost import CostModel
from app.engine.messages import Failed
from app.engine.stats import Statistics
from app.engine.types import GenerationRequest, Round, Totals, TraceHeader
from app.ui.engine_session import EngineSession

ANOTHER_PROMPT = "The chat's system prompt, mode or messages are not those of this answer any more."


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two speeds of one request, measured one after the other from empty caches. In tokens/s."""

    baseline: float
    strategy: float
    cost: CostModel  # of both runs: passes over one token come from the baseline's

    @property
    def factor(self) -> float:
        return self.strategy / self.baseline


class BaselineMeasurement:
    """Runs a request twice and reports the comparison; a RunSink."""

    def __init__(
        self,
        session: EngineSession,
        request: GenerationRequest,
        answer: TraceHeader,
        expected: int,
        on_progress: Callable[[float], None],
        on_end: Callable[[Comparison | None, str], None],
    ) -> None:
        """`answer` heads the answer that is measured again, `expected` is its number of tokens. `on_end` gets
        the comparison, or None and why there is none."""
        sampling = dataclasses.replace(request.sampling, seed=answer.seed)
        cold = dataclasses.replace(request, sampling=sampling, cold=True)
        self._requests = [dataclasses.replace(cold, strategy="none"), cold]
        self._session = session
        self._prompt = answer.prompt
        self._another = False
        self._expected = max(1, expected)
        self._on_progress = on_progress
        self._on_end = on_end
        self._speeds: list[float] = []
        self._statistics = Statistics()
        self._cost = CostModel()

    def start(self) -> None:
        self._statistics = Statistics()
        self._session.generate(self._requests[len(self._speeds)], self)

    def run_progress(self, model: str, done: int, total: int) -> None:
        """The prompt is short beside the answer: no progress of its own."""

    def run_started(self, header: TraceHeader) -> None:
        if header.prompt != self._prompt:
            self._another = True
            self._session.stop()
            return
        self._report()

    def run_rounds(self, rounds: list[Round], context_used: int) -> None:
        for one in rounds:
            self._statistics.add(one)
            self._cost.add(one)
        self._report()

    def _report(self) -> None:
        here = min(1.0, self._statistics.emitted / self._expected)
        self._on_progress((len(self._speeds) + here) / len(self._requests))

    def run_finished(self, totals: Totals) -> None:
        speed = self._statistics.tokens_per_second
        if self._another or totals.finish_reason == "cancelled" or not speed:
            self._on_end(None, ANOTHER_PROMPT if self._another else "The measurement was stopped.")
            return
        self._speeds.append(speed)
        if len(self._speeds) < len(self._requests):
            self.start()
        else:
            baseline, strategy = self._speeds
            self._on_end(Comparison(baseline, strategy, self._cost), "")

    def run_failed(self, failed: Failed) -> None:
        self._on_end(None, failed.message)
