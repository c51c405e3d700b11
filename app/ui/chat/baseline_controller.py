"""The button that measures the baseline of the answer on the screen, and where its numbers are shown."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.engine.errors import UserError
from app.engine.record.trace import Trace
from app.saved.chats.conversation import Answer
from app.saved.chats.measurement import Measurement
from app.saved.chats.store import ChatStore
from app.ui.chat.asking import loaded_alike
from app.ui.chat.baseline import BaselineMeasurement
from app.ui.chat.chat_controller import ChatController
from app.ui.chat.chat_page import ChatPage
from app.ui.state.engine_session import Activity, EngineSession
from app.ui.window.status_bar import StatusBar


class BaselineController(QObject):
    """One measurement at a time. It belongs to its answer: it is kept beside it, and shown with it."""

    ended = Signal()  # the engine is free again

    def __init__(
        self,
        page: ChatPage,
        status: StatusBar,
        store: ChatStore,
        chat: ChatController,
        session: EngineSession,
    ) -> None:
        super().__init__()
        self._page = page
        self._status = status
        self._store = store
        self._chat = chat
        self._session = session
        self._at_work: BaselineMeasurement | None = None
        self._shown: tuple[Trace, Measurement | None] | None = None  # of the answer on the screen
        status.measure_baseline_requested.connect(self._measure)
        chat.shown.answer_shown.connect(self._show)

    @property
    def is_measuring(self) -> bool:
        return self._at_work is not None

    @Slot()
    def _measure(self) -> None:
        request, trace = self._chat.request_of_answer(), self._chat.trace
        if self._session.activity is not Activity.READY:
            return
        if request is None or trace is None:
            self._page.prompt.show_error(
                "Only an answer of this chat can be measured.", "Send its prompt, then measure that answer."
            )
            return
        if self._session.pair is None or not loaded_alike(self._session.pair, trace.header.pair):
            self._page.prompt.show_error(
                "This answer was made with another pair, or loaded in another way.",
                "Load it as it was, or answer again with this one.",
            )
            return
        chat_id, answer = self._chat.chat_id, self._chat.shown.answer
        self._at_work = BaselineMeasurement(
            self._session,
            request,
            trace.header,
            len(trace.token_ids),
            self._status.set_measuring,
            lambda measurement, why: self._measured(trace, chat_id, answer, measurement, why),
        )
        if self._status.measure.hasFocus():  # it cannot be pressed while it measures
            self._page.prompt.setFocus(Qt.FocusReason.OtherFocusReason)
        self._status.set_measuring(0.0)
        self._at_work.start()

    def _measured(
        self,
        trace: Trace,
        chat_id: str,
        answer: Answer | None,
        measurement: Measurement | None,
        why_not: str,
    ) -> None:
        self._at_work = None
        self._status.set_measuring(None)
        if measurement is None:
            self._page.prompt.show_error(f"The baseline was not measured: {why_not}")
        elif answer is not None and answer.trace:
            try:
                self._store.keep_measurement(chat_id, answer, measurement)
            except UserError as error:
                self._page.prompt.show_error(error.message, error.hint)
        # Another answer may be on the screen by now, or this one read anew from the disk.
        self._shown = (trace, measurement)
        self._show()
        self.ended.emit()

    @Slot()
    def _show(self) -> None:
        """Show the measurement of the answer on the screen, if there is one."""
        trace = self._chat.trace
        if trace is None:
            self._shown = None
            self._status.set_statistics(None)
        elif self._shown is None or self._shown[0] is not trace:
            self._shown = (trace, self._load())
        measurement = self._shown[1] if self._shown is not None else None
        self._page.instruments.set_measurement(measurement)
        self._status.set_measurement(measurement)

    def _load(self) -> Measurement | None:
        answer = self._chat.shown.answer
        if answer is None:
            return None
        try:
            return self._store.load_measurement(self._chat.chat_id, answer)
        except UserError as error:
            self._page.prompt.show_error(error.message, error.hint)
            return None
