"""Measures the baseline of the answer on the screen, when asked to."""

from __future__ import annotations

from contextlib import suppress

from PySide6.QtCore import QObject, Signal, Slot

from app.engine.errors import UserError
from app.engine.explain.facts import Tried
from app.saved.chats.conversation import Answer
from app.saved.chats.measurement import Measurement
from app.saved.chats.store import ChatStore
from app.ui.chat.answers.asking import loaded_alike
from app.ui.chat.chat_controller import ChatController
from app.ui.chat.chat_page import ChatPage
from app.ui.state.answer import AnswerModel
from app.ui.state.engine.engine_session import Activity, EngineSession


class BaselineController(QObject):
    """Runs one measurement at a time and stores it with its answer."""

    progressed = Signal(object)  # the share that is done; None: the measurement has ended

    def __init__(
        self,
        page: ChatPage,
        store: ChatStore,
        chat: ChatController,
        session: EngineSession,
    ) -> None:
        super().__init__()
        self._page = page
        self._store = store
        self._chat = chat
        self._session = session
        self._versions: dict[str, Measurement | None] = {}  # read before, by trace
        chat.shown.answer_shown.connect(self._load)

    @Slot()
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
        # It brings the lab, which the start of the program leaves out.
        from app.ui.chat.answers.baseline import BaselineMeasurement

        chat_id, stored = self._chat.chat_id, self._chat.shown.stored
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
        """What was measured for the other versions of the answer on the screen, by strategy. Versions of
        another pair do not count, and unreadable measurements neither: showing that version tells why."""
        shown = self._chat.shown
        chat_id, answer, stored = self._chat.chat_id, shown.answer, shown.stored
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

    @Slot()
    def _load(self) -> None:
        """Load the stored measurement of the answer on the screen, if there is one."""
        answer, stored = self._chat.shown.answer, self._chat.shown.stored
        if answer is None or stored is None or answer.measurement is not None:
            return
        try:
            measurement = self._store.load_measurement(self._chat.chat_id, stored)
        except UserError as error:
            self._page.prompt.notices.tell(error)
            return
        if measurement is not None:
            answer.measure(measurement)
