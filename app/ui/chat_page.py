"""The Chat place: the list of chats, the transcript with its prompt box, the instruments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QVBoxLayout, QWidget

from app.chats.conversation import ChatHead
from app.ui.chat_list import ChatList
from app.ui.instruments import InstrumentsPanel
from app.ui.prompt_box import PromptBox
from app.ui.theme import Theme
from app.ui.transcript import Legend, TranscriptView

COLUMN = 792  # pixels at text scale 1: the transcript's column and its margins


class ChatPage(QWidget):
    """Holds the widgets of the place; ChatController makes them act."""

    def __init__(self, theme: Theme, search: Callable[[str], Sequence[ChatHead]]) -> None:
        super().__init__()
        self._theme = theme
        self.chats = ChatList(theme, search)
        self.transcript = TranscriptView(theme)
        self.legend = Legend(theme)
        self.prompt = PromptBox(theme)
        self.instruments = InstrumentsPanel(theme)

        self._foot = QWidget()
        foot = QVBoxLayout(self._foot)
        foot.setContentsMargins(0, 8, 0, 16)
        foot.setSpacing(8)
        foot.addWidget(self.legend)
        foot.addWidget(self.prompt)
        self._foot_row = QHBoxLayout()
        self._foot_row.setContentsMargins(16, 0, 16, 0)
        self._foot_row.addStretch(1)
        self._foot_row.addWidget(self._foot, 100)
        self._foot_row.addStretch(1)

        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.transcript, 1)
        column.addLayout(self._foot_row)

        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setHandleWidth(1)
        self.splitter.setChildrenCollapsible(False)
        for widget, stretch in ((self.chats, 0), (middle, 1), (self.instruments, 0)):
            self.splitter.addWidget(widget)
            self.splitter.setStretchFactor(self.splitter.count() - 1, stretch)
        self.chats.setMinimumWidth(180)
        middle.setMinimumWidth(360)
        self.instruments.setMinimumWidth(260)
        self.splitter.setSizes([220, 800, 350])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.splitter)
        theme.changed.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        self._foot.setMaximumWidth(round(COLUMN * self._theme.scale))
