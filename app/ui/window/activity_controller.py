"""What the engine is doing, in the status bar and on the buttons of the header; and what it measured."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Slot

from app.engine.process.messages import LoadProgress, LoadStage, PromptProgress
from app.engine.types import Totals, TraceHeader
from app.ui.chat.baseline_controller import BaselineController
from app.ui.chat.chat_controller import ChatController
from app.ui.chat.prompt.prompt_box import PromptBox
from app.ui.state.engine_session import BUSY, Activity, EngineSession, EngineState
from app.ui.widgets.notice import WayOut
from app.ui.window.header import Header
from app.ui.window.status_bar import StatusBar

WORDS = {
    Activity.EMPTY: "No model loaded",
    Activity.LOADING: "Loading",
    Activity.READY: "Ready",
    Activity.READING: "Reading prompt",
    Activity.GENERATING: "Generating",
    Activity.STOPPING: "Stopping",
    Activity.LENT: "Measuring in Compare",
}
CAUSE = "stop"  # of a notice


class ActivityController(QObject):
    """Shows the engine's state, and what belongs to the answer on the screen."""

    def __init__(
        self,
        header: Header,
        status: StatusBar,
        prompt: PromptBox,
        session: EngineSession,
        chat: ChatController,
        baseline: BaselineController,
    ) -> None:
        super().__init__()
        self._header = header
        self._status = status
        self._prompt = prompt
        self._session = session
        self._chat = chat
        self._baseline = baseline
        session.changed.connect(self._engine_changed)
        session.stop_overdue.connect(self._stop_overdue)
        baseline.ended.connect(self.show)
        chat.shown.answer_shown.connect(self._answer_shown)
        chat.shown.context_changed.connect(self._show_context)
        chat.answers.prompt_measured.connect(self._prompt_measured)

    @Slot(object, object)
    def _engine_changed(self, now: EngineState, before: EngineState) -> None:
        if now.activity is before.activity:
            self._show_state()  # and no more: the keyboard stays where it is
        else:
            self.show()

    def _show_state(self) -> None:
        state = self._session.state
        measuring = self._baseline.is_measuring and state.activity is Activity.GENERATING
        busy = state.activity in (*BUSY, Activity.LOADING, Activity.LENT)
        self._status.set_state("Measuring" if measuring else state_words(state), busy=busy)

    @Slot()
    def show(self) -> None:
        """Say what it is doing."""
        activity, header = self._session.activity, self._header
        self._show_state()
        for button in (header.stop, header.regenerate, self._status.measure):
            if button.hasFocus():  # it may be gone or unusable now, and Qt would go on to just anything
                self._prompt.setFocus(Qt.FocusReason.OtherFocusReason)
        header.set_busy(activity in BUSY)
        header.stop.setEnabled(activity is not Activity.STOPPING)
        if activity is not Activity.STOPPING:
            self._prompt.notices.withdraw(CAUSE)
        header.regenerate.setEnabled(self._chat.can_regenerate)
        self._show_context()  # another pair may be there, with room for more or less

    @Slot()
    def _stop_overdue(self) -> None:
        self._prompt.notices.tell(
            "The engine has not stopped yet.",
            "Ending it keeps every word that came. A new engine then loads the same pair.",
            WayOut("End the engine now", self._session.end_engine),
            CAUSE,
        )
        self._header.stop.setEnabled(True)  # asked again, it offers this again

    @Slot()
    def _answer_shown(self) -> None:
        self._header.regenerate.setEnabled(self._chat.can_regenerate)
        recorded = self._chat.shown.recording is not None
        self._header.set_recorded(recorded)
        self._status.set_recorded(recorded)

    @Slot()
    def _show_context(self) -> None:
        recording, pair = self._chat.shown.recording, self._session.pair
        pair = pair if recording is None else recording.header.pair
        self._status.set_context(self._chat.shown.context_used, pair.target.n_ctx if pair else None)

    @Slot(object, object)
    def _prompt_measured(self, header: TraceHeader, totals: Totals) -> None:
        read = header.prompt_tokens - 1 - header.cached_tokens
        speed = read / totals.prompt_seconds if read > 0 and totals.prompt_seconds > 0 else None
        self._status.set_prompt_speed(speed, totals.first_token_seconds)


def state_words(state: EngineState) -> str:
    """What the engine does, and how far it is."""
    match state.reading:
        case PromptProgress(done=done, total=total):
            return f"Reading prompt {100 * done // total if total else 0} %"
        case LoadProgress(role=role, stage=LoadStage.TESTING):
            return f"Testing {role}"
        case LoadProgress(role=role, fraction=fraction):
            return f"Loading {role} {fraction * 100:.0f} %"
        case None:
            return WORDS[state.activity]
