"""The answer that is being written: asked for, followed, and brought to an end."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.engine.errors import UserError
from app.engine.loop.pace import PAUSED, TRUE_SPEED
from app.engine.process.messages import Failed
from app.engine.record.trace import Trace
from app.engine.types import GenerationRequest
from app.saved.chats.conversation import Conversation, Question
from app.saved.chats.store import ChatStore
from app.ui.chat.answers.answering import Answering
from app.ui.chat.chat_page import ChatPage
from app.ui.chat.shown_chat import ShownChat
from app.ui.state.engine.engine_session import EngineSession
from app.ui.widgets.notice import WayOut

_TEMPLATE = "chat template"  # in the words of every error of one
_AGAIN = 2000  # milliseconds between two tries to write what could not be written


class AnswersController(QObject):
    """Runs one answer at a time, also while another chat is on the screen."""

    saved = Signal()  # the list of chats changed
    asked = Signal(object)  # the AnswerModel of an answer that is being asked for

    def __init__(self, page: ChatPage, store: ChatStore, session: EngineSession, shown: ShownChat) -> None:
        super().__init__()
        self._page = page
        self._store = store
        self._session = session
        self._shown = shown
        self._current: Answering | None = None
        self._unsaved: dict[str, Answering] = {}  # answers that could not be written, the last of each chat
        self._told: dict[str, UserError] = {}  # why, by the notices' causes
        self._again = QTimer(self, interval=_AGAIN)
        self._again.timeout.connect(self.save_unsaved)

    def begin(
        self,
        chat: Conversation,
        at: int,
        question: Question | None,
        request: GenerationRequest,
        begun: Trace | None = None,
    ) -> None:
        """Generate an answer to `question` as turn `at` (None: to the question before it), or continue the
        answer `begun`. Only when the engine is READY, and after `save_unsaved`."""
        unsaved = self._unsaved.pop(chat.id, None)  # its turns are in `chat`: the new ones bring them along
        owed = unsaved.owed if unsaved is not None else {}
        pair = self._session.pair
        name = pair.target.name if pair is not None else ""
        answering = self._current = Answering(self._store, chat, at, question, name, begun, owed)
        answering.saved.connect(self.saved)
        answering.not_saved.connect(self._not_saved)
        answering.refused.connect(self._refused)
        answering.over.connect(self._over)
        self.asked.emit(answering.answer)
        self._shown.begin(answering)
        answering.save_question()
        self._shown.asked()
        self.saved.emit()
        speed, self._session.next_speed = self._session.next_speed, TRUE_SPEED
        if self._session.server is not None:
            speed = TRUE_SPEED  # it writes at its own
        answering.held = speed == PAUSED
        self._session.generate(request, answering, speed)

    def of(self, chat_id: str) -> Answering | None:
        """The answer that is being written for a chat, if there is one."""
        current = self._current
        return current if current is not None and current.chat.id == chat_id else None

    def unsaved(self, chat_id: str) -> Conversation | None:
        """A chat as it was on the screen, where not all of it could be written."""
        unsaved = self._unsaved.get(chat_id)
        return unsaved.chat if unsaved is not None else None

    @Slot()
    def save_unsaved(self) -> None:
        """Try to write what could not be written; the notices stay until it is."""
        for chat_id, answering in list(self._unsaved.items()):
            on_screen = self._shown.chat.id == chat_id
            if on_screen:
                answering.chat = self._shown.chat  # its system prompt may have changed since
            if answering.save_again():
                del self._unsaved[chat_id]
                self.saved.emit()
            if on_screen:
                self._shown.chat = answering.chat
        if not self._unsaved and self._current is None:
            self._again.stop()
            while self._told:
                self._page.prompt.notices.withdraw(self._told.popitem()[0])

    def remind(self) -> None:
        """Tell again what could not be written, after the notices were cleared."""
        for cause, error in self._told.items():
            self._page.prompt.notices.tell(error, cause=cause)

    def close(self) -> None:
        """Save the unfinished answer, and what could not be written before; called before the window closes
        and after the engine has ended."""
        if self._current is not None:
            self._current.close()
        self.save_unsaved()

    @Slot()
    def _over(self) -> None:
        over, self._current = self._current, None
        if over is not None and over.unsaved:
            self._unsaved[over.chat.id] = over
        if self._told:
            self._again.start()

    @Slot(object)
    def _refused(self, failed: Failed) -> None:
        """Nothing was decoded: put the question back into the prompt box and show the error."""
        refused = self._current
        assert refused is not None
        if refused is self._shown.live:
            self._shown.show(refused.chat)
        prompt = self._page.prompt
        # A template may be missing on a server, or fail on these messages.
        offers = [WayOut("Use completion", prompt.use_completion)] if _TEMPLATE in failed.message else []
        prompt.give_back(refused.question, failed.message, failed.hint, *offers)

    @Slot(object)
    def _not_saved(self, error: UserError) -> None:
        cause = f"not saved: {error.message}"
        self._told[cause] = error
        self._page.prompt.notices.tell(error, cause=cause)
