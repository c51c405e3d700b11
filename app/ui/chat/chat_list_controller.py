"""Renames, deletes, restores and finds the chats of the list, and empties the trash."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine.errors import UserError
from app.saved.chats.conversation import ChatHead
from app.saved.chats.store import ChatStore
from app.ui.chat.answers import AnswersController
from app.ui.chat.chat_page import ChatPage
from app.ui.chat.shown_chat import ShownChat
from app.ui.state.engine_session import EngineSession

_UNREAD = "chats not read"  # the cause of a notice
LOOK_MS = 1000
"""How often the store is checked for changes by another window; a check reads the time of a single file."""


class ChatListController(QObject):
    """Connects the list of chats with the store. The Chat place chooses which chat is shown."""

    deleted = Signal(str)  # id of a chat that was put into the trash
    restored = Signal(str)  # id of a chat that was taken out of the trash

    def __init__(
        self,
        page: ChatPage,
        store: ChatStore,
        session: EngineSession,
        shown: ShownChat,
        answers: AnswersController,
    ) -> None:
        super().__init__()
        self._page = page
        self._store = store
        self._session = session
        self._shown = shown
        self._answers = answers
        self._deleted: list[str] = []
        page.chats.renamed.connect(self._rename)
        page.chats.delete_requested.connect(self.delete)
        page.chats.undo_requested.connect(self._undo_delete)
        answers.saved.connect(self.refresh)
        self._version = 0  # of the chats in the list
        look = QTimer(page.chats, interval=LOOK_MS)
        look.timeout.connect(self._look)
        look.start()

    def refresh(self) -> None:
        """Read the list of chats again."""
        self._read()
        self._page.chats.set_current(self._shown.chat.id)

    def _look(self) -> None:
        """Read the list again where another window saved, renamed or deleted a chat."""
        if self._store.version() != self._version:
            self._read()

    def _read(self) -> None:
        self._version = self._store.version()
        self._page.chats.set_chats(self.heads())

    def heads(self) -> list[ChatHead]:
        """All chats; empty where the folder cannot be read, and the error is shown."""
        try:
            heads = self._store.heads()
        except UserError as error:
            self._page.prompt.notices.tell(error, cause=_UNREAD)
            return []
        self._page.prompt.notices.withdraw(_UNREAD)
        return heads

    def delete(self, chat_id: str) -> None:
        """Put a chat into the trash, where Undo finds it; an answer that is being written for it stops."""
        head = next((head for head in self.heads() if head.id == chat_id), None)
        if self._answers.of(chat_id) is not None:
            self._session.stop()
        if head is None:
            self._page.prompt.notices.tell(
                "This chat is not on the disk, so there is nothing to put into the trash.",
                "Begin another one with New chat.",
            )
            return
        if not self._try(lambda: self._store.delete(chat_id)):
            return
        self._deleted.append(chat_id)
        self._page.chats.show_deleted(head.title)
        self.deleted.emit(chat_id)
        self.refresh()

    def empty_trash(self) -> None:
        """Remove the deleted chats for good."""
        self._try(self._store.empty_trash)
        self._page.chats.hide_deleted()

    def _rename(self, chat_id: str, title: str) -> None:
        self._try(lambda: self._store.rename(chat_id, title))
        self.refresh()

    def _undo_delete(self) -> None:
        if not self._deleted:
            return
        chat_id = self._deleted[-1]
        if self._try(lambda: self._store.restore(chat_id)):
            self._deleted.pop()
            self._page.chats.hide_deleted()
            self.refresh()
            self.restored.emit(chat_id)

    def _try(self, action: Callable[[], object]) -> bool:
        try:
            action()
        except UserError as error:
            self._page.prompt.notices.tell(error)
            return False
        return True
