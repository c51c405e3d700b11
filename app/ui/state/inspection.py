"""Which answer the Inspector shows, and how the other places and a dropped file open it there."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QDropEvent

from app.ui.state.answer import AnswerModel


class Inspection(QObject):
    """The answer in the Inspector: the chat's, until another place opens one of its own."""

    changed = Signal()  # the answer or its name changed
    opened = Signal()  # the Inspector is to be shown
    left = Signal()  # the place where it was opened is to be shown again
    reading = Signal(bool)  # whether a file is being read, whose answer will be shown

    def __init__(self) -> None:
        super().__init__()
        self.answer: AnswerModel | None = None
        self.name = ""  # what the answer is called where it comes from, such as a chat's title
        self._chat: tuple[AnswerModel | None, str] = (None, "")

    @property
    def is_chats(self) -> bool:
        """Whether the answer is the chat's."""
        return self.answer is self._chat[0]

    def follow_chat(self, answer: AnswerModel | None, name: str) -> None:
        """The chat chose another answer, or none. It is shown unless another place's answer is."""
        showing = self.answer is self._chat[0]
        self._chat = answer, name
        if showing:
            self.show_chat()

    def show_chat(self) -> None:
        """Show the chat's answer."""
        self._show(*self._chat)

    def open(self, answer: AnswerModel, index: int, name: str = "") -> None:
        """Show a round of an answer in the Inspector; `name` is that of an answer which is not the chat's."""
        if answer is self._chat[0]:
            self.show_chat()
        else:
            self._show(answer, name)
        answer.pin(index)
        self.opened.emit()

    @Slot()
    def leave(self) -> None:
        """Go back to where the Inspector was opened."""
        self.left.emit()

    def _show(self, answer: AnswerModel | None, name: str) -> None:
        if (answer, name) != (self.answer, self.name):
            self.answer, self.name = answer, name
            self.changed.emit()


def dropped_trace(event: QDropEvent) -> Path | None:
    """The trace file that is being dropped; None where it is anything else."""
    urls = event.mimeData().urls()
    file = Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
    return file if file is not None and file.suffix == ".jsonl" else None
