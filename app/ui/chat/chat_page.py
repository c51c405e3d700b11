"""The Chat place: the list of chats, the transcript with its prompt box, the instruments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.engine.record.trace import Trace
from app.engine.strategy import SERVER
from app.engine.types import TraceHeader
from app.saved.chats.conversation import ChatHead
from app.ui.chat.chat_list import ChatList
from app.ui.chat.prompt_box import PromptBox
from app.ui.instruments import InstrumentsPanel
from app.ui.theme import Theme
from app.ui.transcript import Legend, TranscriptView
from app.ui.transcript.text.facts import manner
from app.ui.widgets import kit
from app.ui.widgets.words import count, dotted, pair_words, where_words, whole


class RecordingBar(QWidget):
    """Replaces the chips of the loaded pair, which is unrelated to the recording."""

    close_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        # File names may contain markup.
        self.name, self.facts = (
            kit.label("", role, wrap=True, plain=True, selectable=True) for role in ("strong", "caption")
        )
        self.close_it = kit.button("Close recording", self.close_requested)
        kit.row(
            (kit.column(self.name, self.facts, spacing=2), 1),
            (self.close_it, 0, Qt.AlignmentFlag.AlignVCenter),
            margins=(16, 10, 16, 10),
            spacing=16,
            on=self,
        )
        kit.ground(self, "recording")
        self.setAccessibleName("Recording")
        self.hide()

    def show_recording(self, trace: Trace, file: str) -> None:
        """Describe a trace that was read from a file."""
        self.name.setText(f"Recording · {file}")
        self.facts.setText("\n".join(recording_facts(trace.header)))
        self.setAccessibleDescription(f"{self.name.text()}. {self.facts.text()}")
        self.show()


def recording_facts(header: TraceHeader) -> tuple[str, str]:
    """The time, machine and settings of a trace, one line each."""
    pair = header.pair
    where = [header.machine, *reversed(where_words(pair))]
    if pair.server is not None:
        where = [*where_words(pair), "devices and threads unknown"]
    made = [_moment(header.started_at), *where, f"Draftscope {header.app_version}"]
    strategy = header.strategy
    if pair.server is not None and strategy == SERVER:
        strategy = f"{'+'.join(pair.server.speculation)} on the server"
    settings = [pair_words(pair), strategy]
    short = [*manner(header).split("  ·  "), f"seed {header.seed}"]
    settings += map(whole, [*short, f"at most {count(header.max_tokens)} tokens"])
    return dotted(made), dotted(settings)


def _moment(stamp: str) -> str:
    """A time stamp in local time; other texts unchanged."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%d %B %Y, %H:%M").lstrip("0")
    except ValueError:
        return stamp


# Pixels at text scale 1.
COLUMN = 792  # the transcript's column and its margins
NARROW = 1040  # a narrower page folds the list of chats by itself, so that the text keeps its room
CRAMPED = 844  # a narrower page folds the instruments as well; it is a window of 900 less the rail
CHATS, MIDDLE, INSTRUMENTS = 210, 360, 340
CHATS_LEAST, INSTRUMENTS_LEAST = 180, 264
MESSAGES = 0.4  # share of the height that messages may take before they scroll


class ChatPage(QWidget):
    """Contains the widgets of the Chat place; ChatController adds their behaviour."""

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
        self.recording = RecordingBar()
        self.legend = Legend(theme)
        self.prompt = PromptBox(theme)
        self.instruments = InstrumentsPanel(theme)

        self._foot = kit.holder(kit.column(self.legend, self.prompt, margins=(0, 8, 0, 16), spacing=8))
        self._foot_row = kit.row(kit.Spring(1), (self._foot, 1000), kit.Spring(1), margins=(16, 0, 16, 0))

        middle = kit.column(self.recording, (self.transcript, 1), self._foot_row, spacing=0)
        self._middle = kit.holder(middle)
        self.splitter = kit.splitter((self.chats, 0), (self._middle, 1), (self.instruments, 0))
        self.splitter.setHandleWidth(1)
        self.splitter.setSizes([self._scaled(CHATS), self._scaled(COLUMN), self._scaled(INSTRUMENTS)])
        kit.column(self.splitter, on=self)
        self._sidebar = self._instruments = True
        self._narrow = self._cramped = False
        theme.follow(self._fit)

    def set_sidebar(self, wanted: bool) -> None:
        """Show the list of chats if there is room for it, or never."""
        self._sidebar = wanted
        self._show_sidebar(wanted and not self._narrow)

    def toggle_sidebar(self) -> None:
        """Fold or unfold the list of chats; in a narrow window the choice is not saved."""
        shown = self.chats.isHidden()
        self._show_sidebar(shown)
        if not self._narrow:
            self._sidebar = shown
            self.sidebar_wanted.emit(shown)

    def set_instruments(self, wanted: bool) -> None:
        """Show the instruments if there is room for them, or never."""
        self._instruments = wanted
        self._show_instruments(wanted and not self._cramped)

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
        self.prompt.messages.setMaximumHeight(round(MESSAGES * event.size().height()))
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
        """In a narrow window, unfolded panels take from the transcript only the room that they need; nothing
        overlaps."""
        room = self.width()
        for panel in (self.chats, self.instruments):
            room -= panel.minimumWidth() * (not panel.isHidden())
        self._middle.setMinimumWidth(min(self._scaled(MIDDLE), max(160, room)))

    def _fit(self) -> None:
        self._foot.setMaximumWidth(self._scaled(COLUMN))
        self.chats.setMinimumWidth(self._scaled(CHATS_LEAST))
        self.instruments.setMinimumWidth(self._scaled(INSTRUMENTS_LEAST))
        self._fold()

    def _scaled(self, pixels: int) -> int:
        return round(pixels * self._theme.scale)
