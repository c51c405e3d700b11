"""The answer as it comes: begun, saved, shown if its chat is on the screen, and brought to an end."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.engine.errors import UserError
from app.engine.process.messages import Failed
from app.engine.record.trace import Trace
from app.engine.types import FinishReason, GenerationRequest, Round, Totals
from app.saved.chats.conversation import Conversation
from app.saved.chats.recorder import NOTES
from app.saved.chats.store import ChatStore
from app.ui.chat.answering import Answering
from app.ui.chat.chat_page import ChatPage
from app.ui.chat.shown_chat import CONTINUE, ShownChat
from app.ui.state.engine_session import EngineSession
from app.ui.transcript import Note

_HINTS = {
    FinishReason.LENGTH: "The limit is set in the sampling panel.",
    FinishReason.CONTEXT: "Start a new chat, or raise the context size of the target.",
}


class AnswersController(QObject):
    """One answer at a time (an AnswerViews), also while another chat is on the screen."""

    saved = Signal()  # the list of chats is another one
    prompt_measured = Signal(object, object)  # TraceHeader and Totals, of an answer that is complete

    def __init__(self, page: ChatPage, store: ChatStore, session: EngineSession, shown: ShownChat) -> None:
        super().__init__()
        self._page = page
        self._store = store
        self._session = session
        self._shown = shown
        self._current: Answering | None = None

    def begin(
        self,
        chat: Conversation,
        at: int,
        question: str | None,
        request: GenerationRequest,
        begun: Trace | None = None,
    ) -> None:
        """Generate an answer to `question` as turn `at` (None: to the question before it), or go on with the
        one that was begun. Only when the engine is READY."""
        pair = self._session.pair
        name = pair.target.name if pair is not None else ""
        answering = self._current = Answering(self._store, self, chat, at, question, name, begun)
        self._shown.begin(answering)
        answering.save_question()
        self._shown.asked(answering)
        self.saved.emit()
        self._session.generate(request, answering)

    def of(self, chat_id: str) -> Answering | None:
        """The answer that is being written for a chat, if there is one."""
        current = self._current
        return current if current is not None and current.chat.id == chat_id else None

    def close(self) -> None:
        """Before the window goes, and after the engine: leave an answer as far as it came."""
        if self._current is not None:
            self._current.close()

    # ------------------------------------------------------------------ what becomes of it

    def answer_progress(self, answering: Answering, text: str) -> None:
        if answering is self._shown.live:
            self._page.transcript.set_progress(text)

    def answer_started(self, answering: Answering) -> None:
        if answering is self._shown.live:
            self._shown.start(answering)
        self.saved.emit()

    def answer_rounds(self, answering: Answering, rounds: list[Round], context_used: int) -> None:
        if answering is self._shown.live:
            self._shown.add_rounds(answering, rounds)

    def answer_finished(self, answering: Answering, totals: Totals) -> None:
        self._current = None
        self.saved.emit()
        if answering is not self._shown.live:
            return
        words = NOTES.get(totals.finish_reason)
        action = CONTINUE if totals.finish_reason is FinishReason.LENGTH else ""
        note = Note(words, _HINTS.get(totals.finish_reason, ""), action) if words is not None else None
        self._shown.end(answering, totals, note)
        if answering.trace is not None:
            self.prompt_measured.emit(answering.trace.header, totals)

    def answer_failed(self, answering: Answering, failed: Failed) -> None:
        self._current = None
        self.saved.emit()
        shown = answering is self._shown.live
        if answering.trace is None:
            # Refused before anything was decoded: back to where the user acted, whatever chat is there now.
            if shown:
                self._page.transcript.finish(None)
                self._shown.show(answering.chat)
            self._page.prompt.give_back(answering.question, failed.message, failed.hint)
            return
        if not shown:
            return
        action = "Answer again" if failed.gone else ""
        self._shown.end(answering, None, Note(failed.message, failed.hint, action))

    def answer_not_saved(self, error: UserError) -> None:
        self._page.prompt.show_error(error.message, error.hint)
