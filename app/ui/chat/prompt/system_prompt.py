"""The part of the prompt box where a chat's system prompt is read and edited."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from app.ui.chat.prompt.prompt_edit import PromptEdit

DELAY_MS = 500
LINES = 4


class SystemPrompt(QWidget):
    """A caption, the text and a line below it."""

    edited = Signal(str)
    """The user edited the text; comes shortly after the last key."""
    left = Signal()
    """Enter was pressed: the focus returns to the prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.edit = PromptEdit(LINES)
        self.edit.setAccessibleName("System prompt")
        self.edit.setPlaceholderText("How the model should answer in this chat")
        self.edit.focus_changed.connect(self.tell)
        self.edit.entered.connect(self.left)
        self.told = ""  # the text that was last reported
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self.tell)
        self.edit.textChanged.connect(self._timer.start)
        caption = QLabel("System prompt")
        caption.setProperty("role", "caption")
        line = QFrame()
        line.setProperty("kind", "line")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 8, 0)
        layout.setSpacing(4)
        layout.addWidget(caption)
        layout.addWidget(self.edit)
        layout.addSpacing(4)
        layout.addWidget(line)
        self.setFocusProxy(self.edit)

    def show_text(self, text: str) -> None:
        """Show a chat's system prompt, without a signal."""
        self.told = text
        if text != self.edit.text():
            self.edit.set_text(text)
        self._timer.stop()

    @Slot()
    def tell(self) -> None:
        """Report an edit now, if there was one."""
        self._timer.stop()
        text = self.edit.text()
        if text != self.told:
            self.told = text
            self.edited.emit(text)
