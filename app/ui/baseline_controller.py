"""The button that measures the baseline of the answer on the screen, and where its numbers are shown."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.engine.trace import Trace
from app.engine.types import ModelInfo, PairInfo
from app.ui.baseline import BaselineMeasurement, Comparison
from app.ui.chat_controller import ChatController
from app.ui.chat_page import ChatPage
from app.ui.engine_session import Activity, EngineSession
from app.ui.status_bar import StatusBar


class BaselineController(QObject):
    """One measurement at a time; its numbers are shown as long as its answer is."""

    ended = Signal()  # the engine is free again

    def __init__(
        self, page: ChatPage, status: StatusBar, chat: ChatController, session: EngineSession
    ) -> None:
        super().__init__()
        self._page = page
        self._status = status
        self._chat = chat
        self._session = session
        self._measurement: BaselineMeasurement | None = None
        self._measured_trace: Trace | None = None
        status.measure_baseline_requested.connect(self._measure)
        chat.shown.answer_shown.connect(self._forget)

    @property
    def is_measuring(self) -> bool:
        return self._measurement is not None

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
        if self._session.pair is None or not _loaded_alike(self._session.pair, trace.header.pair):
            self._page.prompt.show_error(
                "This answer was made with another pair, or loaded in another way.",
                "Load it as it was, or answer again with this one.",
            )
            return
        self._measured_trace = trace
        self._measurement = BaselineMeasurement(
            self._session,
            request,
            trace.header,
            len(trace.token_ids),
            self._status.set_measuring,
            self._measured,
        )
        if self._status.measure.hasFocus():  # it cannot be pressed while it measures
            self._page.prompt.setFocus(Qt.FocusReason.OtherFocusReason)
        self._status.set_measuring(0.0)
        self._measurement.start()

    def _measured(self, comparison: Comparison | None, why_not: str) -> None:
        self._measurement = None
        self._status.set_measuring(None)
        # The numbers are about one answer; another one may be on the screen by now.
        if self._chat.trace is self._measured_trace:
            self._show(comparison)
        if comparison is None:
            self._page.prompt.show_error(f"The baseline was not measured: {why_not}")
        self.ended.emit()

    @Slot()
    def _forget(self) -> None:
        self._show(None)
        if self._chat.trace is None:
            self._status.set_statistics(None)

    def _show(self, comparison: Comparison | None) -> None:
        baseline = comparison.baseline if comparison else None
        factor = comparison.factor if comparison else None
        self._page.instruments.set_baseline(baseline, factor, comparison.cost if comparison else None)
        self._status.set_baseline(baseline, factor)


def _loaded_alike(one: PairInfo, other: PairInfo) -> bool:
    """The same files, as they were, in the same way: speeds can be compared."""

    def facts(model: ModelInfo | None) -> tuple[object, ...]:
        if model is None:
            return ()
        return model.path, model.size, model.n_ctx, model.threads, model.n_gpu_layers

    return (facts(one.target), facts(one.draft)) == (facts(other.target), facts(other.draft))
