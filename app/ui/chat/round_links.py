"""Rounds that are pointed at: from the transcript to the instruments, and back."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.ui.chat.chat_page import ChatPage
from app.ui.chat.shown_chat import ShownChat


class RoundLinks(QObject):
    """A token shows its round in the plots; a round chosen in a plot shows its tokens."""

    def __init__(self, page: ChatPage, shown: ShownChat) -> None:
        super().__init__()
        self._page = page
        self._shown = shown
        page.transcript.round_hovered.connect(self._preview)
        page.transcript.token_clicked.connect(self._pin)
        page.instruments.round_pinned.connect(self._find)

    @Slot(str, int)
    def _preview(self, turn_id: str, index: int) -> None:
        trace = self._shown.trace_of(turn_id)
        if trace is not None and trace is self._shown.trace:
            self._page.instruments.preview_round(index if index >= 0 else None)

    @Slot(str, int)
    def _pin(self, turn_id: str, index: int) -> None:
        trace = self._shown.trace_of(turn_id)
        if trace is not None:
            self._shown.choose(trace)
            self._page.instruments.pin_round(index)

    @Slot(object)
    def _find(self, index: int | None) -> None:
        if index is None or self._shown.trace is None:
            return
        for turn_id in self._shown.turn_ids():
            if self._shown.trace_of(turn_id) is self._shown.trace:
                self._page.transcript.show_round(turn_id, index)
                return
