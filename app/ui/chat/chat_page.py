"""The Chat place: the list of chats, the transcript with its prompt box, the instruments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QSplitter, QVBoxLayout, QWidget

from app.saved.chats.conversation import ChatHead
from app.ui.chat.list.chat_list import ChatList
from app.ui.chat.prompt.prompt_box import PromptBox
from app.ui.chat.recording_bar import RecordingBar
from app.ui.instruments import InstrumentsPanel
from app.ui.theme import Theme
from app.ui.transcript import Legend, TranscriptView

# Pixels at text scale 1.
COLUMN = 792  # the transcript's column and its margins
NARROW = 960  # a narrower page folds the list of chats by itself, so that the text keeps its room
CRAMPED = 844  # a narrower page folds the instruments as well; it is a window of 900 less the rail
CHATS, MIDDLE, INSTRUMENTS = 210, 360, 340
CHATS_LEAST, INSTRUMENTS_LEAST = 180, 264


class ChatPage(QWidget):
    """Holds the widgets of the Chat place; ChatController gives them their behaviour."""

    sidebar_wanted = Signal(bool)
    """The user folded or unfolded the list of chats in a window that has room for it."""
    instruments_wanted = Signal(bool)
    """The user folded or unfolded the instruments in a window that has room for them."""
    panels_changed = Signal()
    """A panel was folded or unfolded."""

    def __init__(self, theme: Theme, search: Callable[[str], Sequence[ChatHead]]) -> None:
        super().__init__()
        self._theme = theme
        self.chats = ChatList(theme, search)
        self.transcript = TranscriptView(theme)
        # The foot is as high as its words need; the transcript takes the rest.
        self.transcript.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.recording = RecordingBar(theme)
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
        self._foot_row.addWidget(self._foot, 1000)
        self._foot_row.addStretch(1)

        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.recording)
        column.addWidget(self.transcript, 1)
        column.addLayout(self._foot_row)

        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setHandleWidth(1)
        self.splitter.setChildrenCollapsible(False)
        for widget, stretch in ((self.chats, 0), (middle, 1), (self.instruments, 0)):
            self.splitter.addWidget(widget)
            self.splitter.setStretchFactor(self.splitter.count() - 1, stretch)
        self._middle = middle
        self.splitter.setSizes([self._scaled(CHATS), self._scaled(COLUMN), self._scaled(INSTRUMENTS)])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.splitter)
        self._sidebar = self._instruments = True
        self._narrow = self._cramped = False
        theme.changed.connect(self._fit)
        self._fit()

    def set_sidebar(self, wanted: bool) -> None:
        """Show the list of chats where there is room for it, or never."""
        self._sidebar = wanted
        self._show_sidebar(wanted and not self._narrow)

    @Slot()
    def toggle_sidebar(self) -> None:
        """Fold or unfold the list of chats; in a narrow window the choice is not saved."""
        shown = self.chats.isHidden()
        self._show_sidebar(shown)
        if not self._narrow:
            self._sidebar = shown
            self.sidebar_wanted.emit(shown)

    def set_instruments(self, wanted: bool) -> None:
        """Show the instruments where there is room for them, or never."""
        self._instruments = wanted
        self._show_instruments(wanted and not self._cramped)

    @Slot()
    def toggle_instruments(self) -> None:
        """Fold or unfold the instruments; in a narrow window the choice is not saved."""
        shown = self.instruments.isHidden()
        self._show_instruments(shown)
        if not self._cramped:
            self._instruments = shown
            self.instruments_wanted.emit(shown)

    def _show_instruments(self, shown: bool) -> None:
        self.instruments.setVisible(shown)
        self._give_room()
        self.panels_changed.emit()

    def _show_sidebar(self, shown: bool) -> None:
        self.chats.setVisible(shown)
        self._give_room()
        self.panels_changed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()
        chats, middle, side = self.splitter.sizes()
        if event.size().width() < event.oldSize().width() and middle < side:
            # The transcript gives way first: no panel stays wider than the text that it is about.
            self.splitter.setSizes([chats, (middle + side) // 2, (middle + side) // 2])

    def _fold(self) -> None:
        narrow = self.width() < self._scaled(NARROW)
        if narrow != self._narrow:
            self._narrow = narrow
            self._show_sidebar(self._sidebar and not narrow)
        cramped = self.width() < self._scaled(CRAMPED)
        if cramped != self._cramped:
            self._cramped = cramped
            self._show_instruments(self._instruments and not cramped)
        self._give_room()

    def _give_room(self) -> None:
        """Let panels that the user unfolds in a narrow window take room from the transcript, and no more than
        they need; they overlap nothing."""
        room = self.width()
        for panel in (self.chats, self.instruments):
            room -= panel.minimumWidth() * (not panel.isHidden())
        self._middle.setMinimumWidth(min(self._scaled(MIDDLE), max(160, room)))

    @Slot()
    def _fit(self) -> None:
        self._foot.setMaximumWidth(self._scaled(COLUMN))
        self.chats.setMinimumWidth(self._scaled(CHATS_LEAST))
        self.instruments.setMinimumWidth(self._scaled(INSTRUMENTS_LEAST))
        self._fold()

    def _scaled(self, pixels: int) -> int:
        return round(pixels * self._theme.scale)
