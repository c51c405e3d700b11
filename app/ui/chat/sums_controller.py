"""The sums over answers: opened from the instruments, kept up to date while they are open."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.ui.chat.chat_controller import ChatController
from app.ui.chat.chat_page import ChatPage
from app.ui.instruments.sums_panel import WIDTH, SinceReset, Sums, SumsPanel
from app.ui.state.engine_session import EngineSession
from app.ui.theme import Theme
from app.ui.widgets.background import Throttle
from app.ui.widgets.popover import Popover


class SumsController(QObject):
    """Shows the sums of the answer and the chat on the screen, and of all answers since the last reset."""

    def __init__(self, theme: Theme, page: ChatPage, chat: ChatController, session: EngineSession) -> None:
        super().__init__()
        self.since_reset = SinceReset()
        self._page = page
        self._shown = chat.shown
        self._session = session
        self.panel = SumsPanel(theme)
        self.popover = Popover(theme, self.panel, WIDTH)
        self.popover.setParent(page)  # until it opens in the window
        self._soon = Throttle(self._show, self)
        page.instruments.head.sums.clicked.connect(self._open)
        page.instruments.head.reset_requested.connect(self.since_reset.reset)
        self.panel.reset_requested.connect(self._reset)
        chat.answers.asked.connect(self.since_reset.follow)
        chat.shown.answer_shown.connect(self._renew)
        self.since_reset.changed.connect(self._renew)

    def _open(self) -> None:
        self._show()
        self.popover.open_below(self._page.instruments.head.sums)

    def _reset(self, forget: bool) -> None:
        if forget:
            self._session.forget()
        self.since_reset.reset()

    def _renew(self) -> None:
        if self.popover.isVisible():
            self._soon.request()

    def _show(self) -> None:
        answer = self._shown.answer
        mine = [answer] if answer is not None else []
        self.panel.show_sums((Sums.over(mine), Sums.over(self._shown.answers), self.since_reset.sums))
