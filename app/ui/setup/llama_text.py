"""The llama.cpp command for the settings in use, to read and to copy."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.engine.explain.llama_command import LlamaCommand
from app.ui.theme import Theme
from app.ui.widgets.icons import IconButton
from app.ui.widgets.text.mono_text import NBSP, MonoText

_VALUE = re.compile(r"(?<= )(--\S+) (?!--)")  # an option and its value stay on one line


class LlamaText(QWidget):
    """The command, wrapped, and below it what llama.cpp does differently."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        heading = QLabel("For llama.cpp")
        heading.setProperty("role", "strong")
        self._copy_button = IconButton(theme, "copy", "Copy the llama.cpp command")
        self._copy_button.clicked.connect(self._copy)
        self._text = MonoText(theme)
        self._differences = QLabel()
        self._differences.setTextFormat(Qt.TextFormat.PlainText)
        self._differences.setProperty("role", "caption")
        self._differences.setWordWrap(True)
        row = QHBoxLayout()
        row.addWidget(heading)
        row.addStretch()
        row.addWidget(self._copy_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addLayout(row)
        layout.addWidget(self._text)
        layout.addWidget(self._differences)
        self._shown: LlamaCommand | None = None
        self.set_command(LlamaCommand(""))

    def set_command(self, command: LlamaCommand) -> None:
        """Show a command; where it has no text, its differences say why."""
        if command == self._shown:
            return
        self._shown = command
        self._text.set_text(_VALUE.sub(rf"\1{NBSP}", command.text))
        self._text.setVisible(bool(command.text))
        self._copy_button.setEnabled(bool(command.text))
        self._differences.setText("\n".join(command.differences))
        self._differences.setVisible(bool(command.differences))

    @Slot()
    def _copy(self) -> None:
        assert self._shown is not None
        QGuiApplication.clipboard().setText(self._shown.text)
