"""The baseline of an answer: its request with strategy none and with its own strategy in turns, all cold.

The lab is imported where a measurement needs it: the start of the program leaves it out.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from contextlib import suppress

import msgspec
from PySide6.QtCore import QObject, Signal

from app.engine.errors import TraceError, UserError
from app.engine.explain.facts import Tried
from app.engine.process.messages import Failed, PromptProgress
from app.engine.record.trace import Trace
from app.engine.strategy import NONE
from app.engine.types import FinishReason, GenerationRequest, Round, Totals, TraceHeader
from app.saved.chats.conversation import Answer
from app.saved.chats.store import ChatStore
from app.saved.measured import MOST_PAIRS, Measurement
from app.ui.chat.asking import loaded_alike
from app.ui.chat.chat_controller import ChatController
from app.ui.chat.chat_page import ChatPage
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import Activity, EngineSession

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
        from app.lab.facts import OtherLoad

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
        from app.lab.runs.disturbance import other_load, unsteady
        from app.lab.runs.record import RunRecord

        threads = runs[0].header.pair.target.threads
        records = [
            msgspec.structs.replace(RunRecord.of(run, repeat=at // 2, lane=at % 2), other_load=load)
            for at, (run, load) in enumerate(zip(runs, self._loads, strict=False))
        ]
        return [*other_load(records, os.cpu_count() or 1, threads), *unsteady(records, 0, NONE)]

    def run_failed(self, failed: Failed) -> None:
        self._on_end(None, failed.message)


class BaselineController(QObject):
    """Runs one measurement at a time and stores it with its answer."""

    progressed = Signal(object)  # the share that is done; None: the measurement has ended

    def __init__(
        self, page: ChatPage, store: ChatStore, chat: ChatController, session: EngineSession
    ) -> None:
        super().__init__()
        self._page = page
        self._store = store
        self._chat = chat
        self._session = session
        self._versions: dict[str, Measurement | None] = {}  # read before, by trace
        chat.shown.answer_shown.connect(self._load)

    def measure(self) -> None:
        """Run the request again without and with drafts, or say why that is not possible."""
        request, answer = self._chat.request_of_answer(), self._chat.shown.answer
        if self._session.activity is not Activity.READY:
            return
        if request is None or answer is None or answer.trace is None:
            self._page.prompt.notices.tell(
                "Only an answer of this chat can be measured.", "Send its prompt, then measure that answer."
            )
            return
        trace = answer.trace
        if self._session.pair is None or not loaded_alike(self._session.pair, trace.header.pair):
            self._page.prompt.notices.tell(
                "This answer was made with another pair, or with other load options.",
                "Load that pair with those options, or answer again with this pair.",
            )
            return

        chat_id, stored = self._chat.shown.id, self._chat.shown.stored
        measurement = BaselineMeasurement(
            self._session,
            request,
            trace.header,
            len(trace.token_ids),
            self.progressed.emit,
            lambda measurement, why: self._measured(answer, chat_id, stored, measurement, why),
        )
        self.progressed.emit(0.0)
        measurement.start()

    def measured_versions(self) -> dict[str, Tried]:
        """What was measured for the other versions of the answer on the screen, by strategy. Answers to other
        questions of the chat do not count: what a strategy gains depends on the text, so one that lost there
        may win here. Nor do versions of another pair, or unreadable measurements: showing that version tells
        why."""
        shown = self._chat.shown
        chat_id, answer, stored = shown.id, shown.answer, shown.stored
        if answer is None or answer.header is None or stored is None:
            return {}
        found: dict[str, Tried] = {}
        for version in stored.versions:
            if version.trace and version.trace != stored.trace:
                if version.trace not in self._versions:
                    with suppress(UserError):
                        self._versions[version.trace] = self._store.load_measurement(chat_id, version)
                measurement = self._versions.get(version.trace)
                if measurement is not None and loaded_alike(
                    measurement.strategy.header.pair, answer.header.pair
                ):
                    run = measurement.strategy
                    found[run.header.strategy] = Tried(measurement.range, run.rounds)
        return found

    def _measured(
        self,
        answer: AnswerModel,
        chat_id: str,
        stored: Answer | None,
        measurement: Measurement | None,
        why_not: str,
    ) -> None:
        if measurement is None:
            self._page.prompt.notices.tell(f"The baseline was not measured: {why_not}")
        else:
            answer.measure(measurement)
            self._versions.clear()
            try:
                if stored is not None and stored.trace:
                    self._store.keep_measurement(chat_id, stored, measurement)
            except UserError as error:
                self._page.prompt.notices.tell(error)
            self._load()  # the answer may have been read from the disk again meanwhile
        self.progressed.emit(None)

    def _load(self) -> None:
        """Load the stored measurement of the answer on the screen, if there is one."""
        answer, stored = self._chat.shown.answer, self._chat.shown.stored
        if answer is None or stored is None or answer.measurement is not None:
            return
        try:
            measurement = self._store.load_measurement(self._chat.shown.id, stored)
        except UserError as error:
            self._page.prompt.notices.tell(error)
            return
        if measurement is not None:
            answer.measure(measurement)
