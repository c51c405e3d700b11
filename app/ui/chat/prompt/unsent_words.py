"""Keeps what is typed in the prompt box with its chat, within a second of typing."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Slot

from app.engine.errors import UserError
from app.saved.chats.conversation import Question
from app.saved.chats.unsent import NOTHING, Unsent
from app.ui.chat.prompt.prompt_box import PromptBox
from app.ui.widgets.work.throttle import Throttle

DELAY_MS = 700
_AGAIN_MS = 2000  # between two tries to write what could not be written
_CAUSE = "unsent"


class UnsentWords(QObject):
    """The words of the chat on the screen."""

    def __init__(
        self, prompt: PromptBox, unsent: Unsent, chat_id: Callable[[], str], words: Callable[[], Question]
    ) -> None:
        """`chat_id` gives the id of the chat on the screen, "" while it is new; `words` what is not sent."""
        super().__init__(prompt)  # its timer ends with the prompt box
        self._prompt = prompt
        self._unsent = unsent
        self._chat_id, self._words = chat_id, words
        self._id = ""  # the chat of the words that were last kept
        self._kept = NOTHING
        self._owed: dict[str, Question] = {}  # what is not written yet, by chats
        self._again = QTimer(self, interval=_AGAIN_MS)
        self._again.timeout.connect(self._write)
        self._soon = Throttle(self.keep, self, DELAY_MS)
        prompt.typed.connect(self._soon.request)

    def show(self) -> None:
        """Put the words of another chat into the prompt box; those before were kept."""
        self._id, self._kept = self._chat_id(), NOTHING
        try:
            self._kept = self._unsent.read(self._id)
        except UserError as error:
            self._prompt.notices.tell(error)
        self._kept = self._owed.get(self._id, self._kept)
        self._prompt.set_unsent(self._kept)

    @Slot()
    def keep(self) -> None:
        """Save the words, where they changed or their chat was saved for the first time."""
        chat_id, words = self._chat_id(), self._words()
        if (chat_id, words) != (self._id, self._kept):
            self._owed |= {self._id: NOTHING, chat_id: words}
            self._id, self._kept = chat_id, words
        if error := self._write():
            self._prompt.notices.tell(error, cause=_CAUSE)

    @Slot()
    def _write(self) -> UserError | None:
        """Write what is not written yet; the notice stays until it is. Returns why it cannot be."""
        try:
            for chat_id in list(self._owed):
                self._unsent.keep(chat_id, self._owed[chat_id])
                del self._owed[chat_id]
        except UserError as error:
            self._again.start()
            return error
        self._again.stop()
        self._prompt.notices.withdraw(_CAUSE)
        return None
