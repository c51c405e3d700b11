"""Measures the baseline: runs a request with strategy none and with its own strategy, both cold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from app.engine.errors import TraceError
from app.engine.process.messages import Failed, PromptProgress
from app.engine.record.trace import Trace
from app.engine.types import GenerationRequest, Round, Totals, TraceHeader
from app.saved.chats.measurement import Measurement
from app.ui.state.engine.engine_session import EngineSession

ANOTHER_PROMPT = "The chat's system prompt, mode or messages have changed since this answer."


class BaselineMeasurement:
    """Runs a request twice and hands over the measurement; a RunSink."""

    def __init__(
        self,
        session: EngineSession,
        request: GenerationRequest,
        answer: TraceHeader,
        expected: int,
        on_progress: Callable[[float], None],
        on_end: Callable[[Measurement | None, str], None],
    ) -> None:
        """`answer` is the header of the answer that is measured again, `expected` its number of tokens.
        `on_end` is called with the measurement, or with None and the reason."""
        sampling = dataclasses.replace(request.sampling, seed=answer.seed)
        cold = dataclasses.replace(request, sampling=sampling, cold=True)
        self._requests = [dataclasses.replace(cold, strategy="none"), cold]
        self._session = session
        self._prompt = answer.prompt
        self._another = False
        self._expected = max(1, expected)
        self._on_progress = on_progress
        self._on_end = on_end
        self._runs: list[Trace] = []  # begun
        self._emitted = 0  # tokens of the current run

    def start(self) -> None:
        self._emitted = 0
        self._session.generate(self._requests[len(self._runs)], self)

    def run_progress(self, progress: PromptProgress) -> None:
        """Ignored: reading the prompt takes little time compared with the answer."""

    def run_started(self, header: TraceHeader) -> None:
        if header.prompt != self._prompt:
            self._another = True
            self._session.stop()
            return
        self._runs.append(Trace(header))
        self._report()

    def run_rounds(self, rounds: list[Round], context_used: int) -> None:
        if self._another:
            return
        self._runs[-1].rounds.extend(rounds)
        self._emitted += sum(len(round.emitted) for round in rounds)
        self._report()

    def _report(self) -> None:
        here = min(1.0, self._emitted / self._expected)
        self._on_progress((len(self._runs) - 1 + here) / len(self._requests))

    def run_finished(self, totals: Totals) -> None:
        if self._another or totals.finish_reason == "cancelled":
            self._on_end(None, ANOTHER_PROMPT if self._another else "The measurement was stopped.")
            return
        self._runs[-1].totals = totals
        if len(self._runs) < len(self._requests):
            self.start()
            return
        try:
            self._on_end(Measurement(*self._runs), "")
        except TraceError as error:
            self._on_end(None, error.message)

    def run_failed(self, failed: Failed) -> None:
        self._on_end(None, failed.message)
