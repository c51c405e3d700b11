"""The versions of an answer: shows another one, and compares them."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.engine.errors import UserError
from app.saved.chats.conversation import Answer
from app.saved.chats.store import ChatStore
from app.ui.chat.answers.asking import why_not
from app.ui.chat.answers.versions_panel import WIDTH, VersionsPanel
from app.ui.chat.chat_page import ChatPage
from app.ui.chat.shown_chat import ShownChat
from app.ui.state.answer import AnswerModel
from app.ui.state.engine.engine_session import EngineSession
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn
from app.ui.widgets.popover import Popover


class VersionsController(QObject):
    """Takes what is asked for at an answer with versions."""

    changed = Signal()  # the stored chat changed
    inspect_requested = Signal(object, int, str)  # an answer, a round, its name

    def __init__(
        self, theme: Theme, page: ChatPage, store: ChatStore, session: EngineSession, shown: ShownChat
    ) -> None:
        super().__init__()
        self._theme = theme
        self._page = page
        self._store = store
        self._session = session
        self._shown = shown
        page.transcript.version_requested.connect(self._show)
        page.transcript.comparison_requested.connect(self._compare)

    @Slot(object, int)
    def _show(self, turn: AnswerTurn, version: int) -> None:
        """Let the chat go on from another version."""
        shown = self._shown
        if shown.live is not None:
            self._page.prompt.notices.tell(*why_not(self._session.activity))
            return
        answer = self._answer(turn)
        if answer is None or turn.at is None or version >= len(answer.versions):
            self._page.prompt.notices.tell("The other version of this answer was not saved.")
            return
        self._page.prompt.tell_system()
        try:
            chat = self._store.show_version(shown.chat, turn.at, version)
        except UserError as error:
            self._page.prompt.notices.tell(error)
            return
        shown.show(chat)
        self._page.transcript.show_turn_at(turn.at)
        self.changed.emit()

    @Slot(object, object)
    def _compare(self, turn: AnswerTurn, anchor: QWidget) -> None:
        """Open the table of the versions beside their arrows."""
        chat, answer = self._shown.chat, self._answer(turn)
        if answer is None:
            return
        versions = answer.versions
        traces = [self._store.load_trace(chat.id, version).trace for version in versions]
        panel = VersionsPanel(traces, answer.version)
        popover = Popover(self._theme, panel, WIDTH)

        def inspect(at: int) -> None:
            popover.close_panel()
            trace = traces[at]
            if at == answer.version:
                self.inspect_requested.emit(turn.answer, 0, "")
            elif trace is not None:
                name = f"{self._shown.name}, version {at + 1} of {len(versions)}"
                self.inspect_requested.emit(AnswerModel(trace), 0, name)

        panel.inspect_asked.connect(inspect)
        popover.closed.connect(popover.deleteLater)
        popover.open_below(anchor)

    def _answer(self, turn: AnswerTurn) -> Answer | None:
        """The stored answer of a turn; None while it is not begun."""
        turns = self._shown.chat.turns
        found = turns[turn.at] if turn.at is not None and turn.at < len(turns) else None
        return found if isinstance(found, Answer) else None
