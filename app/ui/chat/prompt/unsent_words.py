"""Keeps what is typed in the prompt box with its chat, within a second of typing."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot

from app.engine.errors import UserError
from app.saved.chats.conversation import Question
from app.saved.chats.unsent import NOTHING, Unsent
from app.ui.chat.prompt.prompt_box import PromptBox
from app.ui.widgets.work.throttle import Throttle

DELAY_MS = 700
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
        self._id = ""  # where the words are kept
        self._kept = NOTHING
        self._soon = Throttle(self.keep, self, DELAY_MS)
        prompt.typed.connect(self._soon.request)

    def show(self) -> None:
        """Put the words of another chat into the prompt box; those before were kept."""
        self._id, self._kept = self._chat_id(), NOTHING
        try:
            self._kept = self._unsent.read(self._id)
        except UserError as error:
            self._prompt.notices.tell(error)
        self._prompt.set_unsent(self._kept)

    @Slot()
    def keep(self) -> None:
        """Save the words, where they changed or their chat was saved for the first time."""
        chat_id, words = self._chat_id(), self._words()
        if (chat_id, words) == (self._id, self._kept):
            return
        try:
            self._unsent.keep(chat_id, words)
            if chat_id != self._id:
                self._unsent.keep(self._id, NOTHING)
        except UserError as error:
            self._prompt.notices.tell(error, cause=_CAUSE)
            return
        self._id, self._kept = chat_id, words
        self._prompt.notices.withdraw(_CAUSE)
