"""Measures the baseline: runs a request with strategy none and with its own strategy in turns, all cold."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

import msgspec

from app.engine.errors import TraceError
from app.engine.process.messages import Failed, PromptProgress
from app.engine.record.trace import Trace
from app.engine.strategy import NONE
from app.engine.types import FinishReason, GenerationRequest, Round, Totals, TraceHeader
from app.lab.runs.disturbance import other_load, unsteady
from app.lab.runs.journal.run_record import RunRecord
from app.lab.runs.other_load import OtherLoad
from app.saved.chats.measurement import MOST_PAIRS, Measurement
from app.ui.state.engine.engine_session import EngineSession

ANOTHER_PROMPT = "The chat's system prompt, mode or messages have changed since this answer."


class BaselineMeasurement:
    """Runs pairs of a request until their factor is clear, and hands over the measurement; a RunSink."""

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
        self._requests = (dataclasses.replace(cold, strategy=NONE), cold)
        self._session = session
        self._prompt = answer.prompt
        self._another = False
        self._expected = max(1, expected)
        self._on_progress = on_progress
        self._on_end = on_end
        self._runs: list[Trace] = []  # begun
        self._loads: list[float | None] = []  # of other programs, in cores; by run that ended
        self._emitted = 0  # tokens of the current run

    def start(self) -> None:
        self._emitted, self._load = 0, OtherLoad()
        self._session.generate(self._requests[len(self._runs) % 2], self)

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
        self._on_progress((len(self._runs) - 1 + here) / (2 * MOST_PAIRS))

    def run_finished(self, totals: Totals) -> None:
        if self._another:
            self._on_end(None, ANOTHER_PROMPT)
            return
        stopped = totals.finish_reason is FinishReason.CANCELLED
        if not stopped:
            self._runs[-1].totals = totals
            self._loads.append(self._load.cores())
        pairs, alone = divmod(len(self._loads), 2)
        if stopped and not pairs:
            self._on_end(None, "The measurement was stopped.")
        elif alone and not stopped:
            self.start()
        else:
            self._pair_ended(self._runs[: 2 * pairs], stopped)

    def _pair_ended(self, runs: list[Trace], stopped: bool) -> None:
        """Hand over what these runs tell, unless another pair is needed and may run."""
        try:
            measurement = Measurement(*runs, doubts=self._doubts(runs))
        except TraceError as error:
            self._on_end(None, error.message)
            return
        if stopped or measurement.is_clear:
            self._on_end(measurement, "")
        else:
            self.start()

    def _doubts(self, runs: list[Trace]) -> list[str]:
        """What disturbed the runs, as Compare says it."""
        threads = runs[0].header.pair.target.threads
        records = [
            msgspec.structs.replace(RunRecord.of(run, repeat=at // 2, lane=at % 2), other_load=load)
            for at, (run, load) in enumerate(zip(runs, self._loads, strict=False))
        ]
        return [*other_load(records, os.cpu_count() or 1, threads), *unsteady(records, 0, NONE)]

    def run_failed(self, failed: Failed) -> None:
        self._on_end(None, failed.message)
