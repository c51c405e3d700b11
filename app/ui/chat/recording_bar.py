"""The strip above an opened trace: that it is a recording, of what, when and where."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.engine.record.trace import Trace
from app.engine.strategy import SERVER
from app.engine.types import TraceHeader
from app.ui.theme import Theme
from app.ui.transcript.text.answer_words import manner
from app.ui.widgets.words.model_words import pair_words, where_words
from app.ui.widgets.words.numbers import count


class RecordingBar(QWidget):
    """Takes the place of the chips of the loaded pair, which has nothing to do with the recording."""

    close_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.name = QLabel()
        self.facts = QLabel()
        for label in (self.name, self.facts):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)  # file names may contain markup
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.close_it = QPushButton("Close recording")
        self.close_it.clicked.connect(self.close_requested)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.name)
        words.addWidget(self.facts)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 10, 16, 10)
        row.setSpacing(16)
        row.addLayout(words, 1)
        row.addWidget(self.close_it, 0, Qt.AlignmentFlag.AlignVCenter)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName("Recording")
        theme.changed.connect(self._apply_theme)
        self._apply_theme()
        self.hide()

    def show_recording(self, trace: Trace, file: str) -> None:
        """Describe a trace that was read from a file."""
        self.name.setText(f"Recording · {file}")
        self.facts.setText("\n".join(recording_facts(trace.header)))
        self.setAccessibleDescription(f"{self.name.text()}. {self.facts.text()}")
        self.show()

    @Slot()
    def _apply_theme(self) -> None:
        palette = self._theme.palette
        self.setStyleSheet(
            f"RecordingBar {{ background: {palette.panel}; border-bottom: 1px solid {palette.line}; }}"
        )
        self.name.setFont(self._theme.sans(0, QFont.Weight.Medium))
        self.facts.setFont(self._theme.sans(-1))
        self.facts.setStyleSheet(f"color: {palette.secondary}")


def recording_facts(header: TraceHeader) -> tuple[str, str]:
    """When and where a trace was made, and with what: one line each."""
    pair = header.pair
    where = [header.machine, *reversed(where_words(pair))]
    if pair.server is not None:
        where = [*where_words(pair), "devices and threads unknown"]
    made = [_moment(header.started_at), *where, f"Draftscope {header.app_version}"]
    strategy = header.strategy
    if pair.server is not None and strategy == SERVER:
        strategy = f"{'+'.join(pair.server.speculation)}, the server's"
    settings = [pair_words(pair), strategy, manner(header).replace("  ", " ")]
    settings += [f"seed {header.seed}", f"at most {count(header.max_tokens)} tokens"]
    return " · ".join(filter(None, made)), " · ".join(filter(None, settings))


def _moment(stamp: str) -> str:
    """A time stamp in local time; the text itself where it is no time."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%d %B %Y, %H:%M").lstrip("0")
    except ValueError:
        return stamp
